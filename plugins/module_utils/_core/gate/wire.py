# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""How this server is asked for load: at which endpoint, with token ids or a calibrated number of words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import InferopsError
from .asking import CHAT, COMPLETIONS, REFUSED
from .client import Client
from .plan import GatePlan
from .prompt_file import FilePrompts, read_prompts
from .prompts import PromptMaker, vocabulary_size
from .stream import Trace

GENERATE = "/generate"
PATHS = {"completions": COMPLETIONS, "chat": CHAT, "generate": GENERATE}
CALIBRATIONS = 4
FEW, ONCE_MORE = 8, 1000
# Of thousands of prompts many begin with the same token by chance, and a cache that keeps single ones (page_size 1) finds it.
GENERATED_ALIKE, MARKED_ALIKE = 1.25, 2.0
PromptSource: TypeAlias = "PromptMaker | FilePrompts"


@dataclass(frozen=True)
class Wire:
    """``shared_tokens``: how many tokens of each prompt are no word of ours (a chat template), and so may come from a cache."""

    maker: PromptSource
    model: str
    plan: GatePlan
    running_usage: bool = True
    shared_tokens: float = 0.0

    @property
    def path(self) -> str:
        return PATHS[self.plan.endpoint]

    @property
    def cacheable_tokens(self) -> float:
        """How many tokens of each prompt may come from a cache without doubt: the template, and a chance."""
        return self.shared_tokens + (GENERATED_ALIKE if isinstance(self.maker, PromptMaker) else MARKED_ALIKE)

    def note(self) -> str | None:
        """Say what prompts are when they are no token ids."""
        if isinstance(self.maker, FilePrompts):
            return self.maker.note()
        if self.maker.words is None:
            return None
        why = "chat" if self.plan.endpoint == "chat" else "the server takes no token ids"
        template = f"; {self.shared_tokens:.0f} more are its template" if self.shared_tokens >= 1 else ""
        return f"{why}: prompts are {self.maker.words} words, a number calibrated on the server's own count{template}"

    def body(self, point: int, request: int, output_tokens: int | None = None) -> dict[str, Any]:
        """Return the body of one load request: fixed length, no early end, streamed with usage."""
        prompt = self.maker.prompt(point, request)
        most = self.plan.output_tokens if output_tokens is None else output_tokens
        if self.plan.endpoint == "generate":
            asked: dict[str, Any] = {"text": prompt} if isinstance(prompt, str) else {"input_ids": prompt}
            sampling = {"max_new_tokens": most, "temperature": self.plan.temperature, "ignore_eos": True}
            return {**asked, "sampling_params": sampling, "stream": True}
        options = {"include_usage": True, "continuous_usage_stats": True} if self.running_usage else {"include_usage": True}
        messages = list(prompt) if isinstance(prompt, tuple) else [{"role": "user", "content": prompt}]
        return {
            "model": self.model,
            **({"messages": messages} if self.plan.endpoint == "chat" else {"prompt": prompt}),
            "max_tokens": most,
            "temperature": self.plan.temperature,
            "ignore_eos": True,
            "stream": True,
            "stream_options": options,
        }


def prompts_for(plan: GatePlan, nonce: str, model_config: Mapping[str, Any] | None) -> PromptSource:
    """Return where the prompts come from; a file is read now, and refused before anything is asked of the server."""
    if plan.prompts is None:
        size = vocabulary_size(model_config)
        return PromptMaker(seed=plan.seed, nonce=nonce, input_tokens=plan.input_tokens, vocab_size=size)
    texts = read_prompts(Path(plan.prompts.file), plan.endpoint)
    return FilePrompts(texts, seed=plan.seed, nonce=nonce, fresh=plan.prompts.fresh)


async def settle_wire(client: Client, plan: GatePlan, model: str, maker: PromptSource) -> tuple[Wire | None, str | None]:
    """Find out how to ask; return (wire, None) or (None, why the server cannot be loaded).

    Token ids give the exact length. A server that refuses them, and chat, get words, calibrated on its own count of the
    prompt, template included. Raises InferopsError where the template alone is longer than the prompt shall be.
    Prompts of a file are sent as they are.
    """
    number, wire, made = 0, Wire(maker, model, plan), isinstance(maker, PromptMaker)
    if made and plan.endpoint == "chat":
        maker.words = plan.input_tokens
    trace = await _probe(client, wire, number)
    if trace.http_status in REFUSED and plan.endpoint != "generate":
        wire, number = Wire(maker, model, plan, running_usage=False), number + 1
        trace = await _probe(client, wire, number)
    if made and trace.http_status in REFUSED and plan.endpoint == "completions":
        maker.words, number = plan.input_tokens, number + 1
        trace = await _probe(client, wire, number)
    if trace.status == "ok" and maker.words is not None:
        wire, trace = await _calibrated(client, wire, trace, number + 1)
    elif trace.status == "ok" and plan.endpoint == "chat":
        wire = await _with_template(client, wire)
    return (wire, None) if trace.status == "ok" else (None, f"first load request: {trace.error}")


async def _calibrated(client: Client, wire: Wire, trace: Trace, number: int) -> tuple[Wire, Trace]:
    """Ask with other numbers of words until the server counts the wanted length: count = tokens a word x words + template."""
    maker, wanted = wire.maker, wire.plan.input_tokens
    seen: list[tuple[int, int]] = []
    for attempt in range(CALIBRATIONS):
        if trace.status != "ok" or trace.input_tokens is None or maker.words is None:
            return wire, trace
        seen.append((maker.words, trace.input_tokens))
        slope = _slope(seen)
        if trace.input_tokens == wanted and (len(seen) > 1 or wire.plan.endpoint != "chat"):
            break
        if maker.words == 1 and trace.input_tokens > wanted:
            raise InferopsError(
                f"a prompt of one word already holds {trace.input_tokens} tokens, {wanted} are planned",
                where="plan.input_tokens",
                why="the server puts its chat template around it",
                do="plan longer prompts, or use endpoint: completions",
            )
        # A first count that fits says nothing about the template; half the words tell it.
        step = (wanted - trace.input_tokens) / slope if trace.input_tokens != wanted else -maker.words / 2
        maker.words = max(round(maker.words + step), 1)
        trace = await _probe(client, wire, number + attempt)
    words, counted = seen[-1]
    template = max(counted - _slope(seen) * words, 0.0)
    return replace(wire, shared_tokens=template), trace


async def _with_template(client: Client, wire: Wire) -> Wire:
    """Count the chat template around prompts of a file, by a question of one token."""
    body = {**wire.body(-1, 0, output_tokens=1), "messages": [{"role": "user", "content": "a"}]}
    trace = await _sent(client, wire, body)
    return wire if trace.input_tokens is None else replace(wire, shared_tokens=max(trace.input_tokens - 1.0, 0.0))


def _slope(seen: list[tuple[int, int]]) -> float:
    """Tokens a word, from the two counts that are furthest apart; 1 or the whole count, whichever is less, from one."""
    (few, least), (many, most) = min(seen), max(seen)
    if many > few and most > least:
        return (most - least) / (many - few)
    return max(most / many, 1.0) if most >= 2 * many else 1.0


async def _probe(client: Client, wire: Wire, number: int) -> Trace:
    # Point -1: these prompts never come again in a point. A few tokens are enough to see the form of the answer. They can
    # all be special ones, or parts of a character, which have no text: only the whole length without any says that none comes.
    trace = await _sent(client, wire, wire.body(-1, number, output_tokens=min(FEW, wire.plan.output_tokens)))
    if trace.chunks or not trace.output_tokens or trace.timed_out:
        return trace
    return await _sent(client, wire, wire.body(-1, number + ONCE_MORE))


async def _sent(client: Client, wire: Wire, body: dict[str, Any]) -> Trace:
    total_s = max(wire.plan.max_seconds_per_point, wire.plan.stall_timeout_s)
    return await client.generate(wire.path, body, stall_s=wire.plan.stall_timeout_s, total_s=total_s)
