# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""An upgrade rehearsed for a whole inventory: one report over the differences of all hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import InferopsError
from .findings import Finding
from .report import github, junit_suite

Verdict = Literal["fine", "breaks", "unknown", "not rehearsed"]
# What decides the word over the whole report, worst first.
ORDER: tuple[Verdict, ...] = ("not rehearsed", "breaks", "unknown", "fine")
_FINDING = ("code", "level", "message", "flag", "where", "why", "do", "source", "accepted")


@dataclass(frozen=True)
class HostRehearsal:
    """One instance on one host. ``found`` is what server_args_diff returns for it; where that is None, ``error`` says why."""

    host: str
    instance: str
    found: Mapping[str, Any] | None
    error: str | None = None

    @property
    def verdict(self) -> Verdict:
        if self.found is None:
            return "not rehearsed"
        verdict: Verdict = self.found["verdict"]
        return verdict

    @property
    def findings(self) -> list[Finding]:
        return [Finding(**{name: entry.get(name) for name in _FINDING}) for entry in (self.found or {}).get("findings", ())]

    @property
    def title(self) -> str:
        return f"{self.host} ({self.instance})"

    def line(self) -> str:
        """Return host, releases and the first reason, on one line."""
        if self.found is None:
            return f"{self.title}: not rehearsed: {(self.error or 'no reason known').splitlines()[0]}"
        head = f"{self.title}: SGLang {self.found['from']} -> {self.found['to']}: {self.verdict}"
        blocking = [finding for finding in self.findings if finding.blocks]
        return head + "".join(f"\n  {finding.message}" + (f"; {finding.do}" if finding.do else "") for finding in blocking)


@dataclass(frozen=True)
class Rehearsal:
    hosts: tuple[HostRehearsal, ...]

    @classmethod
    def from_list(cls, entries: Sequence[Mapping[str, Any]]) -> Rehearsal:
        """Read one mapping per host with host, instance, and found or error."""
        hosts = []
        for entry in entries:
            found = entry.get("found") or None
            if found is None and not entry.get("error"):
                raise InferopsError("a host has neither a result nor a reason", where=str(entry.get("host")))
            hosts.append(HostRehearsal(str(entry["host"]), str(entry.get("instance") or "main"), found, entry.get("error")))
        if not hosts:
            raise InferopsError("no host was rehearsed", where="the inventory", do="put a host into the group sglang")
        return cls(tuple(sorted(hosts, key=lambda one: (ORDER.index(one.verdict), one.host, one.instance))))

    @property
    def verdict(self) -> Verdict:
        return next(word for word in ORDER if any(host.verdict == word for host in self.hosts))

    @property
    def bad(self) -> list[str]:
        """The lines of the hosts that break or were not rehearsed."""
        return [host.line() for host in self.hosts if host.verdict in ("breaks", "not rehearsed")]

    def as_dict(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "verdict": self.verdict,
            "hosts": [
                {"host": host.host, "instance": host.instance, "verdict": host.verdict, "error": host.error}
                | {key: value for key, value in (host.found or {}).items() if key in _KEPT}
                for host in self.hosts
            ],
        }

    def text(self) -> str:
        return "\n".join(host.line() for host in self.hosts)

    def junit(self) -> str:
        """Return one suite per host; a host that could not be rehearsed fails by name."""
        suites = [
            junit_suite(host.findings or [_missing(host)] if host.found is None else host.findings, f"rehearsal.{host.title}")
            for host in self.hosts
        ]
        return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', "<testsuites>", *suites, "</testsuites>"]) + "\n"

    def github(self) -> str:
        """Return workflow commands of GitHub Actions, those of each host in a group of its own."""
        parts = []
        for host in self.hosts:
            findings = [_missing(host)] if host.found is None else host.findings
            summary = host.line().partition("\n")[0]
            parts.append(f"::group::{host.title}\n{github(findings, 'rehearsal', summary)}\n::endgroup::")
        return "\n".join(parts) + "\n"


_KEPT = ("from", "to", "outcome", "findings", "rewritten", "effective", "alike", "undecided")


def _missing(host: HostRehearsal) -> Finding:
    return Finding("SGA608", "error", f"{host.title} was not rehearsed", why=host.error, do="put that right and rehearse again")
