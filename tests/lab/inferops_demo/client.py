"""A client that shares no code with the gate: the standard library, one stream, through the published front."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.error
import urllib.request
from typing import Any


def models(port: int, timeout_s: float = 5.0) -> list[str] | None:
    """Return the names served through the front; None when nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=timeout_s) as answer:
            return [entry["id"] for entry in json.load(answer)["data"]]
    except (OSError, http.client.HTTPException, ValueError, KeyError):
        return None


def rate(port: int, model: str, *, requests: int = 2, output_tokens: int = 100, words: int = 400) -> float:
    """Return output tokens per second of one stream: tokens by the server's usage over the time from first send to last chunk."""
    tokens = 0
    since = time.monotonic()
    for number in range(requests):
        prompt = " ".join(f"w{number}x{time.time_ns() % 9973}q{i}" for i in range(words // 4))
        body: dict[str, Any] = {
            "model": model,
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": output_tokens,
            "ignore_eos": True,
            "temperature": 0.0,
            "messages": [{"role": "user", "content": prompt}],
        }
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/chat/completions",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        used = 0
        with urllib.request.urlopen(request, timeout=120) as answer:
            for raw in answer:
                line = raw.decode().strip()
                if line.startswith("data: {") and (usage := json.loads(line[6:]).get("usage")):
                    used = int(usage["completion_tokens"])
        tokens += used
    return tokens / (time.monotonic() - since)


class Watch:
    """Asks the front twice a second, from the outside, whether anybody answers."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.seen: list[tuple[float, bool]] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *dummy: object) -> None:
        self._end.set()
        self._thread.join()

    def _ask(self) -> None:
        while not self._end.wait(0.5):
            self.seen.append((time.monotonic(), models(self.port, 2.0) is not None))

    def changes(self) -> list[bool]:
        """Return the states in order, each once: [True, False, True] is open, closed, open again."""
        states: list[bool] = []
        for dummy, state in self.seen:
            if not states or states[-1] != state:
                states.append(state)
        return states
