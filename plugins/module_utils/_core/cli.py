# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The command line over the core. Each area registers its own subcommands; this file only dispatches.

Of the areas only the one a command belongs to is imported: all of them take longer than a check out of its cache.

Exit status: 0 fine, 1 refused or failed, 2 could not run, 3 inconclusive or unknown outcome, 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
import traceback

from .errors import InferopsError

# The subcommands each area registers.
AREAS = {
    "args": ("check", "explain", "flags", "diff"),
    "topology": ("memory",),
    "gate": ("gate", "report", "compare"),
    "router": ("enrol",),
    "observe": ("metrics",),
    "release": ("transact", "status", "front", "serve"),
}
COULD_NOT_RUN = 2
EXAMPLES = """\
examples:
  what does this release make of my command line, before anything starts?
    inferops check --source sglang-0.5.23-*.whl --facts facts.json -- --model-path /srv/models/kimi-k2.6 --pp-size 8
  what switches the decode graphs off in it?
    inferops explain cuda-graph --source sglang-0.5.23-*.whl -- --pp-size 8
  what would an upgrade change for this command line?
    inferops diff --from sglang-0.5.19-*.whl --to sglang-0.5.23-*.whl -- --pp-size 8
  is the server that runs as fast as it must be?
    inferops gate --base-url http://127.0.0.1:30000 --plan plan.yml --out result

exit status: 0 fine, 1 refused or failed, 2 could not run, 3 inconclusive or unknown
The server's arguments come after --. `inferops COMMAND --help` has the options of one command.
"""


def build_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of one subcommand, or of all where it is none of ours: then help or an error names them all."""
    parser = argparse.ArgumentParser(
        prog="inferops",
        description="Check SGLang arguments and judge SGLang throughput.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    meant = [area for area, names in AREAS.items() if command in names]
    for area in meant or AREAS:
        importlib.import_module(f".{area}.command", __package__).register(commands)
    return parser


def _parse(words: list[str]) -> argparse.Namespace:
    """Parse our own words; those behind the first ``--`` are the server's arguments, whatever they look like.

    argparse alone loses them where a positional of ours stands before an option (``explain TOPIC --source … -- …``).
    """
    parser = build_parser(words[0] if words else None)
    at = words.index("--") if "--" in words else len(words)
    namespace, strange = parser.parse_known_args(words[:at])
    if not hasattr(namespace, "argv"):
        return parser.parse_args(words)
    if strange or namespace.argv:
        spare = " ".join([*strange, *namespace.argv])
        parser.error(f"unrecognized arguments: {spare}" + ("" if words[at:] else "; the server's arguments come after --"))
    namespace.argv = words[at + 1 :]
    return namespace


def main(argv: list[str] | None = None) -> int:
    """Run one subcommand; each registered one sets ``run``, a function of the namespace that returns the exit status."""
    try:
        namespace = _parse(list(sys.argv[1:] if argv is None else argv))
        return _delivered(int(namespace.run(namespace)))
    except InferopsError as exc:
        print(exc, file=sys.stderr)
        return COULD_NOT_RUN
    except KeyboardInterrupt:
        print("interrupted; partial results are kept", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _drop_output()
        return COULD_NOT_RUN
    except OSError as exc:
        print(f"could not run: {exc}", file=sys.stderr)
        with contextlib.suppress(OSError):
            _drop_output()
        return COULD_NOT_RUN
    except Exception:  # a fault of ours must not read as a refusal
        traceback.print_exc()
        return COULD_NOT_RUN


def _delivered(status: int) -> int:
    """Return the status once all output is out; a reader that has read enough (``| head``) does not change the verdict."""
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            _drop_output()
        except OSError as exc:
            print(f"the output cannot be written: {exc.strerror}", file=sys.stderr)
            _drop_output()
            return COULD_NOT_RUN
    return status


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    raise SystemExit(main())
