# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""When a flag came and went: questions to the table of releases in history.py."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from .history import FLAGS, RELEASES

_VERSION = re.compile(r"(\d+(?:\.\d+)*)(?:\.?(a|b|rc|dev|post)(\d*))?")


def release_key(version: str) -> tuple[tuple[int, ...], int, int]:
    """Return what sorts releases by age: pre-releases before the release, post-releases after it.

    >>> sorted(["0.5.10", "0.5.9.post1", "0.5.10rc1", "0.5.9", "0.5.10.post1"], key=release_key)
    ['0.5.9', '0.5.9.post1', '0.5.10rc1', '0.5.10', '0.5.10.post1']
    """
    match = _VERSION.match(version)
    if match is None:
        return ((), 0, 0)
    kind = {None: 0, "post": 1}.get(match[2], -1)
    return (tuple(int(part) for part in match[1].split(".")), kind, int(match[3] or 0))


@dataclass(frozen=True)
class Span:
    """The releases from ``first`` to ``last`` have the flag; from ``deprecated`` on it is called that."""

    first: int
    last: int
    deprecated: int | None

    @property
    def gone(self) -> str | None:
        """Return the release that no longer has it, None where the newest one known still does."""
        return RELEASES[self.last + 1] if self.last + 1 < len(RELEASES) else None

    def removal(self) -> str:
        """Return when it went, as half a sentence."""
        since = f" (deprecated from {RELEASES[self.deprecated]})" if self.deprecated is not None else ""
        return f"removed in {self.gone}{since}" if self.gone else f"removed after {RELEASES[-1]}{since}"


@functools.cache
def history() -> dict[str, tuple[Span, ...]]:
    """Return {flag with its dashes: its spans, oldest first}."""
    out: dict[str, tuple[Span, ...]] = {}
    for line in FLAGS.replace("\n  ", " ").splitlines():
        head, dummy, names = line.partition(": ")
        first, last, since = head.split()
        span = Span(int(first), int(last), None if since == "-" else int(since))
        for name in names.split():
            out["--" + name] = (*out.get("--" + name, ()), span)
    return {name: tuple(sorted(spans, key=lambda span: span.first)) for name, spans in out.items()}


def added_later(flag: str, version: str) -> str | None:
    """Return the release that first has a flag, where that is later than version.

    >>> added_later("--pp-async-batch-depth", "0.5.6.post2")
    '0.5.7'
    """
    key = release_key(version)
    spans = history().get(flag, ())
    later = [span for span in spans if release_key(RELEASES[span.first]) > key]
    return RELEASES[later[0].first] if key[0] and later and len(later) == len(spans) else None


def removed(flag: str, version: str) -> Span | None:
    """Return the last span of a flag that ended before version.

    >>> removed("--cuda-graph-max-bs", "0.5.20").removal()
    'removed in 0.5.20 (deprecated from 0.5.14)'
    """
    key = release_key(version)
    over = [span for span in history().get(flag, ()) if release_key(RELEASES[span.last]) < key]
    return over[-1] if over else None


def later_fits(prefix: str, version: str) -> str | None:
    """Return the one flag of later releases a word is short for, None where it is none or several."""
    found = {flag for flag in history() if flag.startswith(prefix) and added_later(flag, version)}
    return found.pop() if len(found) == 1 else None


def ambiguous_from(prefix: str, version: str) -> tuple[str, list[str]] | None:
    """Return (first later release in which a short form fits several flags, those flags), None where none known is.

    >>> ambiguous_from("--enable-dp-att", "0.5.19")
    ('0.5.22', ['--enable-dp-attention', '--enable-dp-attention-local-control-broadcast'])
    """
    key = release_key(version)
    for number, release in enumerate(RELEASES):
        if not key[0] or release_key(release) <= key:
            continue
        fits = [
            flag
            for flag, spans in history().items()
            if flag.startswith(prefix) and any(s.first <= number <= s.last for s in spans)
        ]
        if len(fits) > 1 and prefix not in fits:
            return release, sorted(fits)
    return None
