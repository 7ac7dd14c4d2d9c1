# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Refusals that hang on the draft model: its config.json is read where it can be; executed on 0.5.12 and 0.5.23."""

from __future__ import annotations

import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.check import check
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import open_source
from known_hosts import RTX_PRO_6000 as FACTS

# Only a part of the speculative settings: every release executed refuses that, unless the draft is Gemma 4's assistant.
PARTIAL = ["--speculative-algorithm", "EAGLE", "--speculative-num-draft-tokens", "4"]
GEMMA = {"architectures": ["Gemma4AssistantForCausalLM"], "model_type": "gemma4_assistant"}
VERSIONS = ("0.5.12", "0.5.23")

pytestmark = pytest.mark.wheel


@pytest.fixture(scope="module")
def run(wheel, fixtures):
    trees = {version: open_source(wheel(version)) for version in VERSIONS}
    config = json.loads((fixtures / "oracle" / "models" / "llama" / "config.json").read_text())

    def call(version, words, draft):
        argv = ["--model-path", "m", *words, "--speculative-draft-model-path", str(draft)]
        return check(argv, source_root=trees[version], facts=FACTS, model_config=config, env={})

    return call


def folder(tmp_path, config):
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path


@pytest.mark.parametrize("version", VERSIONS)
def test_a_draft_that_can_be_read_decides(run, fixtures, version, tmp_path):
    refused = run(version, PARTIAL, fixtures / "oracle" / "models" / "llama_eagle3")
    kept = run(version, PARTIAL, folder(tmp_path, GEMMA))

    assert refused.outcome == "fatal"
    assert "speculative_num_draft_tokens" in refused.text()
    assert kept.effective["speculative_algorithm"] == "FROZEN_KV_MTP"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_draft_out_of_reach_leaves_open_what_only_a_special_one_would_save(run, version):
    report = run(version, PARTIAL, "org/draft")

    assert report.outcome == "unknown"
    told = next(finding for finding in report.findings if finding.code == "SGA202")
    assert told.do == "run the check where org/draft/config.json can be read"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_draft_out_of_reach_is_no_reason_to_doubt_what_only_a_special_one_would_be_refused_for(run, version):
    assert run(version, ["--speculative-algorithm", "EAGLE3"], "org/draft").outcome == "ok"


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, "\udcff"])
def test_a_damaged_draft_is_as_one_out_of_reach(run, tmp_path, text):
    (tmp_path / "config.json").write_bytes(text.encode("utf-8", "surrogateescape"))

    assert run("0.5.23", PARTIAL, tmp_path).outcome == "unknown"
