"""Prompts and replies without a tokenizer: a token is a word or a mark, replies are plain sentences."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from itertools import count
from typing import Any

from .skills import solve

_PIECE = re.compile(r"\s*\w+|\s*[^\w\s]")
_WORDS = [
    "the",
    "pipeline",
    "moves",
    "one",
    "token",
    "at",
    "a",
    "time",
    "through",
    "every",
    "stage",
    "and",
    "each",
    "stage",
    "reads",
    "its",
    "own",
    "layers",
    "from",
    "memory",
    "while",
    "the",
    "others",
    "wait",
    "for",
    "what",
    "it",
    "hands",
    "on",
    "so",
    "a",
    "second",
    "request",
    "can",
    "fill",
    "the",
    "gap",
    "that",
    "the",
    "first",
    "one",
    "leaves",
    "behind",
    "until",
    "all",
    "cards",
    "are",
    "busy",
    "and",
    "the",
    "rate",
    "follows",
    "the",
    "slowest",
    "of",
    "them",
]
_FACTS = {"capital of france": "Paris", "capital of germany": "Berlin", "capital of japan": "Tokyo", "opposite of hot": "cold"}


def pieces(text: str) -> list[str]:
    return _PIECE.findall(text)


def prompt_tokens(prompt: Any) -> int:
    """Tokens of a prompt given as text or as token ids."""
    if isinstance(prompt, str):
        return max(1, len(pieces(prompt)))
    return len(prompt)


def prompt_text(prompt: Any) -> str:
    return prompt if isinstance(prompt, str) else ""


def known_answer(prompt: str, extra: Mapping[str, str], conversation: str) -> str | None:
    """The answer to a question that the fake knows or can work out."""
    low = prompt.lower()
    for needle, answer in {**_FACTS, **extra}.items():
        if needle.lower() in low:
            return answer
    return solve(prompt, conversation)


def seed_of(prompt: Any) -> int:
    return zlib.crc32(repr(prompt).encode())


def reply(seed: int, answer: str | None):
    """Yield the pieces of an endless reply: the answer first, then sentences that differ with the prompt."""
    if answer is not None:
        yield from pieces(answer)
        yield "."
    start = seed % len(_WORDS)
    for index in count():
        word = _WORDS[(start + index * (1 + seed % 7)) % len(_WORDS)]
        yield "." if index % 17 == 16 else " " + word


def natural_length(seed: int, answer: str | None) -> int:
    """Where a reply ends by itself when end-of-sequence is not ignored [tokens]."""
    return len(pieces(answer)) + 1 if answer is not None else 40 + seed % 80
