# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""From texts to findings: which faults a kernel log, a build log, a package manager's output or an NVML error shows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .fault import DKMS, KERNEL, NVML, PACKAGES, Fault
from .faults import FAULTS

SOURCES = (KERNEL, DKMS, PACKAGES, NVML)
# A card that fell off the bus floods the log (R44): evidence is kept short.
LINES, LINE_LENGTH = 3, 240
_MISMATCH = re.compile(
    r"client(?: \(pid \d+\))?.*has the version (?P<client>\d+\.[\d.]+\d).*"
    r"(?:kernel module|this kernel module) has the version (?P<module>\d+\.[\d.]+\d)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Finding:
    """One fault that was recognised, with the first lines that show it and how many there are."""

    fault: Fault
    evidence: tuple[str, ...]
    count: int
    detail: str = ""

    def as_dict(self) -> dict[str, Any]:
        fault = self.fault
        verdict = fault.verdict + (f" ({self.detail})" if self.detail else "")
        return {
            "code": fault.code,
            "verdict": verdict,
            "evidence": list(self.evidence),
            "count": self.count,
            "why": fault.why,
            "do": fault.do,
            "stop": fault.stop,
        }


def classify(texts: Mapping[str, str]) -> list[Finding]:
    """Return the faults that texts show, by source, the likelier root first; empty where nothing is recognised."""
    found = []
    for fault in FAULTS:
        patterns = [re.compile(pattern) for pattern in fault.patterns]
        lines: dict[str, int] = {}
        for source in fault.sources:
            for line in texts.get(source, "").splitlines():
                if any(pattern.search(line) for pattern in patterns):
                    shown = f"{source}: {line.strip()[:LINE_LENGTH]}"
                    lines[shown] = lines.get(shown, 0) + 1
        if lines:
            detail = _which_side(texts) if fault.code == "DRV-MISMATCH-MODULE-OLD" else ""
            found.append(Finding(fault, tuple(lines)[:LINES], sum(lines.values()), detail))
    return found


def _which_side(texts: Mapping[str, str]) -> str:
    """Say which side of a mismatch is old, where the kernel log names both versions."""
    known = _MISMATCH.search(texts.get(KERNEL, ""))
    if known is None:
        return ""
    client, module = (tuple(int(part) for part in known.group(name).split(".")) for name in ("client", "module"))
    old = "the module in the kernel" if module < client else "user space"
    return f"module {known.group('module')}, user space {known.group('client')}: {old} is old"


def told(findings: list[Finding]) -> str:
    """Return the findings as a person reads them."""
    if not findings:
        return "no known fault is recognised in the logs"
    blocks = []
    for finding in findings:
        said = finding.as_dict()
        blocks.append(
            "\n".join(
                (
                    f"{said['code']}: {said['verdict']}",
                    *(f"  seen:  {line}" for line in finding.evidence),
                    f"  why:   {said['why']}",
                    f"  do:    {said['do']}",
                )
            )
        )
    return "\n".join(blocks)


def troubleshooting() -> str:
    """Return TROUBLESHOOTING.md of the role, from the table."""
    lines = [
        "# Troubleshooting",
        "",
        "Written by `tools/troubleshooting.py` from the table in `plugins/module_utils/_core/driver/faults.py`. The role and the",
        "module `inferops.sglang.driver_info` recognise the same signs. They were read from public reports; none was seen on a",
        "GPU host by us.",
        "",
        "*Stop* means: drain the host and do not restart or reboot in a loop.",
    ]
    for fault in FAULTS:
        lines += ["", f"## {fault.code}: {fault.verdict}", ""]
        lines += ["**Stop.**", ""] if fault.stop else []
        lines += [f"- Shows in: {', '.join(fault.sources)}", *(f"  - `{pattern}`" for pattern in fault.patterns)]
        lines += [f"- Cause: {fault.why}", f"- Do: {fault.do}"]
    return "\n".join(lines) + "\n"
