# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""From the bytes of one streamed answer to its token events: which chunk, when, how many tokens, what text."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .tool_stream import StreamedCall, take_calls

TEXT_KEPT = 2000
# The scanner itself: per token, json.loads would spend as much again on guessing the encoding and trimming white space.
_scan = json.JSONDecoder().raw_decode


class SseSplitter:
    """Cuts a byte stream of server-sent events into the data of its events, wherever the reads fall.

    Lines end with LF or CR LF; comments and other fields are skipped; several data lines make one event, ended by an
    empty line. Bytes of a character that is cut in two stay bytes until their event is whole.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._event: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        if self._rest:
            data = self._rest + data
        # What nearly every read holds: one whole event.
        if data.endswith(b"\n\n") and data.startswith(b"data: {") and data.find(b"\n") == len(data) - 2 and not self._event:
            self._rest = b""
            return [data[6:-2]]
        lines = data.split(b"\n")
        self._rest = lines.pop()
        events = []
        for line in (raw.removesuffix(b"\r") for raw in lines):
            if line.startswith(b"data:"):
                self._event.append(line[5:].removeprefix(b" "))
            elif not line and self._event:
                events.append(b"\n".join(self._event))
                self._event = []
        return events

    def close(self) -> list[bytes]:
        """Return what the end of the stream completes: servers are seen to leave out the last empty line."""
        return self.feed(b"\n\n")


class Chunks:
    """The chunks of one request as pairs [ns, tokens], kept in 16 bytes each: a long point has millions of them."""

    def __init__(self) -> None:
        self.times = array("q")
        self.counts = array("q")

    def append(self, chunk: Sequence[int]) -> None:
        self.times.append(chunk[0])
        self.counts.append(chunk[1])

    def __len__(self) -> int:
        return len(self.times)

    def __iter__(self) -> Iterator[list[int]]:
        return map(list, zip(self.times, self.counts, strict=True))

    def __getitem__(self, index: int) -> list[int]:
        return [self.times[index], self.counts[index]]


@dataclass(slots=True, eq=False)
class Trace:
    """One request as the client saw it. Times are monotonic ns since the start of the run; absent is None."""

    planned_ns: int
    sent_ns: int | None = None
    taken_up_ns: int | None = None
    """When the load worker set out with it; None where the client is one process."""
    chunks: Chunks = field(default_factory=Chunks)
    first_answer_ns: int | None = None
    done_ns: int | None = None
    events: int = 0
    characters: int = 0
    distinct: set[str] = field(default_factory=set)
    text: str = ""
    answer: str = ""
    whole_text: str | None = ""
    """Where each event brings the whole text (native /generate): the text so far. None once an event brought new text alone."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    running_tokens: int | None = None
    received_total: int = 0
    finished: bool = False
    finish_reason: str | None = None
    tool_calls: dict[int, StreamedCall] = field(default_factory=dict)
    status: str = "failed"
    error: str | None = None
    timed_out: bool = False
    http_status: int | None = None

    @property
    def first_ns(self) -> int | None:
        return self.chunks.times[0] if self.chunks.times else None

    @property
    def end_ns(self) -> int | None:
        return self.chunks.times[-1] if self.chunks.times else None

    @property
    def received_tokens(self) -> int:
        """Tokens attributed to chunks; after ``settle`` equal to the usage of the server, where it gave one."""
        return sum(self.chunks.counts)

    def take(self, payload: bytes, now_ns: int) -> int:
        """Account one event; return the number of tokens it brought (0 for roles, usage and the end mark)."""
        if payload == b"[DONE]":
            self.finished = True
            return 0
        event = _parsed(payload)
        if not isinstance(event, dict):
            raise ValueError("an event is not a JSON object")
        error = event.get("error")
        if error is not None:
            raise ServerSaidError(str(error.get("message", error)) if isinstance(error, dict) else str(error))
        meta = event.get("meta_info")
        if meta is not None:
            return self._take_native(event, meta, now_ns)
        choices = event.get("choices")
        usage = event.get("usage")
        if usage is not None:
            self._take_usage(usage, final=not choices)
        if not choices:
            return 0
        choice = choices[0]
        if choice.get("finish_reason") is not None:
            self.finish_reason = choice["finish_reason"]
        delta = choice.get("delta")
        if delta is None:
            thought, answer = "", choice.get("text") or ""
        else:
            thought, answer = delta.get("reasoning_content") or delta.get("reasoning") or "", delta.get("content") or ""
            if delta.get("tool_calls"):
                answer += take_calls(self.tool_calls, delta["tool_calls"])
        if thought or answer:
            self.events += 1
            return self._take_text(thought, answer, now_ns)
        # A token may bring no text yet; but chat opens with a chunk for the role and ends with one for the reason.
        self.events += delta is None or ("role" not in delta and choice.get("finish_reason") is None)
        return 0

    def settle(self) -> None:
        """Make the chunks sum to the usage of the server.

        With running usage in every chunk only a tail without text is left to add. Without it a chunk may hold several
        tokens, so usage is spread evenly over the chunks.
        """
        counts, total = self.chunks.counts, self.output_tokens
        if total is None or not counts:
            return
        if self.running_tokens is not None:
            counts[-1] += total - sum(counts)
            return
        for index in range(len(counts)):
            counts[index] = total * (index + 1) // len(counts) - total * index // len(counts)

    def _take_usage(self, usage: Any, *, final: bool) -> None:
        if not isinstance(usage, dict):
            return
        completion = usage.get("completion_tokens")
        prompt = usage.get("prompt_tokens")
        if isinstance(prompt, int):
            self.input_tokens = prompt
        if isinstance(completion, int):
            self.output_tokens = completion
            if not final:
                self.running_tokens = completion
        details = usage.get("prompt_tokens_details")
        if details is None:
            return
        if isinstance(details, dict) and isinstance(details.get("cached_tokens"), int):
            self.cached_tokens = details["cached_tokens"]

    def _take_native(self, event: dict[str, Any], meta: Any, now_ns: int) -> int:
        """Account one event of /generate, whose text is what is new or, by default, everything so far."""
        self.events += 1
        self._take_usage(meta, final=False)
        if isinstance(meta, dict) and isinstance(meta.get("cached_tokens"), int):
            self.cached_tokens = meta["cached_tokens"]
        ended = meta.get("finish_reason") if isinstance(meta, dict) else None
        if isinstance(ended, dict):
            self.finish_reason = ended.get("type")
            if self.finish_reason == "abort":
                raise ServerSaidError(str(ended.get("message", "the request was aborted")))
        text = event.get("text")
        if not isinstance(text, str) or not text:
            return 0
        new, before = text, self.whole_text
        if before is not None:
            self.whole_text = text if text.startswith(before) else None
            new = text.removeprefix(before)
        return self._take_text("", new, now_ns) if new else 0

    def _take_text(self, thought: str, answer: str, now_ns: int) -> int:
        text = thought + answer
        self.characters += len(text)
        if len(self.text) < TEXT_KEPT:
            self.text += text
            self.distinct.update(text)
        if answer:
            if self.first_answer_ns is None:
                self.first_answer_ns = now_ns
            if len(self.answer) < TEXT_KEPT:
                self.answer += answer
        running = self.running_tokens
        count = 1 if running is None else max(running - self.received_total, 0)
        self.received_total += count
        self.chunks.times.append(now_ns)
        self.chunks.counts.append(count)
        return count


class ServerSaidError(Exception):
    """The server sent an error inside the stream."""


def _parsed(payload: bytes) -> Any:
    text = payload.decode("utf-8").strip()
    event, end = _scan(text)
    if end != len(text):
        raise ValueError(f"more than one JSON value: {text[:80]!r}")
    return event
