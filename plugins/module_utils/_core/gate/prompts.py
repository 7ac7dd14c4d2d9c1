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
# Short plain words, which byte-pair vocabularies hold as one token each: so many words, so many tokens.
PLAIN = (
    "river stone window garden table paper letter number music winter summer spring morning evening night light shadow "
    "water fire earth wind rain snow ice sea lake hill valley forest tree leaf root seed grain bread milk salt sugar oil "
    "fish bird horse dog cat cow house door wall floor roof room kitchen bed chair lamp clock glass cup plate knife spoon "
    "road bridge street town city village market shop school church farm field mill ship boat train car wheel engine iron "
    "gold silver copper steel wood wool cloth thread coat shirt shoe hat ring box bag key lock rope nail hammer saw book "
    "page word line story song game ball card coin price money bank law king queen soldier doctor teacher farmer baker "
    "sailor father mother brother sister child friend guest hand foot head eye ear nose mouth tooth heart blood bone skin "
    "voice name day week month year hour minute north south east west left right front back top bottom side middle end "
    "start red blue green white black brown big small long short wide narrow high low deep fast slow hot cold warm dry wet "
    "new old young strong weak rich poor hard soft heavy sharp round flat open full empty clean quiet loud early late give "
    "take make break build cut pull push carry throw hold drop turn move walk run jump climb swim fly fall rise sit stand "
    "sleep wake eat drink cook wash read write draw paint sing play work rest buy sell pay count measure weigh ask answer "
    "call hear see look find lose keep send bring close begin stop wait hope think know learn teach help thank "
)
WORDS = tuple(PLAIN.split())


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
            return source.choices(range(LOWEST_TOKEN, self._top), k=self._input_tokens)
        return " ".join(source.choices(WORDS, k=self.words))

    def facts(self) -> None:
        """Nothing tells one set of generated prompts from another but the plan."""
