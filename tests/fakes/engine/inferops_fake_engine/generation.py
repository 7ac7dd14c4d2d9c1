"""From a request body to a stream of tokens, for the three generation endpoints."""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from . import log
from .skills import mistaken
from .state import Server
from .text import known_answer, natural_length, prompt_text, prompt_tokens, reply, seed_of
from .tool_calls import Call

THINKING_TOKENS = 24  # a reply thinks for at most this long, and never longer than half of it


class BadRequest(Exception):
    """Answered with 400 in the endpoint's own form."""

    def __init__(self, message: str, kind: str = "Bad Request") -> None:
        super().__init__(message)
        self.kind = kind


class ServerFault(Exception):
    """Answered with 500."""


@dataclass
class Generation:
    """One request on its way: its plan, and what has been said so far."""

    prompt: Any
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    answer: str | None
    thinking: int = 0
    garbage: bool = False
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    count: int = 0
    finish: str = "length"
    call: Call | None = None

    @property
    def reasoning_tokens(self) -> int:
        return min(self.count, self.thinking)


def plan(
    server: Server,
    prompt: Any,
    text: str,
    max_tokens: int,
    ignore_eos: bool,
    *,
    thinking: bool,
    call: Call | None = None,
) -> Generation:
    """Decide how long the reply becomes; refuse what SGLang refuses."""
    control = server.control
    tokens = prompt_tokens(prompt)
    if tokens + max_tokens > server.context_length:
        raise BadRequest(
            f"Requested token count exceeds the model's maximum context length of {server.context_length} tokens. "
            f"You requested a total of {tokens + max_tokens} tokens: {tokens} tokens from the input messages and {max_tokens} "
            "tokens for the completion.",
            "BadRequestError",
        )
    seed = seed_of(prompt)
    cached = _cached(server, prompt, tokens)
    answer = None if ignore_eos else _answer(server, prompt, text, call, from_cache=cached > 0)
    natural = natural_length(seed, answer)
    think = min(THINKING_TOKENS, natural) if thinking else 0
    output, finish = max_tokens, "length"
    if not ignore_eos and natural + think < max_tokens:
        output, finish = natural + think, "stop"
    if control.ignore_max_tokens:
        output *= 4
    if thinking and ignore_eos:
        think = min(THINKING_TOKENS, output // 2)
    return Generation(prompt, tokens, cached, output, answer, think, control.garbage, finish=finish, call=call)


def _cached(server: Server, prompt: Any, tokens: int) -> int:
    control = server.control
    if control.cached_ratio is not None:
        return int(tokens * min(1.0, max(0.0, control.cached_ratio)))
    found = (
        0 if server.args["disable_radix_cache"] else server.prefix_cache.found(prompt, max(int(server.args["page_size"] or 1), 1))
    )
    if found and control.cache_hit == "crash":
        die(server, "Scheduler hit an exception: simulated crash of a request that begins in the prefix cache")
    return found


def _answer(server: Server, prompt: Any, text: str, call: Call | None, *, from_cache: bool) -> str | None:
    control = server.control
    if call is not None:
        return call.text
    answer = known_answer(text, control.answers, prompt_text(prompt))
    if answer is None:
        return None
    return "something else" if from_cache and control.cache_hit == "wrong" else mistaken(answer, text, control.wrong_answers)


async def tokens(server: Server, generation: Generation) -> AsyncIterator[tuple[str, bool]]:
    """Yield (text, is it thinking) per token, when the clock says so."""
    control = server.control
    server.requests_taken += 1
    if control.crash_after_requests is not None and server.requests_taken > control.crash_after_requests:
        die(server, "Scheduler hit an exception: simulated crash")
    if control.out_of_memory == "runtime":
        die(server, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (simulated)")
    if control.fail_every and server.requests_taken % control.fail_every == 0:
        raise ServerFault("simulated failure")
    if control.green_without_tokens:
        await asyncio.Event().wait()
    assert server.engine is not None
    thinking = reply(seed_of(generation.prompt) + 1, None)
    said = reply(seed_of(generation.prompt), generation.answer)
    source = server.engine.generate(
        prompt_tokens=generation.input_tokens, cached_tokens=generation.cached_tokens, output_tokens=generation.output_tokens
    )
    try:
        async for _last in source:
            if control.hang_after_tokens is not None and generation.count >= control.hang_after_tokens:
                await asyncio.Event().wait()
            generation.count += 1
            thinks = generation.count <= generation.thinking
            piece = next(thinking if thinks else said)  # pylint: disable=stop-iteration-return  # they never end
            yield ("!" if generation.garbage else piece), thinks
    finally:
        await source.aclose()


def die(server: Server, line: str) -> None:
    """End as SGLang does when a child has crashed: traceback, then the whole process tree is killed."""
    log.line(line, level="ERROR")
    log.line("SIGQUIT received. signum=None, frame=None. It usually means one child failed.")
    log.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def reported_tokens(server: Server, count: int) -> int:
    return int(count * server.control.usage_factor)


def text_of(body: dict[str, Any]) -> tuple[Any, str]:
    """The prompt of /v1/completions or /generate: token ids or text, and the text as far as there is one."""
    prompt = body.get("prompt", body.get("input_ids", body.get("text")))
    if isinstance(prompt, list) and prompt and isinstance(prompt[0], (str, list)):
        if len(prompt) != 1:
            raise BadRequest("the simulated engine takes one prompt at a time")
        prompt = prompt[0]
    return prompt, prompt_text(prompt)
