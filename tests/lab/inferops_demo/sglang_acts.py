"""The same play on SGLang itself, on this machine's processor: what it says and does is real, its speed means nothing."""

from __future__ import annotations

from . import client
from .acts import Act, Play, Theatre, again, judge_progress, judge_promoted, judge_refusal, judge_untouched, upgrade_and_back
from .judge import Judgement, codes
from .stage import HOST, REPOSITORY, front_port
from .view import look

MODEL = "tiny"
VERSION = "0.5.23"


def two_stages(theatre: Theatre, judged: Judgement) -> None:
    """Act 1: two stages that wait for each other are refused before the host is touched."""
    before = look(HOST)
    played = theatre.play("1-refused", "deploy.yml", "sglang_two_stages")
    judge_refusal(judged, played, {"SGA310": "pp_async_batch_depth"})
    judge_untouched(judged, before, look(HOST))


def one_stage(theatre: Theatre, judged: Judgement) -> None:
    """Act 2: SGLang as published is installed from its lock, started, proven, measured and let in."""
    played = theatre.play("2-one-stage", "deploy.yml")
    after = look(HOST)
    judge_promoted(judged, played, after, MODEL)
    judge_progress(judged, played)
    engine = (after.last_result or {}).get("engine", {})
    seen = (engine.get("version"), engine.get("simulated"))
    judged.expect(seen == (VERSION, False), f"the server says that it is SGLang {VERSION} and no simulation", seen)
    check = after.checks.get(after.promoted or "", {})
    judged.expect(check.get("tier") == "live", "that release itself was asked what it makes of the flags", check.get("tier"))
    if client.models(front_port()):
        rate = client.rate(front_port(), MODEL, requests=4, output_tokens=64, words=40)
        gated = judged.figures.get(1, 0.0)
        # A few seconds of a shared processor: half or twice is noise, a stall or another server is not.
        near = gated / 2 <= rate <= gated * 2
        judged.expect(near, f"an independent client through the front sees {rate:.1f} tok/s at 1", (rate, gated))


def one_at_a_time(theatre: Theatre, judged: Judgement) -> None:
    """Act 4: an upgrade to a server that takes one request at a time goes back by itself."""
    _played, after = upgrade_and_back(theatre, judged, "sglang_one_at_a_time", MODEL)
    result = after.last_result or {}
    judged.expect(result.get("verdict") == "fail", "the gate fails", result.get("verdict"))
    judged.take_figures(result)
    judged.expect("GATE-QUEUE" in codes(result), "the evidence names requests that wait (GATE-QUEUE)", codes(result))


PLAY = Play(
    REPOSITORY / "inventories" / "tiny_cpu",
    (
        Act(1, "two stages, depth 0", two_stages),
        Act(2, "one stage", one_stage),
        Act(3, "the same again", again),
        Act(4, "one request at a time", one_at_a_time),
    ),
    (1, 4),
    f"SGLang {VERSION} and a tiny random model on this machine's processor: what it does is real, its speed means nothing",
)
