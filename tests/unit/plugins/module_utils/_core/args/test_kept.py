# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Kept answers: the same as those worked out, only for the same question about the same source, and without a secret."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args import check as check_module
from ansible_collections.inferops.sglang.plugins.module_utils._core.args import module_input
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.answers import Answers, code_files, default_answers
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.kept import check_kept
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import open_source
from ansible_collections.inferops.sglang.plugins.module_utils._core.cli import main
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError

MODULE_UTILS = Path(__file__).resolve().parents[6] / "plugins" / "module_utils"
RECORD = """
import argparse
import dataclasses
from sglang.sizes import PAGE


@dataclasses.dataclass
class ServerArgs:
    model_path: str
    pp_size: int = 1
    page_size: int = 1
    api_key: str = None

    def __post_init__(self):
        self.model_path = self.model_path
        if self.pp_size > 1:
            self.page_size = PAGE

    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser):
        parser.add_argument("--model-path", type=str, required=True)
        parser.add_argument("--pp-size", type=int, default=ServerArgs.pp_size)
        parser.add_argument("--page-size", type=int, default=ServerArgs.page_size)
        parser.add_argument("--api-key", type=str, default=None)
        parser.add_argument("--config", type=str, default=None)
"""
MORE = "\n".join(f"        parser.add_argument('--flag-{number}', type=int, default=1)" for number in range(70))
REBUILT = """
    @classmethod
    def from_cli_args(cls, args: argparse.Namespace):
        return cls(**{attr.name: getattr(args, attr.name) for attr in dataclasses.fields(cls)})


def prepare(argv):
    return ConfigArgumentMerger().merge(argv)
"""
MERGER = """
import yaml


class ConfigArgumentMerger:
    def merge(self, argv):
        return argv
"""
PIPELINE = ["--model-path", "/m", "--pp-size", "8"]


@pytest.fixture
def tree(tmp_path):
    """A release of a few lines, as a folder."""
    srt = tmp_path / "tree" / "sglang" / "srt"
    srt.mkdir(parents=True)
    (srt.parent / "version.py").write_text('__version__ = "0.5.99"\n')
    (srt / "server_args.py").write_text(RECORD + MORE + REBUILT)
    (srt.parent / "sizes.py").write_text("PAGE = 16\n")
    (srt / "server_args_config_parser.py").write_text(MERGER)
    for folder in (srt, srt.parent):
        (folder / "__init__.py").touch()
    return tmp_path / "tree"


@pytest.fixture
def packed(tree, tmp_path):
    """The same release as a wheel."""
    path = tmp_path / "sglang-0.5.99-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(tree.rglob("*.py")):
            archive.write(file, file.relative_to(tree).as_posix())
    return path


@pytest.fixture
def answers(tmp_path):
    return Answers(tmp_path / "answers" / "check")


@pytest.fixture
def asked_for(monkeypatch):
    """How often a check was worked out."""
    calls = []
    real = check_module.check

    def counted(*args, **kwargs):
        calls.append(args)
        return real(*args, **kwargs)

    for module in (check_module, module_input):
        monkeypatch.setattr(module, "check", counted)
    return calls


def names(answers):
    return sorted(path.name for path in answers.folder.iterdir()) if answers.folder.exists() else []


def ask(answers, source, argv=PIPELINE, **more):
    return check_kept(answers, source, {"argv": list(argv), **more})


def page(report):
    return report.effective["page_size"]


@pytest.mark.parametrize("kind", ["tree", "packed"])
def test_the_second_time_it_is_read_and_is_the_same(kind, answers, asked_for, request):
    source = request.getfixturevalue(kind)
    alone, first, second = ask(None, source), ask(answers, source), ask(answers, source)

    assert len(asked_for) == 2
    assert alone.changed["page_size"]["to"] == 16
    for form in ("as_dict", "text", "junit", "github", "summary"):
        assert repr(getattr(alone, form)()) == repr(getattr(first, form)()) == repr(getattr(second, form)())
    assert (alone.exit_status, alone.blocking) == (second.exit_status, second.blocking)


def test_whatever_a_check_is_given_makes_another_question(tree, answers):
    others = {
        "argv": ["--model-path", "/m"],
        "facts": {"sm": 120},
        "model_config": {"architectures": ["LlamaForCausalLM"]},
        "env": {"A": "b"},
        "accept": [{"code": "SGA301", "reason": "it is so"}],
        "expect": {"pp_size": 8},
    }
    ask(answers, tree)
    for index, (name, value) in enumerate(others.items(), start=2):
        check_kept(answers, tree, {"argv": PIPELINE, name: value})
        assert len(names(answers)) == index

    # watch and live are not asked with; read_text and today do not come from whoever asks. A new one belongs into the question.
    given = set(inspect.signature(inspect.unwrap(check_module.check)).parameters)
    assert given == {*others, "source_root", "today", "read_text", "live", "watch"}


def test_whatever_the_module_is_given_makes_another_question(tree, answers, tmp_path):
    (tmp_path / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    base = {"source_root": tree, "args": {"model_path": "/m", "pp_size": 8}}
    others = {
        "args": {"model_path": "/m"},
        "args_label": "those",
        "facts": {"sm": 120},
        "model_config_path": str(tmp_path / "config.json"),
        "env": {"A": "b"},
        "accept": [{"code": "SGA301", "reason": "it is so"}],
        "expect": {"pp_size": 8},
    }
    module_input.check_with(base, answers)
    for index, (name, value) in enumerate(others.items(), start=2):
        module_input.check_with({**base, name: value}, answers)
        assert len(names(answers)) == index
    spec = {"args_label", "source_root", "expect", "live_python", "live_user", *module_input.COMMAND_LINE}
    assert spec == {*others, "argv", "source_root", "live_python", "live_user"}


def test_the_module_reads_it_the_second_time(tree, answers, asked_for):
    params = {"source_root": tree, "args": {"model_path": "/m", "pp_size": 8}}
    alone, first, second = (module_input.check_with(params, one) for one in (None, answers, answers))

    assert len(asked_for) == 2
    assert alone[0] == first[0] == second[0] == PIPELINE
    assert alone[1].text() == first[1].text() == second[1].text()


def test_an_acceptance_that_ends_is_asked_anew_each_day(tree, answers, monkeypatch):
    accept = [{"code": "SGA301", "reason": "it is so", "expires": "2000-01-01"}]
    params = {"source_root": tree, "argv": PIPELINE, "accept": accept}
    module_input.check_with(params, answers)

    class Tomorrow(module_input.datetime.date):
        @classmethod
        def today(cls):
            return cls(2100, 1, 1)

    monkeypatch.setattr(module_input.datetime, "date", Tomorrow)
    module_input.check_with(params, answers)

    assert len(names(answers)) == 2


def test_a_file_with_other_content_counts_whatever_its_size_and_date(tree, answers):
    sizes = tree / "sglang" / "sizes.py"
    assert page(ask(answers, tree)) == 16
    about = sizes.stat()
    sizes.write_text("PAGE = 64\n")
    os.utime(sizes, ns=(about.st_atime_ns, about.st_mtime_ns))

    assert page(ask(answers, tree)) == 64
    sizes.unlink()
    assert "page_size" not in ask(answers, tree).effective


def test_a_file_that_was_missed_counts_once_it_is_there(tree, answers):
    sizes = tree / "sglang" / "sizes.py"
    sizes.unlink()
    assert "page_size" not in ask(answers, tree).effective
    sizes.write_text("PAGE = 32\n")

    assert page(ask(answers, tree)) == 32


def unread(report):
    return [finding.code for finding in report.findings if finding.code == "SGA112"]


@pytest.mark.parametrize("place", ["srt/other.py", "srt/deeper/other.py", "kernels.py"])
@pytest.mark.parametrize("kind", ["tree", "packed"])
def test_a_file_that_was_only_searched_counts_once_it_has_the_word(kind, place, tree, answers, request, asked_for):
    source, variable = request.getfixturevalue(kind), {"SGLANG_ELSEWHERE": "1"}
    assert unread(ask(answers, source, env=variable)) == ["SGA112"]
    ask(answers, source, env=variable)
    assert len(asked_for) == 1
    other = tree / "sglang" / place
    other.parent.mkdir(exist_ok=True)
    other.write_text("SGLANG_ELSEWHERE\n")
    if kind == "packed":
        with zipfile.ZipFile(source, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.write(other, f"sglang/{place}")
    assert unread(ask(answers, source, env=variable)) == []
    before = other.stat().st_size
    if kind == "tree":
        other.write_text("SGLANG_ANYWHERE \n")
        assert other.stat().st_size == before
        assert unread(ask(answers, source, env=variable)) == ["SGA112"]


def test_what_only_other_programs_read_is_not_read_by_the_server(tree):
    for name in ("multimodal_gen", "test"):
        (tree / "sglang" / name).mkdir()
        (tree / "sglang" / name / "one.py").write_text("SGLANG_ELSEWHERE\n")
    assert unread(ask(None, tree, env={"SGLANG_ELSEWHERE": "1"})) == ["SGA112"]


def test_a_folder_lists_its_files_from_wherever_it_is_named(tree, monkeypatch):
    (tree / "sglang" / "srt" / "deeper").mkdir()
    (tree / "sglang" / "srt" / "deeper" / "one.py").touch()
    for place, name in ((tree / "sglang" / "srt", ".."), (tree / "sglang", "."), (tree, "sglang"), (tree, ".")):
        monkeypatch.chdir(place)
        source = open_source(name)
        assert source.glob("srt/dee") == ["srt/deeper/one.py"]
        assert source.glob("siz") == ["sizes.py"]
        assert source.glob("absent/") == []


def test_a_damaged_wheel_is_refused_as_it_is_without_kept_answers(packed, answers):
    ask(answers, packed)
    with zipfile.ZipFile(packed) as archive:
        start = archive.getinfo("sglang/sizes.py").header_offset + 30 + len("sglang/sizes.py") + 2
    content = bytearray(packed.read_bytes())
    content[start] ^= 0xFF
    packed.write_bytes(content)

    for one in (None, answers):
        with pytest.raises(InferopsError, match="damaged"):
            ask(one, packed)


def test_a_wheel_of_the_same_name_with_other_content_is_read_anew(packed, answers, tmp_path):
    assert page(ask(answers, packed)) == 16
    moved = tmp_path / "other" / packed.name
    moved.parent.mkdir()
    with zipfile.ZipFile(packed) as old, zipfile.ZipFile(moved, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, b"PAGE = 64\n" if name.endswith("sizes.py") else old.read(name))

    assert page(ask(answers, moved)) == 64


def test_a_draft_model_with_another_configuration_is_another_question(tree, answers, tmp_path, monkeypatch):
    """Whatever the resolution reads beside the source is noted, also what it does not find."""
    file = tmp_path / "config.json"

    def reading(*args, read_text, **kwargs):
        with contextlib.suppress(OSError):
            read_text(str(file))
        return real(*args, read_text=read_text, **kwargs)

    real = check_module.resolve
    monkeypatch.setattr(check_module, "resolve", reading)
    ask(answers, tree)
    (entry,) = answers.folder.iterdir()
    without = entry.read_bytes()
    ask(answers, tree)
    assert entry.read_bytes() == without
    file.write_text("{}")
    ask(answers, tree)
    assert entry.read_bytes() != without


def test_a_config_file_with_other_content_is_another_question(tree, answers, tmp_path, asked_for):
    file = tmp_path / "serve.yaml"
    argv = ["--model-path", "/m", "--config", str(file)]
    for size, calls in ((4, 1), (4, 1), (8, 2)):
        file.write_text(f"pp-size: {size}\n")
        assert ask(answers, tree, argv).effective["pp_size"] == size
        assert len(asked_for) == calls
    file.unlink()
    assert [one.code for one in ask(answers, tree, argv).findings if one.level == "unknown"] == ["SGA106"]


DAMAGE = {
    "cut": lambda path, body: path.write_bytes(body[:-9]),
    "empty": lambda path, body: path.write_bytes(b""),
    "one bit": lambda path, body: path.write_bytes(body.replace(b"0.5.99", b"0.5.98")),
    "others may write": lambda path, body: path.chmod(0o622),
    "a folder": lambda path, body: (path.unlink(), path.mkdir()),
    "a link": lambda path, body: (path.rename(path.with_name("elsewhere")), path.symlink_to("elsewhere")),
    "a pipe": lambda path, body: (path.unlink(), os.mkfifo(path)),
    "a folder that others may write to": lambda path, body: path.parent.chmod(0o777),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_what_is_not_whole_and_our_own_is_worked_out(damage, tree, answers, asked_for):
    first = ask(answers, tree)
    path = answers.folder / names(answers)[0]
    damage(path, path.read_bytes())

    assert ask(answers, tree).as_dict() == first.as_dict()
    assert len(asked_for) == 2


@pytest.mark.parametrize("place", ["/proc/nowhere", "/dev/null"])
def test_a_folder_that_cannot_be_written_to_is_no_reason_to_fail(place, tree):
    assert page(ask(Answers(Path(place) / "check"), tree)) == 16


def test_only_this_account_can_read_them(tree, answers):
    ask(answers, tree)

    assert [oct(path.stat().st_mode & 0o777) for path in (answers.folder, *answers.folder.iterdir())] == ["0o700", "0o600"]


@pytest.mark.parametrize(
    "words",
    [
        ["--api-key", "hunter2"],
        ["--api-key=hunter2"],
        ["--api-k", "hunter2"],
        ["--api_key", "hunter2"],
        ["--apikey", "hunter2"],
        ["--config", "key.yaml"],
        ["--config", "strange.yaml"],
    ],
    ids=" ".join,
)
def test_with_a_secret_nothing_is_kept_not_even_a_hash(words, tree, answers, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("key.yaml").write_text("api-key: hunter2\n")
    Path("strange.yaml").write_text("pp-size: &anchor 2\n")
    ask(answers, tree, [*PIPELINE, *words])

    assert names(answers) == []
    ask(answers, tree)
    assert len(names(answers)) == 1


@pytest.mark.parametrize("name", ["HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY"])
def test_with_a_secret_in_the_environment_nothing_is_kept(name, tree, answers):
    ask(answers, tree, env={name: "hunter2"})

    assert names(answers) == []


def test_what_a_limit_of_time_left_open_is_worked_out_again(tree, answers, monkeypatch):
    left = {"field": "page_size", "to": None, "source": None, "guard": None, "needs": ["time"]}
    real = check_module.resolve
    monkeypatch.setattr(check_module, "resolve", lambda *args, **kw: dataclasses.replace(real(*args, **kw), undecided=(left,)))
    report = ask(answers, tree)

    assert [entry["needs"] for entry in report.undecided] == [["time"]]
    assert names(answers) == []


def test_many_are_dropped_down_to_the_ones_used_last(tmp_path, monkeypatch):
    from ansible_collections.inferops.sglang.plugins.module_utils._core.args import answers as module

    monkeypatch.setattr(module, "MOST_FILES", 8)
    answers = Answers(tmp_path / "check")
    for number in range(30):
        answers.put(f"{number:064}", {"number": number})
        os.utime(answers.folder / f"{number:064}", ns=(number, number))
    assert len(names(answers)) <= 8
    assert answers.get(f"{29:064}") == {"number": 29}
    assert answers.get(f"{0:064}") is None

    monkeypatch.setattr(module, "MOST_BYTES", 4096)
    for number in range(8):
        answers.put(f"{number:064}", {"text": "x" * 1000})
    assert sum(path.stat().st_size for path in answers.folder.iterdir()) <= 4096
    monkeypatch.setattr(module, "LARGEST", 1000)
    answers.put("large", {"text": "x" * 1000})
    assert answers.get("large") is None


WORKER = """
import shutil, sys
from pathlib import Path
from _core.args.answers import Answers

answers, me = Answers(Path(sys.argv[1])), int(sys.argv[2])
hits = 0
for turn in range(300):
    name = f"{turn % 7:064}"
    found = answers.get(name)
    if found is not None:
        assert found == {"number": turn % 7, "text": "x" * 20000}, found
        hits += 1
    answers.put(name, {"number": turn % 7, "text": "x" * 20000})
    if me == 0 and turn % 50 == 49:
        shutil.rmtree(answers.folder, ignore_errors=True)
print(hits)
"""


def test_many_processes_use_it_at_once_while_one_deletes_it(tmp_path):
    command = [sys.executable, "-c", WORKER, str(tmp_path / "check")]
    running = [
        subprocess.Popen([*command, str(number)], cwd=MODULE_UTILS, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for number in range(4)
    ]
    told = [one.communicate(timeout=120) for one in running]

    assert [said for dummy, said in told] == [""] * 4
    assert all(int(hits) > 0 for hits, dummy in told)
    assert not list((tmp_path / "check").glob(".*"))


def test_every_file_of_ours_that_a_check_comes_to_is_part_of_the_question(tree):
    shown = "import sys; from _core.cli import main; main(sys.argv[1:]); print(*(m.__file__ for n, m in sys.modules.items() "
    shown += "if n.startswith('_core')), sep='\\n')"
    command = [sys.executable, "-c", shown, "check", "--source", str(tree), "--no-cache", "--", *PIPELINE]
    said = subprocess.run(command, cwd=MODULE_UTILS, capture_output=True, text=True, check=True, timeout=60).stdout
    used = {line[len(str(MODULE_UTILS)) + 1 :] for line in said.splitlines() if line.startswith(str(MODULE_UTILS))}
    known = {f"_core/{name}" for name, dummy in code_files()}

    assert len(used) > 50
    assert used <= known | {"_core/__init__.py"}


def test_the_code_is_known_in_an_archive_too(tmp_path):
    def archive(name, text):
        path = tmp_path / name
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr("a/_core/args/check.py", text)
            packed.writestr("a/other.py", text)
        return dict(code_files(path / "a" / "_core"))

    assert archive("one.zip", "x = 1") == archive("two.zip", "x = 1") != archive("three.zip", "x = 2")
    assert len(archive("one.zip", "x = 1")) == 1


def test_where_they_lie_and_how_to_switch_them_off():
    def folder(**environ):
        found = default_answers({"HOME": "/h", **environ})
        return found and str(found.folder)

    home = str(Path("~").expanduser())
    assert folder() == f"{home}/.cache/inferops/check"
    assert folder(XDG_CACHE_HOME="/c") == "/c/inferops/check"
    assert folder(XDG_CACHE_HOME="relative") == f"{home}/.cache/inferops/check"
    assert folder(XDG_CACHE_HOME="/c", INFEROPS_CACHE="/i") == "/i/check"
    assert folder(INFEROPS_CHECK_CACHE="off") is None


@pytest.fixture
def on(monkeypatch, tmp_path):
    monkeypatch.setenv("INFEROPS_CACHE", str(tmp_path / "caches"))
    monkeypatch.delenv("INFEROPS_CHECK_CACHE")
    return Answers(tmp_path / "caches" / "check")


@pytest.mark.wheel
@pytest.mark.parametrize(
    ("command", "form"),
    [(command, form) for command in ("check", "explain", "flags", "diff") for form in ("text", "json")]
    + [(command, form) for command in ("check", "diff") for form in ("junit", "github")],
)
def test_every_command_says_the_same_out_of_it(command, form, wheel, on, capsys, monkeypatch):
    old, new = (str(wheel(version)) for version in ("0.5.5", "0.5.6"))
    line = ["--", "--model-path", "m", "--pp-size", "8", "--disable-cuda-graph"]
    words = {
        "check": ["check", "--source", new, "--format", form, *line],
        "explain": ["explain", "overlap", "--source", new, "--format", form, *line],
        "flags": ["flags", "--source", new, "--format", form],
        "diff": ["diff", "--from", old, "--to", new, "--format", form, *line],
    }[command]
    at = words.index("--format")
    alone = main([*words[:at], "--no-cache", *words[at:]]), capsys.readouterr()
    assert names(on) == []
    first = main(words), capsys.readouterr()
    assert len(names(on)) == 1
    monkeypatch.setattr(
        "ansible_collections.inferops.sglang.plugins.module_utils._core.args.source.open_source", lambda path: 1 / 0
    )
    second = main(words), capsys.readouterr()

    assert alone == first == second


def test_switched_off_by_the_environment_nothing_is_kept(tree, on, monkeypatch):
    monkeypatch.setenv("INFEROPS_CHECK_CACHE", "off")
    main(["check", "--source", str(tree), "--", *PIPELINE])
    assert names(on) == []
    monkeypatch.delenv("INFEROPS_CHECK_CACHE")
    main(["check", "--source", str(tree), "--", *PIPELINE])
    assert len(names(on)) == 1


@pytest.mark.wheel
def test_out_of_it_nothing_of_the_interpretation_is_imported_and_no_wheel_opened(wheel, on):
    shown = "import json, sys; from _core.cli import main; main(sys.argv[1:]); print(json.dumps(sorted(sys.modules)))"
    command = [sys.executable, "-c", shown, "check", "--source", str(wheel("0.5.23")), "--", "--model-path", "m"]
    for dummy in range(2):
        said = subprocess.run(command, cwd=MODULE_UTILS, capture_output=True, text=True, check=True, timeout=60).stdout
    loaded = {name for name in json.loads(said.splitlines()[-1]) if name.startswith("_core")}

    assert not [name for name in loaded if name.startswith(("_core.args.interpret", "_core.args.rules", "_core.args.source."))]
    assert "_core.args.source" not in loaded
    assert len(loaded) < 20


def test_it_may_be_deleted_at_any_time(tree, answers):
    first = ask(answers, tree)
    shutil.rmtree(answers.folder)

    assert ask(answers, tree).as_dict() == first.as_dict()
    assert len(names(answers)) == 1
