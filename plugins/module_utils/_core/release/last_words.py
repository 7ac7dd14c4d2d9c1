# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which line of a server's output says why it died: an error outranks what only follows from it."""

from __future__ import annotations

import re

LONGEST = 300
# uvicorn's access log. Our own probes fill it while a server hangs, so it tells neither progress nor a cause.
REQUEST = re.compile(r'"(GET|POST|HEAD) \S+ HTTP/[\d.]+" \d{3}')
# SGLang reports that a child failed after the child said why (srt/managers/scheduler.py, srt/entrypoints/engine.py, 0.5.23).
FOLLOWS = re.compile(r"sigquit|usually means|initialization failed|^\s*killed\s*$", re.IGNORECASE)
CAUSE = re.compile(
    r"\w(Error|Exception)\b|\berror:|hit an exception|not enough memory|out of memory|address already in use|no space left"
    r"|cannot open shared object",
    re.IGNORECASE,
)


class LastWords:
    """Takes lines as they come and keeps the last one, and the last that names a cause."""

    def __init__(self) -> None:
        self.line = ""
        self._cause = ""

    def hear(self, line: str) -> bool:
        """Take one line; tell whether the engine says something by it, which an account of a request does not.

        >>> words = LastWords()
        >>> for line in ("RuntimeError: Not enough memory.", "", "Received sigquit from a child process."):
        ...     dummy = words.hear(line)
        >>> words.hear('INFO:     127.0.0.1:5 - "GET /health HTTP/1.1" 503 Service Unavailable')
        False
        >>> words.line, words.cause
        ('Received sigquit from a child process.', 'RuntimeError: Not enough memory.')
        """
        text = line.strip()[-LONGEST:]
        if not text or REQUEST.search(text):
            return False
        self.line = text
        if CAUSE.search(text) and not FOLLOWS.search(text):
            self._cause = text
        return True

    @property
    def cause(self) -> str:
        """Return the last line that names a cause, else the last line."""
        return self._cause or self.line
