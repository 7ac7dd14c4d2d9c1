# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Streamed tool calls: put together by index, counted as output, told apart from content."""

from __future__ import annotations

import json

from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.stream import Trace


def event(delta, finish=None):
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}).encode()


def piece(index, name, arguments):
    call = {"id": name and f"functions.{name}:{index}", "index": index, "type": "function"}
    return {"reasoning_content": None, "tool_calls": [{**call, "function": {"name": name, "arguments": arguments}}]}


def test_pieces_of_two_calls_come_together_and_are_output():
    trace = Trace(planned_ns=0)
    sent = [piece(0, "book", ""), piece(0, None, '{"a"'), piece(1, "weather", ""), piece(0, None, ": 1}"), piece(1, None, "{}")]
    gained = [trace.take(event(delta), at) for at, delta in enumerate(sent, 1)]
    trace.take(event({"reasoning_content": None}, "tool_calls"), 9)
    assert gained == [1] * 5
    assert [(call.name, call.arguments) for call in trace.tool_calls.values()] == [("book", '{"a": 1}'), ("weather", "{}")]
    assert (trace.finish_reason, trace.first_answer_ns, trace.end_ns) == ("tool_calls", 1, 5)


def test_pieces_that_are_none_are_passed_over():
    trace = Trace(planned_ns=0)
    for broken in ("x", [None], [{"function": "f"}], [{"index": "0", "function": {"name": 3, "arguments": None}}]):
        assert trace.take(event({"tool_calls": broken}), 1) == 0
    assert all(call.name == call.arguments == "" for call in trace.tool_calls.values())
