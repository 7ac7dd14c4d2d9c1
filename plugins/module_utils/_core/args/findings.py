# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""One finding, the catalogue of codes, and what accepting one means."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..errors import InferopsError

Level = Literal["error", "advice", "override", "deprecated", "info", "unknown"]
BLOCKING: tuple[Level, ...] = ("error", "advice")


@dataclass(frozen=True)
class Code:
    """A kind of finding. ``acceptable``: SGLang itself would start; only then may a reason let it through."""

    title: str
    acceptable: bool


CODES: dict[str, Code] = {
    "SGA101": Code("unknown flag", acceptable=False),
    "SGA102": Code("ambiguous short form", acceptable=False),
    "SGA103": Code("value the flag does not take", acceptable=False),
    "SGA104": Code("missing argument", acceptable=False),
    "SGA105": Code("stopped at parsing", acceptable=False),
    "SGA106": Code("config file not checked", acceptable=False),
    "SGA110": Code("one field set twice", acceptable=True),
    "SGA111": Code("abbreviated flag", acceptable=True),
    "SGA112": Code("environment variable nobody reads", acceptable=True),
    "SGA120": Code("deprecated flag", acceptable=True),
    "SGA201": Code("refused by SGLang", acceptable=False),
    "SGA202": Code("refusal not decided", acceptable=False),
    "SGA210": Code("changed by SGLang", acceptable=True),
    "SGA211": Code("not decided", acceptable=True),
    "SGA212": Code("may change while the server runs", acceptable=True),
    "SGA301": Code("decode graphs switched off", acceptable=True),
    "SGA302": Code("decode graphs forced off", acceptable=True),
    "SGA303": Code("redundant off-switch", acceptable=True),
    "SGA304": Code("off-switch that decides", acceptable=True),
    "SGA305": Code("default asked for", acceptable=True),
    "SGA306": Code("overruled by a stronger flag", acceptable=True),
    "SGA310": Code("no asynchronous batches in the pipeline", acceptable=True),
    "SGA311": Code("negative asynchronous depth", acceptable=True),
    "SGA312": Code("asynchronous depth without a pipeline", acceptable=True),
    "SGA313": Code("requests crowd into few micro-batches", acceptable=True),
    "SGA320": Code("back end not for this card", acceptable=True),
    "SGA321": Code("cache format known slow", acceptable=True),
    "SGA322": Code("too little memory left", acceptable=True),
    "SGA323": Code("no share of memory", acceptable=False),
    "SGA401": Code("more cards than the host has", acceptable=False),
    "SGA402": Code("cards left idle", acceptable=True),
    "SGA403": Code("layer split impossible", acceptable=False),
    "SGA404": Code("model cannot be pipelined", acceptable=False),
    "SGA405": Code("config.json names no architecture", acceptable=False),
    "SGA501": Code("expectation contradicted", acceptable=False),
    "SGA502": Code("expectation not decided", acceptable=False),
    "SGA601": Code("flag gone in the next release", acceptable=False),
    "SGA602": Code("short form without its flag", acceptable=False),
    "SGA603": Code("value gone in the next release", acceptable=False),
    "SGA604": Code("newly deprecated", acceptable=True),
    "SGA605": Code("other default", acceptable=True),
    "SGA606": Code("newly changed by SGLang", acceptable=True),
    "SGA607": Code("newly refused", acceptable=False),
    "SGA608": Code("not rehearsed", acceptable=False),
    "SGA609": Code("other result", acceptable=True),
    "SGA701": Code("source and SGLang disagree", acceptable=False),
    "SGA702": Code("SGLang could not be asked", acceptable=False),
    "SGA703": Code("answered by SGLang alone", acceptable=False),
    "SGA901": Code("acceptance that accepts nothing", acceptable=False),
    "SGA902": Code("acceptance expired", acceptable=False),
}


@dataclass(frozen=True)
class Finding:
    """One finding. ``source`` is file:line in the release; ``accepted`` is the recorded exception that lets it pass."""

    code: str
    level: Level
    message: str
    flag: str | None = None
    where: str | None = None
    why: str | None = None
    do: str | None = None
    source: str | None = None
    accepted: Mapping[str, str] | None = None
    position: int = -1

    @property
    def blocks(self) -> bool:
        return self.level in BLOCKING and self.accepted is None

    def as_dict(self) -> dict[str, Any]:
        names = ("code", "level", "flag", "message", "where", "why", "do", "source")
        return {name: getattr(self, name) for name in names} | {"accepted": dict(self.accepted) if self.accepted else None}

    def text(self) -> str:
        """Return one sentence that stands alone, then labelled lines."""
        level = f"{self.level}, accepted" if self.accepted else self.level
        lines = [f"{self.code} {level}: {self.message}"]
        why = self.why
        if self.source and self.source not in f"{self.message}{why or ''}":
            why = f"{why} [{self.source}]" if why else f"[{self.source}]"
        for label, value in (("where", self.where), ("why", why), ("do", self.do)):
            if value:
                lines.append(f"  {label + ':':<6} {value}")
        if self.accepted:
            until = f" (until {self.accepted['expires']})" if self.accepted.get("expires") else ""
            lines.append(f"  accepted: {self.accepted['reason']}{until}")
        return "\n".join(lines)


def read_accept(raw: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Check the shape of a list of acceptances: code, reason, and if wished expires (YYYY-MM-DD)."""
    out: list[dict[str, str]] = []
    for index, entry in enumerate(raw):
        where = f"accept[{index}]"
        if not isinstance(entry, Mapping):
            raise InferopsError(f"{where} is not a mapping", where=where, do="write {code: SGA301, reason: …}")
        extra = set(entry) - {"code", "reason", "expires"}
        code, reason = str(entry.get("code") or ""), str(entry.get("reason") or "").strip()
        if extra:
            raise InferopsError(f"{where} has an unknown key: {sorted(extra)[0]}", where=where, do="use code, reason, expires")
        if code not in CODES:
            near = difflib.get_close_matches(code, [one for one, kind in CODES.items() if kind.acceptable], n=1, cutoff=0.8)
            raise InferopsError(
                f"{code or 'nothing'} is not a code that can be accepted",
                where=f"{where}.code",
                do=f"write {near[0]}" if near else "take the code from the report",
            )
        if not CODES[code].acceptable:
            raise InferopsError(
                f"{code} ({CODES[code].title}) cannot be accepted",
                where=f"{where}.code",
                why="no reason makes it work or come true; only what SGLang would start with can be let through",
                do="correct what the finding names",
            )
        if not reason:
            raise InferopsError(
                f"the acceptance of {code} has no reason", where=f"{where}.reason", do="write why it is right here"
            )
        out.append({"code": code, "reason": reason} | _expiry(entry.get("expires"), where))
    return out


def _expiry(value: Any, where: str) -> dict[str, str]:
    if value is None:
        return {}
    try:
        return {"expires": datetime.date.fromisoformat(str(value)).isoformat()}
    except ValueError:
        raise InferopsError(f"expires is {value!r}, not a date", where=f"{where}.expires", do="write YYYY-MM-DD") from None


def accept_findings(found: Iterable[Finding], accept: Sequence[Mapping[str, str]], today: datetime.date) -> list[Finding]:
    """Mark accepted findings; add one for each acceptance that is expired or met nothing."""
    out = list(found)
    for entry in accept:
        hit = [index for index, finding in enumerate(out) if finding.code == entry["code"] and finding.level in BLOCKING]
        if not hit:
            there = any(finding.code == entry["code"] for finding in out)
            message = f"{entry['code']} is accepted, but " + (
                "what was found of that code blocks nothing" if there else "nothing of that code was found"
            )
            out.append(Finding("SGA901", "info", message, do="remove the acceptance", where="accept"))
        elif "expires" in entry and datetime.date.fromisoformat(entry["expires"]) < today:
            message = f"the acceptance of {entry['code']} expired on {entry['expires']}; it lets nothing through any more"
            out.append(Finding("SGA902", "info", message, do="correct the cause, or accept it anew", where="accept"))
        else:
            for index in hit:
                out[index] = replace(out[index], accepted=dict(entry))
    return out


def in_order(found: Iterable[Finding]) -> list[Finding]:
    """Sort by position in argv, those without one last, then by code."""
    return sorted(
        found, key=lambda finding: (finding.position if finding.position >= 0 else 1 << 30, finding.code, finding.message)
    )
