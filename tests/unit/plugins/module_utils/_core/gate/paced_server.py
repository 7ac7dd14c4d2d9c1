"""A tiny OpenAI-compatible server with a pace that can be calculated, for tests of the gate alone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

TEXT = "the quick brown fox jumps over a lazy dog "
ANSWER_TOKENS = 40
"""A model that was asked a question ends by itself; load has ``ignore_eos`` and gets all that it asks for."""


@dataclass
class Pace:
    """TTFT and ITL in seconds and the ways to misbehave; each request takes ttft + (n - 1) * itl."""

    ttft_s: float = 0.02
    itl_s: float = 0.005
    model: str = "tiny"
    token_ids: bool = True
    chat: bool = True
    running_usage: bool = True
    extra_usage: int = 0
    usage_factor: float = 1.0
    cached_tokens: int | None = 0
    text: str = TEXT
    reasoning: bool = False
    hang_after: int | None = None
    fail_after: int | None = None
    input_offset: int = 0
    chunk_tokens: int = 1
    api_key: str | None = None
    max_tokens_ignored: bool = False
    endless: bool = False
    endless_load: bool = False
    limit_ignored_in_chat: bool = False
    """An answer to a question takes its own length, whatever it may be; the load keeps to its limit."""
    metrics: str | None = None
    server_info: dict[str, Any] | None = None
    slow_warm_up: int = 0
    chat_overhead: int = 0
    native: bool = True
    incremental: bool = False
    odd: dict[int, str] = field(default_factory=dict)
    """What load request number n (from 0, probe and warm-up included) does: error, hang, short, long, mute or uncounted."""
    loads: int = 0
    slots: int | None = None
    """How many loads are served at once; the others wait without a token."""
    counter_factor: float | None = None
    """Where set, /metrics counts the tokens that were really generated, times this."""
    generated: int = 0
    seen: list[dict[str, Any]] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0


def _prompt(body: dict[str, Any]) -> Any:
    if "messages" in body:
        return body["messages"][0]["content"]
    return body.get("prompt", body.get("input_ids", body.get("text")))


def _begin(body: dict[str, Any]) -> str:
    prompt = _prompt(body)
    return prompt[:200] if isinstance(prompt, str) else str(prompt)


def application(pace: Pace) -> web.Application:
    slots = asyncio.Semaphore(pace.slots or 1)

    async def models(request: web.Request) -> web.Response:
        if pace.api_key is not None and request.headers.get("Authorization") != f"Bearer {pace.api_key}":
            return web.json_response({"error": "no"}, status=401)
        return web.json_response({"data": [{"id": pace.model}]})

    async def generate(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        pace.seen.append(body)
        native = request.path == "/generate"
        if native and not pace.native:
            return web.json_response({"detail": "Not Found"}, status=404)
        if native:
            body = {**body, **body["sampling_params"], "max_tokens": body["sampling_params"]["max_new_tokens"]}
        prompt = _prompt(body)
        if isinstance(prompt, list) and not pace.token_ids:
            return web.json_response({"error": {"message": "prompt must be text"}}, status=400)
        if "messages" in body and not pace.chat:
            return web.json_response({"error": "no chat template"}, status=400)
        load = body.get("ignore_eos", False)
        body["odd"] = pace.odd.get(pace.loads, "") if load else ""
        pace.loads += load
        if body["odd"] == "error" or (load and pace.fail_after is not None and len(pace.seen) > pace.fail_after):
            return web.json_response({"error": {"message": "boom"}}, status=500)
        pace.in_flight += 1
        pace.most_in_flight = max(pace.most_in_flight, pace.in_flight)
        try:
            async with slots if load and pace.slots is not None else contextlib.nullcontext():
                return await stream(request, body, load=load)
        except ConnectionResetError:
            return web.Response()
        finally:
            pace.in_flight -= 1

    async def stream(request: web.Request, body: dict[str, Any], *, load: bool) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        count = body["max_tokens"] if load or pace.max_tokens_ignored else min(body["max_tokens"], ANSWER_TOKENS)
        if pace.limit_ignored_in_chat and not load:
            count = ANSWER_TOKENS
        endless = pace.endless or (pace.endless_load and load)
        count = 10**9 if endless else count + (5 if pace.max_tokens_ignored else 0)
        count += {"short": -3, "long": 3}.get(body["odd"], 0)
        prompt, native = _prompt(body), request.path == "/generate"
        inputs = (len(prompt) if isinstance(prompt, list) else 2 * len(prompt.split())) + pace.input_offset
        inputs += pace.chat_overhead if "messages" in body else 0
        said = ""
        loop = asyncio.get_running_loop()
        due = loop.time() + pace.ttft_s + (0.2 if len(pace.seen) <= pace.slow_warm_up else 0)
        counted = body["odd"] != "uncounted"
        running = body.get("stream_options", {}).get("continuous_usage_stats") and pace.running_usage and counted
        sent = 0
        while sent < count:
            if body["odd"] == "hang" or (load and pace.hang_after is not None and sent >= pace.hang_after):
                await asyncio.sleep(3600)
            await asyncio.sleep(max(due - loop.time(), 0))
            step = min(pace.chunk_tokens, count - sent)
            sent += step
            due += pace.itl_s * step
            piece = (pace.text[sent % len(pace.text)] * 2) if pace.text and body["odd"] != "mute" else ""
            if sent == step and pace.text == TEXT and "17 + 25" in str(body.get("messages", prompt)):
                piece = "42 "
            if "messages" in body:
                choice: dict[str, Any] = {"delta": {"reasoning_content" if pace.reasoning else "content": piece}}
            else:
                choice = {"text": piece}
            event: dict[str, Any] = {"choices": [{"index": 0, **choice}]}
            if native:
                said = piece if pace.incremental else said + piece
                meta = {
                    "prompt_tokens": inputs,
                    "completion_tokens": sent,
                    "cached_tokens": pace.cached_tokens,
                    "finish_reason": None,
                }
                event = {"text": said, "output_ids": [1] * sent, "meta_info": meta}
            if running and not native:
                event["usage"] = {"prompt_tokens": inputs, "completion_tokens": sent}
            await response.write(f"data: {json.dumps(event)}\n\n".encode())
        pace.generated += sent
        claimed = round(sent * pace.usage_factor) + pace.extra_usage
        usage: dict[str, Any] = {"prompt_tokens": inputs, "completion_tokens": claimed}
        if pace.cached_tokens is not None:
            # A text that begins as an earlier one is found again; prompts of the load never are.
            known = (not load) and _begin(body) in map(_begin, [one for one in pace.seen if one is not body])
            usage["prompt_tokens_details"] = {"cached_tokens": 64 if known else pace.cached_tokens}
        if counted and not native:
            await response.write(f"data: {json.dumps({'choices': [], 'usage': usage})}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response

    async def metrics(_: web.Request) -> web.Response:
        if pace.counter_factor is not None:
            return web.Response(text=f"sglang:generation_tokens_total {pace.generated * pace.counter_factor}\n")
        return web.Response(text=pace.metrics, status=200) if pace.metrics is not None else web.Response(status=404)

    async def server_info(_: web.Request) -> web.Response:
        return web.json_response(pace.server_info) if pace.server_info is not None else web.Response(status=404)

    app = web.Application()
    app.router.add_get("/v1/models", models)
    app.router.add_post("/v1/completions", generate)
    app.router.add_post("/v1/chat/completions", generate)
    app.router.add_post("/generate", generate)
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/server_info", server_info)
    return app


@contextlib.contextmanager
def serving(pace: Pace) -> Iterator[str]:
    """Serve in a thread of its own and yield the address."""
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(application(pace), shutdown_timeout=0.1)
    ready: list[int] = []
    up = threading.Event()

    async def start() -> None:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        ready.append(runner.addresses[0][1])
        up.set()

    def work() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(start())
        loop.run_forever()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert up.wait(10)
    try:
        yield f"http://127.0.0.1:{ready[0]}"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
