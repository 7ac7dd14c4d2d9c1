# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The second request, which finds its beginning in the prefix cache: it has crashed servers that passed every fresh prompt.

A gate of fresh prompts never comes there (sgl-project/sglang #14311). Three requests: a question, the same again, and a
second turn of the conversation. All must be answered, the greedy answer must stay, the cache must really be hit.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import engine
from .asking import Asker, Message, said
from .plan import GatePlan
from .probes import degenerate
from .prompts import SYLLABLES
from .stream import Trace

# Longer than the largest page of a cache (64 tokens in most back ends, 128 in some): only whole pages are found again.
FILLER_WORDS = 400
ANSWER_TOKENS = 32
CACHED = "sglang:cached_tokens_total"
READS, PAUSE_S = 5, 0.3


@dataclass
class CachedTurn:
    """What the three requests showed."""

    answers: list[str] = field(default_factory=list)
    cached_tokens: int | None = None
    wrong: list[str] = field(default_factory=list)
    doubtful: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return {"answers": [answer[:80] for answer in self.answers], "cached_tokens": self.cached_tokens}


async def cached_turn(asker: Asker, *, seed: str, plan: GatePlan) -> CachedTurn:
    """Ask the three requests one after the other; stop at the first that is not answered."""
    found = CachedTurn()
    source = random.Random(f"turn/{seed}")
    word = "".join(source.choices(SYLLABLES, k=3))
    filler = " ".join("".join(source.choices(SYLLABLES, k=2)) for dummy in range(FILLER_WORDS))
    first: Message = {
        "role": "user",
        "content": f"Here are words without a meaning: {filler}.\nThe code word is {word}. What is the code word? "
        "Answer with the code word alone.",
    }
    follow: Message = {"role": "user", "content": "Which code word did I tell you? Answer with the code word alone."}
    before: Mapping[str, list[engine.Series]] = {}
    told: list[int | None] = []
    for turn, name in enumerate(("first", "same", "next")):
        if turn == 1:
            before = await engine.read_metrics(asker.client)
        messages = [first] if turn < 2 else [first, {"role": "assistant", "content": found.answers[0]}, follow]
        trace = await asker.ask(messages, max_tokens=ANSWER_TOKENS)
        problem = _problem(trace, plan)
        if problem is not None:
            how = "" if turn == 0 else ", whose beginning is in the prefix cache,"
            found.wrong.append(f"cached turns: the {name} request{how} {problem}")
            return found
        found.answers.append(said(trace))
        told.append(trace.cached_tokens if turn else None)
    _compare(found, word)
    await _settle_hits(found, asker, before, told)
    return found


def _problem(trace: Trace, plan: GatePlan) -> str | None:
    if trace.status != "ok":
        return f"failed: {trace.error}"
    return f"was answered with garbage ({said(trace)[:40]!r})" if degenerate(trace, plan) else None


def _compare(found: CachedTurn, word: str) -> None:
    fresh, again, later = (word in answer.casefold() for answer in found.answers)
    if not fresh:
        found.notes.append("cached turns: the model does not repeat a code word, so its answers were not compared")
    elif not again or not later:
        lost = found.answers[1] if not again else found.answers[2]
        found.wrong.append(
            f"cached turns: the answer was {found.answers[0][:40]!r}, but {lost[:40]!r} once the prompt came from the cache"
        )
    elif found.answers[0] != found.answers[1]:
        found.doubtful.append(
            f"cached turns: one greedy question, two answers: {found.answers[0][:40]!r}, from the cache {found.answers[1][:40]!r}"
        )


async def _settle_hits(
    found: CachedTurn, asker: Asker, before: Mapping[str, list[engine.Series]], told: list[int | None]
) -> None:
    """Find out whether the cache was hit: by usage, else by the engine's own counter, which follows a moment later."""
    known = [count for count in told if count is not None]
    if known:
        found.cached_tokens = sum(known)
    elif before:
        for dummy in range(READS):
            after = await engine.read_metrics(asker.client)
            gained = engine.counter_gain(before, after, CACHED)
            if gained or "sglang:prompt_tokens_total" not in after:
                break
            await asyncio.sleep(PAUSE_S)
        if "sglang:prompt_tokens_total" in after:
            found.cached_tokens = round(gained or 0)
    if found.cached_tokens is None:
        found.notes.append("cached turns: the server does not tell whether its prefix cache was hit")
    elif found.cached_tokens == 0:
        found.doubtful.append("cached turns: the prefix cache was not hit, so requests that start in it are untried")
