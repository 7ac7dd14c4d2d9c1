# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Compiled kernels: kept per cards and driver, warm before clients are let in, and told when something is compiled later."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.nvml import NoNvmlError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.plan import GatePlan
from ansible_collections.inferops.sglang.plugins.module_utils._core.release import kernels
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.drift_facts import compiled_while_serving
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.drift_report import look
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.runner import ensure_admitted
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.warm_up import warm_plan

from .releases import deploy, new_host, spec_dict

OLD, NEW = "nvidia-h200-580.95.05", "nvidia-h200-590.44.01"
POINTS = [{"concurrency": 1, "min_output_tokens_per_s": 33.8}, {"concurrency": 16, "max_ttft_p99_ms": 4000}]


def no_cards():
    raise NoNvmlError("none")


class Cards:
    """What is asked of NVML, with two cards of one kind."""

    handles = (0, 1)

    def driver(self):
        return {"driver_version": "580.95.05"}

    def identity(self, index):
        return {"name": "NVIDIA RTX PRO 6000 Blackwell Server Edition"}

    def close(self):
        return None


def environment(root: Path) -> dict[str, str]:
    return {"HOME": f"{root}/@CARDS@", "TRITON_CACHE_DIR": f"{root}/@CARDS@/triton", "OTHER": "as it was"}


def test_the_name_is_that_of_cards_and_driver(tmp_path):
    found = kernels.cards_here(Cards, tmp_path)
    assert found == "nvidia-rtx-pro-6000-blackwell-server-edition-580.95.05"


def test_without_cards_it_is_the_processor_and_a_driver_without_nvml_is_not_a_processor(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("processor\t: 0\nmodel name\t: AMD EPYC 9654 96-Core Processor\n")
    assert kernels.cards_here(no_cards, tmp_path) == "cpu-amd-epyc-9654-96-core-processor"
    (tmp_path / "sys/module/nvidia").mkdir(parents=True)
    (tmp_path / "sys/module/nvidia/version").write_text("580.95.05\n")
    assert kernels.cards_here(no_cards, tmp_path) == "nvidia-580.95.05"


def test_another_driver_gets_a_folder_of_its_own_and_the_first_is_found_again(tmp_path):
    environ = environment(tmp_path / "engine")
    env, first = kernels.prepared(environ, lambda: OLD)
    folder = f"{tmp_path}/engine/{OLD}"
    assert env == {"HOME": folder, "TRITON_CACHE_DIR": f"{folder}/triton", "OTHER": "as it was"}
    assert Path(env["TRITON_CACHE_DIR"]).is_dir()
    dummy, second = kernels.prepared(environ, lambda: NEW)
    assert (second.folder, second.made) != (first.folder, first.made)
    assert kernels.prepared(environ, lambda: OLD)[1] == first
    assert kernels.prepared({"HOME": "/h"}, no_cards) == ({"HOME": "/h"}, None)


def test_the_kernels_in_use_are_those_of_the_last_start_of_that_instance(tmp_path):
    environ = environment(tmp_path)
    for cards in (OLD, NEW):
        place = kernels.prepared(environ, lambda cards=cards: cards)[1]
        place.mark_ready("kimi")
    kernels.prepared(environ, lambda: OLD)[1].mark_ready("other")
    assert kernels.in_use(environ, "kimi", lambda path: path.read_text()) == place
    (tmp_path / ".ready-kimi").write_text('{"cards": "../../etc", "made": "x"}')
    assert kernels.in_use(environ, "kimi", lambda path: path.read_text()) is None


def test_only_kernels_that_were_written_later_count(tmp_path):
    place = kernels.prepared(environment(tmp_path), lambda: OLD)[1]
    now = time.time()
    ages = {"triton/a/k.cubin": 50, "triton/b/k.cubin": -5, "cuda/8/f00d": -9, "triton/b/k.json": -5, ".made": -5}
    for name, age in ages.items():
        (place.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (place.folder / name).touch()
        os.utime(place.folder / name, (now - age, now - age))
    assert place.compiled_since(now) == ["triton/b/k.cubin", "cuda/8/f00d"]


def test_the_loads_of_the_plan_are_kept_and_what_it_judges_is_not():
    judged = {"correctness": {"graded": True}, "require": {"decode_graph_pass_ratio": 1}}
    plan = {"model": "m", "output_tokens": 32, "points": POINTS, **judged}
    warm = GatePlan.from_dict(warm_plan(plan))
    assert [point.concurrency for point in warm.points] == [1, 16]
    assert {limit.name for point in warm.points for limit in point.limits} == {"min_output_tokens_per_s"}
    assert (warm.require, warm.output_tokens, warm.min_seconds_per_point) == ({}, 32, 0)


@pytest.fixture
def serving(tmp_path):
    """A host whose release is promoted with the kernels of one driver; ``start`` is what the wrapper does at a start."""
    host, store = new_host()
    spec = spec_dict(8, env=environment(tmp_path), plan={"model": "kimi-k2.6", "points": POINTS})

    def start(cards):
        place = kernels.prepared(spec["env"], lambda: cards)[1]
        place.mark_ready("kimi")
        host.files[str(tmp_path / ".ready-kimi")] = (tmp_path / ".ready-kimi").read_text()
        return place

    start(OLD)
    assert deploy(host, store, spec) == "promoted"
    assert host.gates == 1
    return host, store, start


def boot(host, store):
    host.reboot()
    host.clock += 60
    ensure_admitted(host, store, lambda text: None)
    assert host.is_open()
    return host.gates


def test_a_boot_with_the_kernels_of_the_gate_lets_clients_in_at_once(serving):
    host, store, start = serving
    start(OLD)
    assert boot(host, store) == 1


def test_a_boot_with_another_driver_runs_the_loads_once_before_clients_are_let_in(serving):
    host, store, start = serving
    start(NEW)
    assert boot(host, store) == 2
    assert not host.front_opened_by_gate
    assert boot(host, store) == 2
    start(OLD)
    assert boot(host, store) == 2


def test_an_emptied_cache_is_cold_again(serving):
    host, store, start = serving
    place = start(OLD)
    (place.folder / kernels.MADE).unlink()
    start(OLD)
    assert boot(host, store) == 2


def test_a_warm_up_that_sees_something_bad_keeps_no_client_out(serving):
    host, store, start = serving
    start(NEW)
    host.verdicts = ["fail"]
    assert boot(host, store) == 2
    record = store.gate_record(store.pointer("promoted"))
    assert record["verdict"] == "pass"


def test_going_back_to_a_release_whose_kernels_are_cold_warms_it_first(serving):
    host, store, start = serving
    start(NEW)
    host.broken["--broken"] = "crash"
    assert deploy(host, store, spec_dict(4, ("--broken",)), replace=True) == "rolled_back"
    assert host.gates == 2 and host.is_open()


def test_kernels_that_are_compiled_while_it_serves_are_found(serving):
    host, store, start = serving
    place = start(OLD)
    spec = store.spec(store.pointer("promoted"))
    kernel = place.folder / "triton/x/decode.cubin"
    kernel.parent.mkdir(parents=True)
    kernel.touch()
    os.utime(kernel, (host.clock - 1, host.clock - 1))
    os.utime(place.folder.parent / ".ready-kimi", (host.clock - 500, host.clock - 500))
    assert compiled_while_serving(store, spec) == ()
    os.utime(kernel, (host.clock + 9, host.clock + 9))
    assert compiled_while_serving(store, spec) == ("triton/x/decode.cubin",)
    report = look(host, store)
    found = [one for one in report["findings"] if one["code"] == "DRIFT-COMPILED"]
    assert len(found) == 1 and "decode.cubin" in found[0]["why"]
    # The next start finds it.
    os.utime(place.folder.parent / ".ready-kimi", (host.clock + 60, host.clock + 60))
    assert compiled_while_serving(store, spec) == ()


def test_what_nobody_may_look_into_is_unknown(serving):
    host, store, dummy = serving
    spec = store.spec(store.pointer("promoted"))
    stamp = kernels.root_of(spec.env) / ".ready-kimi"
    stamp.unlink()
    assert compiled_while_serving(store, spec) is None
    assert "kernels that were compiled" in look(host, store)["unknown"]


def test_a_note_of_warm_kernels_is_kept_with_the_release(serving):
    host, store, dummy = serving
    text = host.files[str(store.release_folder(store.pointer("promoted")) / "warm.json")]
    assert list(json.loads(text)) == [OLD]
