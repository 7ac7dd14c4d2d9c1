# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What of a promoted release is no longer as it was promoted: facts in, findings out. An absent fact is unknown, not fine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..units import human_seconds
from .spec import ReleaseSpec

SHOWN = 5
UPGRADE = "put the change into the inventory and run playbooks/upgrade.yml, or undo it"


@dataclass(frozen=True)
class Facts:
    """What was read on the host. None is unknown; paths and words are as the host has them."""

    serving_unit: str | None
    pid: int | None = None
    texts: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    drop_ins: tuple[str, ...] = ()
    needs_reload: bool | None = None
    enabled: str | None = None
    argv: tuple[str, ...] | None = None
    launch: tuple[str, ...] | None = None
    packages: Mapping[str, tuple[str, str | None]] | None = None
    changed_files: tuple[str, ...] | None = None
    driver: str | None = None
    driver_at_gate: str | None = None
    config_differs: tuple[str, ...] | None = None
    newer_weights: tuple[str, ...] | None = None
    gate_age_s: float | None = None
    kernel_dir: str = ""
    compiled: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Drift:
    code: str
    what: str
    where: str
    why: str
    do: str

    def text(self) -> str:
        return f"{self.code} {self.what}\n  where: {self.where}\n  why:   {self.why}\n  do:    {self.do}"

    def as_dict(self) -> dict[str, str]:
        return {key: getattr(self, key) for key in ("code", "what", "where", "why", "do")}


def findings(spec: ReleaseSpec, facts: Facts, *, max_gate_age_s: float = 0.0) -> list[Drift]:
    """Return every difference, what stops service first."""
    return [
        *_running(spec, facts),
        *_units(spec, facts),
        *_arguments(spec, facts),
        *_engine(spec, facts),
        *_model(spec, facts),
        *_gate(spec, facts, max_gate_age_s),
    ]


def unknown(spec: ReleaseSpec, facts: Facts) -> list[str]:
    """Return what could not be looked at, in words: nothing found there is no proof of no drift."""
    pairs = [
        (facts.argv, "arguments of the process"),
        (facts.packages, "versions of the engine's packages"),
        (facts.changed_files, "files of the engine"),
        (facts.config_differs, "config.json of the model"),
        (facts.newer_weights, "weights"),
        (facts.driver if not spec.adopted else "", "driver"),
        (facts.driver_at_gate if facts.driver else "", "driver at the gate"),
        (facts.compiled if facts.kernel_dir else "", "kernels that were compiled"),
    ]
    return [words for value, words in pairs if value is None]


def _running(spec: ReleaseSpec, facts: Facts) -> Iterable[Drift]:
    if facts.serving_unit is None:
        what = f"release {spec.id} is promoted and does not run"
        yield Drift(
            "DRIFT-DOWN", what, spec.run_unit, "somebody stopped it, or it ended", "run deploy.yml: it starts and proves it"
        )
    if facts.enabled is not None and facts.enabled != "enabled":
        where = f"sglang-{spec.instance}.service is {facts.enabled}"
        yield Drift(
            "DRIFT-BOOT",
            "a boot would not start the promoted release",
            where,
            "its unit is not enabled",
            f"systemctl enable sglang-{spec.instance}",
        )


def _units(spec: ReleaseSpec, facts: Facts) -> Iterable[Drift]:
    for path, (wanted, found) in facts.texts.items():
        if found is None:
            yield Drift(
                "DRIFT-UNIT",
                "a unit of the release is gone",
                path,
                "the file does not exist",
                "run deploy.yml" if not spec.adopted else UPGRADE,
            )
        elif wanted is not None and found != wanted:
            why = "it differs from what was adopted" if path == spec.run_unit else _first_difference(wanted, found)
            yield Drift("DRIFT-UNIT", "a unit was edited by hand", path, why, UPGRADE)
    for path in facts.drop_ins:
        why = "a drop-in changes what was checked and gated"
        yield Drift("DRIFT-DROPIN", "a drop-in was added to the unit", path, why, UPGRADE)
    if facts.needs_reload:
        why = "a file changed since systemd read it; the next start would be another server"
        yield Drift("DRIFT-RELOAD", "systemd has not read a unit as it is now", facts.serving_unit or spec.run_unit, why, UPGRADE)


def _arguments(spec: ReleaseSpec, facts: Facts) -> Iterable[Drift]:
    if facts.argv is None:
        return
    wanted, found = list(spec.argv), list(facts.argv)
    if found != wanted:
        more = [word for word in found if word not in wanted]
        less = [word for word in wanted if word not in found]
        why = f"not in the release: {' '.join(more) or 'nothing'}; not in the process: {' '.join(less) or 'nothing'}"
        yield Drift("DRIFT-ARGV", "the process runs with other arguments", f"/proc/{facts.pid}/cmdline", why, UPGRADE)
    if facts.launch is not None and facts.launch[:1] != tuple(spec.engine["launch"][:1]):
        why = f"process: {' '.join(facts.launch)}, release: {' '.join(spec.engine['launch'])}"
        yield Drift("DRIFT-LAUNCH", "the process runs another interpreter", f"/proc/{facts.pid}/cmdline", why, UPGRADE)


def _engine(spec: ReleaseSpec, facts: Facts) -> Iterable[Drift]:
    site = spec.engine["site_packages"]
    again = "change the lock and upgrade: that installs into a folder of its own; never change an engine that serves"
    differing = sorted((facts.packages or {}).items())
    if differing:
        told = [f"{name} {have or 'is gone'} (lock: {want})" for name, (want, have) in differing[:SHOWN]]
        yield Drift(
            "DRIFT-PACKAGES",
            f"{len(differing)} packages of the engine differ from its lock",
            site,
            _list(told, len(differing)),
            again,
        )
    files = facts.changed_files or ()
    if files:
        what = f"{len(files)} files of SGLang differ from what was installed"
        yield Drift("DRIFT-FILES", what, site, _list(files[:SHOWN], len(files)), again)


def _model(spec: ReleaseSpec, facts: Facts) -> Iterable[Drift]:
    do = "see what changed the folder; playbooks/check.yml proves it, playbooks/gate.yml measures what serves now"
    if facts.config_differs:
        where = f"{spec.model['path']}/config.json"
        yield Drift(
            "DRIFT-CONFIG",
            "config.json is another one",
            where,
            _list(facts.config_differs[:SHOWN], len(facts.config_differs)),
            do,
        )
    if facts.newer_weights:
        files = facts.newer_weights
        what = f"{len(files)} files of weights were written after the release was promoted"
        yield Drift("DRIFT-WEIGHTS", what, spec.model["path"], _list(files[:SHOWN], len(files)), do)


def _gate(spec: ReleaseSpec, facts: Facts, max_age_s: float) -> Iterable[Drift]:
    if facts.driver and facts.driver_at_gate and facts.driver != facts.driver_at_gate:
        why = f"gated with {facts.driver_at_gate}, loaded is {facts.driver}"
        yield Drift(
            "DRIFT-DRIVER",
            "the driver is another one than at the gate",
            "/sys/module/nvidia/version",
            why,
            "run playbooks/gate.yml",
        )
    if facts.compiled:
        what = f"{len(facts.compiled)} kernels were compiled while it served"
        yield Drift(
            "DRIFT-COMPILED",
            what,
            facts.kernel_dir,
            f"requests waited for them: {_list(facts.compiled[:SHOWN], len(facts.compiled))}",
            "add the load that asked for them (in flight, lengths, features) to the gate plan, so that they are compiled before"
            " clients are let in; the next start finds these",
        )
    if max_age_s and facts.gate_age_s is not None and facts.gate_age_s > max_age_s:
        what = f"its gate passed {human_seconds(facts.gate_age_s)} ago"
        why = f"older than {human_seconds(max_age_s)} (sglang_release_drift_gate_age_s)"
        yield Drift("DRIFT-GATE", what, f"release {spec.id}", why, "run playbooks/gate.yml")


def _first_difference(wanted: str, found: str) -> str:
    before, after = wanted.splitlines(), found.splitlines()
    gone = [line for line in before if line not in after]
    new = [line for line in after if line not in before]
    said = [*(f"added {line!r}" for line in new[:2]), *(f"missing {line!r}" for line in gone[:2])]
    return "; ".join(said) or "lines stand in another order"


def _list(shown: Iterable[str], count: int) -> str:
    words = list(shown)
    return ", ".join(words) + (f" and {count - len(words)} more" if count > len(words) else "")
