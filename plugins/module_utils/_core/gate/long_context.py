# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""One fact in a long text: is it found, and was the text really as long as it was meant to be."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from .asking import Asker, said
from .plan import GatePlan
from .plan_correctness import LongContext
from .prompts import SYLLABLES

CALIBRATION_WORDS = 400
ANSWER_TOKENS = 48
QUESTION = "What is the secret number told in the text above? Answer with the number alone."


@dataclass
class LongContextFound:
    """What came back."""

    input_tokens: int | None = None
    answer: str = ""
    ttft_s: float | None = None
    wrong: list[str] = field(default_factory=list)
    doubtful: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return {"input_tokens": self.input_tokens, "answer": self.answer[:80], "ttft_s": self.ttft_s}


async def long_context(asker: Asker, *, seed: str, plan: GatePlan, rule: LongContext) -> LongContextFound:
    """Find out how many words make the wanted tokens, hide a number at a third of them, and ask for it."""
    found, source = LongContextFound(), random.Random(f"needle/{seed}")
    secret = str(source.randint(10_000, 99_999))
    trial = await asker.ask([{"role": "user", "content": _text(source, CALIBRATION_WORDS, None)}], max_tokens=1)
    if trial.status != "ok" or not trial.input_tokens:
        found.wrong.append(f"long context: {trial.error or 'the server does not say how long a prompt is'}")
        return found
    words = max(round(CALIBRATION_WORDS * rule.input_tokens / trial.input_tokens), 8)
    messages = [{"role": "user", "content": _text(source, words, secret)}]
    trace = await asker.ask(messages, max_tokens=ANSWER_TOKENS, total_s=rule.max_seconds)
    found.input_tokens, found.answer = trace.input_tokens, said(trace)
    if trace.first_ns is not None:
        found.ttft_s = round((trace.first_ns - trace.planned_ns) / 1e9, 3)
    if trace.status != "ok":
        found.wrong.append(f"long context: {trace.error}")
    elif secret not in found.answer:
        found.wrong.append(f"long context: {secret} was told in the text, the answer is {found.answer[:60]!r}")
    tolerance = plan.correctness.length_tolerance_ratio
    if trace.input_tokens is not None and abs(trace.input_tokens - rule.input_tokens) > tolerance * rule.input_tokens:
        found.doubtful.append(f"long context: the text held {trace.input_tokens} tokens, {rule.input_tokens} were planned")
    return found


def _text(source: random.Random, words: int, secret: str | None) -> str:
    made = ["".join(source.choices(SYLLABLES, k=2)) for dummy in range(words)]
    if secret is not None:
        made.insert(words // 3, f". The secret number is {secret} .")
    return " ".join(made) + f"\n\n{QUESTION}"
