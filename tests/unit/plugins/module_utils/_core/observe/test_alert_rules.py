# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Each alert fires where it must and is silent where it must not, as the real promtool judges."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.observe.exporter import NAMES
from ansible_collections.inferops.sglang.plugins.module_utils._core.observe.rules import DEFAULTS, alert_rules

ROOT = Path(__file__).resolve().parents[6]
RECORDED = json.loads((ROOT / "tests/fakes/recordings/0.5.23/metrics.json").read_text())
FIGURES = {
    "points": [{"concurrency": 1, "output_tokens_per_s": 35.6}, {"concurrency": 16, "output_tokens_per_s": 156.4}],
    "gate_t": 0,
    "power_w": 240.0,
    "eager_ratio": 0.0,
}
TARGET = {"host": "gpu1", "instance": "kimi", "scrape": "gpu1:8000", "figures": FIGURES}
RULES = alert_rules([TARGET], {}, "https://example.com/alerts")
ENGINE = 'instance="gpu1:8000",model_name="kimi-k2.6",engine_type="unified"'
RANK = f'{ENGINE},pp_rank="0",tp_rank="0",moe_ep_rank="0"'
OWN = 'host="gpu1",sglang_instance="kimi"'
RUNNING, TOKENS = f"sglang:num_running_reqs{{{RANK}}}", f'sglang:generation_tokens_total{{{ENGINE},is_streaming="true"}}'
EAGER, GRAPH = (f'sglang:cuda_graph_passes_total{{{RANK},mode="{mode}"}}' for mode in ("decode_none", "decode_cuda_graph"))
POWER = f'inferops_gpu_power_watts{{{OWN},gpu="0"}}'
# Minutes from the start; tokens and passes are counters, given as what they gain in a minute.
LONG = "x120"


def flat(value):
    return f"{value}+0{LONG}"


def gains(per_minute):
    return f"0+{per_minute}{LONG}"


# Alert: series under which it fires, series under which it must not (the same but for one thing).
CASES = {
    "SGLangDown": ({f"up{{{ENGINE}}}": flat(0)}, {f"up{{{ENGINE}}}": flat(1)}),
    "SGLangThroughputBelowPromoted": (
        {RUNNING: flat(16), TOKENS: gains(24.7 * 60)},
        {RUNNING: flat(16), TOKENS: gains(150 * 60)},
    ),
    "SGLangEagerDecode": ({EAGER: gains(600), GRAPH: gains(600)}, {EAGER: gains(6), GRAPH: gains(600)}),
    "SGLangPowerFarBelowLoad": ({POWER: flat(96), RUNNING: flat(16)}, {POWER: flat(96), RUNNING: flat(2)}),
    "SGLangQueue": ({f"sglang:num_queue_reqs{{{RANK}}}": flat(40)}, {f"sglang:num_queue_reqs{{{RANK}}}": flat(16)}),
    "SGLangKVPressure": ({f"sglang:token_usage{{{RANK}}}": flat(0.97)}, {f"sglang:token_usage{{{RANK}}}": flat(0.9)}),
    "SGLangRetracts": (
        {f'sglang:num_retracted_reqs{{{RANK},pid="1"}}': flat(2)},
        {f'sglang:num_retracted_reqs{{{RANK},pid="1"}}': flat(0)},
    ),
    "SGLangNotAdmitted": ({f"inferops_admitted{{{OWN}}}": flat(0)}, {f"inferops_admitted{{{OWN}}}": flat(1)}),
    "SGLangThrottled": (
        {f'inferops_gpu_throttled{{{OWN},gpu="3",reason="hw_slowdown"}}': flat(1)},
        {f'inferops_gpu_throttled{{{OWN},gpu="3",reason="hw_slowdown"}}': "1 0+0x120"},
    ),
    "SGLangXid": ({f"inferops_xid_errors_total{{{OWN}}}": "0+0x59 1+0x60"}, {f"inferops_xid_errors_total{{{OWN}}}": flat(3)}),
    "SGLangCompiles": (
        {f"inferops_kernels_compiled_total{{{OWN}}}": "0+0x59 3+0x60"},
        {f"inferops_kernels_compiled_total{{{OWN}}}": flat(3)},
    ),
    "SGLangRestarts": ({f"inferops_restarts_total{{{OWN}}}": "0+0x50 1+0x70"}, {f"inferops_restarts_total{{{OWN}}}": flat(2)}),
    "SGLangGateOld": (
        {f"inferops_gate_timestamp_seconds{{{OWN}}}": flat(-31 * 86400)},
        {f"inferops_gate_timestamp_seconds{{{OWN}}}": flat(-29 * 86400)},
    ),
    "SGLangDrift": ({f'inferops_drift{{{OWN},kind="unit"}}': flat(1)}, {f'inferops_drift{{{OWN},kind="unit"}}': flat(0)}),
    "SGLangMetricsStale": (
        {f"inferops_metrics_timestamp_seconds{{{OWN}}}": flat(0)},
        {f"inferops_metrics_timestamp_seconds{{{OWN}}}": "0+60x120"},
    ),
    "SGLangRouterWorkerDown": (
        {'smg_worker_health{worker="http://10.0.0.5:8001",instance="entry:29000"}': flat(0)},
        {'smg_worker_health{worker="http://10.0.0.5:8001",instance="entry:29000"}': flat(-1)},
    ),
}
PROMTOOL = shutil.which("promtool")


def rule_of(name):
    return [rule for group in RULES["groups"] for rule in group["rules"] if rule["alert"] == name]


def promtool(*words, cwd):
    assert PROMTOOL, "promtool is not installed: apt-get install prometheus"
    done = subprocess.run([PROMTOOL, *words], cwd=cwd, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def judged(folder, series, name):
    """Return the alerts of one name that fire after one hour, as labels, by asking promtool what it found."""
    folder.mkdir(exist_ok=True)
    (folder / "rules.yml").write_text(yaml.safe_dump(RULES))
    unit = {
        "interval": "1m",
        "input_series": [{"series": key, "values": values} for key, values in series.items()],
        "alert_rule_test": [{"eval_time": "62m", "alertname": name, "exp_alerts": []}],
    }
    (folder / "tests.yml").write_text(yaml.safe_dump({"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": [unit]}))
    status, told = promtool("test", "rules", "tests.yml", cwd=folder)
    assert status == 0 or "exp:[" in told.replace(" ", ""), told
    return status, told


def test_promtool_takes_the_rules(tmp_path):
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(RULES))
    status, told = promtool("check", "rules", "rules.yml", cwd=tmp_path)
    assert status == 0 and f"{len(CASES) + 1} rules found" in told, told


def test_there_is_a_case_for_each_alert():
    assert {rule["alert"] for group in RULES["groups"] for rule in group["rules"]} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_an_alert_fires_where_it_must_and_is_silent_where_it_must_not(tmp_path, name):
    fires, silent = CASES[name]
    status, told = judged(tmp_path / "fires", fires, name)
    assert status != 0 and f'alertname="{name}"' in told, told
    summary = re.search(r'summary="((?:[^"\\]|\\.)*)"', told)
    assert summary and "{{" not in summary[1] and "<no value>" not in told, told
    status, told = judged(tmp_path / "silent", silent, name)
    assert status == 0, told


def test_the_throughput_is_held_against_the_figure_at_the_same_load(tmp_path):
    """35.6 tok/s are fine with one request in flight and far too little with sixteen; with none nothing is asked."""
    for running, fires in ((1, False), (15, False), (16, True), (0, False)):
        status, told = judged(tmp_path, {RUNNING: flat(running), TOKENS: gains(35 * 60)}, "SGLangThroughputBelowPromoted")
        assert (status != 0) == fires, (running, told)
    status, told = judged(tmp_path, {RUNNING: flat(1), TOKENS: gains(20 * 60)}, "SGLangThroughputBelowPromoted")
    assert status != 0 and "20.0 tok/s with at least 1 requests in flight; its gate saw 35.6 at 1" in told


def test_every_metric_is_one_that_somebody_exports():
    engine = {row["name"] for row in RECORDED}
    for group in RULES["groups"]:
        for rule in group["rules"]:
            for name in re.findall(r"\b(?:sglang:|inferops_|smg_)\w+", rule["expr"]):
                known = engine if name.startswith("sglang:") else NAMES if name.startswith("inferops_") else {"smg_worker_health"}
                assert name in known, name


def test_every_alert_has_a_section_that_it_names():
    page = (ROOT / "docs" / "alerts.md").read_text()
    for name in CASES:
        (url,) = {rule["annotations"]["runbook_url"] for rule in rule_of(name)}
        assert url == f"https://example.com/alerts#{name.lower()}"
        assert f"\n## {name}\n" in page, name


def test_what_is_not_known_makes_no_rule():
    bare = {rule["alert"] for rule in alert_rules([{**TARGET, "figures": None}], {}, "")["groups"][0]["rules"]}
    assert bare == {"SGLangDown", "SGLangQueue", "SGLangKVPressure", "SGLangRetracts"}
    no_power = {**TARGET, "figures": {**FIGURES, "power_w": None, "eager_ratio": None}}
    names = {rule["alert"] for rule in alert_rules([no_power], {}, "")["groups"][0]["rules"]}
    assert names == bare | {"SGLangThroughputBelowPromoted"}


def test_an_unknown_threshold_is_refused_by_name():
    with pytest.raises(InferopsError, match="gate_age is no threshold"):
        alert_rules([], {"gate_age": 3}, "")


def test_two_hundred_servers_are_rendered_in_linear_size():
    fleets = [[{**TARGET, "host": f"gpu{at}"} for at in range(count)] for count in (20, 200)]
    few, many = (len(json.dumps(alert_rules(fleet, {}, ""))) for fleet in fleets)
    assert many / few < 10
    assert DEFAULTS["throughput_ratio"] == 0.7
