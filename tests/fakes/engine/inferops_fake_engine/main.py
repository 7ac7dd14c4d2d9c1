"""The life of one fake server: parse, load, open the port, warm up, serve, drain, end."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path

from . import arguments, generation, log, routes
from .control import ControlFile
from .driver import Engine
from .gpus import GpuWriter
from .http import HttpServer, Request, Response
from .link import Link
from .ranks import Ranks, follower_answer
from .recording import NoRecording, installed_version, load
from .resolve import Refused, resolve
from .state import Server

CONTROL_PATH = "/etc/inferops-fake/control.json"
DRAIN_POLL_S = 5.0  # recorded: SGLang looks every five seconds whether requests remain
PORT_TAKEN_LINGER_S = 5.0
DECODE_LOG_INTERVAL = 40  # recorded: decode passes between two log lines
SHARDS = 12
LOST = "Scheduler hit an exception: NCCL error: unhandled system error, a peer is lost (simulated)"


def run(argv: Sequence[str]) -> int:
    try:
        recording = load(installed_version())
    except NoRecording as problem:
        print(f"simulated engine: {problem}", file=sys.stderr)
        return 1
    control_file = ControlFile(Path(os.environ.get("INFEROPS_FAKE_CONTROL", CONTROL_PATH)))
    control = control_file.read()
    try:
        resolved = resolve(recording, argv, drop=control.drop_fields)
    except Refused as refused:
        print(f"Traceback (most recent call last):\nValueError: {refused}", file=sys.stderr)
        return 1
    folder = Path(resolved.values["model_path"])
    if folder.is_absolute() and not folder.is_dir():
        print(
            f"OSError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '{folder}'. (simulated)", file=sys.stderr
        )
        return 1
    words = arguments.merge_config(list(argv))
    timescale = float(os.environ.get("INFEROPS_FAKE_TIMESCALE") or control.timescale)
    server = Server(recording, resolved, words, control_file, timescale)
    return asyncio.run(_live(server))


def _announce(server: Server) -> None:
    args = server.args
    log.line(
        f"SIMULATED engine in the place of SGLang {server.recording.version}: no GPU, no model; time scale {server.timescale:g}"
    )
    if "disable_cuda_graph" in server.resolved.explicit:
        log.line("'--disable-cuda-graph' is deprecated and will be removed in a future release.", level="WARNING")
    if server.pp_size > 1:
        log.line("Pipeline parallelism is incompatible with overlap schedule.", level="WARNING")
    told = {key: value for key, value in args.items() if key in server.resolved.explicit or key in ("tp_size", "pp_size")}
    log.line(f"server_args={told}")
    log.line(f"simulated: resolved from the recording of {shlex.join(server.resolved.recorded_argv)!r}")


async def _load(server: Server) -> None:
    control = server.control
    ranks = [f"PP{rank}" for rank in range(server.pp_size)] if server.pp_size > 1 else [""]
    for rank in ranks:
        log.line("Init parallel begin.", rank=rank)
        log.line("Load weight begin. avail mem=94.21 GB", rank=rank)
    shard = 0
    while shard < SHARDS or control.never_ready == "loading":
        await asyncio.sleep(control.start_seconds / SHARDS / server.timescale)
        if shard < SHARDS:
            shard += 1
            log.line(f"Loading safetensors checkpoint shards: {100 * shard // SHARDS}% Completed | {shard}/{SHARDS} (simulated)")
        if control.crash_at_start and shard >= SHARDS // 2:
            generation.die(server, "Scheduler hit an exception: simulated crash while loading")
    if control.out_of_memory == "init":
        log.line(
            "Scheduler hit an exception: Not enough memory. Please try to increase --mem-fraction-static. (simulated)",
            level="ERROR",
        )
        generation.die(server, "Initialization failed.")
    for rank in ranks:
        log.line("Load weight end. elapsed=0.00 s, avail mem=15.80 GB, mem usage=78.40 GB. (simulated)", rank=rank)
        log.line(f"max_total_num_tokens=262144, context_len={server.context_length}", rank=rank)
    if server.resolved.decode_graphs:
        log.line("Capture target decode CUDA graph begin. backend=full (simulated)")
        for batch in list(reversed(server.args["cuda_graph_config"]["decode"]["bs"] or [1]))[:6]:
            log.line(f"Capturing batches (bs={batch} avail_mem=14.60 GB)")
        log.line("Capture target decode CUDA graph end. elapsed=0.00 s, mem usage=1.20 GB, avail mem=14.60 GB.")
    else:
        log.line("Disable decode CUDA graph because cuda_graph_config resolved decode.backend='disabled'.")


def _log_passes(server: Server) -> None:
    """The decode line of each interval, as the scheduler writes it."""
    engine = server.engine
    assert engine is not None
    pipeline = engine.pipeline
    passes = pipeline.graph_passes + pipeline.eager_passes
    seen = server.logged_passes
    if passes - seen < DECODE_LOG_INTERVAL:
        return
    server.logged_passes = passes
    used = pipeline.kv_used
    log.line(
        f"Decode batch, #running-req: {pipeline.running}, #token: {used}, token usage: {used / server.kv_tokens:.2f}, "
        f"cuda graph: {server.resolved.decode_graphs}, gen throughput (token/s): {engine.tokens_per_s():.2f}, "
        f"#queue-req: {pipeline.queued}",
        rank="PP0" if server.pp_size > 1 else "",
    )


async def _warm_up(server: Server) -> None:
    if server.control.never_ready == "warmup":
        await asyncio.Event().wait()
    if not server.control.green_without_tokens:
        assert server.engine is not None
        async for dummy in server.engine.generate(prompt_tokens=8, cached_tokens=0, output_tokens=8):
            pass
    server.phase = "ready"
    log.line("The server is fired up and ready to roll!")


async def _live(server: Server) -> int:
    _announce(server)
    writer = GpuWriter(server)
    gpus = asyncio.ensure_future(writer.run())
    ranks = Ranks(server)
    try:
        await ranks.meet()
    except OSError as exc:
        print(f"torch.distributed.DistNetworkError: {exc} (simulated)", file=sys.stderr)
        return 1
    ranks.ended.add_done_callback(lambda done: None if done.result() else generation.die(server, LOST))
    await _load(server)  # SIGTERM ends the process at once until here, as recorded
    if ranks.rank:
        return await _follow(server, ranks, writer, gpus)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    stopping = asyncio.ensure_future(stop.wait())
    server.engine = Engine(server.build_pipeline(), timescale=server.timescale)
    server.engine.on_pass = lambda: _log_passes(server)
    server.phase = "warmup"

    def access(request: Request, status: int) -> None:
        key = (request.method, request.path, status)
        server.http_requests[key] = server.http_requests.get(key, 0) + 1
        log.line(f'INFO:     {request.peer} - "{request.method} {request.path} HTTP/1.1" {status} {HTTPStatus(status).phrase}')

    async def handle(request: Request) -> routes.Answer:
        try:
            return await routes.answer(server, request)
        except Exception:
            traceback.print_exc()
            return Response.json({"error": {"message": "the simulated engine is broken; see its log"}}, 500)

    http = HttpServer(handle, access, Link(lambda: server.control))
    host, port = server.args["host"], server.args["port"]
    try:
        await http.start(host, port)
    except OSError as exc:
        log.line(
            f"ERROR:    [Errno {exc.errno}] error while attempting to bind on address ('{host}', {port}): address already in use"
        )
        # Recorded: the process lingers until its own warm-up gives up (two minutes there, shorter here), then kills itself.
        await asyncio.wait({stopping}, timeout=PORT_TAKEN_LINGER_S / server.timescale)
        _end(writer, gpus)
        log.line("kill_process_tree called (simulated)")
        os.kill(os.getpid(), signal.SIGKILL)
    log.line(f"INFO:     Uvicorn running on http://{host}:{port} (Press CTRL+C to quit)")
    warming = asyncio.ensure_future(_warm_up(server))
    await stopping
    warming.cancel()
    server.phase = "draining"
    log.line("Gracefully exiting... (simulated)")
    while True:
        await asyncio.sleep(DRAIN_POLL_S / server.timescale)
        remaining = server.engine.requests
        if not remaining:
            break
        log.line(f"Gracefully exiting... Remaining number of requests {remaining}.")
    await http.close()
    await ranks.shut_down()
    log.line("INFO:     Finished server process")
    return _end(writer, gpus)


async def _follow(server: Server, ranks: Ranks, writer: GpuWriter, gpus: asyncio.Future[None]) -> int:
    """Be a rank above 0 until rank 0 ends."""
    note = f"SIGTERM received on node_rank {ranks.rank}; waiting until rank 0 stops the schedulers. (simulated)"
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: log.line(note, level="WARNING"))

    async def handle(request: Request) -> routes.Answer:
        return follower_answer(request)

    http = HttpServer(handle, lambda request, status: None, Link(lambda: server.control))
    await http.start(server.args["host"], server.args["port"])
    await ranks.ended
    await http.close()
    return _end(writer, gpus)


def _end(writer: GpuWriter, gpus: asyncio.Future[None]) -> int:
    gpus.cancel()
    writer.clear()
    return 0
