# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The order of a rolling upgrade: the canary alone, then batches, and never fewer servers than what was asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import InferopsError


@dataclass(frozen=True)
class Rollout:
    """``serial`` is what a play takes for its batches; its last number repeats. ``lowest`` is the smallest count that serves."""

    hosts: tuple[str, ...]
    serial: tuple[int, ...]
    serving: int
    lowest: int
    lowest_batch: tuple[str, ...]

    @property
    def lowest_ratio(self) -> float:
        return self.lowest / len(self.hosts)

    @property
    def text(self) -> str:
        """Return the plan as one line."""
        total, batch = len(self.hosts), self.serial[-1]
        rest = total - self.serial[0]
        then = f", then {rest} by {batch}" if rest else ""
        return f"{self.hosts[0]} first{then}; {self.serving} of {total} serve now, never fewer than {self.lowest}"


def rollout(
    serves: Mapping[str, bool | None], *, canary: str | None = None, batch: int | str = 1, min_serving_ratio: float = 0.0
) -> Rollout:
    """Return the order for hosts, given by name with whether each serves now (None: not known, which counts as not).

    Raises InferopsError when a batch would leave less than ``min_serving_ratio`` (0 to 1) of all hosts.

    >>> plan = rollout({"a": True, "b": True, "c": True, "d": False}, canary="b", batch="50%")
    >>> plan.hosts, plan.serial, plan.lowest
    (('b', 'a', 'c', 'd'), (1, 2), 1)
    """
    names = tuple(serves)
    if not names:
        raise InferopsError("there is no host to upgrade", where="inferops_hosts", do="name a group with hosts")
    if canary is not None and canary not in serves:
        raise InferopsError(f"the canary {canary} is no such host", where="inferops_canary", do=f"name one of {_some(names)}")
    if not 0.0 <= min_serving_ratio <= 1.0:
        raise InferopsError(f"{min_serving_ratio} is no share", where="inferops_min_serving_ratio", do="set 0 to 1")
    first = canary or names[0]
    order = (first, *(name for name in names if name != first))
    size = batch_size(batch, len(order))
    up = {name: serves[name] is True for name in order}
    serving = begun = sum(up.values())
    lowest, at = serving, 0
    lowest_batch: tuple[str, ...] = ()
    while at < len(order):
        part = order[at : at + (1 if at == 0 else size)]
        left = serving - sum(up[name] for name in part)
        if left < lowest or not lowest_batch:
            lowest, lowest_batch = left, part
        # Only a batch that serves is followed by another.
        serving = left + len(part)
        at += len(part)
    plan = Rollout(order, (1, size) if len(order) > 1 else (1,), begun, lowest, lowest_batch)
    if plan.lowest_ratio < min_serving_ratio:
        down = [name for name in order if not up[name]]
        raise InferopsError(
            f"{plan.lowest} of {len(order)} servers would be left, {min_serving_ratio:.0%} are to serve at any time",
            where=f"inferops_min_serving_ratio, while {_some(lowest_batch)} is out of service",
            why=f"{begun} serve now" + (f"; {_some(down)} not" if down else "") + f"; batches of {size}",
            do="bring the others into service first (deploy.yml), make inferops_batch smaller, or ask for a smaller share",
        )
    return plan


def batch_size(batch: int | str, hosts: int) -> int:
    """Return a batch as a number of hosts, at least 1.

    >>> batch_size(2, 10), batch_size("25%", 10), batch_size("1%", 10)
    (2, 2, 1)
    """
    found = re.fullmatch(r"(\d+)(%?)", str(batch))
    number = int(found[1]) if found else 0
    if found is None or number == 0 or (found[2] and number > 100):
        raise InferopsError(f"{batch!r} is no batch", where="inferops_batch", do='set a number of hosts, or "25%"')
    return max(1, hosts * number // 100) if found[2] else number


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
