# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is parsed piece by piece is what parsing the whole file gives: same nodes, same places, same names."""

from __future__ import annotations

import ast
import random
import sysconfig
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.chunks import ClassDef
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.outline import (
    by_name,
    fields,
    members,
    outline_of,
)
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import open_source

SMALL = '''"""Text with \\"\\"\\" in it."""
from a import (
    b,  # a comment, with a comma
    c as d,
)
import e; f = 1
g = h = 2
i, j = 3, 4
k: int
l: dict[str, int] = {"x": 1}
g += 1
m.append("""
def not_a_function(): pass
""")
if k:
    n = 1
else:
    o = 1
@decorated(
    p
)
def q(): yield
async def r(): pass
class S(Base):

    # A comment alone.

    t: int = 1
    u = """
def not_a_method(self): pass
"""
    @property
    def v(self):
        return {
    1: 2,
        }
    @v.setter
    def v(self, w): pass
'''


def _same(text):
    """Compare piece by piece with the whole; return whether anything was parsed piece by piece."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        assert dict(outline_of(text)) == {}
        return False
    outline = outline_of(text)
    # Lines between brackets that look like statements are found out by the statement they belong to.
    for chunk in outline.chunks:
        assert all(one.body for one in chunk.parse() if isinstance(one, ast.ClassDef))
    pieces = [one for chunk in outline.chunks for one in chunk.parse()]
    assert [_dump(one) for one in pieces] == [_dump(one) for one in body]
    # The order in which one statement binds several names tells nothing.
    assert {name: [_dump(one) for one in found] for name, found in outline.items()} == {
        name: [_dump(one) for one in found] for name, found in by_name(body).items() if name in outline
    }
    for one, other in zip(pieces, body, strict=True):
        if isinstance(other, ast.ClassDef):
            known = {name: [_dump(inner) for inner in found] for name, found in members(one).items()}
            assert known == {name: [_dump(inner) for inner in found] for name, found in by_name(other.body).items()}
            assert [_dump(inner) for inner in fields(one)] == [_dump(inner) for inner in fields(other)]
    return len(outline.chunks) > 1


def _dump(node):
    text = ast.dump(node, include_attributes=True)
    # A class that is cut ends, as far as it knows itself, with its head.
    return text if not isinstance(node, ast.ClassDef) else ast.dump(node), [ast.dump(one) for one in ast.walk(node)]


def test_every_kind_of_statement():
    assert _same(SMALL)
    assert set(outline_of(SMALL)) == {*"bdefghijklmnoqrS"}
    assert _same(SMALL.replace("    t: int", "    t: int = 0\n" * 60 + "    t: int"))


def test_a_long_class_is_not_parsed_for_its_head():
    text = "class Long(Base):\n" + "".join(f"    field_{n}: int = {n}\n    def f{n}(self): return {n}\n" for n in range(60))
    (node,) = outline_of(text)["Long"]
    assert isinstance(node, ClassDef)
    assert not any(chunk.parsed for chunk in node.members)
    assert [one.name for one in members(node)["f7"]] == ["f7"]
    assert sum(chunk.parsed for chunk in node.members) == 1
    assert len(list(fields(node))) == 60
    assert sum(chunk.parsed for chunk in node.members) == 61


def test_a_broken_member_is_found_when_it_is_asked_for():
    text = "class Long:\n" + "    x = 1\n" * 60 + "    def f(self: pass\n"
    (node,) = outline_of(text)["Long"]
    with pytest.raises(SyntaxError):
        members(node)["f"]


@pytest.mark.parametrize("part", range(4))
def test_files_of_the_standard_library(part):
    folder = Path(sysconfig.get_paths()["stdlib"])
    names = [path for path in sorted(folder.rglob("*.py")) if "site-packages" not in path.parts and path.stat().st_size < 150_000]
    cut = 0
    for path in random.Random(part).sample(names, 40):
        try:
            cut += _same(path.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            continue
    assert cut > 20


@pytest.mark.wheel
@pytest.mark.parametrize("version", ["0.5.12", "0.5.23"])
def test_the_argument_code_of_releases(wheel, version):
    tree = open_source(wheel(version))
    for rel in [*tree.glob("srt/server_args"), *tree.glob("srt/arg_groups/"), *tree.glob("srt/configs/model_config")]:
        assert _same(tree.read(rel)) or len(tree.read(rel)) < 2000, rel


@pytest.mark.wheel
def test_what_was_parsed_at_once_is_not_parsed_again(wheel):
    tree = open_source(wheel("0.5.12"))
    module = tree.required("srt/server_args.py")
    (node,) = tree.statements("srt/server_args.py", "ServerArgs")
    assert any(one is node for one in module.body)
