# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The last words about an attempt that did not reach its end: what, where, why, what to look at, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .unit_texts import runner_unit

AGAIN = "correct the inventory, then run the same play again"
SHOWN_LINES = 3
DO = {
    "rolled_back": AGAIN,
    "stopped": AGAIN,
    "gate_failed": "find out what changed since it was promoted, or put the plan right; then run the same play again",
    "held": "look at the candidate; the same play gates it again, rollback.yml brings the promoted release back",
    "lost": "run the same play again: it tells how the attempt went on",
    "superseded": "look at what the other run does before running this one again",
}


def failure_text(attempt: Mapping[str, Any], *, instance: str) -> str:
    """Return the message for an attempt with a bad outcome.

    >>> print(failure_text({"outcome": "stopped", "message": "stopped", "id": "ab", "failed_in": "start", "reasons": ["late"]},
    ...                    instance="kimi"))
    stopped
      where: release ab, phase start
      why:   late
      do:    correct the inventory, then run the same play again
    """
    gate = attempt.get("gate") or {}
    lines = [str(attempt.get("message", ""))]
    phase = attempt.get("failed_in") or attempt.get("phase")
    if attempt.get("id"):
        lines.append(f"  where: release {attempt['id']}" + (f", phase {phase}" if phase else ""))
    lines += [f"  why:   {reason}" for reason in attempt.get("reasons") or []]
    lines += [f"  cause: {found['message']} [{found['code']}]" for found in gate.get("diagnosis") or []]
    log = attempt.get("log")
    if log:
        lines.append(f"  cause: {log['what']} [{log['code']}]")
        lines += [f"  log:   {line}" for line in log["lines"][:SHOWN_LINES]]
    if gate.get("folder"):
        lines.append(f"  see:   {gate['folder']}/report.html on the host")
    if attempt.get("evidence"):
        lines.append(f"  see:   {attempt['evidence']} on the host: status, journal, stacks, settings")
    do = DO.get(
        str(attempt.get("outcome")), f"journalctl -u {runner_unit(instance)} -u 'sglang-{instance}*', then run deploy.yml"
    )
    lines.append(f"  do:    {log['do']}; then {do}" if log else f"  do:    {do}")
    return "\n".join(lines)
