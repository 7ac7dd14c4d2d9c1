# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""How good the static tier must be on executed cases, and whether a score is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from score import Score

OK_OR_FATAL = 0.99
EXACT = 0.97
WRONG = 0.001
KEY_EXACT = 0.98
CHOICES = 0.99
# SGLANG_KV_CANARY_ENABLE_TOKEN_ORACLE adds it to the real parser's choices; recordings are made without, the table has both.
ADDED_BY_ENVIRONMENT = {"--sampling-backend": {"token_oracle"}}


@dataclass(frozen=True)
class TableScore:
    """The static flag table against the release's own parser."""

    strings: int
    missing: tuple[str, ...]
    surplus: tuple[str, ...]
    choices: int
    wrong_choices: tuple[str, ...]


def score_table(ours: Any, real: Mapping[str, Any]) -> TableScore:
    """Compare flag strings and choices. ``ours``: a FlagTable; ``real``: what executing the release's parser gave."""
    wanted = {string: action for action in real["actions"] for string in action["flags"]}
    got = {string: flag for flag in ours.flags for string in flag.strings}
    for flag in ours.flags:
        if flag.action == "boolean_optional":
            got.update({"--no-" + string[2:]: flag for string in flag.strings if string.startswith("--")})
    limited = {string: action["choices"] for string, action in wanted.items() if action["choices"] is not None}
    wrong = [string for string, choices in limited.items() if string in got and not _same(string, got[string].choices, choices)]
    return TableScore(
        strings=len(wanted),
        missing=tuple(sorted(wanted.keys() - got.keys())),
        surplus=tuple(sorted(got.keys() - wanted.keys() - {"-h", "--help"})),
        choices=len(limited),
        wrong_choices=tuple(sorted(wrong)),
    )


def _same(string: str, ours: Any, real: list[str]) -> bool:
    added = ADDED_BY_ENVIRONMENT.get(string, set()) - set(real)
    return isinstance(ours, tuple) and {str(one) for one in ours} - added == set(real)


def short_of(score: Score, table: TableScore | None = None) -> list[str]:
    """Return the bars that a score does not reach, as sentences; nothing when it is good enough."""
    found = [*_share("verdict ok or fatal", score.judged_right, score.judged, OK_OR_FATAL)]
    found += _share("changed fields exact", score.right, score.changed, EXACT)
    found += _share("key settings exact", score.key_right, score.key_right + len(score.key_undecided), KEY_EXACT)
    if len(score.wrong) > WRONG * score.changed:
        found.append(f"{len(score.wrong)} of {score.changed} changed fields wrong, at most {WRONG:.1%}")
    for what, lines in (
        ("parse verdicts wrong", score.parse_wrong),
        ("false fatal", score.false_fatal),
        ("key settings wrong", score.key_wrong),
        ("false changes", score.false_change),
        ("twins wrong or undecided", score.twins_wrong),
    ):
        found += [f"{len(lines)} {what}, none allowed"] * bool(lines)
    return found + (_short_table(table) if table else [])


def short_uninformed(score: Score) -> list[str]:
    """The same where nothing was known of host and model: what is said may be less, not wrong."""
    wrong = len(score.wrong) + len(score.false_change)
    found = [f"no facts: {wrong} of {score.changed} changed fields wrong, at most {WRONG:.1%}"] * (wrong > WRONG * score.changed)
    return found + [f"no facts: {len(score.false_fatal)} false fatal, none allowed"] * bool(score.false_fatal)


def _share(what: str, right: int, total: int, bar: float) -> list[str]:
    return [f"{what}: {right} of {total}, at least {bar:.0%}"] * (right < bar * total)


def _short_table(table: TableScore) -> list[str]:
    lost = len(table.missing) + len(table.surplus)
    found = [f"flag strings: {len(table.missing)} missing, {len(table.surplus)} too many, none allowed"] * bool(lost)
    return found + _share("choices", table.choices - len(table.wrong_choices), table.choices, CHOICES)
