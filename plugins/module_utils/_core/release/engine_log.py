# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What an engine's log says about its end: the first error outranks what follows, and a hang is never a lack of memory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from .causes import CAUSES, RANKS, STAGES, Cause, Rank, Stage

CHILD = "LOG-CHILD"
LONGEST = 300
MOST_LINES = 5
# uvicorn's access log. Our own probes fill it while a server hangs, so it tells neither progress nor a cause.
REQUEST = re.compile(r'"(GET|POST|HEAD) \S+ HTTP/[\d.]+" \d{3}')
# SGLang reports that a child failed after the child said why (srt/managers/scheduler.py, srt/entrypoints/engine.py, 0.5.23).
FOLLOWS = re.compile(r"sigquit|usually means|initialization failed|^\s*killed\s*$", re.IGNORECASE)
ERROR = re.compile(r"\w(Error|Exception)\b|\berror:|hit an exception|not enough memory|no space left", re.IGNORECASE)
# Told and lived with: SGLang tries many optional imports, and warns of what it does about them.
# A warning of Python comes with the line of source that gave it.
MILD = re.compile(r"warning\b|warnings\.warn\(|ignore import error|deprecat", re.IGNORECASE)
# What is said of a child that failed by an error that the table does not know.
CHILD_WHAT = "a child of the server failed"
CHILD_DO = "its error is the first line: put right what that names, or search SGLang's issues for it"
# A journal line in short-iso: time, host, program.
JOURNAL = re.compile(r"^\d{4}-\d\d-\d\dT\S+ \S+ (?P<program>\S+?)(\[\d+\])?: ")


@dataclass(frozen=True)
class Verdict:
    """``lines`` are the evidence, the one that decided first."""

    code: str
    what: str
    do: str
    lines: tuple[str, ...]
    rank: Rank

    def __str__(self) -> str:
        """Return one clause, such as "a port is in use [LOG-PORT]: OSError: [Errno 98] Address already in use"."""
        return f"{self.what} [{self.code}]" + (f": {self.lines[0]}" if self.lines else "")

    def as_dict(self) -> dict[str, Any]:
        return {"code": self.code, "what": self.what, "do": self.do, "lines": list(self.lines)}


class EngineLog:
    """Takes lines as they come; keeps the last that tells something, the stage of the start, and the first sign of each cause."""

    def __init__(self) -> None:
        self.line = ""
        self.stage: Stage = "begin"
        self._error = ""
        self._signs: dict[str, list[str]] = {}

    def hear(self, line: str) -> bool:
        """Take one line; tell whether the engine says something by it, which an account of a request does not.

        >>> log = EngineLog()
        >>> for line in ("RuntimeError: Not enough memory.", "", "Received sigquit from a child process."):
        ...     dummy = log.hear(line)
        >>> log.hear('INFO:     127.0.0.1:5 - "GET /health HTTP/1.1" 503 Service Unavailable')
        False
        >>> log.line, log.cause
        ('Received sigquit from a child process.', 'a child of the server failed [LOG-CHILD]: RuntimeError: Not enough memory.')
        """
        text = line.strip()[-LONGEST:]
        if not text or REQUEST.search(text):
            return False
        if not (MILD.search(text) and self.line):
            self.line = text
        # What is said after a child's end is about the end.
        if ERROR.search(text) and not FOLLOWS.search(text) and not (self._error and CHILD in self._signs):
            self._error = text
        self.stage = next((name for name, sign in STAGES.items() if re.search(sign, text, re.IGNORECASE)), self.stage)
        found = None if MILD.search(text) else next((cause for cause in CAUSES if cause.fits(text, self.stage)), None)
        if found is not None:
            self._signs.setdefault(found.code, []).append(text)
        return True

    def verdict(self, *, hung: bool = False) -> Verdict | None:
        """Return what the log shows, or None when it names nothing known; ``hung``: it was given up while it ran."""
        silent = hung or any(cause.rank == "silence" and cause.code in self._signs for cause in CAUSES)
        order = {code: at for at, code in enumerate(self._signs)}
        seen = [cause for cause in CAUSES if cause.code in order and not (silent and cause.memory)]
        if hung:
            seen += [cause for cause in CAUSES if cause.pattern is None and (not cause.stages or self.stage in cause.stages)]
        if not seen:
            return None
        # Of one rank the first in time; where silence is the sign, the most special one, which stands first in the table.
        first = min(seen, key=lambda cause: (RANKS.index(cause.rank), order.get(cause.code, len(order))))
        lines = self._signs.get(first.code) or [self.line]
        if first.code == CHILD and self._error:
            return _verdict(replace(first, what=CHILD_WHAT, do=CHILD_DO), [self._error, *lines])
        return _verdict(first, lines)

    @property
    def cause(self) -> str:
        """Return one clause on why the engine ended: a known cause, else the last line that names an error, else the last."""
        found = self.verdict()
        return str(found) if found is not None else self._error or self.line


def classify(text: str, *, hung: bool = False) -> Verdict | None:
    """Return the verdict on a journal or a log file.

    >>> str(classify("[E] bind failed: Address already in use"))
    'a port is in use [LOG-PORT]: [E] bind failed: Address already in use'
    """
    log = EngineLog()
    for line in lines_of(text):
        log.hear(line)
    return log.verdict(hung=hung)


def lines_of(text: str) -> Iterable[str]:
    """Return what the engine and the kernel said; what systemd and our wrapper said of it themselves is left out."""
    for line in text.splitlines():
        head = JOURNAL.match(line)
        said = line[head.end() :] if head else line
        if not said.startswith("inferops: ") and not (head and head["program"] == "systemd" and "OOM" not in said):
            yield said


def _verdict(cause: Cause, lines: list[str]) -> Verdict:
    do = cause.do + (f"; look: {cause.look}" if cause.look else "")
    return Verdict(cause.code, cause.what, do, tuple(line for line in lines[:MOST_LINES] if line), cause.rank)
