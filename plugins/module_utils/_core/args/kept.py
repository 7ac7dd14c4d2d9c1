# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Answers kept from one run to the next: asked the same of the same source by the same code, the answer is read, not worked out.

What is kept is the answer, never what was asked: of that only a hash, and none at all where the command line, its --config file
or the environment hold a secret, since a hash can be guessed at.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InferopsError
from .answers import Answers
from .source_mark import label_of, mark_of, unchanged

if TYPE_CHECKING:
    from .flags import FlagTable
    from .report import Report
    from .source import SourceTree

_SECRET_FLAG = re.compile(r"api_?key|passw|secret|credential|(^|_)token$|watermark_(key|config)")
_SECRET_NAME = re.compile(r"(^|_)(api_?key|key|secret|token|password|passwd|credentials?)(_|$)")
# A limit of time ended the check: another run may come further.
PASSING = frozenset({"time", "recursion"})


class Texts:
    """Reads the files a command line names, and notes what stood in them, None for one that cannot be read."""

    def __init__(self) -> None:
        self.seen: dict[str, str | None] = {}

    def __call__(self, path: str) -> str:
        self.seen[path] = None
        text = Path(path).read_text(encoding="utf-8")
        self.seen[path] = _digest(text)
        return text

    def again(self, paths: Iterable[str]) -> dict[str, str | None]:
        """Return what is noted once these are read."""
        for path in paths:
            with contextlib.suppress(OSError, UnicodeDecodeError):
                self(path)
        return self.seen


Make = Callable[["list[SourceTree]", Texts], "tuple[dict[str, Any], bool]"]


def kept(answers: Answers | None, asked: Mapping[str, Any], sources: Sequence[str | Path], make: Make) -> dict[str, Any]:
    """Return the answer to what is asked of the sources: out of the folder, else what ``make`` returns.

    asked: everything else that can change the answer. make: gets the open sources, and what to read further files with; returns
    the answer, as JSON can hold it, and whether it may be kept.
    """
    name = answers.name_of({**asked, "sources": [label_of(one) for one in sources]}) if answers is not None else None
    found = answers.get(name) if answers is not None and name is not None else None
    if found is not None and _still(found, sources):
        value: dict[str, Any] = found["value"]
        return value
    from .source import open_source  # deferred: an answer that was kept needs none of it

    trees, texts = [open_source(one) for one in sources], Texts()
    value, lasting = make(trees, texts)
    if answers is not None and name is not None and lasting:
        answers.put(name, {"marks": [mark_of(tree) for tree in trees], "texts": texts.seen, "value": value})
    return value


def check_kept(answers: Answers | None, source_root: str | Path, asked: Mapping[str, Any]) -> Report:
    """Return what ``check`` returns for the arguments ``asked``, those it can be asked without a live tier."""
    from .report import Report

    def make(trees: list[SourceTree], read: Texts) -> tuple[dict[str, Any], bool]:
        from .check import check
        from .flags import read_flags

        report = check(source_root=trees[0], read_text=read, **asked)
        lasting = may_be_kept([read_flags(trees[0])], asked["argv"], asked.get("env") or {}, read, report.undecided)
        return report.kept(), lasting

    return Report.from_kept(kept(answers, {"what": "check", **asked}, [source_root], make))


def _still(found: Mapping[str, Any], sources: Sequence[str | Path]) -> bool:
    """Whether the files behind an answer are the same still."""
    try:
        return Texts().again(found["texts"]) == found["texts"] and all(
            unchanged(path, mark) for path, mark in zip(sources, found["marks"], strict=True)
        )
    except (LookupError, TypeError, ValueError):
        return False


def may_be_kept(
    tables: Iterable[FlagTable], words: Sequence[str], env: Mapping[str, str], read: Texts, undecided: Iterable[Any] = ()
) -> bool:
    """Whether an answer about a command line holds no secret and will be the same next time."""
    if any(_SECRET_NAME.search(name.lower()) for name in env) or any(PASSING & set(entry["needs"]) for entry in undecided):
        return False
    return not any(_holds_secret(table, words, read) for table in tables)


def _holds_secret(table: FlagTable, words: Sequence[str], read: Texts) -> bool:
    from . import config_file
    from .context import is_secret
    from .parser import ArgvError

    try:
        merged = config_file.merge(table, words, read)
    except (ArgvError, InferopsError, OSError, UnicodeDecodeError):
        return True  # what the file holds is not known
    secret = [string for flag in table.flags if is_secret(table.field_of(flag)) for string in flag.spellings]
    for word in (*words, *merged):
        name = word.partition("=")[0]
        plain = name.strip("-").replace("-", "_").lower()
        if name.startswith("-") and (_SECRET_FLAG.search(plain) or (plain and any(one.startswith(name) for one in secret))):
            return True
    return False


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
