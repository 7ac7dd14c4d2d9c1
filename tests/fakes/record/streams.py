"""Streams of the real engine as they cross the wire: each read of the socket, so that they can be played again.

Standard library only. What is kept is what a client meets: where chunks are cut, what they hold, how the answer ends.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

CHAT, COMPLETIONS, GENERATE = "/v1/chat/completions", "/v1/completions", "/generate"
USAGE = {"stream": True, "stream_options": {"include_usage": True}}
RUNNING = {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}
IDS = {"prompt": [300, 301, 302, 303, 304, 305], "ignore_eos": True, "temperature": 1.0}
LAST_CHUNK = b"0\r\n\r\n"


@dataclass(frozen=True)
class Asked:
    """One request of a recording; ``stop`` hangs up after so many reads with an event, ``twice`` asks again on the connection."""

    name: str
    path: str
    body: dict[str, Any]
    stop: int | None = None
    twice: bool = False


def forced(tokens: Sequence[int], **more: Any) -> dict[str, Any]:
    """A completion that random weights can end in these tokens alone."""
    return {**IDS, "logit_bias": {str(token): 100 for token in tokens}, **more}


def plain(token_of: Callable[[str], int]) -> tuple[Asked, ...]:
    """What is asked of a server of one stage. ``token_of``: the id of a byte-level token."""
    pieces = [token_of(one) for one in "ÃĥâĤ¬"]  # byte-level names of C3, 83, E2, 82, AC: two characters in parts
    ends = [token_of("č"), token_of("Ċ"), token_of("a")]  # CR, LF, a letter
    chat = {"messages": [{"role": "user", "content": "count from one to nine"}], "ignore_eos": True, "temperature": 1.0}
    return (
        Asked("usage in the last chunk", COMPLETIONS, {**IDS, **USAGE, "max_tokens": 6}),
        Asked("running usage", COMPLETIONS, {**IDS, **RUNNING, "max_tokens": 6}),
        Asked("characters cut in parts", COMPLETIONS, forced(pieces, **RUNNING, max_tokens=24)),
        Asked("line ends in the text", COMPLETIONS, forced(ends, **RUNNING, max_tokens=12)),
        Asked("reasoning alone", CHAT, {**chat, **RUNNING, "max_tokens": 6}),
        Asked("native", GENERATE, native(6)),
        Asked("two on one connection", COMPLETIONS, {**IDS, **USAGE, "max_tokens": 3}, twice=True),
        Asked("client hangs up", COMPLETIONS, {**IDS, **USAGE, "max_tokens": 400}, stop=3),
    )


def native(tokens: int) -> dict[str, Any]:
    sampling = {"max_new_tokens": tokens, "ignore_eos": True, "temperature": 1.0}
    return {"input_ids": IDS["prompt"], "sampling_params": sampling, "stream": True}


# Of a server of two stages that gathers four tokens to a chunk.
STAGED = (
    Asked("several tokens a chunk", COMPLETIONS, {**IDS, **RUNNING, "max_tokens": 18}),
    Asked("several tokens a chunk, usage at the end", COMPLETIONS, {**IDS, **USAGE, "max_tokens": 18}),
    Asked("several tokens a chunk, native", GENERATE, native(10)),
)


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=120)


def send(wire: socket.socket, path: str, body: dict[str, Any]) -> None:
    said = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: engine\r\nContent-Type: application/json\r\nContent-Length: {len(said)}\r\n\r\n"
    wire.sendall(head.encode() + said)


def reads(wire: socket.socket, stop: int | None = None, meanwhile: Callable[[], None] | None = None) -> dict[str, Any]:
    """Read one answer; return its reads as [ms since the request, text of the bytes] and how it ended."""
    since, got, ended = time.monotonic(), [], "closed"
    while True:
        try:
            data = wire.recv(1 << 16)
        except ConnectionError:
            ended = "reset"
            break
        if not data:
            break
        got.append([round((time.monotonic() - since) * 1000), data.decode("latin-1")])
        if meanwhile is not None and b"data: " in data:
            meanwhile()
            meanwhile = None
        if data.endswith(LAST_CHUNK):
            ended = "kept open"
            break
        if stop is not None and sum("data: " in text for _, text in got) >= stop:
            ended = "client hung up"
            break
    return {"reads": got, "ended": ended}


def record(port: int, asked: Asked) -> list[dict[str, Any]]:
    """Ask and return what came; two answers of ``twice``."""
    with connect(port) as wire:
        found = []
        for dummy in range(2 if asked.twice else 1):
            send(wire, asked.path, asked.body)
            found.append({"name": asked.name, "path": asked.path, "body": asked.body, **reads(wire, asked.stop)})
        return found


def restarted(port: int, process: subprocess.Popen[bytes], number: signal.Signals) -> dict[str, Any]:
    """What a client sees of a server that gets this signal in the middle of its answer."""
    body = {**IDS, **USAGE, "max_tokens": 60}
    with connect(port) as wire:
        send(wire, COMPLETIONS, body)
        seen = reads(wire, meanwhile=lambda: process.send_signal(number))
    return {"name": f"server gets {number.name}", "path": COMPLETIONS, "body": body, **seen}
