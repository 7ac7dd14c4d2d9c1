"""Every command of the pages exists, and a test runs it: this one, or another that is named; what none runs has a reason."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SITE = ROOT / "examples" / "site"
sys.path[:0] = [str(ROOT / "plugins" / "module_utils"), str(ROOT / "tests" / "unit")]
import wheels  # noqa: E402
from _core import cli  # noqa: E402

PAGES = ("*.md", "docs/*.md", "examples/*/*.md", "roles/*/*.md", "inventories/**/*.md")
LANGUAGES = {"sh", "yaml", "json", "ini", "text"}
# A code span that begins with one of these and goes on is a command; without more words it is only a name.
PROGRAMS = re.compile(
    r"(ansible(-\w+)?|antsibull-changelog|apt-get|ci/flags|git|inferops(\.pyz)?|journalctl|make|mokutil|nox|nvidia-smi|pip"
    r"|pytest|python3?|reuse|systemctl|tests/\S+|tools/\S+|\.|export) \S"
)

TESTS = "tests/unit/plugins/module_utils/_core"
# How a command begins, which file runs it, and the words there that do. What lies below molecule/ is run by test_story.
RUN = {
    r"make test": (".ci/run", "exec make test"),
    r"make venv": ("tests/checks/test_runner.py", "environment.programs("),
    r"make (oracle|real|docs)": ("tests/run", '"{0}": ['),
    r"apt-get install": (".ci/run", "apt-get install -y"),
    r"tests/run gpu": ("tests/run", '"gpu": ["tests/gpu"]'),
    r"python3 -m pytest -m gpu": ("tests/unit/fakes/test_gpu_tests.py", '"pytest", "-m", "gpu"'),
    r"tests/run story": ("tests/checks/test_story.py", "def test_story("),
    r"pip download --no-deps( --require-hashes|) ": ("tests/unit/wheels.py", '"download", "--quiet", "--no-deps"'),
    r"tests/lab/lab wheelhouse": ("molecule/shared/create.yml", "'wheelhouse'"),
    r"ansible-playbook deploy.yml .*--check --diff": ("molecule/deploy/converge.yml", "play_words: [--check, --diff]"),
    r"ansible-playbook deploy.yml( +-i inventories/k2_6_pp8)?$": ("molecule/deploy/converge.yml", "play_playbook: deploy.yml"),
    r"ansible-playbook deploy.yml +-i inventories/fleet": ("molecule/fleet/converge.yml", "play_playbook: deploy.yml"),
    r"ansible-playbook playbooks/(router|upgrade).yml +-i inventories/fleet": (
        "molecule/fleet/converge.yml",
        "playbooks/{0}.yml",
    ),
    r"ansible-playbook playbooks/(upgrade|rollback).yml$": ("molecule/rollback/converge.yml", "playbooks/{0}.yml"),
    r"ansible-playbook playbooks/(drift).yml$": ("molecule/drift_adopt/converge.yml", "playbooks/{0}.yml"),
    r"ansible-playbook playbooks/bundle.yml": ("molecule/engine/converge.yml", "playbooks/bundle.yml"),
    r"ansible-playbook playbooks/check.yml -e sglang_service_rehearse_to": (
        "tests/unit/playbooks/test_rehearsal.py",
        "playbooks/check.yml",
    ),
    r"ansible-playbook inferops.sglang.gate": ("tests/unit/fakes/test_gate_playbook.py", "playbooks/gate.yml"),
    r"ansible-playbook inferops.sglang.configure_awx|export CONTROLLER_HOST": ("tests/checks/test_awx.py", "CONTROLLER_HOST="),
    r"ansible-galaxy collection install": ("tests/checks/conftest.py", '"ansible-galaxy", "collection", "install"'),
    r"ansible-galaxy collection build": ("tests/checks/test_runner.py", '"ansible-galaxy", "collection", "build"'),
    r"antsibull-changelog release": ("tests/checks/test_docs.py", '"antsibull-changelog", "release"'),
    r"ansible-vault create": ("tests/checks/test_site.py", '"ansible-vault", "encrypt"'),
    r"ansible-builder (create|build)": ("tests/checks/test_runner.py", '"ansible-builder", "create"'),
    r"ansible-doc": ("tests/checks/test_collection.py", '"ansible-doc"'),
    r"ci/flags": ("tests/checks/test_site.py", '["ci/flags", *words]'),
    r"python3 -m venv .* pip install (-r|ansible-core)": ("tests/lab/inferops_lab/environment.py", '"-m", "venv"'),
    r"inferops.pyz status|/opt/inferops/tools/": ("tests/unit/plugins/lookup/test_core_archive.py", '"status", "--instance"'),
    r"inferops.pyz serve": (f"{TESTS}/release/test_serve.py", '"serve", "--instance"'),
    # Named in a sentence, without what it takes.
    r"(tools/)?inferops (\w+)$": ("tests/unit/tools/test_completion.py", '"{1}"'),
    r"(tools/)?inferops (check|explain|diff) ": (f"{TESTS}/args/test_kept.py", '"{1}": ["{1}", '),
    r"(tools/)?inferops memory ": (f"{TESTS}/topology/test_memory.py", '"memory"'),
    r"(tools/)?inferops (report|compare) ": (f"{TESTS}/gate/test_command.py", '"{1}"'),
    r"inferops check .*--live": (f"{TESTS}/args/live/test_tiers.py", '"--live"'),
    r"tools/inferops --help": ("tests/unit/tools/test_completion.py", '"--help"'),
    r"\. tools/completion": ("tests/unit/tools/test_completion.py", ". tools/completion/inferops.bash"),
    r"python tests/oracle/score.py": ("tests/unit/oracle/test_recordings.py", "scoring.score("),
    r"python -m pytest tests/unit/": ("tests/run", '"tests/unit/plugins/module_utils/_core/args"'),
    r"check-jsonschema ": (f"{TESTS}/gate/test_plan_schema.py", "gate-plan.schema.json"),
}
# These are run by people only.
BY_HAND = {
    r"make demo(-clean| ENGINE=sglang)?": "minutes and root; the stories play its playbooks, tests/unit/lab its judge",
    r"~/.ansible/collections/\S+/tools/demo": "as make demo; test_collection.py sees that the released files are all it takes",
    r"python benchmarks/": "measurements of minutes to hours on a quiet machine; tests/unit/benchmarks holds their arithmetic",
    r"python tests/oracle/evaluate.py": "an hour; tests/unit/oracle/test_evaluate.py holds what it makes of the cases",
    r"pytest tests/oracle/test_live.py": "where the environment of 3 GB is installed",
    r"tools/flag_history.py": "reads all 62 published wheels; tests/unit/plugins holds the table it wrote",
    r"ansible-navigator run": "needs the image, which needs a registry; its ansible-playbook is the one of the tests",
    r"git init": "git's own",
    r"pip install check-jsonschema": "another project's; the schemas are read by jsonschema in the tests",
    r"journalctl|systemctl|nvidia-smi|mokutil": "the machine's own, on a host in trouble",
}


def pages() -> Iterator[Path]:
    for pattern in PAGES:
        yield from sorted(ROOT.glob(pattern))


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """Language and text of every block."""
    yield from re.findall(r"^ *```(\w*)\n(.*?)^ *```", page.read_text("utf-8"), re.M | re.S)


def commands() -> Iterator[tuple[str, str]]:
    """Page and command line, of blocks and of sentences; continued lines joined, comments left out."""
    for page in pages():
        name = str(page.relative_to(ROOT))
        for language, text in blocks(page):
            if language == "sh":
                for line in re.sub(r"\\\n\s*", "", text).splitlines():
                    command = re.sub(r"(^|\s)#\s.*", "", line).strip()
                    if command:
                        yield name, command
        plain = re.sub(r"^ *```.*?^ *```", "", page.read_text("utf-8"), flags=re.M | re.S)
        for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", plain):
            command = " ".join(span.split())
            if PROGRAMS.match(command):
                yield name, command


ALL = sorted(set(commands()))


def test_every_block_says_its_language():
    """A block without one would escape these tests, and be shown without colours."""
    assert [(page.name, text) for page in pages() for language, text in blocks(page) if language not in LANGUAGES] == []


@pytest.mark.parametrize("command", sorted({command for dummy, command in ALL}))
def test_a_test_runs_it_or_a_reason_is_given(command):
    if command in HERE or any(re.match(begin, command) for begin in BY_HAND):
        return
    found = [(re.match(begin, command), *where) for begin, where in RUN.items()]
    found = [one for one in found if one[0]]
    assert found, f"no test runs `{command}`: name one in RUN, run it in HERE, or give a reason in BY_HAND"
    for match, file, words in found:
        assert words.format(*match.groups()) in (ROOT / file).read_text("utf-8"), f"{file} does not run `{command}`"


def test_the_tables_hold_nothing_that_no_page_says():
    said = [command for dummy, command in ALL]
    assert [begin for begin in (*RUN, *BY_HAND) if not any(re.match(begin, command) for command in said)] == []
    assert [command for command in HERE if command not in said] == []


def option_names(parser_of: str) -> set[str] | None:
    actions = cli.build_parser(parser_of)._subparsers._group_actions[0].choices
    if parser_of not in actions:
        return None
    return {option for action in actions[parser_of]._actions for option in action.option_strings}


VARIABLES = {
    name
    for path in (*ROOT.glob("roles/*/meta/argument_specs.yml"), *ROOT.glob("playbooks/**/*.yml"))
    for name in re.findall(r"\b(?:sglang|inferops|nvidia_stack)_\w+", path.read_text("utf-8"))
}


def wrong_words(words: list[str]) -> Iterator[str]:
    """What a command names and the tree does not have."""
    program = words[0].rpartition("/")[2]
    homes = (ROOT, SITE)
    if program == "ansible-playbook":
        book = words[1].removeprefix("inferops.sglang.")
        if not any((home / name).is_file() for home in (*homes, ROOT / "playbooks") for name in (book, f"{book}.yml")):
            yield f"no playbook {words[1]}"
        for option, value in pairwise(words):
            if option == "-i" and not any((home / value).exists() for home in homes):
                yield f"no inventory {value}"
            if option == "-e" and value.partition("=")[0] not in VARIABLES:
                yield f"no variable {value.partition('=')[0]}"
    elif program in ("inferops", "inferops.pyz") and len(words) > 1 and words[0] != "/opt" and words[1][0] not in "-A":
        ours = words[2 : words.index("--")] if "--" in words else words[2:]
        known = option_names(words[1])
        if known is None:
            yield f"no command {words[1]}"
        else:
            asked = {re.sub(r"[\]\[]|=.*", "", word) for word in ours if word.lstrip("[").startswith("--")}
            yield from (f"{words[1]} has no {option}" for option in sorted(asked - known))
    elif program == "make":
        if not re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.M):
            yield f"no target {words[1]}"
    else:
        for word in words:
            if re.match(r"(tools|tests|benchmarks|ci)/", word) and not any((home / word).exists() for home in homes):
                yield f"no file {word}"
        if program.startswith("python") and words[1].endswith(".py"):
            near = " ".join(path.read_text("utf-8") for path in (ROOT / words[1]).parent.glob("*.py"))
            yield from (f"{words[1]} has no {word}" for word in words[2:] if word.startswith("--") and f'"{word}"' not in near)


def test_what_a_command_names_is_there():
    assert len(ALL) > 90
    wrong = [f"{page}: {said}" for page, command in ALL for said in wrong_words(command.split())]
    assert wrong == []


@pytest.mark.parametrize(
    "command",
    [
        "ansible-playbook playbooks/upgrad.yml",
        "ansible-playbook deploy.yml -i inventories/none",
        "ansible-playbook inferops.sglang.gate -e inferops_load_hots=x",
        "inferops chek --source X",
        "tools/inferops check --sauce X -- --pp 8",
        "make demos",
        "tests/lab/lob up",
        "python benchmarks/check.py --round 3",
    ],
)
def test_a_slip_in_a_command_is_seen(command):
    assert list(wrong_words(command.split()))


# The commands that are run as they stand there: status, and what the output must hold.
HERE = {
    """echo '{"platform": "cuda", "sm": 120, "gpu_count": 8, "gpu_memory_mib": 97887}' > facts.json""": (0, ""),
    "tools/inferops check --source sglang-0.5.23-*.whl --model /srv/models/kimi-k2.6/config.json --facts facts.json "
    "-- --model-path /srv/models/kimi-k2.6 --trust-remote-code --pp-size 8 --disable-cuda-graph": (1, "SGA301"),
    "tools/inferops explain cuda-graph": (0, "--disable-cuda-graph"),
    "make help": (0, "make demo"),
    """jq -e '.schema == 1 and .finished and .verdict == "pass"' gate/result.json""": (0, "true"),
}


def test_the_first_steps_work_as_they_stand(tmp_path):
    """In an empty folder, in the order of the page; the model's folder is another."""
    for name in ("tools", "Makefile"):
        (tmp_path / name).symlink_to(ROOT / name)
    wheel = wheels.fetch("0.5.23")
    (tmp_path / wheel.name).symlink_to(wheel)
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text((ROOT / "tests/fixtures/models/kimi_k2_6/config.json").read_text())
    (tmp_path / "gate").mkdir()
    (tmp_path / "gate/result.json").write_text(json.dumps({"schema": 1, "finished": True, "verdict": "pass"}))
    asked = next(command for command in HERE if " check " in command)
    for command, (status, said) in HERE.items():
        same_words = asked.partition(" check ")[2] if " explain " in command else ""  # as the page says
        here = f"{command} {same_words}".replace("/srv/models/kimi-k2.6", str(model))
        done = subprocess.run(["bash", "-c", here], cwd=tmp_path, check=False, capture_output=True, text=True)
        assert done.returncode == status and said in done.stdout, (command, done.stdout, done.stderr)
