# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The result follows the source: a moved guard moves the line, another handler changes the outcome."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError

ROOT = Path(__file__).resolve().parents[7]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import score as oracle  # noqa: E402

ARGV = ["--model-path", "@models/kimi_k25", "--pp-size", "8"]
DECODE = "cuda_graph_config.decode.backend"
OVERRIDES = "srt/arg_groups/overrides.py"

pytestmark = pytest.mark.wheel


@pytest.fixture
def copy(unpacked, tmp_path):
    """A writable copy of 0.5.23, only the files the argument code can reach."""
    target = tmp_path / "copy"
    source = unpacked("0.5.23") / "sglang"
    for rel in ("srt", "kernels"):
        if (source / rel).is_dir():
            shutil.copytree(source / rel, target / "sglang" / rel, ignore=shutil.ignore_patterns("models", "multimodal_gen"))
    for path in source.glob("*.py"):
        shutil.copy(path, target / "sglang" / path.name)
    return target


def edit(root: Path, rel: str, old: str, new: str) -> None:
    path = root / "sglang" / rel
    text = path.read_text()
    assert text.count(old) == 1, (rel, old)
    path.write_text(text.replace(old, new))


def resolve(root: Path, argv=ARGV, facts=None):
    run = oracle.resolver({"0.5.23": root})
    return run("0.5.23", argv, facts if facts is not None else oracle.facts_of("8xRTXPRO6000"), oracle.model_of("kimi_k25"))


def test_a_moved_guard_moves_the_reported_line(unpacked, copy):
    before = resolve(unpacked("0.5.23")).changed["disable_overlap_schedule"]
    edit(
        copy,
        OVERRIDES,
        "def _pipeline_parallel_overlap_disable(",
        "# one\n# two\n# three\ndef _pipeline_parallel_overlap_disable(",
    )
    after = resolve(copy).changed["disable_overlap_schedule"]

    assert before["guard"] == after["guard"] == "view.pp_size > 1"
    assert before["because"] == after["because"] == ["--pp-size"]
    file, line = before["source"].split(":")
    assert (file, after["source"]) == (OVERRIDES, f"{OVERRIDES}:{int(line) + 3}")


def test_a_handler_that_forces_decode_graphs_off_turns_the_result_round(unpacked, copy):
    assert resolve(unpacked("0.5.23")).effective[DECODE] == "full"
    edit(
        copy,
        "srt/arg_groups/cuda_graph_hook.py",
        "def apply_cuda_graph_disaggregation_roles(server_args: Any):\n    cfg = resolving_view(server_args)\n",
        "def apply_cuda_graph_disaggregation_roles(server_args: Any):\n    cfg = resolving_view(server_args)\n"
        "    if cfg.pp_size > 1:\n"
        "        declare_resolution(\n"
        '            server_args, "x",\n'
        "            cuda_graph_config=with_phase(cfg.cuda_graph_config, Phase.DECODE, backend=Backend.DISABLED),\n"
        "        )\n",
    )
    result = resolve(copy)

    assert result.effective[DECODE] == "disabled"
    change = result.changed[DECODE]
    assert change["guard"] == "cfg.pp_size > 1"
    assert change["because"] == ["--pp-size"]
    assert change["source"].startswith("srt/arg_groups/cuda_graph_hook.py:")


def test_a_new_refusal_is_found_with_its_message_and_line(copy):
    edit(
        copy,
        OVERRIDES,
        '        logger.warning("Pipeline parallelism is incompatible with overlap schedule.")\n',
        '        raise ValueError(f"no pipelines of {view.pp_size} here")\n',
    )
    result = resolve(copy)

    assert (result.outcome, result.message) == ("fatal", "no pipelines of 8 here")
    assert result.source.startswith(f"{OVERRIDES}:")


def test_a_refusal_that_hangs_on_a_fact_not_given_is_unknown_and_names_it(copy):
    edit(
        copy,
        OVERRIDES,
        '        logger.warning("Pipeline parallelism is incompatible with overlap schedule.")\n',
        '        if get_platform().is_sm120:\n            raise ValueError("no pipelines on these cards")\n',
    )
    facts = oracle.facts_of("8xRTXPRO6000")
    assert resolve(copy, facts=facts).outcome == "fatal"
    assert resolve(copy, facts=facts | {"sm": 90}).outcome == "ok"
    result = resolve(copy, facts={name: value for name, value in facts.items() if name != "sm"})

    assert result.outcome == "unknown"
    assert any(one["message"] == "no pipelines on these cards" and "sm" in one["needs"] for one in result.doubts)


def test_a_construct_that_cannot_be_followed_is_unknown_not_a_crash(copy):
    edit(
        copy,
        OVERRIDES,
        '        logger.warning("Pipeline parallelism is incompatible with overlap schedule.")\n',
        "        match view.pp_size:\n            case 8:\n                pass\n"
        "        view = view.__getstate__()[lambda: (yield)]\n",
    )
    assert resolve(copy).outcome in ("ok", "unknown", "fatal")


def test_a_handler_that_cannot_be_found_is_unknown_and_named_not_passed_over(copy):
    edit(copy, OVERRIDES, "def _pipeline_parallel_overlap_disable(", "def _renamed(")
    result = resolve(copy)

    assert result.outcome == "unknown"
    assert "_pipeline_parallel_overlap_disable" in result.message


def test_a_file_this_interpreter_cannot_parse_is_named(copy):
    edit(
        copy,
        OVERRIDES,
        "def _pipeline_parallel_overlap_disable(",
        "def )(:\n    pass\n\n\ndef _pipeline_parallel_overlap_disable(",
    )
    with pytest.raises(InferopsError) as caught:
        resolve(copy)
    assert OVERRIDES in str(caught.value)


def test_a_resolution_that_is_not_where_it_was_is_a_shape_nobody_reads(copy):
    edit(copy, "srt/server_args.py", "def resolve_once(self)", "def settle(self)")
    with pytest.raises(InferopsError) as caught:
        resolve(copy)
    assert "shape no reader here knows" in str(caught.value)
    assert "resolve_once" in str(caught.value)
