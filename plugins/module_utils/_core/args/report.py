# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The outcome of one check as a value: blocking or not, as data, as text for people, CI and GitHub."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .findings import Finding, Level

if TYPE_CHECKING:
    from .interpret.visits import Visit

# The style of a source that no reader here knows.
UNREADABLE = "unreadable"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
LEVELS: tuple[Level, ...] = ("error", "advice", "override", "deprecated", "unknown", "info")

# What SGLang itself does with the command line.
_OUTCOMES = {
    "ok": "SGLang accepts it",
    "parse_error": "SGLang would not parse it",
    "fatal": "SGLang would not start",
    "unknown": "whether SGLang accepts it is not decided",
}


@dataclass(frozen=True)
class Report:
    """What SGLang would do with a command line (``outcome``) and what we have to say about it (``findings``).

    visits: the watched statements the resolution came to (for ``explain``; no part of the written report).
    """

    sglang_version: str
    source_style: str
    tier: str
    outcome: str
    message: str | None = None
    effective: Mapping[str, Any] = field(default_factory=dict)
    changed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    undecided: Sequence[Mapping[str, Any]] = ()
    findings: Sequence[Finding] = ()
    visits: Sequence[Visit] = ()

    @property
    def blocking(self) -> bool:
        """Whether an error or an advice stands that nobody accepted."""
        return any(finding.blocks for finding in self.findings)

    @property
    def unanswered(self) -> bool:
        """Whether nobody could tell anything: the source is not readable and SGLang itself could not be asked."""
        return self.source_style == UNREADABLE and self.outcome == "unknown"

    @property
    def exit_status(self) -> int:
        """Return 1 refused, 3 a refusal not decided, 0 fine."""
        if self.blocking:
            return 1
        return 3 if self.outcome == "unknown" else 0

    def as_dict(self) -> dict[str, Any]:
        return {
            "sglang_version": self.sglang_version,
            "source_style": self.source_style,
            "tier": self.tier,
            "outcome": self.outcome,
            "message": self.message,
            "effective": jsonable(self.effective),
            "changed": jsonable(self.changed),
            "undecided": jsonable(self.undecided),
            "findings": [finding.as_dict() for finding in self.findings],
        }

    def kept(self) -> dict[str, Any]:
        """Return the report as it is kept: all that is written of it, in any format."""
        return self.as_dict() | {"positions": [finding.position for finding in self.findings]}

    @classmethod
    def from_kept(cls, kept: Mapping[str, Any]) -> Report:
        """Return the report that ``kept`` was made of, without the visits."""
        findings = [Finding(**one, position=position) for one, position in zip(kept["findings"], kept["positions"], strict=True)]
        values = {key: value for key, value in kept.items() if key not in ("findings", "positions")}
        return cls(**values, findings=findings)

    def summary(self) -> str:
        """Return one line: release, what SGLang itself would do, our word, how many findings of each level."""
        counts = Counter(finding.level for finding in self.findings if finding.accepted is None)
        parts = [f"{counts[level]} {level}" for level in LEVELS if counts[level]]
        accepted = sum(finding.accepted is not None for finding in self.findings)
        parts += [f"{accepted} accepted"] if accepted else []
        verdict = "refused" if self.blocking else "clean"
        found = f"{verdict}, {_OUTCOMES[self.outcome]}; {', '.join(parts) or 'no findings'}"
        return f"SGLang {self.sglang_version} ({self.tier}): {found}"

    def text(self) -> str:
        """Return every finding as a person reads it, the ones that block first, errors before advice, and the summary."""
        ordered = sorted(self.findings, key=lambda finding: (not finding.blocks, LEVELS.index(finding.level)))
        return "\n".join([*(finding.text() for finding in ordered), self.summary()])

    def junit(self) -> str:
        """Return JUnit XML: one case per finding, failed where it blocks."""
        return junit(self.findings, "check")

    def github(self) -> str:
        """Return workflow commands of GitHub Actions, one per finding."""
        return github(self.findings, "check", self.summary())


def junit(findings: Sequence[Finding], name: str) -> str:
    """Return findings as one JUnit suite: one case each, failed where it blocks."""
    return f'<?xml version="1.0" encoding="utf-8"?>\n{junit_suite(findings, name)}'


def junit_suite(findings: Sequence[Finding], name: str) -> str:
    """Return the suite alone, for a report of several."""
    from xml.sax.saxutils import escape, quoteattr  # deferred: it brings urllib and http along, as long to import as half a check

    cases = []
    for finding in findings:
        title = quoteattr(_xml(f"{finding.code} {finding.flag or finding.where or finding.message}"))
        text, head = escape(_xml(finding.text())), quoteattr(_xml(finding.message))
        body = f"<system-out>{text}</system-out>"
        if finding.blocks:
            body = f"<failure type={quoteattr(finding.level)} message={head}>{text}</failure>"
        cases.append(f"  <testcase classname={quoteattr(f'inferops.{name}')} name={title}>{body}</testcase>")
    cases = cases or [f'  <testcase classname={quoteattr(f"inferops.{name}")} name="no findings"/>']
    failures = sum(finding.blocks for finding in findings)
    head = f'<testsuite name={quoteattr(f"inferops {name}")} tests="{len(cases)}" failures="{failures}" errors="0" skipped="0">'
    return "\n".join([head, *cases, "</testsuite>"])


def github(findings: Sequence[Finding], name: str, summary: str) -> str:
    """Return findings as workflow commands of GitHub Actions, and the summary as a notice."""
    kinds = {"error": "error", "advice": "error", "deprecated": "warning", "unknown": "warning"}
    lines = []
    for finding in findings:
        kind = kinds.get(finding.level, "notice") if finding.accepted is None else "notice"
        lines.append(f"::{kind} {_place(finding)}title={_property(finding.code)}::{_data(finding.text())}")
    return "\n".join([*lines, f"::notice title=inferops {name}::{_data(summary)}"])


def jsonable(value: Any) -> Any:
    """Return a value as JSON can hold it: tuples and sets as lists, anything else unknown to JSON as text."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((jsonable(item) for item in value), key=str)
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _place(finding: Finding) -> str:
    """Return the properties file and line of an annotation, for a finding that names a line of SGLang's source."""
    rel, dummy, line = (finding.source or "").rpartition(":")
    return f"file={_property(rel)},line={line}," if rel and line.isdigit() else ""


def _xml(text: str) -> str:
    """Return a text without the characters XML 1.0 has no place for."""
    return _NOT_XML.sub("\ufffd", text)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
