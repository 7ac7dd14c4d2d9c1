"""The documentation as a site: it renders without a warning, no link leads nowhere, and it fits a phone; and the changelog."""

from __future__ import annotations

import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests" / "lab"))

from inferops_lab.browser import Browser, executable  # noqa: E402

WIDTHS = (390, 1280)


@pytest.fixture(scope="session")
def site(run, tmp_path_factory):
    """Render it, in which a warning is an error, and return its folder."""
    out = tmp_path_factory.mktemp("docs")
    run(sys.executable, "tools/docs_site", "--out", out)
    return out / "html"


class Links(HTMLParser):
    """What a page leads to, and the names in it that others may lead to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.to: set[str] = set()
        self.names: set[str] = set()
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.to |= {found[key] for key in ("href", "src") if found.get(key)}
        self.names |= {found[key] for key in ("id", "name") if found.get(key)}


def test_no_link_leads_nowhere(site):
    pages = {page: Links(page) for page in site.rglob("*.html")}
    assert len(pages) > 60
    broken = []
    for page, links in pages.items():
        for link in links.to:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            wrong = not target.exists() or (
                parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names
            )
            if wrong:
                broken.append(f"{page.relative_to(site)}: {link}")
    assert broken == []


def test_every_page_of_the_docs_is_there(site):
    missing = [path for path in REPOSITORY.glob("docs/*.md") if not (site / "docs" / f"{path.stem}.html").exists()]
    schemas = [path for path in REPOSITORY.glob("docs/schemas/*.json") if not (site / "docs/schemas" / path.name).exists()]
    assert missing == [] and schemas == []
    for kind in ("throughput_gate_module", "sglang_service_role", "gate_plan_filter", "profile_lookup"):
        assert "An error page" not in (site / "reference" / f"{kind}.html").read_text("utf-8")


@pytest.mark.skipif(executable() is None, reason="no browser on this machine")
def test_no_page_is_wider_than_its_window(site):
    with Browser() as browser:
        wide = [
            f"{page.relative_to(site)} at {width}: {over} px"
            for page in sorted(site.rglob("*.html"))
            for width in WIDTHS
            if (over := browser.open(page, width=width, scheme="light").overflow)
        ]
    assert wide == []


def test_a_release_makes_its_changelog_of_the_fragments(run, tmp_path):
    """On a copy: every fragment is taken up, every module and role is new once, and what was made passes its own check."""
    copy = tmp_path / "ansible_collections" / "inferops" / "sglang"
    for name in ("changelogs", "meta", "plugins", "roles"):
        shutil.copytree(REPOSITORY / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    shutil.copy(REPOSITORY / "galaxy.yml", copy)
    run("antsibull-changelog", "release", cwd=copy, env={"ANSIBLE_COLLECTIONS_PATH": str(tmp_path)})
    run("antsibull-changelog", "lint", cwd=copy)
    assert list(copy.glob("changelogs/fragments/*.yml")) == []
    version = yaml.safe_load((copy / "galaxy.yml").read_text())["version"]
    releases = yaml.safe_load((copy / "changelogs/changelog.yaml").read_text())["releases"]
    assert len(releases[version]["fragments"]) == len(list(REPOSITORY.glob("changelogs/fragments/*.yml")))
    modules = [one["name"] for release in releases.values() for one in release.get("modules", ())]
    roles = [one["name"] for release in releases.values() for one in release.get("objects", {}).get("role", ())]
    assert sorted(modules) == sorted(path.stem for path in REPOSITORY.glob("plugins/modules/*.py"))
    assert sorted(roles) == sorted(path.name for path in REPOSITORY.glob("roles/*"))
    assert f"v{version}\n" in (copy / "CHANGELOG.rst").read_text()
