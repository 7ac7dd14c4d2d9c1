#!/usr/bin/env python3
"""Clients of the fleet, one after the other and four at a time, until the file STOP is there; each answer has to come whole.

Usage: client.py URL STOP RESULT
"""

from __future__ import annotations

import json
import sys
import threading
import time
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

# The last one is on its way for seconds: a server that is drained has to wait for it.
TOKENS = (32, 32, 64, 500)
MODEL = "kimi-k2.6"


def ask(host: str, port: int, tokens: int) -> str | None:
    """Return what was wrong with one streamed answer, None when it came whole."""
    body = {"model": MODEL, "stream": True, "ignore_eos": True, "max_tokens": tokens}
    body["messages"] = [{"role": "user", "content": "count"}]
    connection = HTTPConnection(host, port, timeout=60)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
    except Exception as exc:
        return f"{type(exc).__name__}: {exc}"
    finally:
        connection.close()
    if answer.status != 200:
        return f"status {answer.status}: {text[:300]}"
    return None if text.rstrip().endswith("data: [DONE]") and '"finish_reason":"length"' in text else f"cut: {text[-300:]}"


def main(url: str, stop: str, result: str) -> int:
    where = urlsplit(url)
    seen: dict[str, list] = {"ok": [], "errors": []}

    def loop(tokens: int) -> None:
        while not Path(stop).exists():
            since = time.time()
            wrong = ask(str(where.hostname), int(where.port or 80), tokens)
            seen["errors" if wrong else "ok"].append([round(since, 2), wrong or tokens])

    clients = [threading.Thread(target=loop, args=(tokens,)) for tokens in TOKENS]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    Path(result).write_text(json.dumps(seen))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
