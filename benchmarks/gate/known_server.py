#!/usr/bin/env python3
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A server of known rate that keeps a log of what it sent when: the yardstick for clients. One process, one core.

Run by peers.py and reach.py. It speaks as much of the OpenAI API as the clients need (models, completions, chat completions,
streamed or whole) straight on asyncio's transports, so that it costs little beside the client under test. Every stream has its
own schedule, counted from the arrival of its request: first token after ``ttft_s``, one each ``itl_s``, and at two places of
each answer a stall of five times that. PUT /pace sets the pace and empties the log, GET /log tells it.
On standard output: the port, then one line at the first generation request after each PUT /pace.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from array import array
from collections import deque
from typing import Any

STALL_FACTOR = 5
WORDS = 2000
QUESTION, ANSWER = "17 + 25", "42 "


class Pace:
    """What is sent, and what was."""

    def __init__(self) -> None:
        self.set({})

    def set(self, asked: dict[str, Any]) -> None:
        self.ttft_s, self.itl_s = float(asked.get("ttft_s", 0.2)), float(asked.get("itl_s", 0.02))
        self.stalls = bool(asked.get("stalls", True))
        self.log: list[Stream] = []
        self.cpu_s = time.process_time()
        self.late_s = 0.0
        self.tokens = 0
        self.began = False

    def due(self, count: int) -> list[float]:
        """Return when each token of an answer is due, from the arrival of its request [s]."""
        gaps = [self.itl_s] * max(count - 1, 0)
        if self.stalls:
            for place in (count // 3, 2 * count // 3):
                if place < len(gaps):
                    gaps[place] *= STALL_FACTOR
        due = [self.ttft_s]
        for gap in gaps:
            due.append(due[-1] + gap)
        return due[:count]


def prompt_tokens(body: dict[str, Any]) -> int:
    """Count the prompt as the tokenizer of the benchmark does: a word is a token, an id is a token."""
    prompt = body.get("prompt")
    if isinstance(prompt, list) and prompt and isinstance(prompt[0], int):
        return len(prompt)
    texts = [prompt] if isinstance(prompt, str) else prompt if isinstance(prompt, list) else []
    for message in body.get("messages", []):
        content = message.get("content")
        parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content or []]
        texts = [*texts, *parts]
    return sum(len(str(text).split()) for text in texts)


class Stream:
    """One answer on its way."""

    def __init__(self, connection: Connection, body: dict[str, Any], pace: Pace, *, chat: bool) -> None:
        self.received_ns = time.monotonic_ns()
        self.sent_ns = array("q")
        self.count = int(body.get("max_tokens") or body.get("max_completion_tokens") or 16)
        known = not body.get("ignore_eos") and QUESTION in json.dumps(body.get("messages", ""))
        if known:
            self.count = min(self.count, 2)
        self.whole = not body.get("stream")
        self._connection, self._pace, self._due = connection, pace, pace.due(self.count)
        self._loop = asyncio.get_running_loop()
        self._start = self._loop.time()
        self._inputs = prompt_tokens(body)
        options = body.get("stream_options") or {}
        self._usage, self._running = bool(options.get("include_usage")), bool(options.get("continuous_usage_stats"))
        self._first = ANSWER if known else "w1 "
        field = '"delta":{"role":"assistant","content":"%s"}' if chat else '"text":"%s"'
        kind = "chat.completion.chunk" if chat else "text_completion"
        head = f'data: {{"id":"{id(self):032x}","object":"{kind}","created":1,"model":"known","choices":[{{"index":0,'
        self._frame = head + field + ',"logprobs":null,"finish_reason":%s,"matched_stop":null}],"usage":%s}\n\n'
        self._head = head[: head.index('"choices"')]
        self._at = 0
        if self.whole:
            self._loop.call_at(self._start + self._due[-1], self._answer, chat)
        else:
            connection.begin_stream()
            self._loop.call_at(self._start + self._due[0], self._send)

    def _used(self) -> str:
        total = self._inputs + self._at
        return f'{{"prompt_tokens":{self._inputs},"completion_tokens":{self._at},"total_tokens":{total}}}'

    def _send(self) -> None:
        if self._connection.closed:
            return
        late = self._loop.time() - self._start - self._due[self._at]
        self._pace.late_s = max(self._pace.late_s, late)
        self._at += 1
        self._pace.tokens += 1
        last = self._at == self.count
        word = self._first if self._at == 1 else f"w{self._at % WORDS} "
        frame = self._frame % (word, '"length"' if last else "null", self._used() if self._running else "null")
        self.sent_ns.append(time.monotonic_ns())
        self._connection.chunk(frame.encode())
        if not last:
            self._loop.call_at(self._start + self._due[self._at], self._send)
            return
        self._pace.log.append(self)
        usage = f'{self._head}"choices":[],"usage":{self._used()}}}\n\n' if self._usage else ""
        self._connection.end_stream((usage + "data: [DONE]\n\n").encode())

    def _answer(self, chat: bool) -> None:
        self._at = self.count
        self._pace.tokens += self.count
        self.sent_ns.extend([time.monotonic_ns()] * self.count)
        self._pace.log.append(self)
        text = self._first + " ".join(f"w{index}" for index in range(2, self.count + 1))
        said = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        choice = {"index": 0, "finish_reason": "length", **said}
        self._connection.reply(200, {"id": "x", "object": "text", "choices": [choice], "usage": json.loads(self._used())})

    def as_dict(self) -> dict[str, Any]:
        return {"received_ns": self.received_ns, "sent_ns": list(self.sent_ns), "whole": self.whole}


class Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive, one request after the other."""

    def __init__(self, pace: Pace) -> None:
        self.closed = False
        self._pace, self._rest, self._transport = pace, b"", asyncio.Transport()
        self._waiting: deque[tuple[str, str, bytes]] = deque()
        self._busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True

    def data_received(self, data: bytes) -> None:
        self._rest += data
        while True:
            head, end, rest = self._rest.partition(b"\r\n\r\n")
            if not end:
                return
            lines = head.decode("latin-1").split("\r\n")
            fields = {name.lower(): value.strip() for name, dummy, value in (line.partition(":") for line in lines[1:])}
            size = int(fields.get("content-length", 0))
            if fields.get("expect"):
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            if len(rest) < size:
                return
            self._rest = rest[size:]
            method, path = lines[0].split(" ")[:2]
            self._waiting.append((method, path.partition("?")[0], rest[:size]))
            self._next()

    def _next(self) -> None:
        while self._waiting and not self._busy:
            self._busy = True
            self._handle(*self._waiting.popleft())

    def _handle(self, method: str, path: str, body: bytes) -> None:
        if method == "POST" and path.endswith("/completions"):
            if not self._pace.began:
                self._pace.began = True
                print("first", flush=True)
            Stream(self, json.loads(body), self._pace, chat=path.endswith("/chat/completions"))
        elif method == "PUT" and path == "/pace":
            self._pace.set(json.loads(body))
            self.reply(200, {})
        elif path == "/log":
            cpu_s = time.process_time() - self._pace.cpu_s
            requests = [stream.as_dict() for stream in self._pace.log]
            self.reply(200, {"requests": requests, "tokens": self._pace.tokens, "cpu_s": cpu_s, "late_s": self._pace.late_s})
        elif path == "/v1/models":
            self.reply(200, {"object": "list", "data": [{"id": "known", "object": "model", "created": 1, "owned_by": "us"}]})
        elif path == "/health":
            self.reply(200, {})
        else:
            self.reply(404, {"error": {"message": "no such path"}})

    def reply(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)
        self._done()

    def begin_stream(self) -> None:
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")

    def chunk(self, data: bytes) -> None:
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def end_stream(self, data: bytes) -> None:
        self._transport.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data))
        self._done()

    def _done(self) -> None:
        self._busy = False
        self._next()


async def serve(port: int) -> None:
    pace = Pace()
    server = await asyncio.get_running_loop().create_server(lambda: Connection(pace), "127.0.0.1", port, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--port", type=int, default=0)
    asyncio.run(serve(options.parse_args().port))


if __name__ == "__main__":
    main()
