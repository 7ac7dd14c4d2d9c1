# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Executed cases as files: what most cases of a release change alike stands once, each case lists only where it differs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MESSAGE = 110
_KEPT = (
    "id",
    "sglang_version",
    "argv",
    "model_config",
    "hardware",
    "outcome",
    "env",
    "files",
    "twin",
    "stage",
    "exception",
    "raised_at",
)


def halves(cases: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the names of the cases that are compared with another one: both halves of every twin.

    The half without the switch may be a case that was there before, under a name of its own.
    """
    return {name for case in cases if "twin" in case for name in (case["id"], case["twin"])}


def trim(executed: Mapping[str, Any], keys: Sequence[str], *, half: bool = False) -> dict[str, Any]:
    """Reduce what executing a case returned to what is compared; of a twin's half also the effective settings in ``keys``."""
    case = {name: executed[name] for name in _KEPT if name in executed}
    if executed["outcome"] != "ok":
        case["message_contains"] = executed["message"].partition("\n")[0][:MESSAGE]
    case["changed"] = executed["changed"]
    if executed["outcome"] == "ok" and half:
        case["effective"] = {name: executed["effective"][name] for name in keys if name in executed["effective"]}
    return case


def pack(cases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the compact form of one release's cases. ``unpack(pack(cases)) == cases``."""
    common = _most_frequent(cases)
    packed = []
    for case in cases:
        one = dict(case)
        changed = one.pop("changed")
        if one["outcome"] == "ok":
            one["differs"] = {name: pair for name, pair in changed.items() if common.get(name) != pair}
            one["kept"] = sorted(name for name in common if name not in changed)
        packed.append(one)
    return {"changed": common, "cases": packed}


def _most_frequent(cases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    fine = [case["changed"] for case in cases if case["outcome"] == "ok"]
    count = Counter((name, json.dumps(pair)) for changed in fine for name, pair in changed.items())
    return {name: json.loads(pair) for (name, pair), times in sorted(count.items()) if times * 2 > len(fine)}


def unpack(content: Any) -> list[dict[str, Any]]:
    """Return cases from either form: the compact one, or a plain list."""
    if isinstance(content, list):
        return content
    cases = []
    for packed in content["cases"]:
        one = dict(packed)
        differs, kept = one.pop("differs", {}), one.pop("kept", [])
        common = content["changed"] if one["outcome"] == "ok" else {}
        one["changed"] = {**{name: pair for name, pair in common.items() if name not in kept}, **differs}
        cases.append(one)
    return cases


def text(cases: Sequence[Mapping[str, Any]], table: Mapping[str, Any]) -> str:
    """Return the file: the real parser's table, then one case a line, so that a changed recording reads as such."""
    content = pack(cases)
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in content["cases"])
    flags = json.dumps(table, separators=(",", ":"))
    return f'{{"table":{flags},\n"changed":{json.dumps(content["changed"], separators=(",", ":"))},\n"cases":[\n{lines}\n]}}\n'
