# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a word is that the release has no flag for: newer, retired, another engine's, misspelt, or nothing known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..flags import FlagTable
from ..other_engines import FOREIGN
from ..suggest import plain, successors, suggest
from ..versions import added_later, later_fits, removed


@dataclass(frozen=True)
class Answer:
    """What is said of the word after "is not a flag of …", why, what to write, and the flag of this release that is meant."""

    tail: str
    do: str
    better: str | None = None


def answer(name: str, value: str | None, table: FlagTable) -> Answer:
    """Return the first explanation that fits; the release's own spelling of the same word comes before all history."""
    return next(answer for answer in _answers(name, value, table) if answer is not None)


def _answers(name: str, value: str | None, table: FlagTable) -> Iterator[Answer | None]:
    meant = plain(name)
    if table.by_string(meant) is not None:
        yield _did_you_mean(meant, value, table)
    yield _newer(meant, table.version)
    yield _retired(meant, value, table)
    yield _foreign(name, value, table)
    better = suggest(name, table)
    yield _did_you_mean(better, value, table) if better else None
    later = later_fits(meant, table.version) if len(meant) > 6 else None
    yield (
        _upgrade(f": short for {later}, unknown before {added_later(later, table.version)}", later, table.version)
        if later
        else None
    )
    yield Answer("", f"remove it; `inferops flags` lists what SGLang {table.version} knows")


def _newer(meant: str, version: str) -> Answer | None:
    since = added_later(meant, version)
    return _upgrade(f": unknown before {since}, installed is {version}", meant, version) if since else None


def _upgrade(tail: str, flag: str, version: str) -> Answer:
    return Answer(tail, f"remove it, or install SGLang {added_later(flag, version)} or later")


def _retired(meant: str, value: str | None, table: FlagTable) -> Answer | None:
    span = removed(meant, table.version)
    if span is None:
        return None
    for new in successors(meant):
        if table.by_string(new.partition("=")[0]) is not None:
            return Answer(f": {span.removal()}; {new.partition('=')[0]} took its place", f"write {_with(new, value, table)}", new)
    return Answer(f": {span.removal()}", "remove it")


def _foreign(name: str, value: str | None, table: FlagTable) -> Answer | None:
    foreign = FOREIGN.get(name) or FOREIGN.get(plain(name))
    if foreign is None:
        return None
    field = next((field for field in foreign.fields if field in table.fields), None)
    note = f" ({foreign.note})" if foreign.note else ""
    tail = f": {plain(name) if name.startswith('--') else name} is {foreign.engine}'s"
    if field is None:
        return Answer(tail, f"remove it{note}")
    flag = table.spell(field)
    return Answer(tail, f"write {_with(flag, value if foreign.same_value else None, table)}{note}", flag)


def _did_you_mean(better: str, value: str | None, table: FlagTable) -> Answer:
    return Answer(f"; did you mean {better}?", f"write {_with(better, value, table)}", better)


def _with(better: str, value: str | None, table: FlagTable) -> str:
    """Return the flag with the value to write after it."""
    if "=" in better:
        return better.replace("=", " ")
    flag = table.by_string(better)
    takes = flag is not None and flag.action in ("store", "deprecated_alias", "custom")
    return f"{better} {value}" if value and takes else better
