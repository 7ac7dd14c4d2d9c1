"""The questions put to the real engine and to the fake alike, and the shape of the answers.

Standard library only: it runs in the real engine's environment and in the tests.
"""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

CHAT = {"messages": [{"role": "user", "content": "count from one to nine"}], "max_tokens": 4, "ignore_eos": True}
COMPLETION = {"prompt": [5, 6, 7, 8, 9, 10], "max_tokens": 4, "ignore_eos": True}
GENERATE = {"input_ids": [5, 6, 7, 8], "sampling_params": {"max_new_tokens": 3, "ignore_eos": True}}
STREAM = {"stream": True, "stream_options": {"include_usage": True}}


@dataclass(frozen=True)
class Probe:
    name: str
    path: str
    body: Any = None
    method: str | None = None
    key: bool = True

    @property
    def verb(self) -> str:
        return self.method or ("GET" if self.body is None else "POST")


PROBES = (
    Probe("health", "/health"),
    Probe("health_generate", "/health_generate"),
    Probe("ready", "/ready"),
    Probe("models", "/v1/models"),
    Probe("model_info", "/model_info"),
    Probe("get_model_info", "/get_model_info"),
    Probe("server_info", "/server_info"),
    Probe("get_server_info", "/get_server_info"),
    Probe("metrics", "/metrics"),
    Probe("flush_cache", "/flush_cache", method="POST"),
    Probe("completion", "/v1/completions", COMPLETION),
    Probe("completion_text", "/v1/completions", COMPLETION | {"prompt": "count from one"}),
    Probe("completion_other_model", "/v1/completions", COMPLETION | {"model": "some-other-name"}),
    Probe("completion_stream", "/v1/completions", COMPLETION | STREAM),
    Probe("completion_stream_without_usage", "/v1/completions", COMPLETION | {"stream": True}),
    Probe("chat", "/v1/chat/completions", CHAT),
    Probe("chat_without_thinking", "/v1/chat/completions", CHAT | {"chat_template_kwargs": {"thinking": False}}),
    Probe("chat_stream", "/v1/chat/completions", CHAT | STREAM),
    Probe(
        "chat_stream_without_thinking",
        "/v1/chat/completions",
        CHAT | STREAM | {"chat_template_kwargs": {"thinking": False}, "max_tokens": 40},
    ),
    Probe("generate", "/generate", GENERATE),
    Probe("generate_stream", "/generate", GENERATE | {"stream": True}),
    Probe("completion_without_prompt", "/v1/completions", {"max_tokens": 1}),
    Probe("completion_negative_length", "/v1/completions", COMPLETION | {"max_tokens": -1}),
    Probe("completion_too_long", "/v1/completions", COMPLETION | {"max_tokens": 10_000_000}),
    Probe("completion_no_json", "/v1/completions", "no json"),
    Probe("chat_messages_text", "/v1/chat/completions", {"messages": "hello"}),
    Probe("generate_without_input", "/generate", {"sampling_params": {}}),
    Probe("unknown_path", "/no/such/path"),
    Probe("wrong_method", "/v1/completions"),
)
# Asked without the key where the server has one.
UNAUTHORIZED = tuple(
    Probe(f"no_key{path.replace('/', '_')}", path, body, key=False)
    for path, body in (
        ("/health", None), ("/ready", None), ("/metrics", None), ("/v1/models", None), ("/server_info", None),
        ("/v1/completions", COMPLETION), ("/generate", GENERATE),
    )
)  # fmt: skip


def shape(value: Any) -> Any:
    """Types instead of values: what a client may rely on."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in sorted(value.items())}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return (
        "null"
        if value is None
        else "number"
        if isinstance(value, (int, float)) and not isinstance(value, bool)
        else type(value).__name__
    )


def _fetch(base: str, probe: Probe, key: str | None) -> tuple[int, str | None, str]:
    parts = urlsplit(base)
    connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port, timeout=120)
    headers = {"content-type": "application/json"}
    if key and probe.key:
        headers["authorization"] = f"Bearer {key}"
    body = None if probe.body is None else probe.body if isinstance(probe.body, str) else json.dumps(probe.body)
    connection.request(probe.verb, probe.path, body, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.getheader("content-type"), text


def events(text: str) -> list[str]:
    return [line[6:] for line in text.splitlines() if line.startswith("data: ")]


def ask(base: str, probe: Probe, key: str | None = None) -> dict[str, Any]:
    """One probe → status, content type, shape of the body; of a stream, the distinct shapes in the order of appearance."""
    status, kind, text = _fetch(base, probe, key)
    answer: dict[str, Any] = {"status": status, "content_type": kind}
    if kind and kind.startswith("text/event-stream"):
        parsed = events(text)
        answer["last_event"] = parsed[-1] if parsed[-1:] == ["[DONE]"] else "other"
        shapes: list[Any] = []
        for event in parsed:
            found = event if event == "[DONE]" else shape(json.loads(event))
            if found not in shapes:
                shapes.append(found)
        answer["events"] = shapes
    elif kind and kind.startswith("application/json"):
        value = json.loads(text)
        if probe.path.endswith("server_info"):  # its fields are recorded elsewhere
            answer["keys"] = len(value)
        else:
            answer["body"] = shape(value)
    elif text:
        answer["body"] = "text"
    return answer


def ask_all(base: str, probes: tuple[Probe, ...], key: str | None = None) -> dict[str, dict[str, Any]]:
    return {probe.name: ask(base, probe, key) for probe in probes}
