"""The check reads: moving a guard moves the reported line, and a source that does force graphs off turns the verdict round."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.check import check
from known_hosts import RTX_PRO_6000 as FACTS

LEFTOVER = ["--model-path", "m", "--trust-remote-code", "--pp-size", "8", "--pp-async-batch-depth", "8", "--disable-cuda-graph"]
TORCH = ["--model-path", "m", "--trust-remote-code", "--tp-size", "8", "--attention-backend", "torch_native"]
# version: (file that forces decode graphs off for torch_native, first words of its guard)
FORCED = {
    "0.5.12": ("srt/server_args.py", 'if self.attention_backend == "torch_native":'),
    "0.5.23": ("srt/arg_groups/attention_hook.py", 'if attention_backend == "torch_native":'),
}

pytestmark = pytest.mark.wheel


@pytest.fixture
def edited(unpacked, tmp_path, fixtures):
    """Return a function that checks argv against a copy of a release in which one file was edited."""
    config = json.loads((fixtures / "args" / "kimi_k25.json").read_text())

    def run(version, argv, rel=None, edit=lambda text: text):
        root = tmp_path / f"copy-{len(list(tmp_path.iterdir()))}"
        shutil.copytree(unpacked(version), root, copy_function=os.link)
        if rel is not None:
            file = root / "sglang" / rel
            text = file.read_text()
            file.unlink()
            changed = edit(text)
            assert changed != text
            file.write_text(changed)
        return check(argv, source_root=root, facts=FACTS, model_config=config, env={})

    return run


def finding(report, code):
    found = [one for one in report.findings if one.code == code]
    assert len(found) == 1, report.text()
    return found[0]


def line_of(place):
    rel, _, line = place.rpartition(":")
    return rel, int(line)


@pytest.mark.parametrize("version", FORCED)
def test_moving_the_guard_moves_the_reported_line(edited, version):
    rel, guard = FORCED[version]
    before = line_of(finding(edited(version, TORCH), "SGA302").source)
    after = line_of(finding(edited(version, TORCH, rel, lambda text: _down(text, guard, 7)), "SGA302").source)
    assert before[0] == after[0] == rel
    assert after[1] == before[1] + 7


def _down(text, guard, lines):
    """Put comment lines before the line that holds the guard."""
    head, found, tail = text.partition(guard)
    assert found
    start = head.rpartition("\n")
    return f"{start[0]}\n" + "# moved down\n" * lines + start[2] + guard + tail


@pytest.mark.parametrize("version", FORCED)
def test_taking_the_guard_away_takes_the_finding_away(edited, version):
    rel, guard = FORCED[version]
    report = edited(version, TORCH, rel, lambda text: text.replace(guard, guard.replace("torch_native", "no_such_backend")))
    assert "SGA302" not in [one.code for one in report.findings]


def _force_0_5_12(text):
    head, found, tail = text.partition("def _handle_pipeline_parallelism(self):")
    assert found
    line = "            self.disable_overlap_schedule = True\n"
    return head + found + tail.replace(line, line + "            self.disable_cuda_graph = True\n", 1)


def _force_0_5_23(text):
    old = "if cfg.pp_size > 1 and cfg.cuda_graph_config.prefill.backend == Backend.BREAKABLE:"
    head, found, tail = text.partition(old)
    assert found
    tail = tail.replace(
        "cfg.cuda_graph_config, Phase.PREFILL, backend=Backend.DISABLED",
        "cfg.cuda_graph_config, Phase.DECODE, backend=Backend.DISABLED",
        1,
    )
    return head + "if cfg.pp_size > 1:" + tail


FORCE = {"0.5.12": ("srt/server_args.py", _force_0_5_12), "0.5.23": ("srt/arg_groups/cuda_graph_hook.py", _force_0_5_23)}


@pytest.mark.parametrize("version", FORCE)
def test_a_source_that_forces_decode_graphs_off_turns_the_verdict_round(edited, version):
    rel, edit = FORCE[version]
    assert "vestigial" in finding(edited(version, LEFTOVER), "SGA301").why
    why = finding(edited(version, LEFTOVER, rel, edit), "SGA301").why
    assert "redundant" in why
    assert "vestigial" not in why
    assert "--pp-size" in why
    assert f"[{rel}:" in why


def test_r1_a_model_file_without_proxy_tensors_cannot_be_pipelined(edited):
    argv = ["--model-path", "m", "--trust-remote-code", "--tp-size", "4", "--pp-size", "2", "--pp-async-batch-depth", "2"]
    rel = "srt/models/kimi_k25.py"
    assert "SGA404" not in [one.code for one in edited("0.5.12", argv).findings]
    report = edited("0.5.12", argv, rel, lambda text: text.replace("pp_proxy_tensors: Optional[PPProxyTensors] = None,", ""))
    found = finding(report, "SGA404")
    assert (found.level, line_of(found.source)[0]) == ("error", rel)
    assert report.blocking


def test_a_release_that_drops_a_flag_refuses_it(edited):
    argv = ["--model-path", "m", "--monokernel-backend", "amd"]
    report = edited("0.5.23", argv, "srt/server_args.py", lambda text: text.replace('"--monokernel-backend"', '"--gone"'))
    assert finding(report, "SGA101").flag == "--monokernel-backend"


def test_a_dropped_flag_that_begins_another_is_not_taken_for_the_old_one(edited):
    # `--disable-cuda-graph` then means `--disable-cuda-graph-padding`: SGLang starts, with something else switched off.
    report = edited("0.5.23", LEFTOVER, "srt/server_args.py", lambda text: text.replace('"--disable-cuda-graph"', '"--gone"'))
    assert finding(report, "SGA111").do == "write --disable-cuda-graph-padding"
    assert "SGA301" not in [one.code for one in report.findings]
