# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Prometheus rules that hold running servers against the figures of the release that was promoted on each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import InferopsError

DAY_S = 86400
DEFAULTS: dict[str, float] = {
    "throughput_ratio": 0.7,
    "power_ratio": 0.6,
    "eager_margin": 0.05,
    "kv_usage": 0.95,
    "gate_age_days": 30,
}
Rule = dict[str, Any]
# Templates of Prometheus for the value that made an alert fire.
VALUE = '{{ $value | printf "%.1f" }}'
SHARE, SPAN = "{{ $value | humanizePercentage }}", "{{ $value | humanizeDuration }}"
WHERE = "{{ $labels.sglang_instance }} on {{ $labels.host }}"


def alert_rules(targets: Sequence[Mapping[str, Any]], thresholds: Mapping[str, float], runbook: str) -> dict[str, Any]:
    """Return the content of a rules file.

    A target has ``host``, ``instance``, ``scrape`` (the label instance of the engine's metrics) and ``figures`` (or None).
    """
    unknown = sorted(set(thresholds) - set(DEFAULTS))
    if unknown:
        raise InferopsError(
            f"{unknown[0]} is no threshold", where="sglang_observability_thresholds", do=f"known: {', '.join(DEFAULTS)}"
        )
    limits = {**DEFAULTS, **thresholds}
    groups = [
        {"name": f"inferops-{target['host']}-{target['instance']}", "rules": list(_of_target(target, limits, runbook))}
        for target in targets
    ]
    return {"groups": [*groups, {"name": "inferops", "rules": list(_of_all(limits, runbook))}]}


def _of_target(target: Mapping[str, Any], limits: Mapping[str, float], runbook: str) -> Iterator[Rule]:
    scrape = f'instance="{target["scrape"]}"'
    own = {"host": target["host"], "sglang_instance": target["instance"]}
    where = f"{target['instance']} on {target['host']}"
    figures = target.get("figures") or {}
    points = figures.get("points") or []
    cards = f'host="{target["host"]}",sglang_instance="{target["instance"]}"'
    throughput = f"sum(rate(sglang:generation_tokens_total{{{scrape}}}[5m]))"
    running = f"max(avg_over_time(sglang:num_running_reqs{{{scrape}}}[5m]))"

    def rule(name: str, expr: str, minutes: int, severity: str, text: str, **labels: str) -> Rule:
        return _rule(name, expr, minutes, severity, f"{where}: {text}", runbook, {**own, **labels})

    yield rule("SGLangDown", f"up{{{scrape}}} == 0", 2, "critical", "its metrics do not answer")
    for at, point in enumerate(points):
        many, figure = point["concurrency"], point["output_tokens_per_s"]
        band = f"{running} >= {many}"
        if at + 1 < len(points):
            band += f" and on() {running} < {points[at + 1]['concurrency']}"
        yield rule(
            "SGLangThroughputBelowPromoted",
            f"{throughput} < {limits['throughput_ratio'] * figure:.6g} and on() {band}",
            10,
            "warning",
            f"{VALUE} tok/s with at least {many} requests in flight; its gate saw {figure:.1f} at {many}",
            concurrency=str(many),
        )
    if figures.get("eager_ratio") is not None:
        allowed = figures["eager_ratio"] + limits["eager_margin"]
        passes = f"sglang:cuda_graph_passes_total{{{scrape},mode="
        yield rule(
            "SGLangEagerDecode",
            f'sum(rate({passes}"decode_none"}}[10m])) / sum(rate({passes}~"decode_.*"}}[10m])) > {allowed:.6g}',
            10,
            "warning",
            f"{SHARE} of its decode passes run without a graph; {figures['eager_ratio']:.1%} in its gate",
        )
    if figures.get("power_w") is not None and points:
        many = points[-1]["concurrency"]
        yield rule(
            "SGLangPowerFarBelowLoad",
            f"avg(avg_over_time(inferops_gpu_power_watts{{{cards}}}[5m]))"
            f" < {limits['power_ratio'] * figures['power_w']:.6g} and on() {running} >= {many}",
            10,
            "warning",
            f"its cards draw {VALUE} W each with {many} requests in flight; {figures['power_w']:.0f} W in its gate",
        )
    most = points[-1]["concurrency"] if points else 16
    text = f"{{{{ $value }}}} requests wait; it was gated with {most} in flight"
    yield rule("SGLangQueue", f"max(sglang:num_queue_reqs{{{scrape}}}) > {most}", 5, "warning", text)
    usage = f"max(sglang:token_usage{{{scrape}}}) > {limits['kv_usage']:.6g}"
    yield rule("SGLangKVPressure", usage, 10, "warning", f"{SHARE} of its cache tokens are in use")
    back = f"max(max_over_time(sglang:num_retracted_reqs{{{scrape}}}[5m])) > 0"
    yield rule("SGLangRetracts", back, 5, "warning", "requests are put back into the queue for want of cache tokens")


def _of_all(limits: Mapping[str, float], runbook: str) -> Iterator[Rule]:
    old, stale = f"{limits['gate_age_days'] * DAY_S:.15g}", 300
    told = {
        "SGLangNotAdmitted": ("inferops_admitted == 0", 5, "critical", "clients are not let in"),
        "SGLangThrottled": (
            "avg_over_time(inferops_gpu_throttled[10m]) > 0.5",
            5,
            "warning",
            "card {{ $labels.gpu }} is slowed down ({{ $labels.reason }})",
        ),
        "SGLangXid": ("increase(inferops_xid_errors_total[15m]) > 0", 0, "critical", "the driver reported an Xid error"),
        "SGLangRestarts": ("increase(inferops_restarts_total[30m]) > 0", 0, "warning", "systemd started the server again"),
        "SGLangCompiles": (
            "increase(inferops_kernels_compiled_total[15m]) > 0",
            0,
            "warning",
            "kernels are compiled while it serves, and requests wait for them",
        ),
        "SGLangGateOld": (f"time() - inferops_gate_timestamp_seconds > {old}", 60, "info", f"its gate passed {SPAN} ago"),
        "SGLangDrift": ("inferops_drift == 1", 5, "warning", "differs from what was promoted ({{ $labels.kind }})"),
        "SGLangMetricsStale": (
            f"time() - inferops_metrics_timestamp_seconds > {stale}",
            5,
            "warning",
            f"nothing new of release and cards for {SPAN}",
        ),
    }
    for name, (expr, minutes, severity, text) in told.items():
        yield _rule(name, expr, minutes, severity, f"{WHERE}: {text}", runbook, {})
    text = "{{ $labels.worker }} does not answer its router {{ $labels.instance }}"
    yield _rule("SGLangRouterWorkerDown", "smg_worker_health == 0", 1, "warning", text, runbook, {})


def _rule(name: str, expr: str, minutes: int, severity: str, text: str, runbook: str, own: Mapping[str, str]) -> Rule:
    return {
        "alert": name,
        "expr": expr,
        **({"for": f"{minutes}m"} if minutes else {}),
        "labels": {"severity": severity, **own},
        "annotations": {"summary": text, "runbook_url": f"{runbook}#{name.lower()}"},
    }
