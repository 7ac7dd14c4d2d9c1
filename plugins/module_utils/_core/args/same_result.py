# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What two releases make of the same command line, field by field: alike, renamed, or different and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .flags import UNKNOWN, FlagTable
from .renames import SAME_FIELD, SAME_STATE
from .report import Report, jsonable

# asked: the argument itself holds another value. overridden: only the new release changes it. freed: only the old one did.
# default: nobody names it and the defaults differ. derived: worked out from other fields.
Cause = Literal["asked", "overridden", "freed", "default", "derived"]


@dataclass(frozen=True)
class Result:
    """One field of the old release whose resolved value differs in the new one. ``new_field`` is its name there."""

    field: str
    new_field: str
    before: Any
    after: Any
    cause: Cause
    source: str | None = None
    guard: str | None = None
    because: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "from": jsonable(self.before),
            "to": jsonable(self.after),
            "field": self.new_field,
            "cause": self.cause,
            "source": self.source,
        }


@dataclass(frozen=True)
class Comparison:
    """``alike`` counts the fields that resolve to the same; ``undecided`` names those one release's check leaves open."""

    alike: int
    different: tuple[Result, ...]
    undecided: tuple[str, ...]


def compare_results(before: Report, after: Report, old: FlagTable, new: FlagTable, named: Mapping[str, str | None]) -> Comparison:
    """Compare two resolved reports. ``named``: field of each argument on the old command line → its field on the new one."""
    alike = 0
    different: list[Result] = []
    open_fields: list[str] = []
    undecided = {str(entry["field"]) for report in (before, after) for entry in report.undecided}
    for field, value in before.effective.items():
        pair = _counterpart(field, value, after, named)
        if pair is None:
            if field in undecided:
                open_fields.append(field)
            continue
        new_field, wanted = pair
        got = after.effective[new_field]
        if jsonable(got) == jsonable(wanted):
            alike += 1
            continue
        if new_field.endswith(".backend") and new_field != field and wanted != "disabled" and got != "disabled":
            alike += 1  # "on" of the old switch: any back end that runs
            continue
        different.append(_result(field, new_field, wanted, got, before, after, old, new, named))
    open_fields += [field for field in undecided if field in before.effective and field not in open_fields]
    return Comparison(alike, tuple(different), tuple(dict.fromkeys(open_fields)))


def _counterpart(field: str, value: Any, after: Report, named: Mapping[str, str | None]) -> tuple[str, Any] | None:
    """Return (field of the new release, value that would mean the same), None where the new release has nothing like it."""
    if isinstance(value, bool) and (field, value) in SAME_STATE:
        new_field, wanted = SAME_STATE[field, value]
        if new_field in after.effective and "." not in field:
            return new_field, wanted
    if SAME_FIELD.get(field) in after.effective:
        return SAME_FIELD[field], value
    if field in after.effective:
        return field, value
    new_field = named.get(field) or ""
    return (new_field, value) if new_field in after.effective else None


def _result(
    field: str,
    new_field: str,
    wanted: Any,
    got: Any,
    before: Report,
    after: Report,
    old: FlagTable,
    new: FlagTable,
    named: Mapping[str, str | None],
) -> Result:
    change = after.changed.get(new_field)
    earlier = before.changed.get(field)
    source = str(change["source"]) if change and change.get("source") else new.field_source.get(new_field.partition(".")[0])
    guard = str(change["guard"]) if change and change.get("guard") else None
    because = tuple(str(word) for word in (change or {}).get("because") or ())
    cause: Cause = "derived"
    if change is not None and earlier is None:
        cause = "overridden" if field in named or _plain(old, field) == _plain(new, new_field) else "derived"
    elif change is None and earlier is not None:
        cause = "freed"
    elif change is None and field in named:
        cause = "asked"
    elif change is None and old.default_of(field) != new.default_of(new_field):
        cause = "default"
    return Result(field, new_field, wanted, got, cause, source, guard, because)


def _plain(table: FlagTable, field: str) -> Any:
    value = table.default_of(field.partition(".")[0])
    return None if value is UNKNOWN else jsonable(value)
