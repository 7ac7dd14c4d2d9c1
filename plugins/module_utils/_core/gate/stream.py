# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""From the bytes of one streamed answer to its token events: which chunk, when, how many tokens, what text."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from .tool_stream import StreamedCall, take_calls

TEXT_KEPT = 2000


class SseSplitter:
    """Cuts a byte stream of server-sent events into the payloads of its data lines, wherever the reads fall."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        return [line[5:].strip() for line in lines if line.startswith(b"data:")]


@dataclass
class Trace:
    """One request as the client saw it. Times are monotonic ns since the start of the run; absent is None."""

    planned_ns: int
    chunks: list[list[int]] = field(default_factory=list)
    first_answer_ns: int | None = None
    done_ns: int | None = None
    events: int = 0
    characters: int = 0
    distinct: set[str] = field(default_factory=set)
    text: str = ""
    answer: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    running_tokens: int | None = None
    received_total: int = 0
    finished: bool = False
    status: str = "failed"
    error: str | None = None
    http_status: int | None = None
    finish_reason: str | None = None
    tool_calls: dict[int, StreamedCall] = field(default_factory=dict)

    @property
    def first_ns(self) -> int | None:
        return self.chunks[0][0] if self.chunks else None

    @property
    def end_ns(self) -> int | None:
        return self.chunks[-1][0] if self.chunks else None

    @property
    def received_tokens(self) -> int:
        """Tokens attributed to chunks; after ``settle`` equal to the usage of the server, where it gave one."""
        return sum(count for dummy, count in self.chunks)

    def take(self, payload: bytes, now_ns: int) -> int:
        """Account one event; return the number of tokens it brought (0 for roles, usage and the end mark)."""
        if payload == b"[DONE]":
            self.finished = True
            return 0
        event = json.loads(payload)
        if not isinstance(event, dict):
            raise ValueError("an event is not a JSON object")
        if event.get("error") is not None:
            error = event["error"]
            raise ServerSaidError(str(error.get("message", error)) if isinstance(error, dict) else str(error))
        choices = event.get("choices")
        self._take_usage(event.get("usage"), final=not choices)
        if not choices:
            return 0
        self.events += 1
        thought, answer = _texts(choices[0])
        if choices[0].get("finish_reason") is not None:
            self.finish_reason = choices[0]["finish_reason"]
        delta = choices[0].get("delta")
        if delta and delta.get("tool_calls"):
            answer += take_calls(self.tool_calls, delta["tool_calls"])
        if not thought and not answer:
            return 0
        return self._take_text(thought, answer, now_ns)

    def settle(self) -> None:
        """Make the chunks sum to the usage of the server.

        With running usage in every chunk only a tail without text is left to add. Without it a chunk may hold several
        tokens, so usage is spread evenly over the chunks.
        """
        if self.output_tokens is None or not self.chunks:
            return
        if self.running_tokens is not None:
            self.chunks[-1][1] += self.output_tokens - self.received_tokens
            return
        count = len(self.chunks)
        for index, chunk in enumerate(self.chunks):
            chunk[1] = self.output_tokens * (index + 1) // count - self.output_tokens * index // count

    def _take_usage(self, usage: Any, *, final: bool) -> None:
        if not isinstance(usage, dict):
            return
        completion = usage.get("completion_tokens")
        if isinstance(usage.get("prompt_tokens"), int):
            self.input_tokens = usage["prompt_tokens"]
        if isinstance(completion, int):
            self.output_tokens = completion
            if not final:
                self.running_tokens = completion
        details = usage.get("prompt_tokens_details")
        if isinstance(details, dict) and isinstance(details.get("cached_tokens"), int):
            self.cached_tokens = details["cached_tokens"]

    def _take_text(self, thought: str, answer: str, now_ns: int) -> int:
        text = thought + answer
        self.characters += len(text)
        if len(self.text) < TEXT_KEPT:
            self.text += text
            self.distinct.update(text)
        if answer:
            self.answer += answer if len(self.answer) < TEXT_KEPT else ""
            if self.first_answer_ns is None:
                self.first_answer_ns = now_ns
        count = 1 if self.running_tokens is None else max(self.running_tokens - self.received_total, 0)
        self.received_total += count
        self.chunks.append([now_ns, count])
        return count


class ServerSaidError(Exception):
    """The server sent an error inside the stream."""


def _texts(choice: dict[str, Any]) -> tuple[str, str]:
    """Return (reasoning, answer) of one choice, for completions and chat alike."""
    delta = choice.get("delta")
    if isinstance(delta, dict):
        return delta.get("reasoning_content") or "", delta.get("content") or ""
    return "", choice.get("text") or ""
