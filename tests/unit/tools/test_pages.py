"""The pages lead to what is there: links, headings, targets of make."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("docs", "examples", "inventories", "roles", "tests", "tools", "benchmarks")
LINK = re.compile(r"\]\(([^)\s]+)\)")
TARGET = re.compile(r"(?:^|`)make ([a-z][a-z-]*)", re.M)
# Tarball, image and tag of a release; where one says a version, it is that of galaxy.yml.
RELEASE = re.compile(r"inferops-sglang[-:](\d[\d.]*\d)|\brev: (\d\S*)")
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


def test_one_version_of_the_collection_everywhere():
    version = re.search(r"^version: (\S+)$", (ROOT / "galaxy.yml").read_text("utf-8"), re.M)[1]
    places = [*pages(), *ROOT.glob("examples/**/*.yml"), *ROOT.glob("playbooks/*.yml")]
    said = {(place, one or two) for place in places for one, two in RELEASE.findall(place.read_text("utf-8"))}
    assert len(said) > 3
    assert sorted(f"{place.relative_to(ROOT)}: {said}" for place, said in said if said != version) == []
