"""Which path is answered by what, who may ask, and what each phase of the server's life changes about it."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable

from . import generation, info, log, metrics, native_api, openai_api
from .http import Request, Response, Stream
from .state import Server

Answer = Response | Stream
OPEN_PREFIXES = ("/health", "/ready", "/metrics")  # never authenticated, as recorded


def _health(server: Server) -> Response:
    if server.phase == "draining":
        log.line("Health check request received during shutdown. Returning 503.")
    return Response(200 if server.phase == "ready" else 503)


async def _health_generate(server: Server) -> Response:
    if server.phase != "ready":
        return _health(server)
    async for dummy in generation.tokens(server, generation.plan(server, [1], "", 1, True, thinking=False)):
        pass
    return Response(200)


def _metrics(server: Server) -> Response:
    if not server.args["enable_metrics"]:
        return _not_found()
    return Response(200, metrics.render(server).encode(), "text/plain; version=0.0.4; charset=utf-8")


def _not_found() -> Response:
    return Response.json({"detail": "Not Found"}, 404)


def _flush(server: Server) -> Response:
    server.prefix_cache.flush()
    note = "Cache flushed.\nPlease check backend logs for more details. (Simulated.)\n"
    return Response(200, note.encode())


async def _get(server: Server, path: str) -> Response | None:
    match path:
        case "/health" | "/ready":
            return _health(server)
        case "/health_generate":
            return await _health_generate(server)
        case "/v1/models":
            return Response.json(info.models(server))
        case "/server_info" | "/get_server_info":
            return Response.json(info.server_info(server))
        case "/model_info" | "/get_model_info":
            return Response.json(info.model_info(server))
        case "/metrics" | "/metrics/":
            return _metrics(server)
        case "/flush_cache":
            return _flush(server)
    return None


POSTS: dict[str, Callable[[Server, Request], Awaitable[Answer]]] = {
    "/v1/completions": openai_api.completions,
    "/v1/chat/completions": openai_api.chat,
    "/generate": native_api.generate,
}
GETS = {
    "/health", "/ready", "/health_generate", "/v1/models", "/server_info", "/get_server_info", "/model_info",
    "/get_model_info", "/metrics", "/metrics/", "/flush_cache",
}  # fmt: skip


def _allowed(server: Server, request: Request) -> bool:
    key = server.args["api_key"]
    if not key or request.path.startswith(OPEN_PREFIXES):
        return True
    return hmac.compare_digest(request.headers.get("authorization", ""), f"Bearer {key}")


async def answer(server: Server, request: Request) -> Answer:
    if not _allowed(server, request):
        return Response.json({"error": "Unauthorized"}, 401)
    post = POSTS.get(request.path)
    try:
        if request.method == "POST" and post is not None:
            return await post(server, request)
        if request.method in ("GET", "HEAD") or request.path == "/flush_cache":
            found = await _get(server, request.path)
            if found is not None:
                return found
    except generation.BadRequest as refused:
        return openai_api.error(str(refused), refused.kind)
    except generation.ServerFault as fault:
        return openai_api.error(str(fault), "InternalServerError", 500)
    if post is not None or request.path in GETS:
        return Response.json({"detail": "Method Not Allowed"}, 405)
    return _not_found()
