# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The metrics of a promoted release say whether clients are let in and whether a boot would start what was promoted."""

from __future__ import annotations

from ansible_collections.inferops.sglang.plugins.module_utils._core.observe.exporter import samples, text

from .releases import deploy, new_host, spec_dict
from .simulated_host import INSTANCE


def told(host, store):
    lines = text(samples(host, store, []), {}).splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


def test_they_follow_the_host():
    host, store = new_host()
    assert not [name for name in told(host, store) if "admitted" in name or "drift" in name]
    deploy(host, store, spec_dict(8))
    found = told(host, store)
    assert (found["inferops_admitted{}"], found["inferops_restarts_total{}"]) == ("1", "0")
    assert found['inferops_drift{kind="unit"}'] == "0"
    assert float(found["inferops_gate_timestamp_seconds{}"]) <= host.clock
    assert found[f'inferops_promoted_info{{release="{store.pointer("promoted")}"}}'] == "1"
    host.do_stop(f"sglang-{INSTANCE}-front.socket")
    assert told(host, store)["inferops_admitted{}"] == "0"
    host.files[f"/etc/systemd/system/sglang-{INSTANCE}.service"] += "# by hand\n"
    assert told(host, store)['inferops_drift{kind="unit"}'] == "1"
    for unit in host.serving():
        host.do_stop(unit)
    assert "inferops_restarts_total{}" not in told(host, store)
