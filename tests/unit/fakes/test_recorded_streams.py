"""Streams of the real engine, read by read as they crossed the wire, played to our client; and the fake held to their shape."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.client import Client
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.engine import (
    counter_gain,
    gauge,
    graph_passes,
    parse_metrics,
)
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.stream import Trace
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.admission import IN_FLIGHT
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.engine_log import EngineLog
from streams import COMPLETIONS, RUNNING, USAGE, connect, reads, send

RECORDED = Path(__file__).resolve().parents[2] / "fakes" / "recordings" / "0.5.23"
STREAMS: list[dict[str, Any]] = json.loads((RECORDED / "streams.json").read_text())
Cut = Callable[[bytes], list[bytes]]
CUTS: dict[str, Cut] = {
    "as recorded": lambda data: [data],
    "byte by byte": lambda data: [data[at : at + 1] for at in range(len(data))],
    "in sevens": lambda data: [data[at : at + 7] for at in range(0, len(data), 7)],
}


def named(name: str) -> dict[str, Any]:
    return next(row for row in STREAMS if row["name"] == name)


def raw(row: dict[str, Any]) -> bytes:
    return "".join(text for _, text in row["reads"]).encode("latin-1")


def events(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The events by another way than our client's: each is one line, whatever frames it."""
    found = re.findall(r"^data: (\{.*\})$", raw(row).decode(), flags=re.MULTILINE)
    return [json.loads(line) for line in found]


def usage_of(row: dict[str, Any]) -> dict[str, Any]:
    last = events(row)[-1]
    return last.get("usage") or last["meta_info"]


def text_of(row: dict[str, Any]) -> str:
    if row["path"] == "/generate":
        return events(row)[-1]["text"]
    choices = [event["choices"][0] for event in events(row) if event["choices"]]
    deltas = [choice.get("delta", {}) for choice in choices]
    thought = "".join(delta.get("reasoning_content") or "" for delta in deltas)
    return thought + "".join(choice.get("text") or choice.get("delta", {}).get("content") or "" for choice in choices)


def played(rows: list[dict[str, Any]], cut: Cut = CUTS["as recorded"]) -> tuple[list[Trace], int]:
    """Ask once per row, one after the other, of a server that answers as recorded; return the traces and the connections."""
    left, connections = list(rows), 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while left:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]))
                row = left.pop(0)
                for _ms, text in row["reads"]:
                    for piece in cut(text.encode("latin-1")):
                        writer.write(piece)
                        await writer.drain()
                        await asyncio.sleep(0)
                if row["ended"] != "kept open":
                    break
        writer.close()

    async def ask() -> list[Trace]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, Client(f"http://127.0.0.1:{port}") as client:
            return [await client.generate(row["path"], row["body"], stall_s=5, total_s=20) for row in rows]

    return asyncio.run(ask()), connections


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("row", [row for row in STREAMS if row["ended"] == "kept open"], ids=lambda row: row["name"])
def test_an_answer_is_read_as_the_server_counts_it(row, cut):
    (trace,), _ = played([row], cut)
    assert trace.status == "ok", trace.error
    usage = usage_of(row)
    assert (trace.input_tokens, trace.output_tokens) == (usage["prompt_tokens"], usage["completion_tokens"])
    assert trace.received_tokens == usage["completion_tokens"]
    assert trace.text == text_of(row)
    assert trace.finish_reason == "length"


def test_characters_that_come_in_parts_are_put_together_by_the_server():
    """A token that ends inside a character brings an event without text: it counts, and the next text brings its token."""
    row = named("characters cut in parts")
    assert sum(event["choices"][0]["text"] == "" for event in events(row) if event["choices"]) > 3
    (trace,), _ = played([row], CUTS["byte by byte"])
    assert row["body"]["max_tokens"] >= trace.events > len(trace.chunks)
    assert max(count for _, count in trace.chunks) >= 2
    assert any(ord(character) > 127 for character in trace.text)


def test_line_ends_of_the_text_are_no_line_ends_of_the_stream():
    (trace,), _ = played([named("line ends in the text")], CUTS["byte by byte"])
    assert {"\r", "\n"} <= set(trace.text)
    assert b"\r\n" not in raw(named("line ends in the text")).partition(b"data: ")[2].partition(b"\r\n")[0]


def test_several_tokens_a_chunk_are_counted_with_running_usage_and_spread_without():
    """--stream-interval 4 of two stages: the first event holds one token, here without text, the next ones four."""
    (running,), _ = played([named("several tokens a chunk")])
    assert [count for _, count in running.chunks][:2] == [5, 4]
    (spread,), _ = played([named("several tokens a chunk, usage at the end")])
    assert sum(count for _, count in spread.chunks) == 18 > len(spread.chunks)
    (native,), _ = played([named("several tokens a chunk, native")])
    assert [count for _, count in native.chunks][:2] == [1, 4]


def test_what_is_all_reasoning_is_output_without_an_answer():
    (trace,), _ = played([named("reasoning alone")])
    assert trace.received_tokens == 6
    assert (trace.first_answer_ns, trace.answer) == (None, "")
    assert trace.first_ns is not None


def test_two_answers_come_over_one_connection():
    rows = [row for row in STREAMS if row["name"] == "two on one connection"]
    traces, connections = played(rows)
    assert [trace.status for trace in traces] == ["ok", "ok"]
    assert connections == 1


def test_a_server_that_is_stopped_ends_its_answers_and_one_that_is_killed_does_not():
    (stopped,), _ = played([named("server gets SIGTERM")])
    assert (stopped.status, stopped.output_tokens) == ("ok", 60)
    (killed,), _ = played([named("server gets SIGKILL")])
    assert killed.status == "failed" and "connection lost" in (killed.error or "")
    assert killed.received_tokens == 2


def test_two_stages_report_passes_and_requests_twice_and_tokens_once():
    rows = json.loads((RECORDED / "two_stages.json").read_text())
    texts = {when: "\n".join(rows[when]) for when in ("before", "after")}
    before, after = (parse_metrics(texts[when]) for when in ("before", "after"))
    staged = [row for row in STREAMS if row["name"].startswith("several tokens")]
    asked = sum(usage_of(row)["prompt_tokens"] for row in staged)
    given = sum(usage_of(row)["completion_tokens"] for row in staged)
    assert counter_gain(before, after, "sglang:prompt_tokens_total") == asked
    assert counter_gain(before, after, "sglang:generation_tokens_total") == given
    # The pass that reads a prompt makes the first token of its answer.
    assert graph_passes(before, after) == {"decode": {"graph": 0, "eager": given - 3}, "prefill": {"graph": 0, "eager": 3}}
    assert len(after["sglang:num_running_reqs"]) == 2
    assert gauge(after, "sglang:num_running_reqs") == 0
    assert len(IN_FLIGHT.findall(texts["after"])) == 4


def test_a_start_is_followed_in_the_log_and_an_orderly_end_is_no_failure():
    logs = json.loads((RECORDED / "logs.json").read_text())
    for name, lines in logs.items():
        log, stages = EngineLog(), []
        for line in lines:
            log.hear(line)
            if log.stage not in stages:
                stages.append(log.stage)
        assert stages == ["begin", "connect", "weights", "memory", "served"], name
        assert log.verdict() is None, name
        assert not any(log.hear(line) for line in lines if "HTTP/1.1" in line)


def frame(data: dict[str, Any]) -> tuple[list[str], list[tuple[list[str], bool]]]:
    """Of one answer: the names of its header, and of each event its keys and whether it tells usage."""
    head = raw(data).partition(b"\r\n\r\n")[0].decode().split("\r\n")
    told = [(sorted(event), bool(event.get("usage"))) for event in events(data)]
    return [line.partition(":")[0] for line in head[1:]], told


@pytest.mark.parametrize(
    ("name", "options"), [("usage in the last chunk", USAGE), ("running usage", RUNNING)], ids=["usage at the end", "running"]
)
def test_the_fake_frames_its_streams_as_the_engine_does(start, name, options):
    port = start("--pp-size", "2").port
    with connect(port) as wire:
        send(wire, COMPLETIONS, {"prompt": [5, 6, 7], "max_tokens": 6, "ignore_eos": True, **options})
        fake = reads(wire)
    assert fake["ended"] == "kept open"
    real = named(name)
    assert frame(fake)[0] == frame(real)[0]
    ours, theirs = frame(fake)[1], frame(real)[1]
    assert set(map(str, ours)) == set(map(str, theirs))
    assert ours[-1] == theirs[-1]


def test_the_fake_tells_running_usage_of_chat_where_the_engine_does(start):
    port = start("--pp-size", "2", "--reasoning-parser", "kimi_k2").port
    row = named("reasoning alone")
    with connect(port) as wire:
        send(wire, row["path"], {**row["body"], "messages": [{"role": "user", "content": "say something long"}]})
        fake = reads(wire)

    def told(data: dict[str, Any]) -> list[tuple[bool, bool, bool]]:
        """Of each event with a choice: opens it, closes it, tells usage."""
        found = [(event["choices"][0], event) for event in events(data) if event["choices"]]
        return [("role" in c["delta"], c["finish_reason"] is not None, bool(event.get("usage"))) for c, event in found]

    assert set(told(fake)) == set(told(row))
    assert told(fake)[0] == told(row)[0] and told(fake)[-1] == told(row)[-1]
