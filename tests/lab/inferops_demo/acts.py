"""The four acts: what is played, and what must be true afterwards."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from . import client
from .judge import Judgement, codes, mean_power_w, point_of
from .play import Played, play
from .stage import HOST, REPOSITORY, front_port
from .view import PROMOTED_UNIT, View, look

ACTS = REPOSITORY / "tests" / "lab" / "acts"
MODEL = "kimi-k2.6"
SLOW, FIXED = {1: 24.7, 8: 95.6}, {1: 35.6, 16: 156.4}
LONGEST_SILENCE_S = 15.0


@dataclass
class Theatre:
    """What every act needs: Ansible's Python, the lab's inventory and where to keep the output."""

    python: Path
    site: Path
    inventory: Path
    folder: Path

    def play(self, name: str, playbook: str, *extra: str) -> Played:
        inventories = [self.site, self.inventory, *(ACTS / e for e in extra)]
        return play(self.python, playbook, inventories, self.folder / f"{name}.log")


@dataclass(frozen=True)
class Act:
    number: int
    title: str
    perform: Callable[[Theatre, Judgement], None]


@dataclass(frozen=True)
class Play:
    """``on`` says what the figures come from, ``concurrencies`` which of them the table shows."""

    site: Path
    acts: tuple[Act, ...]
    concurrencies: tuple[int, ...]
    on: str


def as_found(theatre: Theatre, judged: Judgement) -> None:
    """Act 1: the check refuses; accepted, the gate fails and nothing is left running."""
    before = look(HOST)
    played = theatre.play("1-refused", "deploy.yml", "1_as_found")
    after = look(HOST)
    judge_refusal(judged, played, {"SGA301": "--disable-cuda-graph", "SGA310": "pp_async_batch_depth"})
    unforced = re.search(r"nothing in .{1,40} forces decode graphs off for this command line", " ".join(played.text.split()))
    judged.expect(unforced is not None, "it says that nothing in that release forces decode graphs off")
    judge_untouched(judged, before, after)

    played = theatre.play("1-accepted", "deploy.yml", "1_as_found", "1_accepted")
    after = look(HOST)
    judged.expect(played.status != 0, "accepted, it is deployed and the play ends red", played.status)
    judge_slow_gate(judged, after)
    power = mean_power_w(after.last_result)
    judged.expect(power is not None and 75 <= power <= 95, "about 85 W of 600 W per card", power)
    judge_progress(judged, played)
    judged.expect(
        after.promoted is None and not after.enabled(), "no pointer, nothing enabled", (after.promoted, after.enabled())
    )
    judged.expect(not after.running(), "the candidate is stopped", after.running())
    judged.expect(len(after.gates) == 1 and len(after.releases) == 1, "its folder and its evidence are kept", after.releases)
    judged.expect(client.models(front_port()) is None, "the front is closed")


def judge_refusal(judged: Judgement, played: Played, flags: Mapping[str, str]) -> None:
    judged.expect(played.status != 0, "the check refuses the flags as found", played.status)
    for code, flag in flags.items():
        finding = re.search(rf"{code} (?:error|advice): .*\n(?: +(?:where|why|do): .*\n)*", played.text)
        judged.expect(finding is not None and flag in finding[0], f"{code} names {flag}", finding and finding[0])
        judged.expect(finding is not None and re.search(r"srt/\S+\.py:\d+", finding[0]), f"{code} names file and line")


def judge_untouched(judged: Judgement, before: View, after: View) -> None:
    judged.expect(
        (after.units, after.releases, after.attempt) == (before.units, before.releases, before.attempt) == ({}, [], None),
        "no unit, no release and no attempt on the host",
        (list(after.units), after.releases, after.attempt),
    )


def judge_slow_gate(judged: Judgement, after: View) -> None:
    result = after.last_result
    judged.expect((result or {}).get("verdict") == "fail", "the gate fails", (result or {}).get("verdict"))
    for concurrency, wanted in SLOW.items():
        judged.figure(result, concurrency, wanted)
    judged.take_figures(result)
    found = codes(result)
    for code, cause in (("GATE-LAUNCH", "launch-bound"), ("GATE-FILL", "poor pipeline fill"), ("GATE-POWER", "idle cards")):
        judged.expect(code in found, f"the evidence names {cause} ({code})", found)
    judged.expect(found[:1] == ["GATE-LAUNCH"], "launches come first", found)


def judge_progress(judged: Judgement, played: Played) -> None:
    judged.expect(
        "tok/s" in played.text and played.longest_silence_s <= LONGEST_SILENCE_S,
        f"progress is shown while it runs (longest silence {played.longest_silence_s:.0f} s)",
        played.longest_silence_s,
    )


def fixed(theatre: Theatre, judged: Judgement) -> None:
    """Act 2: the profile as shipped passes and is let in."""
    played = theatre.play("2-fixed", "deploy.yml")
    after = look(HOST)
    judge_promoted(judged, played, after, MODEL)
    result = after.last_result
    for concurrency, wanted in FIXED.items():
        judged.figure(result, concurrency, wanted)
    bound = point_of(result, 16).get("bound_tokens_per_s")
    judged.expect(bound is not None and bound > FIXED[16], f"the bound at 16 stands beside it ({bound})", bound)
    if client.models(front_port()):
        seen = client.rate(front_port(), MODEL)
        judged.expect(
            abs(seen - FIXED[1]) <= 0.03 * FIXED[1], f"an independent client through the front sees {seen:.1f} tok/s at 1", seen
        )


def judge_promoted(judged: Judgement, played: Played, after: View, model: str) -> None:
    judged.expect(played.status == 0, "the play ends green", played.status)
    _folder, gate = after.last_gate or ("", {})
    result = gate.get("result")
    judged.expect((result or {}).get("verdict") == "pass", "the gate passes", (result or {}).get("verdict"))
    judged.take_figures(result)
    judged.expect(
        after.promoted is not None and after.promoted == gate.get("release"), "the gated release is promoted", after.promoted
    )
    judged.expect(after.enabled() == [PROMOTED_UNIT], "its unit is the only one enabled", after.enabled())
    check = after.checks.get(after.promoted or "", {})
    blocking = [f["code"] for f in check.get("findings", []) if f["level"] in {"error", "advice"} and not f.get("accepted")]
    judged.expect(
        check.get("outcome") == "ok" and not blocking, "no error and no unaccepted advice", (check.get("outcome"), blocking)
    )
    judged.expect(
        client.models(front_port()) == [model], f"the front serves {model} on port {front_port()}", client.models(front_port())
    )


def again(theatre: Theatre, judged: Judgement) -> None:
    """Act 3: the same again changes nothing."""
    before = look(HOST)
    played = theatre.play("3-again", "deploy.yml")
    after = look(HOST)
    recap = played.recap(HOST) or {}
    judged.expect(played.status == 0 and recap.get("changed") == 0, "zero changed tasks", recap)
    for key, meaning in (
        ("text", "text"),
        ("mtime_ns", "modification time"),
        ("MainPID", "process id"),
        ("NRestarts", "restart count"),
    ):
        pair = ({n: u.get(key) for n, u in before.units.items()}, {n: u.get(key) for n, u in after.units.items()})
        judged.expect(pair[0] == pair[1] and pair[0] != {}, f"unit {meaning} unchanged", pair)
    judged.expect(before.gates.keys() == after.gates.keys(), "the gate is not repeated", list(after.gates))
    judged.expect(re.search(r"gated? .*(ago|s old|min)", played.text) is not None, "the age of the last gate is shown")
    judged.take_figures(after.last_result)


def badly_tuned(theatre: Theatre, judged: Judgement) -> None:
    """Act 4: an upgrade to a slow server goes back by itself."""
    played, after = upgrade_and_back(theatre, judged, "4_badly_tuned", MODEL)
    judge_slow_gate(judged, after)
    judge_progress(judged, played)


def upgrade_and_back(theatre: Theatre, judged: Judgement, candidate: str, model: str) -> tuple[Played, View]:
    """Upgrade to what an act's inventory says and judge that it went back; return the play and what is on the host then."""
    before = look(HOST)
    with client.Watch(front_port()) as watch:
        played = theatre.play("4-upgrade", "playbooks/upgrade.yml", candidate)
    after = look(HOST)
    judged.expect(played.status != 0, "the play ends red", played.status)
    judged.expect(re.search(r"forecast", played.text, re.IGNORECASE) is not None, "the forecast is printed first")
    judged.expect(watch.changes() == [True, False, True], "the front was open, closed once, and is open again", watch.changes())
    kept = before.promoted is not None and after.promoted == before.promoted
    judged.expect(kept, "the promoted release is the one of act 2", after.promoted)
    judged.expect(
        after.serving() == after.promoted and after.enabled() == [PROMOTED_UNIT],
        "its unit runs and is the only one enabled",
        (after.running(), after.enabled()),
    )
    judged.expect(client.models(front_port()) == [model], "it is admitted: the front serves it", client.models(front_port()))
    judged.expect(len(after.gates) == len(before.gates) + 1, "the evidence of the failed upgrade is kept", list(after.gates))
    return played, after


PLAY = Play(
    REPOSITORY / "inventories" / "demo",
    (
        Act(1, "the flags as found", as_found),
        Act(2, "the profile as shipped", fixed),
        Act(3, "the same again", again),
        Act(4, "a bad upgrade", badly_tuned),
    ),
    (1, 8, 16),
    "a simulated engine: no GPU was used",
)
