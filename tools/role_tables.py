#!/usr/bin/env python3
"""Write the tables of variables in roles/*/README.md and docs/variables.md from the argument specs. Needs PyYAML."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
BEGIN = "<!-- variables: written by tools/role_tables.py from meta/argument_specs.yml -->"
END = "<!-- end of variables -->"


def roles() -> list[Path]:
    return sorted(path.parents[1] for path in (ROOT / "roles").glob("*/meta/argument_specs.yml"))


def options(role: Path) -> dict[str, dict[str, Any]]:
    """Return every option of every entry point of a role; the same name means the same option."""
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
    merged: dict[str, dict[str, Any]] = {}
    for spec in specs.values():
        for name, option in spec["options"].items():
            merged.setdefault(name, option)
    return merged


def plain(text: str | list[str]) -> str:
    """Return the prose of a description as Markdown for a table cell."""
    joined = " ".join(text) if isinstance(text, list) else text
    joined = re.sub(r"[COV]\(([^()]*)\)", r"`\1`", joined)
    joined = re.sub(r"P\(([\w.]+)#\w+\)", r"`\1`", joined)
    return joined.replace("|", "\\|").strip()


def cell(value: Any) -> str:
    """Return a default as YAML writes it on one line."""
    return "`" + yaml.safe_dump(value, default_flow_style=True, width=1000).removesuffix("...\n").strip() + "`"


def default(option: dict[str, Any]) -> str:
    if option.get("required"):
        return "required"
    return cell(option["default"]) if "default" in option else "see text"


def rows(role: Path) -> list[str]:
    lines = ["| Variable | Type | Default | Meaning |", "| --- | --- | --- | --- |"]
    for name, option in sorted(options(role).items()):
        kind = option["type"] + (f" of {option['elements']}" if "elements" in option else "")
        choices = f" One of {', '.join(f'`{choice}`' for choice in option['choices'])}." if "choices" in option else ""
        lines.append(f"| `{name}` | {kind} | {default(option)} | {plain(option['description'])}{choices} |")
        for key, sub in option.get("options", {}).items():
            lines.append(f"| `{name}[].{key}` | {sub['type']} | {default(sub)} | {plain(sub['description'])} |")
    return lines


def readme(role: Path) -> str:
    """Return the README of a role with its table brought up to date."""
    text = (role / "README.md").read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return head + "\n".join([BEGIN, "", *rows(role), "", END]) + tail


def variables() -> str:
    """Return the page that holds the variables of all roles."""
    path = ROOT / "docs" / "variables.md"
    head, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, _, tail = rest.partition(END)
    blocks = [line for role in roles() for line in (f"### {role.name}", "", *rows(role), "")]
    return head + "\n".join([BEGIN, "", *blocks, END]) + tail


def pages() -> dict[Path, str]:
    """Return each page with the text it should have."""
    return {role / "README.md": readme(role) for role in roles()} | {ROOT / "docs" / "variables.md": variables()}


def main() -> int:
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
