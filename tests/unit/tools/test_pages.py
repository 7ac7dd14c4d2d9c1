"""The pages lead to what is there: links, headings, targets of make."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "plugins" / "module_utils"))
from _core import cli  # noqa: E402

FOLDERS = ("docs", "roles", "tests", "tools", "benchmarks")
LINK = re.compile(r"\]\(([^)\s]+)\)")
TARGET = re.compile(r"(?:^|`)make ([a-z][a-z-]*)", re.M)
LISTED = re.compile(r"`make help` lists the smaller steps: ((?:`[a-z-]+`(?:, )?)+)")


def pages() -> Iterator[Path]:
    yield from ROOT.glob("*.md")
    for folder in FOLDERS:
        yield from (page for page in (ROOT / folder).rglob("*.md") if "fixtures" not in page.parts)


def anchors(page: Path) -> set[str]:
    """The names that headings get on the usual forges."""
    heads = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def test_links_and_headings_exist():
    missing = []
    for page in pages():
        for link in LINK.findall(page.read_text("utf-8")):
            if re.match(r"[a-z]+:", link):
                continue
            name, _hash, anchor = link.partition("#")
            target = (page.parent / name) if name else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                missing.append(f"{page.relative_to(ROOT)}: {link}")
    assert missing == []


def test_targets_of_make_exist():
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    asked = {(page, target) for page in pages() for target in TARGET.findall(page.read_text("utf-8"))}
    listed = LISTED.search((ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    asked |= {(ROOT / "CONTRIBUTING.md", target) for target in re.findall("[a-z-]+", listed[1])}
    assert len(asked) > 6
    assert sorted(f"{page.relative_to(ROOT)}: make {target}" for page, target in asked if target not in known) == []


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command line in a block of a page, continued lines joined, as page and words."""
    for page in (*pages(), *(ROOT / "examples").rglob("*.md")):
        for block in re.findall(r"^[ ]*```[a-z]*\n(.*?)^[ ]*```", page.read_text("utf-8"), re.M | re.S):
            for line in re.sub(r"\\\n\s*", "", block).splitlines():
                words = re.sub(r"\s+#\s.*", "", line).split()
                if words:
                    yield str(page.relative_to(ROOT)), words


def test_commands_name_playbooks_inventories_and_options_that_exist():
    wrong, seen = [], 0
    for page, words in commands():
        if words[0] == "ansible-playbook":
            seen += 1
            book = words[1].removeprefix("inferops.sglang.")
            homes = (ROOT, ROOT / "examples/site", ROOT / "playbooks")
            if not any((home / name).is_file() for home in homes for name in (book, f"{book}.yml")):
                wrong.append(f"{page}: no playbook {words[1]}")
            if "-i" in words and not any((home / words[words.index("-i") + 1]).exists() for home in homes[:2]):
                wrong.append(f"{page}: no inventory {words[words.index('-i') + 1]}")
        elif words[0].rpartition("/")[2] == "inferops" and len(words) > 1 and words[1][0] not in "-A":
            seen += 1
            ours = words[2 : words.index("--")] if "--" in words else words[2:]
            actions = cli.build_parser(words[1])._subparsers._group_actions[0].choices
            known = (
                {option for action in actions[words[1]]._actions for option in action.option_strings}
                if words[1] in actions
                else None
            )
            if known is None:
                wrong.append(f"{page}: no command {words[1]}")
            else:
                asked = {re.sub(r"[\]\[]|=.*", "", word) for word in ours if word.lstrip("[").startswith("--")}
                wrong += [f"{page}: {words[1]} has no {option}" for option in asked - known]
        elif words[0].startswith(("tools/", "tests/", "benchmarks/", "ci/")):
            seen += 1
            if not any((home / words[0]).exists() for home in (ROOT, ROOT / "examples/site")):
                wrong.append(f"{page}: no file {words[0]}")
    assert wrong == []
    assert seen > 15
