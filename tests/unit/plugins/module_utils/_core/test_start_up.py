"""What starting the command line costs is what it imports: the area of the command, and of that what every call needs."""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core import cli

MODULE_UTILS = Path(__file__).resolve().parents[5] / "plugins" / "module_utils"
SHOWN = "import json, sys; from _core.cli import main; main(sys.argv[1:]); print(json.dumps(sorted(sys.modules)))"


def imported(*words):
    done = subprocess.run(
        [sys.executable, "-c", SHOWN, *words], cwd=MODULE_UTILS, capture_output=True, text=True, check=True, timeout=60
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("area", cli.AREAS)
def test_the_table_names_what_each_area_registers(area):
    commands = argparse.ArgumentParser().add_subparsers()
    importlib.import_module(f"{cli.__package__}.{area}.command").register(commands)

    assert tuple(commands.choices) == cli.AREAS[area]


@pytest.mark.parametrize("words", [["--help"], ["chek"]])
def test_whoever_asks_for_no_command_of_ours_is_told_all_of_them(words, capsys):
    with pytest.raises(SystemExit):
        cli.build_parser(words[0]).parse_args(words)
    said = "".join(capsys.readouterr())

    known = [name for names in cli.AREAS.values() for name in names]
    assert all(name in said for name in known)


def test_a_check_imports_its_own_area_and_the_interpretation_only_when_it_interprets():
    names = imported("check", "--source", "/nowhere", "--", "--x")
    ours = {name.split(".")[1] for name in names if name.startswith("_core.")}

    assert ours <= {"args", "cli", "errors", "topology"}
    assert not [name for name in names if name.startswith(("urllib.request", "http.", "asyncio"))]
