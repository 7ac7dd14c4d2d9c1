"""The core stands alone: no ansible, no third party outside the edges that name theirs, relative imports inside."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

CORE = Path(__file__).resolve().parents[5] / "plugins" / "module_utils" / "_core"
# The edges: the gate's HTTP client and plan reader (YAML where it is installed, JSON always), and the NVML binding.
# Everything that checks arguments runs on the standard library alone.
EDGES = {"gate": {"aiohttp", "yaml"}, "nvml": {"pynvml"}}
FILES = sorted(CORE.rglob("*.py"))


def _imports(path: Path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", node.level


def _allowed(path: Path) -> set[str]:
    rel = path.relative_to(CORE)
    names = set()
    if rel.parts[0] == "gate":
        names |= EDGES["gate"]
    if "gpu" in rel.stem or "nvml" in rel.stem:
        names |= EDGES["nvml"]
    return names


def test_the_core_is_where_it_is_looked_for():
    assert len(FILES) > 20


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(CORE).as_posix())
def test_imports_nothing_from_outside(path):
    outside = []
    for name, level in _imports(path):
        top = name.partition(".")[0]
        if level or top in sys.stdlib_module_names or top in _allowed(path):
            continue
        outside.append(name)
    assert outside == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(CORE).as_posix())
def test_relative_imports_stay_inside_the_core(path):
    depth = len(path.relative_to(CORE).parts)
    assert [name for name, level in _imports(path) if level > depth] == []


def test_galaxy_takes_the_name_of_every_plugin_file():
    """Galaxy's importer refuses the whole collection where a file of module_utils has two underscores in a row in its name."""
    for path in (CORE.parents[1]).rglob("*.py"):
        assert path.name == "__init__.py" or re.fullmatch(r"(?!.*__)[a-z][0-9a-z_]*", path.stem), path
