"""The fake speaks only what the recorded engine speaks (R92): the recorder's own questions, put to the fake."""

from __future__ import annotations

import ast
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from metrics import shape as metrics_shape
from probe import PROBES, UNAUTHORIZED, Probe, ask

RECORDINGS = Path(__file__).resolve().parents[2] / "fakes" / "recordings"
VERSION = "0.5.23"
KEY = "some-key"
# The fake answers these with fewer fields, and no more.
NOT_SPOKEN = {"embedding"}


def recorded(name: str) -> Any:
    return json.loads((RECORDINGS / VERSION / f"{name}.json").read_text())


def differences(fake: Any, real: Any, where: str = "") -> list[str]:
    """Paths at which the fake's shape is not the recorded one; a null on either side is compatible with anything."""
    if "null" in (fake, real):
        return []
    if isinstance(fake, dict) and isinstance(real, dict):
        extra = [f"{where}.{k} was never recorded" for k in fake.keys() - real.keys() if not k.startswith("simulated")]
        missing = [f"{where}.{k} is missing" for k in real.keys() - fake.keys() - NOT_SPOKEN]
        return extra + missing + [d for k in fake.keys() & real.keys() for d in differences(fake[k], real[k], f"{where}.{k}")]
    if isinstance(fake, list) and isinstance(real, list):
        return differences(fake[0], real[0], f"{where}[]") if fake and real else []
    return [] if fake == real else [f"{where}: fake {fake!r}, recorded {real!r}"]


def check(probe: Probe, fake: dict[str, Any], answers: dict[str, Any], prefix: str = "") -> list[str]:
    """Where the fake's answer to a probe departs from the recorded one; an event may be any that was seen on that path."""
    real = answers[prefix + probe.name]
    found = [
        f"{k}: fake {fake.get(k)!r}, recorded {real.get(k)!r}"
        for k in ("status", "content_type", "last_event")
        if fake.get(k) != real.get(k)
    ]
    found += differences(fake.get("body", {}), real.get("body", {}))
    same_path = [prefix + p.name for p in PROBES if p.path == probe.path] + [p.name for p in PROBES if p.path == probe.path]
    known = [event for name in same_path if name in answers for event in answers[name].get("events", [])]
    for event in fake.get("events", []):
        against = [differences(event, other) for other in known]
        if all(against):
            found.append(f"an event that was never recorded: {event}; nearest: {min(against, key=len, default=[])}")
    return found


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    return recorded("answers")


def test_the_recording_answers_every_probe(answers):
    assert {p.name for p in PROBES} | {p.name for p in UNAUTHORIZED} <= answers.keys()


def paths_asked(tree: ast.AST) -> set[str]:
    """Return the paths in a file that follow an address, are asked by a client, or are tried or named as a path."""
    found: list[ast.expr] = []
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr(values=values):
                found += [b for a, b in pairwise(values) if isinstance(a, ast.FormattedValue) and "url" in ast.unparse(a.value)]
            case ast.Call(func=ast.Attribute(attr="get" | "get_json" | "post"), args=[first, *_]):
                found.append(first)
            case ast.For(target=ast.Name("path"), iter=ast.Tuple(elts=elements)):
                found += elements
            case ast.Assign(value=ast.Constant(value=str() as text) as constant) if text.startswith(("/v1/", "/gen")):
                found.append(constant)
    words = [one.value for one in found if isinstance(one, ast.Constant)]
    return {word.rstrip("/") for word in words if isinstance(word, str) and word.startswith("/")}


def test_every_path_that_we_ask_an_engine_for_was_answered_by_a_real_one(answers):
    """R92: a path that no engine serves would fail on a user's machine alone."""
    core = Path(__file__).resolve().parents[3] / "plugins" / "module_utils" / "_core"
    files = (*core.glob("gate/*.py"), *core.glob("release/*.py"), *core.glob("observe/*.py"))
    asked = {path for file in files for path in paths_asked(ast.parse(file.read_text()))}
    assert {"/v1/models", "/server_info", "/metrics", "/health", "/v1/completions", "/v1/chat/completions", "/generate"} <= asked
    assert asked - {probe.path for probe in PROBES if answers[probe.name]["status"] == 200} == set()


def test_plain_server(start, answers):
    running = start(
        "--pp-size",
        "2",
        "--enable-metrics",
        "--reasoning-parser",
        "kimi_k2",
        "--served-model-name",
        "tiny",
        "--context-length",
        "8192",
    )
    wrong = {p.name: found for p in PROBES if (found := check(p, ask(running.url, p), answers))}
    assert wrong == {}


def test_server_with_key_and_cache_report(start, answers, tmp_path):
    config = tmp_path / "k.yaml"
    config.write_text(f"api-key: {KEY}\n")
    running = start(
        "--enable-cache-report",
        "--enable-metrics",
        "--reasoning-parser",
        "kimi_k2",
        "--context-length",
        "8192",
        "--config",
        str(config),
    )
    wrong = {p.name: found for p in UNAUTHORIZED if (found := check(p, ask(running.url, p, KEY), answers))}
    for probe in PROBES:
        if f"cache_report_{probe.name}" in answers and (
            found := check(probe, ask(running.url, probe, KEY), answers, "cache_report_")
        ):
            wrong[probe.name] = found
    assert wrong == {}


def test_server_info_has_exactly_the_recorded_fields(start):
    info = start("--pp-size", "8", "--enable-metrics").json("/server_info")
    own = recorded("server_info")
    expected = {row["dest"] for row in recorded("flags")} - {"help", "config"} | own["own"].keys()
    expected |= {"launch_command", "startup_time", "internal_states", "version"}
    assert {k for k in info if not k.startswith("simulated")} == expected
    assert len(expected) == own["key_count"]
    state = info["internal_states"][0]
    assert own["internal_state_own"].keys() <= state.keys()


def test_metrics_use_recorded_names_kinds_and_labels(start):
    running = start("--pp-size", "2", "--enable-metrics")
    running.json("/v1/completions", {"prompt": [1, 2], "max_tokens": 3, "ignore_eos": True})
    known = {row["name"]: row for row in recorded("metrics")}
    for row in metrics_shape(running.get("/metrics")[1].decode()):
        assert row["name"] in known
        assert row["kind"] == known[row["name"]]["kind"]
        assert row["labels"].keys() == known[row["name"]]["labels"].keys(), row["name"]


def test_the_life_of_a_server_is_the_recorded_one():
    """test_engine.py holds the fake to each of these; here the recording is held to what they say."""
    life = recorded("life")
    assert life["start"] == ["refused", 503, 200]
    assert life["drain"] == {"health": 503, "ready": 503, "new_request": 200, "stream_finished": True, "exit_status": 0}
    assert life["sigterm_while_loading_exit_status"] == -15
    assert life["unknown_flag_exit_status"] == 2
    assert life["port_taken_exit_status"] == -9
    assert life["launch_command_shows_key"] is True
