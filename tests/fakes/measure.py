#!/usr/bin/env python3
"""Independent closed-loop client: counts tokens from the wire, shares no code with the gate.

    measure.py BASE_URL CONCURRENCY [--input 512] [--output 256] [--rounds 3] [--key KEY]

Each worker keeps one request in flight.  Counted: tokens received between the end of the first round and the start of
the end of the last one, so ramp-up and ragged tail are outside.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from urllib.parse import urlsplit


async def one(host: str, port: int, *, key: str | None, prompt: list[int], output: int, stamps: list[float]) -> dict[str, object]:
    """Stream one completion; append the arrival time of each token-bearing event to ``stamps``; return usage."""
    body = json.dumps(
        {
            "model": "x",
            "prompt": prompt,
            "max_tokens": output,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nhost: {host}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n"
    head += "content-type: application/json\r\n"
    if key:
        head += f"authorization: Bearer {key}\r\n"
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(head.encode() + b"\r\n" + body)
    status = await reader.readline()
    if b" 200 " not in status:
        raise SystemExit(f"answered {status!r}")
    usage: dict[str, object] = {}
    while line := await reader.readline():
        if not line.startswith(b"data: {"):
            continue
        event = json.loads(line[6:])
        if event["choices"]:
            stamps.append(time.monotonic())
        else:
            usage = event["usage"]
    writer.close()
    return usage


async def measure(
    url: str, concurrency: int, *, input_tokens: int, output: int, rounds: int, key: str | None = None
) -> dict[str, float]:
    parts = urlsplit(url)
    stamps: list[float] = []
    ends: list[list[float]] = [[] for _ in range(concurrency)]
    counted = 0

    async def worker(index: int) -> None:
        nonlocal counted
        chance = random.Random(f"{time.time_ns()}-{index}")
        for _ in range(rounds):
            prompt = [chance.randrange(10, 2000) for _ in range(input_tokens)]
            usage = await one(
                parts.hostname or "127.0.0.1", parts.port or 80, key=key, prompt=prompt, output=output, stamps=stamps
            )
            counted += int(str(usage["completion_tokens"]))
            ends[index].append(time.monotonic())

    await asyncio.gather(*(worker(i) for i in range(concurrency)))
    first, last = max(e[0] for e in ends), min(e[-1] for e in ends)
    inside = sum(first < stamp <= last for stamp in stamps)
    return {
        "output_tokens_per_s": inside / (last - first),
        "window_s": last - first,
        "events": len(stamps),
        "usage_tokens": counted,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("concurrency", type=int)
    parser.add_argument("--input", type=int, default=512)
    parser.add_argument("--output", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--key")
    asked = parser.parse_args()
    print(
        json.dumps(
            asyncio.run(
                measure(
                    asked.url,
                    asked.concurrency,
                    input_tokens=asked.input,
                    output=asked.output,
                    rounds=asked.rounds,
                    key=asked.key,
                )
            )
        )
    )


if __name__ == "__main__":
    main()
