# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Prompts that are never the same twice: fresh per run, point and request, so that no prefix cache can answer them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

# Below 256 byte-level vocabularies keep their bytes, at the upper end special tokens; both are left out.
LOWEST_TOKEN = 256
UNKNOWN_VOCABULARY = 2000
USABLE_SHARE = 0.95
SYLLABLES = ("ka", "lo", "mi", "ren", "tu", "sel", "vor", "ash", "den", "pli", "gos", "uma", "ter", "nix", "bel", "rad")


def vocabulary_size(model_config: Mapping[str, Any] | None) -> int | None:
    """Return vocab_size of a config.json, also where a multimodal one nests it in text_config; None when unknown."""
    for config in (model_config or {}, (model_config or {}).get("text_config") or {}):
        if isinstance(config.get("vocab_size"), int):
            return int(config["vocab_size"])
    return None


class PromptMaker:
    """Makes prompts of a length in tokens: as token ids where the server takes them, else as words.

    ``nonce`` differs per run: the same plan gated twice against one server must not hit what the first run left cached.
    """

    def __init__(self, *, seed: int, nonce: str, input_tokens: int, vocab_size: int | None = None) -> None:
        self._key = f"{seed}/{nonce}"
        self._input_tokens = input_tokens
        self._top = max(int((vocab_size or UNKNOWN_VOCABULARY) * USABLE_SHARE), LOWEST_TOKEN + 2)
        self.words: int | None = None

    def prompt(self, point: int, request: int) -> list[int] | str:
        """Return prompt number ``request`` of a point; token ids unless ``words`` has been calibrated."""
        source = random.Random(f"{self._key}/{point}/{request}")
        if self.words is None:
            return [source.randrange(LOWEST_TOKEN, self._top) for dummy in range(self._input_tokens)]
        return " ".join("".join(source.choices(SYLLABLES, k=source.randint(1, 3))) for dummy in range(self.words))

    def calibrate(self, measured_tokens: int) -> None:
        """Correct the number of words after the server counted a prompt of the present number of words."""
        words = self.words or self._input_tokens
        self.words = max(round(words * self._input_tokens / max(measured_tokens, 1)), 1)
