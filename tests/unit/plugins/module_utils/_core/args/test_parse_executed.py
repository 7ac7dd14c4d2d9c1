"""Command lines and --config files that the releases' own parsers were given: same verdict, same message, same values.

The cases are a sample, by kind of outcome, of 2,200 to 8,300 generated per release and executed: each flag alone, with `=`,
short, with underscores, a single dash or capitals, repeated, without value, with wrong and too many values, `--no-` twins,
mixtures, files.
"""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.config_file import merge
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.flags import read_flags
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.parser import ArgvError, build
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import open_source
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError

FILE = Path(__file__).parents[5] / "fixtures" / "args" / "parse_executed.json"
VERSIONS = sorted({case["version"] for case in json.loads(FILE.read_text())})


def plain(value):
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return {str(key): plain(item) for key, item in value.items()} if isinstance(value, dict) else value


def outcome(table, case):
    """Return ("values", what differs from the defaults) or ("message", text), ("beyond", …) where the file is not read here."""
    parser = build(table)
    defaults = vars(parser.parse_args(["--model-path", "m"]))
    try:
        argv = merge(table, case["argv"], functools.partial(_read, case)) if "file" in case else case["argv"]
        found = vars(parser.parse_args(argv))
    except ArgvError as stop:
        return "message", stop.message
    except InferopsError:
        return "beyond", None
    except FileNotFoundError as exc:
        return "message", f"Config file not found: {exc.filename}"
    return "values", {name: plain(value) for name, value in found.items() if value != defaults[name]}


def _read(case, path):
    if path == "missing.yaml":
        raise FileNotFoundError(2, "No such file", path)
    return case["file"]


def message_here(recorded):
    """Return a message recorded with Python 3.11 as argparse has it here: from 3.13 on ``-hicache`` begins with -h."""
    if sys.version_info >= (3, 13) and recorded.startswith("argument -h/--help: ignored explicit argument"):
        return "stops after printing its help or version"
    return recorded


@pytest.mark.wheel
@pytest.mark.parametrize("version", VERSIONS)
def test_parsing_ends_as_when_it_was_executed(wheel, version):
    table = read_flags(open_source(wheel(version)))
    cases = [case for case in json.loads(FILE.read_text()) if case["version"] == version]
    wrong, beyond = [], 0
    for case in cases:
        got = outcome(table, case)
        beyond += got[0] == "beyond"
        want = ("values", case["values"]) if "values" in case else ("message", message_here(case["message"]))
        if got[0] != "beyond" and got != want:
            wrong.append((case["argv"], case.get("file"), want, got))
    assert wrong == []
    # Files of a YAML nobody writes options in are undecided, not misread.
    assert beyond <= len(cases) // 8
