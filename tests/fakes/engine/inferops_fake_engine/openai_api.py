"""/v1/completions and /v1/chat/completions as the recorded engine answers them."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any

from .generation import BadRequest, Generation, plan, reported_tokens, text_of, tokens
from .http import Request, Response, Stream
from .state import Server
from .text import pieces
from .tool_calls import wanted_call

DEFAULT_CHAT_TOKENS = 256


def error(message: str, kind: str = "Bad Request", status: int = 400) -> Response:
    return Response.json({"object": "error", "message": message, "type": kind, "param": None, "code": status}, status)


def _invalid(location: str, problem: str, path: str) -> BadRequest:
    return BadRequest(f"1 validation error:\n  {{'loc': ('body', '{location}'), 'msg': '{problem}'}}\n\n    POST {path}")


def _body(request: Request) -> dict[str, Any]:
    try:
        body = request.json()
    except ValueError:
        raise _invalid("0", "JSON decode error", request.path) from None
    if not isinstance(body, dict):
        raise _invalid("0", "Input should be a valid dictionary", request.path)
    return body


def _limit(body: dict[str, Any], path: str, default: int) -> int:
    name = "max_completion_tokens" if body.get("max_completion_tokens") is not None else "max_tokens"
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or value < 1:
        raise _invalid(name, f"Value error, {name} must be positive", path)
    return value


def _usage(server: Server, g: Generation, *, chat: bool, streamed: bool) -> dict[str, Any]:
    """Usage as recorded: cached tokens are told only with --enable-cache-report; a streamed completion leaves nulls out."""
    count = reported_tokens(server, g.count)
    usage: dict[str, Any] = {"prompt_tokens": g.input_tokens, "total_tokens": g.input_tokens + count, "completion_tokens": count}
    details = {"cached_tokens": g.cached_tokens} if server.args["enable_cache_report"] else None
    thinking = g.reasoning_tokens
    if chat or not streamed or details is not None:
        usage["prompt_tokens_details"] = details
    usage["reasoning_tokens"] = thinking
    if chat or not streamed:
        usage["completion_tokens_details"] = {"reasoning_tokens": thinking} if thinking else None
    return usage


def _metadata(g: Generation) -> dict[str, Any]:
    return {"weight_version": "default", "weight_versions": [{"version": "default", "start": 0, "end": g.count}]}


def _wants_usage(body: dict[str, Any]) -> bool:
    return bool((body.get("stream_options") or {}).get("include_usage"))


def _wants_running(body: dict[str, Any]) -> bool:
    """Usage in every chunk that brings text, as recorded: as whole as that of an answer that is not streamed."""
    options = body.get("stream_options") or {}
    return bool(options.get("include_usage") and options.get("continuous_usage_stats"))


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n\n"


async def completions(server: Server, request: Request) -> Response | Stream:
    body = _body(request)
    if "prompt" not in body:
        raise _invalid("prompt", "Field required", request.path)
    prompt, text = text_of(body)
    g = plan(server, prompt, text, _limit(body, request.path, 16), bool(body.get("ignore_eos")), thinking=False)
    head = {"id": g.id, "object": "text_completion", "created": int(time.time()), "model": body.get("model", "default")}
    if body.get("stream"):
        return Stream(_stream_completion(server, g, head, with_usage=_wants_usage(body), running=_wants_running(body)))
    said = "".join([piece async for piece, dummy in tokens(server, g)])
    choice = {"index": 0, "text": said, "logprobs": None, "finish_reason": g.finish, "matched_stop": None}
    return Response.json(
        head | {"choices": [choice], "usage": _usage(server, g, chat=False, streamed=False), "metadata": _metadata(g)}
    )


async def _stream_completion(
    server: Server, g: Generation, head: dict[str, Any], *, with_usage: bool, running: bool
) -> AsyncIterator[bytes]:
    async for piece, dummy in tokens(server, g):
        finish = g.finish if g.count == g.output_tokens else None
        choice = {"index": 0, "text": piece, "logprobs": None, "finish_reason": finish, "matched_stop": None}
        usage = _usage(server, g, chat=False, streamed=False) if running else None
        yield _event(head | {"choices": [choice], "usage": usage})
    if with_usage:
        yield _event(head | {"choices": [], "usage": _usage(server, g, chat=False, streamed=True)})
    yield b"data: [DONE]\n\n"


def _chat_prompt(body: dict[str, Any], path: str) -> tuple[str, str]:
    """The whole conversation, which is counted, and the last message, which is answered."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _invalid("messages", "Field required" if messages is None else "Input should be a valid list", path)
    texts = []
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list):
            content = " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
        texts.append(str(content or ""))
    return "\n".join(texts), texts[-1]


async def chat(server: Server, request: Request) -> Response | Stream:
    body = _body(request)
    prompt, last = _chat_prompt(body, request.path)
    thinking = server.args["reasoning_parser"] is not None and (body.get("chat_template_kwargs") or {}).get("thinking", True)
    parser = server.args["tool_call_parser"]
    call = wanted_call(body, last, parser=parser, fault=server.control.tool_calls)
    g = plan(
        server,
        prompt,
        last,
        _limit(body, request.path, DEFAULT_CHAT_TOKENS),
        bool(body.get("ignore_eos")),
        thinking=bool(thinking),
        call=call,
    )
    kimi = parser == "kimi_k2"
    head = {"id": g.id, "object": "chat.completion", "created": int(time.time()), "model": body.get("model", "default")}
    if body.get("stream"):
        head["object"] = "chat.completion.chunk"
        usage, running = _wants_usage(body), _wants_running(body)
        return Stream(_stream_chat(server, g, head, with_usage=usage, running=running, kimi=kimi))
    thoughts, said = [], []
    async for piece, thinks in tokens(server, g):
        (thoughts if thinks else said).append(piece)
    message = {"role": "assistant", "content": "".join(said).strip(), "reasoning_content": "".join(thoughts) or None}
    if call is not None and call.parsed:
        message |= {"content": None, "tool_calls": [call.piece("".join(said[: len(pieces(call.text))]), first=True, kimi=kimi)]}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(g), "matched_stop": None}
    return Response.json(
        head | {"choices": [choice], "usage": _usage(server, g, chat=True, streamed=False), "metadata": _metadata(g)}
    )


def _finish(g: Generation) -> str:
    return "tool_calls" if g.finish == "stop" and g.call is not None and g.call.parsed else g.finish


async def _stream_chat(
    server: Server, g: Generation, head: dict[str, Any], *, with_usage: bool, running: bool, kimi: bool
) -> AsyncIterator[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish, "matched_stop": None}
        told = (
            {"usage": _usage(server, g, chat=True, streamed=True)} if running and finish is None and "role" not in delta else {}
        )
        return _event(head | {"choices": [choice], **told})

    first, named = True, False
    async for piece, thinks in tokens(server, g):
        if first:
            yield chunk({"reasoning_content": None, "role": "assistant", "content": ""}, None)
            first = False
        if not thinks and g.call is not None and g.call.parsed:
            if not named:
                yield chunk({"reasoning_content": None, "tool_calls": [g.call.piece("", first=True, kimi=kimi)]}, None)
                named = True
            # The last token of a reply is the mark of its end, which the parser keeps to itself.
            if g.count - g.thinking <= len(pieces(g.call.text)):
                yield chunk({"reasoning_content": None, "tool_calls": [g.call.piece(piece, first=False, kimi=kimi)]}, None)
            continue
        delta = {"reasoning_content": piece} if thinks else {"reasoning_content": None, "content": piece}
        yield chunk(delta, None)
    yield chunk({"reasoning_content": None}, _finish(g))
    if with_usage:
        yield _event(head | {"choices": [], "usage": _usage(server, g, chat=True, streamed=True)})
    yield b"data: [DONE]\n\n"
