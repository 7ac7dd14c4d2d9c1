"""What the simulated cards show: power, utilisation and memory, written where the stand-in NVML reads it.

Power model: idle, plus a floor while an engine holds the card, plus a share that grows with the time in which the card
streams weights.  ``SERVING_W`` is assumed; ``STREAMING_W`` is fitted to a mean of about 85 W per card over the points
1, 8 and 16 without graphs and without async depth.  Nobody measured these cards one by one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

from . import log
from .state import Server

IDLE_W, SERVING_W, STREAMING_W, LIMIT_W = 30.0, 45.0, 169.0, 600.0
PERIOD_S = 0.5
REASONS = {"sw_power_cap": 0x4, "hw_slowdown": 0x8, "sw_thermal": 0x20, "hw_thermal": 0x40, "hw_power_brake": 0x80}
GPU_IDLE_REASON = 0x1


def state_path() -> Path:
    """One file per user, in a folder that a sandboxed service can write and every other process can read."""
    named = os.environ.get("INFEROPS_FAKE_NVML_STATE")
    return Path(named) if named else Path(f"/dev/shm/inferops-fake-nvml.{os.getuid()}.state")


def render(server: Server, compute: list[float], memory: list[float]) -> str:
    """One line per fact: ``gpu INDEX KEY VALUE``; stage r runs on the cards r·tp … r·tp + tp − 1."""
    throttle = server.control.throttle
    reasons = 0
    for name in throttle.get("reasons", []):
        reasons |= REASONS[name]
    lines = []
    for index in range(server.pp_size * server.tp_size):
        stage = index // server.tp_size
        busy, streaming = min(1.0, compute[stage]), min(1.0, memory[stage])
        slowed = bool(throttle) and index in throttle.get("gpus", range(server.pp_size * server.tp_size))
        watts = SERVING_W + STREAMING_W * streaming if server.phase != "loading" else IDLE_W + 15.0
        facts = {
            "power_mw": round(min(watts, LIMIT_W) * 1000),
            "util": round(busy * 100),
            "mem_util": round(streaming * 100),
            "mem_used_mib": round(0.85 * 97887) if server.phase != "loading" else 2048,
            "temp": round(32 + watts / 12),
            "sm_clock": round(2430 / float(throttle.get("factor", 1.5))) if slowed else 2430,
            "throttle": reasons if slowed else (GPU_IDLE_REASON if busy < 0.005 else 0),
            "pid": os.getpid(),
        }
        facts |= server.control.cards.get(str(index), {})
        lines += [f"gpu {index} {key} {value}" for key, value in facts.items()]
    return "\n".join(lines) + "\n"


class GpuWriter:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._path = state_path()
        self._last: tuple[float, list[float], list[float]] | None = None

    def _shares(self) -> tuple[list[float], list[float]]:
        engine = self._server.engine
        size = self._server.pp_size
        if engine is None:
            return [0.0] * size, [0.0] * size
        now, compute, memory = engine.now_ms(), list(engine.pipeline.compute_ms), list(engine.pipeline.memory_ms)
        last, self._last = self._last, (now, compute, memory)
        if last is None or now <= last[0]:
            return [0.0] * size, [0.0] * size
        span = now - last[0]
        return (
            [(a - b) / span for a, b in zip(compute, last[1], strict=True)],
            [(a - b) / span for a, b in zip(memory, last[2], strict=True)],
        )

    def write(self) -> None:
        fresh = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        fresh.write_text(render(self._server, *self._shares()))
        fresh.chmod(0o644)
        fresh.replace(self._path)

    async def run(self) -> None:
        while True:
            throttle = self._server.control.throttle
            engine = self._server.engine
            if engine is not None:
                slowed = throttle.get("gpus")
                for stage in range(self._server.pp_size):
                    cards = range(stage * self._server.tp_size, (stage + 1) * self._server.tp_size)
                    hit = bool(throttle) and (slowed is None or any(card in slowed for card in cards))
                    engine.pipeline.throttle[stage] = float(throttle.get("factor", 1.5)) if hit else 1.0
            try:
                self.write()
            except OSError as exc:
                log.line(f"simulated GPUs are not updated any more: {exc}", level="WARNING")
                return
            await asyncio.sleep(PERIOD_S)

    def clear(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink()
