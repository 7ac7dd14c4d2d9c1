"""Whatever is given as a release ends in a table or in a refusal that names the file: no crash, no hang, nothing executed."""

from __future__ import annotations

import ast
import os
import sysconfig
import time
import zipfile
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.flags import UNKNOWN, read_flags
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import open_source
from ansible_collections.inferops.sglang.plugins.module_utils._core.cli import main
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError

CALLS = "\n".join(f"        parser.add_argument('--flag-{number}', type=int, default=1)" for number in range(70))


def release(root: Path, head: str = "", calls: str = "", **files: str) -> Path:
    """Write a release of the oldest shape; head stands before ServerArgs, calls go into add_cli_args."""
    srt = root / "sglang" / "srt"
    srt.mkdir(parents=True)
    record = "class ServerArgs:\n    model_path: str = ''\n    def add_cli_args(parser):"
    (srt / "server_args.py").write_text(f"{head}\n{record}\n{CALLS}\n{calls}\n")
    for name, text in files.items():
        (srt / f"{name}.py").write_text(text)
    return root


def flag(root: Path, name: str = "--x"):
    return read_flags(open_source(root)).by_string(name)


BOMBS = {
    "power": "X = [((10**63)**63)**63 ** 63]",
    "shift": "X = [1 << 10**12]",
    "text": "X = ['a' * 10**12]",
    "list": "X = [0] * 10**12",
    "doubling": "A0 = ['a'] * 8\n" + "\n".join(f"A{n + 1} = A{n} + A{n}" for n in range(60)) + "\nX = A60",
    "unpacking": "A0 = ['a'] * 8\n" + "\n".join(f"A{n + 1} = [*A{n}, *A{n}]" for n in range(60)) + "\nX = A60",
    "replace": "X = ['aaaaaaaaaa'" + ".replace('a', 'aaaaaaaaaa')" * 30 + "]",
    "format": "X = ['{:>1000000000000}'.format(1)]",
    "join": "X = [','.join(['a' * 1000] * 1000)" + ".join(['b'] * 100000)" * 3 + "]",
    "branching": "def f(n):\n    return [f(n), f(n)]\nX = f(1)",
    "tree": "\n".join(f"def f{n}():\n    return [f{n + 1}(), f{n + 1}()]" for n in range(60))
    + "\ndef f60():\n    return 1\nX = f0()",
    "class": "class K:\n    a = K.b\n    b = K.a\nX = [K.a]",
    "regex": "import re\nX = [re.fullmatch('(a+)+b', 'a' * 60)]",
    "nested": "X = " + "[" * 80 + "]" * 80,
    "sum": "X = [" + "+".join(["1"] * 3000) + "]",
    "self": "X = X",
}

# Deeper than the interpreter follows: refused. All others are undecided, and the rest of the table is read.
DEEP = ("sum",)


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_source_made_to_run_for_ever_is_undecided_in_time(tmp_path, bomb):
    begin = time.process_time()
    release(tmp_path, BOMBS[bomb], "        parser.add_argument('--x', choices=X)")
    try:
        assert flag(tmp_path).choices is UNKNOWN or len(flag(tmp_path).choices) < 10
    except InferopsError as refusal:
        assert bomb in DEEP, refusal
    assert time.process_time() - begin < 20


def test_a_parameter_of_the_limits_does_not_cut_what_releases_do(tmp_path):
    head = "X = ['a'] * 5 + [2 ** 40, 'b'.upper(), ','.join(['c', 'd'])]"
    release(tmp_path, head, "        parser.add_argument('--x', choices=X)")
    assert flag(tmp_path).choices == ("a",) * 5 + (2**40, "B", "c,d")


def test_constants_that_import_each_other_are_undecided(tmp_path):
    one, two = "from sglang.srt.two import *\nX = Y\nZ = ['z']\n", "from sglang.srt.one import *\nY = X\n"
    release(
        tmp_path,
        "from sglang.srt.one import *\nfrom sglang.srt.two import Y",
        "        parser.add_argument('--x', choices=X)\n        parser.add_argument('--z', choices=Z)",
        one=one,
        two=two,
    )
    assert flag(tmp_path).choices is UNKNOWN
    assert flag(tmp_path, "--z").choices == ("z",)


def test_a_flag_whose_name_is_not_decided_makes_the_release_unreadable(tmp_path):
    release(tmp_path, "import os", "        parser.add_argument(os.environ['FLAG'], type=int)")
    with pytest.raises(InferopsError, match="no reader here knows") as caught:
        read_flags(open_source(tmp_path))
    assert "server_args.py:" in caught.value.why


def test_nothing_of_the_source_runs(tmp_path):
    mark = tmp_path / "ran"
    evil = f"open({str(mark)!r}, 'w')\nX = [__import__('os').system('touch {mark}'), eval('1'), ().__class__.__bases__]"
    release(tmp_path, evil, "        parser.add_argument('--x', choices=X, type=lambda text: eval(text))")
    assert flag(tmp_path).choices is UNKNOWN
    assert flag(tmp_path).convert("1") is UNKNOWN
    assert not mark.exists()


def test_syntax_newer_than_ours_names_the_line(tmp_path):
    release(tmp_path, "x = 1\ndef f[T](x: T)(y): pass\n")
    with pytest.raises(InferopsError) as caught:
        read_flags(open_source(tmp_path))
    assert "srt/server_args.py" in caught.value.where
    assert "line 2" in caught.value.why


def test_a_namespace_file_that_cannot_be_read_is_not_passed_over(tmp_path):
    fields = tmp_path / "sglang" / "srt" / "arg_groups" / "fields"
    fields.mkdir(parents=True)
    (tmp_path / "sglang" / "srt" / "server_args.py").write_text(
        "class ServerArgs:\n    def add_cli_args(parser):\n        pass\n"
    )
    (fields / "a.py").write_text("class Model:\n    model_path: A[str, 'help'] = 'm'\n")
    assert flag(tmp_path, "--model-path") is not None
    (fields / "b.py").write_text("class Other:\n    x: A[int, 'help' = 1\n")
    with pytest.raises(InferopsError) as caught:
        read_flags(open_source(tmp_path))
    assert "fields/b.py" in caught.value.where


def _wheel(path: Path, text: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("sglang/srt/server_args.py", text)
    return path


def _truncated(path: Path) -> None:
    _wheel(path, os.urandom(9000))
    path.write_bytes(path.read_bytes()[:-500])


def _corrupt(path: Path) -> None:
    _wheel(path, b"x = 1\n" * 4000)
    content = bytearray(path.read_bytes())
    content[60:90] = b"\xff" * 30
    path.write_bytes(content)


def _encrypted(path: Path) -> None:
    _wheel(path, b"x = 1\n")
    content = bytearray(path.read_bytes())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)


def _other_content(path: Path) -> None:
    """A member that unpacks well and is not what the archive's directory has the checksum of."""
    _wheel(path, b"x = 1\n" * 40)
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 16] ^= 1
    path.write_bytes(content)


WHEELS = {
    "text": lambda path: path.write_text("this is no wheel"),
    "empty": lambda path: path.write_bytes(b""),
    "no sglang": lambda path: zipfile.ZipFile(path, "w").writestr("other.py", ""),
    "truncated": _truncated,
    "corrupt": _corrupt,
    "encrypted": _encrypted,
    "other content": _other_content,
    "bomb": lambda path: _wheel(path, b"#" * (20 << 20)),
    "not text": lambda path: _wheel(path, b"\xff\xfe\x00"),
}


@pytest.mark.parametrize("make", WHEELS)
def test_a_bad_wheel_is_exit_status_2_with_a_reason(tmp_path, capsys, make):
    path = tmp_path / "sglang-9.9.9-py3-none-any.whl"
    WHEELS[make](path)
    with pytest.raises(InferopsError) as caught:
        read_flags(open_source(path))
    assert str(path) in caught.value.where
    assert make != "other content" or "damaged" in caught.value.what
    assert caught.value.why
    assert caught.value.do
    assert main(["flags", "--source", str(path)]) == 2
    assert caught.value.what in capsys.readouterr().err


def test_pipes_and_devices_are_not_read(tmp_path):
    head = "from sglang.srt.pipe import X\nfrom sglang.srt.zero import Y"
    root = release(tmp_path, head, "        parser.add_argument('--x', choices=X)")
    os.mkfifo(root / "sglang" / "srt" / "pipe.py")
    (root / "sglang" / "srt" / "zero.py").symlink_to("/dev/zero")
    assert flag(root).choices is UNKNOWN


STDLIB = sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py"))
# A fixed sample here; INFEROPS_FULL_SWEEP=1 feeds every file.
SAMPLE = STDLIB if os.environ.get("INFEROPS_FULL_SWEEP") == "1" else STDLIB[:: max(len(STDLIB) // 60, 1)]


def test_no_file_of_the_standard_library_crashes_the_readers(tmp_path):
    target = tmp_path / "sglang" / "srt" / "server_args.py"
    target.parent.mkdir(parents=True)
    for path in SAMPLE:
        target.write_bytes(path.read_bytes())
        with pytest.raises(InferopsError):
            read_flags(open_source(tmp_path))
        # And as what the arguments import everything from.
        target.write_text(f"from sglang.srt.library import *\nclass ServerArgs:\n    def add_cli_args(parser):\n{CALLS}\n")
        library = target.with_name("library.py")
        library.write_bytes(path.read_bytes())
        tree = open_source(tmp_path)
        names = tree.module("srt/library.py")
        calls = [f"        parser.add_argument('--x-{n}', choices={name})" for n, name in enumerate(_names(names))]
        target.write_text(target.read_text() + "\n".join(calls) + "\n")
        assert len(read_flags(open_source(tmp_path)).flags) == 70 + len(calls)


def _names(module):
    body = module.body if module else []
    return [node.id for stmt in body if isinstance(stmt, ast.Assign) for node in stmt.targets if isinstance(node, ast.Name)][:50]
