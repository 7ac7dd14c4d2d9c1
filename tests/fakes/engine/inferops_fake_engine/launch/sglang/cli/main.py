"""``sglang serve ARGV`` (the console script of the installed SGLang calls ``main``)."""

import sys


def main() -> None:
    words = sys.argv[1:]
    if words[:1] != ["serve"]:
        print("the simulated engine knows `sglang serve` only", file=sys.stderr)
        sys.exit(2)
    from inferops_fake_engine.main import run

    rest = words[1:]
    if rest and not rest[0].startswith("-"):
        rest = ["--model-path", *rest]
    sys.exit(run(rest))
