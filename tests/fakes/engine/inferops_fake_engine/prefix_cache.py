"""The beginning of a prompt that an earlier one shared, as a radix cache finds it: whole pages, never the last token."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from .text import pieces

KEPT_PAGES = 200_000


class PrefixCache:
    """Remembers pages by the digest of everything up to their end."""

    def __init__(self) -> None:
        self._pages: OrderedDict[int, None] = OrderedDict()

    def found(self, prompt: Any, page: int) -> int:
        """Tokens at the beginning of a prompt that are known, in pages of a length; all of it is known from now on."""
        tokens: Sequence[Any] = pieces(prompt) if isinstance(prompt, str) else prompt
        known, digest, fresh = 0, 0, False
        for end in range(page, len(tokens), page):
            digest = zlib.crc32(repr(tokens[end - page : end]).encode(), digest)
            fresh = fresh or digest not in self._pages
            known = known if fresh else end
            self._pages[digest] = None
            self._pages.move_to_end(digest)
        while len(self._pages) > KEPT_PAGES:
            self._pages.popitem(last=False)
        return known

    def flush(self) -> None:
        self._pages.clear()
