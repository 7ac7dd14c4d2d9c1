"""Options in a --config file count like words of argv, and lose against them."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.config_file import merge
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.flags import read_flags
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.parser import ArgvError, parse
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import open_source
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.yaml_subset import read_mapping
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError


@pytest.fixture(scope="module")
def table(wheel):
    return read_flags(open_source(wheel("0.5.23")))


@pytest.mark.wheel
def test_the_file_comes_first_so_that_the_command_line_wins(table):
    text = "pp-size: 4\ntrust-remote-code: true\nenable-metrics: false\ncuda-graph-bs-decode: [1, 2]\nmodel-path: m # mine\n"
    argv = merge(table, ["--config", "x.yaml", "--pp-size", "8"], lambda _: text)
    values = parse(table, argv).values
    assert (values["pp_size"], values["trust_remote_code"], values["enable_metrics"]) == (8, True, False)
    assert (values["cuda_graph_bs_decode"], values["model_path"]) == ([1, 2], "m")


@pytest.mark.wheel
@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--config"], "No config file specified"),
        (["--config", "a.yaml", "--config", "b.yaml"], "Multiple config files"),
        (["--config", "a.json"], "must be YAML"),
        (["--config", "off.yaml"], "Unsupported config option 'disable_cuda_graph'"),
    ],
)
def test_what_the_release_refuses_is_refused(table, argv, message):
    with pytest.raises(ArgvError, match=message):
        merge(table, argv, lambda _: "disable-cuda-graph: true\n")


def test_the_yaml_that_is_read():
    text = "---\na: 1\nb: 'it''s # no comment'\nc:\n  - x\n  - 2.5\nd: [1, two]\ne: {\"f\": null}\ng: on\nh: 007\ni: \"1\"\nj:\n"
    assert read_mapping(text, "f.yaml") == {
        "a": 1,
        "b": "it's # no comment",
        "c": ["x", 2.5],
        "d": [1, "two"],
        "e": {"f": None},
        "g": True,
        "h": "007",
        "i": "1",
        "j": None,
    }


@pytest.mark.parametrize("text", ["a: &x 1\n", "a: |\n  text\n", "a:\n  b: 1\n", "- a\n", "a: 1\na: 2\n", "a: {b: c}\n"])
def test_yaml_beyond_ours_is_refused_with_its_line(text):
    with pytest.raises(InferopsError) as caught:
        read_mapping(text, "f.yaml")
    assert "f.yaml" in caught.value.where
