# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The command line over the core. Each area registers its own subcommands; this file only dispatches.

Exit status: 0 fine, 1 refused or failed, 2 could not run, 3 inconclusive or unknown outcome.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys

from .errors import InferopsError

AREAS = ("args", "topology", "gate", "release")
COULD_NOT_RUN = 2


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="inferops", description="Check SGLang arguments and judge SGLang throughput.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for area in AREAS:
        importlib.import_module(f".{area}.command", __package__).register(commands)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one subcommand; each registered one sets ``run``, a function of the namespace that returns the exit status."""
    namespace = build_parser().parse_args(argv)
    try:
        return int(namespace.run(namespace))
    except InferopsError as exc:
        print(exc, file=sys.stderr)
        return COULD_NOT_RUN
    except KeyboardInterrupt:
        print("interrupted; partial results are kept", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
