"""``python -m sglang.launch_server ARGV``."""

import sys

from inferops_fake_engine.main import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
