"""/generate, SGLang's own endpoint."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any

from .generation import BadRequest, Generation, plan, reported_tokens, text_of, tokens
from .http import Request, Response, Stream
from .state import Server


def bad_request(message: str, status: int = 400) -> Response:
    return Response.json({"error": {"message": message}}, status)


def _ids(seed: int, count: int) -> list[int]:
    return [5 + (seed + 7919 * n) % 1000 for n in range(count)]


def _meta(server: Server, g: Generation, began: float, first: float | None, *, done: bool) -> dict[str, Any]:
    now = time.time()
    meta: dict[str, Any] = {
        "id": g.id,
        "finish_reason": None,
        "prompt_tokens": g.input_tokens,
        "weight_version": "default",
        "num_retractions": 0,
        "storage_prefetch_wait": 0.0,
        "storage_staging_wait": 0.0,
        "forward_entry_time": began,
        "prefill_finished_time": first or now,
        "queue_time": 0.0005,
        "reasoning_tokens": g.reasoning_tokens,
        "completion_tokens": reported_tokens(server, g.count),
        "cached_tokens": g.cached_tokens,
        "cached_tokens_details": {"device": g.cached_tokens, "host": 0},
        "dp_rank": None,
        "response_sent_to_client_ts": now,
    }
    if done:
        meta |= {
            "finish_reason": {"type": "length", "length": g.count} if g.finish == "length" else {"type": "stop", "matched": 2},
            "weight_versions": [{"version": "default", "start": 0, "end": g.count}],
            "e2e_latency": now - began,
            "request_received_ts": began,
            "first_token_latency": (first or now) - began,
            "api_server_dispatch_finish_ts": began,
            "request_finished_ts": now,
            "decode_throughput": g.count / max(1e-6, now - (first or began)),
        }
    return meta


async def generate(server: Server, request: Request) -> Response | Stream:
    try:
        body = request.json()
    except ValueError:
        raise BadRequest("1 validation error:\n  {'loc': ('body', 0), 'msg': 'JSON decode error'}") from None
    prompt, text = text_of(body)
    if prompt is None:
        return bad_request("Either text, input_ids or input_embeds should be provided.")
    sampling = body.get("sampling_params") or {}
    limit = sampling.get("max_new_tokens", 128)
    if not isinstance(limit, int) or limit < 1:
        return bad_request(f"max_new_tokens must be at least 1, got {limit}.")
    try:
        g = plan(server, prompt, text, limit, bool(sampling.get("ignore_eos")), thinking=False)
    except BadRequest as refused:
        return bad_request(str(refused))
    began = time.time()
    if body.get("stream"):
        return Stream(_stream(server, g, began))
    said, first = "", None
    async for piece, dummy in tokens(server, g):
        first = first or time.time()
        said += piece
    return Response.json(
        {"text": said, "output_ids": _ids(g.input_tokens, g.count), "meta_info": _meta(server, g, began, first, done=True)}
    )


async def _stream(server: Server, g: Generation, began: float) -> AsyncIterator[bytes]:
    """Each event carries the whole text so far; with --incremental-streaming-output, only what is new."""
    said, first, incremental = "", None, server.args.get("incremental_streaming_output")
    async for piece, dummy in tokens(server, g):
        first = first or time.time()
        said = piece if incremental else said + piece
        ids = _ids(g.input_tokens, g.count)
        event = {
            "text": said,
            "output_ids": ids[-1:] if incremental else ids,
            "meta_info": _meta(server, g, began, first, done=g.count == g.output_tokens),
        }
        yield b"data: " + json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"
