# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""How much of a figure could be the gate's own client: its ceiling and CPU time against a bare aiohttp loop, side by side.

Run: .venv/bin/python benchmarks/gate_client.py [--streams 16] [--tokens 2000]
A server process sends chunks as fast as they are taken (unpaced), then at 50 tokens/s and stream (paced).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import sys
import time
from pathlib import Path

import aiohttp
from aiohttp import web

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins" / "module_utils"))
from _core.gate.client import Client

BODY = {"model": "m", "prompt": [1], "stream": True}


async def serve(port: int) -> None:
    async def generate(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        loop, start = asyncio.get_running_loop(), asyncio.get_running_loop().time()
        for index in range(1, body["max_tokens"] + 1):
            if body["pace_s"]:
                await asyncio.sleep(max(start + index * body["pace_s"] - loop.time(), 0))
            usage = {"prompt_tokens": 1, "completion_tokens": index}
            event = {"id": "x" * 32, "object": "text_completion", "choices": [{"index": 0, "text": " word"}], "usage": usage}
            await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        return response

    app = web.Application()
    app.router.add_post("/v1/completions", generate)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.sleep(3600)


async def bare(url: str, body: dict, streams: int) -> int:
    async def one(session: aiohttp.ClientSession) -> int:
        count = 0
        async with session.post(url + "/v1/completions", json=body) as response:
            async for data in response.content.iter_any():
                count += data.count(b"data: {")
        return count

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        return sum(await asyncio.gather(*(one(session) for _ in range(streams))))


async def gate(url: str, body: dict, streams: int) -> int:
    async with Client(url) as client:
        traces = await asyncio.gather(
            *(client.generate("/v1/completions", body, stall_s=60, total_s=600) for _ in range(streams))
        )
    assert all(trace.status == "ok" for trace in traces), traces[0].error
    return sum(trace.received_tokens for trace in traces)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--streams", type=int, default=16)
    options.add_argument("--tokens", type=int, default=2000)
    options.add_argument("--port", type=int, default=18999)
    asked = options.parse_args()
    server = multiprocessing.Process(target=lambda: asyncio.run(serve(asked.port)), daemon=True)
    server.start()
    time.sleep(1)
    url = f"http://127.0.0.1:{asked.port}"
    print(f"{'client':<6} {'pace':<8} {'tok/s':>9} {'CPU s':>7} {'CPU µs/token':>13}")
    for pace_s, tokens in ((0, asked.tokens), (0.02, min(asked.tokens, 250))):
        body = {**BODY, "max_tokens": tokens, "pace_s": pace_s}
        for name, client in (("bare", bare), ("gate", gate)):
            wall, cpu = time.perf_counter(), time.process_time()
            count = asyncio.run(client(url, body, asked.streams))
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            pace = "paced" if pace_s else "unpaced"
            print(f"{name:<6} {pace:<8} {count / wall:>9.0f} {cpu:>7.2f} {cpu / count * 1e6:>13.1f}")
    server.kill()


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    main()
