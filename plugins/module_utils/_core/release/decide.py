# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a wanted release means on a host as it stands: nothing, a start, a gate, a deployment, or a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import InferopsError
from ..units import human_seconds
from . import admission, forecast, proof, services, unit_texts
from .capacity import check_capacity
from .gate_edge import check_gate
from .host import Host
from .ports import split_listen
from .spec import ReleaseSpec
from .store import Store

# Records, the samples of two gates and the evidence of a failure: a few MiB each.
NEEDED_BYTES = 64 << 20
BUSY = ("active", "activating", "deactivating", "reloading")


@dataclass(frozen=True)
class Decision:
    """``kind`` is none, deploy, replace, start, gate, rollback or recover; ``spec`` is what it is about."""

    kind: str
    message: str
    spec: ReleaseSpec | None = None
    promoted: str | None = None
    gate_wanted: bool = False
    figures: Mapping[str, Any] = field(default_factory=dict)


def unfinished(host: Host, store: Store) -> Decision | None:
    """Return the decision to recover when an attempt never ended; raise InferopsError while its runner is at work."""
    attempt = store.attempt()
    if attempt is None or attempt.get("outcome"):
        return None
    runner = unit_texts.runner_unit(store.instance)
    if services.show(host, runner).active in BUSY:
        raise busy(store, attempt)
    return Decision(
        "recover", f"the attempt {attempt['attempt']} ended in the middle of phase {attempt['phase']}; finishing it first"
    )


def busy(store: Store, attempt: Mapping[str, Any] | None) -> InferopsError:
    """Return the refusal of a second run at the same time."""
    known = attempt or {}
    since = human_seconds(max(0.0, store.host.now() - float(known.get("since") or store.host.now())))
    return InferopsError(
        f"another release run of instance {store.instance} is under way",
        where=f"attempt {known.get('attempt', '?')} of release {known.get('id', '?')}, phase {known.get('phase', '?')}",
        why=f"started {since} ago by {known.get('owner', 'someone')}; only one may use the GPUs, and this run changed nothing",
        do=f"wait for it: journalctl -fu {unit_texts.runner_unit(store.instance)}, or the module release_info",
    )


def decide(host: Host, store: Store, spec: ReleaseSpec, *, replace: bool, window_s: float) -> Decision:
    """Return what to do for state present."""
    unit_texts.check_exec(spec)
    check_gate(spec)
    _check_rank(spec)
    _check_ports(host, store, spec)
    _check_space(host, store)
    promoted = store.pointer("promoted")
    history = store.history()
    if promoted is None:
        figures = forecast.forecast(spec, None, history, gated=True)
        return Decision("deploy", f"nothing is promoted; deploying release {spec.id}", spec, None, figures=figures)
    if promoted == spec.id:
        return _same(host, store, spec)
    back = store.spec(promoted)
    if not replace:
        raise InferopsError(
            f"release {promoted} is promoted, and release {spec.id} may not take its place",
            where="sglang_release_replace: false",
            why=f"the instance would be without service; {forecast.told(_figures(store, spec, back), serves=True)}",
            do="run playbooks/upgrade.yml (it sets sglang_release_replace: true)",
        )
    figures = _figures(store, spec, back)
    _check_window(figures, window_s)
    check_capacity(host, spec.front)
    return Decision("replace", f"replacing release {promoted} by {spec.id}", spec, promoted, figures=figures)


def decide_rollback(host: Host, store: Store, *, window_s: float, tools: Mapping[str, str] | None) -> Decision:
    """Return what to do for state rolled_back. The tools of today carry it out: those recorded back then may be gone."""
    promoted, previous = store.pointer("promoted"), store.pointer("previous")
    last = store.attempt() or {}
    if promoted is not None and last.get("outcome") == "held":
        held = store.spec(promoted).with_tools(tools) if tools else store.spec(promoted)
        figures = forecast.forecast(held, None, store.history(), gated=False)
        message = f"release {last['id']} was held after its gate; going back to release {promoted}, the promoted one"
        return Decision("start", message, held, promoted, figures=figures)
    if promoted is None or previous is None:
        raise InferopsError(
            f"instance {store.instance} has no release to go back to",
            where=str(store.folder / "previous"),
            why="only one release was ever promoted" if promoted else "no release was ever promoted",
            do="deploy the wanted release from its inventory",
        )
    spec, back = store.spec(previous), store.spec(promoted)
    if tools is not None:
        spec = spec.with_tools(tools)
    _check_ports(host, store, spec)
    figures = forecast.forecast(spec, back, store.history(), gated=False)
    _check_window(figures, window_s)
    return Decision("rollback", f"going back from release {promoted} to {previous}", spec, promoted, figures=figures)


def _same(host: Host, store: Store, spec: ReleaseSpec) -> Decision:
    record = store.gate_record(spec.id)
    regate = record is None or record.get("plan_sha256") != spec.plan_sha256
    unit = services.serving_unit(host, spec, committed=store.committed(spec.id))
    figures = forecast.forecast(spec, None, store.history(), gated=regate)
    if unit is None:
        then = ", then gated again since the plan changed" if regate else ""
        return Decision(
            "start", f"release {spec.id} is promoted but does not run; it is started{then}", spec, spec.id, regate, figures
        )
    key, dummy = store.secrets(spec)
    seen = proof.prove(
        host.http,
        spec.base_url,
        served_name=spec.model["served_name"],
        key=key,
        argv=spec.argv,
        expect=spec.expect,
        check=spec.check,
    )
    if seen.failures:
        raise InferopsError(
            f"release {spec.id} is promoted and runs, but its proof fails: {seen.failures[0]}",
            where=unit,
            why="; ".join(seen.failures[1:]) or "a restart takes the service down, so it is not done by surprise",
            do=f"look at journalctl -u {unit}; then systemctl restart {unit}, or change the expectation",
        )
    if regate:
        # Its process goes on, but clients wait outside meanwhile.
        phases = {**figures["phases"], "drain": spec.timeouts["drain_s"], "load": 0.0}
        figures = {**figures, "phases": phases, "out_s": sum(phases.values())}
        return Decision(
            "gate", f"release {spec.id} serves, but the gate plan changed; gating it again", spec, spec.id, True, figures
        )
    if not admission.is_open(host, spec) or front_changed(store, spec):
        return Decision(
            "start", f"release {spec.id} serves, but its front is not open as wanted; opening it", spec, spec.id, False, figures
        )
    age = human_seconds(max(0.0, host.now() - float(record["t"]))) if record else "?"
    return Decision("none", f"release {spec.id} is promoted and serves; its gate passed {age} ago", spec, spec.id)


def front_changed(store: Store, spec: ReleaseSpec) -> bool:
    """Return whether clients would be let in elsewhere; that alone is worth closing a front that is open.

    New tools are no reason: they are written down and used from the next start of the front on.
    """
    enrolled = not services.is_down(store.host, unit_texts.front_enrolment(spec.instance))
    return (enrolled and spec.front["kind"] != "router") or any(
        unit_texts.without_tools(store.host.read(store.unit_path(name)) or "") != unit_texts.without_tools(text)
        for name, text in unit_texts.front_texts(spec).items()
    )


def _figures(store: Store, spec: ReleaseSpec, back: ReleaseSpec) -> dict[str, Any]:
    return forecast.forecast(spec, back, store.history(), gated=True)


def _check_rank(spec: ReleaseSpec) -> None:
    """Refuse a part of a server over several hosts that no gate could ask."""
    rank = (spec.check.get("effective") or {}).get("node_rank") or 0
    if rank:
        raise InferopsError(
            f"rank {rank} of a server over several hosts cannot be released by itself",
            where="sglang_service_args.node_rank",
            why="a rank above 0 answers no request, so its gate could only fail after the model is loaded; nothing was changed",
            do="release rank 0 here, and start the other ranks by units of their own before it",
        )


def _check_ports(host: Host, store: Store, spec: ReleaseSpec) -> None:
    """Refuse addresses that something else holds, while all can still be left as it is."""
    wanted = [("127.0.0.1", spec.port, "sglang_service_port")]
    wanted += [("0.0.0.0", each.port, f"{each.flag} ({each.purpose})") for each in spec.engine_ports]
    socket = host.read(store.unit_path(unit_texts.front_socket(spec.instance)))
    if spec.front["kind"] != "none" and not admission.listens(host, socket, spec):
        wanted.append((*split_listen(spec.front["listen"]), "sglang_release_front_listen"))
    for address, port, variable in wanted:
        holder = host.listener(address, port)
        if holder is not None and not store.owns(holder):
            raise InferopsError(
                f"port {port} is taken by {holder}",
                where=f"{variable}, {holder.address}:{port} on the host",
                why="the server would notice it only after it has loaded the model; nothing was changed",
                do=f"stop that process, or set {variable} to a free one",
            )


def _check_space(host: Host, store: Store) -> None:
    free = host.free_bytes(store.folder)
    if free < NEEDED_BYTES:
        raise InferopsError(
            f"{free >> 20} MiB are free for records and reports, {NEEDED_BYTES >> 20} MiB are needed",
            where=f"{store.folder} on the host",
            why="a transaction that cannot write down where it stands could not be resumed; nothing was changed",
            do="free space there, or set sglang_release_state_dir to a larger place before the first release",
        )


def _check_window(figures: Mapping[str, Any], window_s: float) -> None:
    if window_s and figures["worst_s"] > window_s:
        raise InferopsError(
            f"up to {human_seconds(figures['worst_s'])} without service do not fit the window of {human_seconds(window_s)}",
            where="sglang_release_window_s",
            why=forecast.told(figures, serves=True),
            do="widen the window, or shorten the gate plan or the drain",
        )
