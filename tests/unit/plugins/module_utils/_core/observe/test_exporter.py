# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is written for node_exporter: known figures, names that are described, and nothing that is not known."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.observe.exporter import NAMES, samples, text
from ansible_collections.inferops.sglang.plugins.module_utils._core.observe.figures import figures
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.host import Ran
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.store import Store

LABELS = {"host": "gpu1", "sglang_instance": "kimi"}
CARDS = [{"index": 0, "power_w": 233.4, "throttled": {"hw_slowdown": True}}, {"index": 1, "power_w": None, "throttled": None}]


EMPTY = Ran(1, "")
NO_LOG, LATE = Ran(1, "no journal files were found"), Ran(124, "")


class Host:
    """A host whose kernel log and files are given; no unit is up."""

    def __init__(self, kernel=EMPTY):
        self.kernel, self.files = kernel, {}

    def now(self):
        return 1_800_000_000.0

    def run(self, words, timeout_s):
        assert words[0] == "journalctl"
        return self.kernel

    def read(self, path):
        return self.files.get(str(path))

    def systemctl(self, *words, timeout_s=30):
        return Ran(0, "ActiveState=inactive\n")


def written(host, cards=()):
    lines = text(samples(host, Store(host, "kimi"), cards), LABELS).splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#")), lines


def test_cards_and_kernel_are_told_and_what_is_not_known_is_absent():
    found, lines = written(Host(Ran(0, "NVRM: Xid (PCI:1): 79\nNVRM: Xid (PCI:1): 154\n")), CARDS)
    assert found['inferops_xid_errors_total{host="gpu1",sglang_instance="kimi"}'] == "2"
    assert found['inferops_gpu_power_watts{gpu="0",host="gpu1",sglang_instance="kimi"}'] == "233.4"
    assert found['inferops_gpu_throttled{gpu="0",host="gpu1",reason="hw_slowdown",sglang_instance="kimi"}'] == "1"
    assert not [name for name in found if 'gpu="1"' in name or "admitted" in name]
    assert [line for line in lines if line.startswith("# TYPE inferops_xid")] == ["# TYPE inferops_xid_errors_total counter"]


@pytest.mark.parametrize(("kernel", "told"), [(EMPTY, "0"), (NO_LOG, None), (LATE, None)])
def test_a_log_that_cannot_be_read_is_not_a_log_without_errors(kernel, told):
    assert written(Host(kernel))[0].get('inferops_xid_errors_total{host="gpu1",sglang_instance="kimi"}') == told


def test_every_name_is_described_and_well_formed():
    assert all(re.fullmatch(r"inferops_[a-z_]+", name) and kind in ("gauge", "counter") for name, (kind, _) in NAMES.items())
    assert text(iter([("inferops_drift", {"kind": 'a"b\\c'}, 1.0)]), {}).splitlines()[-1] == 'inferops_drift{kind="a\\"b\\\\c"} 1'


def test_figures_come_from_record_and_result_of_the_gate():
    host = Host()
    record = {"t": 5.0, "folder": "/g", "points": [{"concurrency": 8, "output_tokens_per_s": 95.6}, {"concurrency": 1}]}
    assert figures(host, None) is None
    bare = figures(host, record)
    assert bare == {"points": record["points"][:1], "gate_t": 5.0, "power_w": None, "eager_ratio": None}
    gpus = [{"power_w": {"mean": 200.0}}, {"power_w": {"mean": 100.0}}, {"power_w": {"mean": None}}]
    result = {"gpus": gpus, "engine": {"graph_passes": {"decode": {"graph": 99, "eager": 1}}}}
    host.files[str(Path("/g/result.json"))] = json.dumps(result)
    assert figures(host, record) == {**bare, "power_w": 150.0, "eager_ratio": 0.01}
