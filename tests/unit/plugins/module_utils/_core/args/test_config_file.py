"""Options in a --config file count like words of argv, and lose against them."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.config_file import merge
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.flags import read_flags
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.parser import ArgvError, parse
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import open_source
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.yaml_subset import read_yaml
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from hypothesis import given, settings
from hypothesis import strategies as st


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
    text = """---
a: 1
b: 'it''s # no comment'
c:
  - x
  - 2.5
d: [1, two, {k: "v: w", n: [1]}]
e: {"f": null}
g: on
h: 007
h2: 08
i: "1\\u00e9\\x41"
j:
k: 1:30
l: 0x10
m: nULL
n: 1e3
o: http://x:80/a#b # comment
p:
- 1
-
  q: 2
r:
  s:
    t: .5
a: 2
"""
    assert read_yaml(text, "f.yaml") == {
        "a": 2,  # the last one wins and keeps the first one's place
        "b": "it's # no comment",
        "c": ["x", 2.5],
        "d": [1, "two", {"k": "v: w", "n": [1]}],
        "e": {"f": None},
        "g": True,
        "h": 7,
        "h2": "08",
        "i": "1\u00e9A",
        "j": None,
        "k": 90,
        "l": 16,
        "m": "nULL",
        "n": "1e3",
        "o": "http://x:80/a#b",
        "p": [1, {"q": 2}],
        "r": {"s": {"t": 0.5}},
    }


BEYOND = [
    "a: &x 1\n",
    "a: |\n  text\n",
    "a: b\n  c\n",
    "a:\t1\n",
    "a: 1\n\tb: 2\n",
    "a: : 1\n",
    "a: b: c\n",
    "a: -\n",
    "a: [1\n",
    'a: "x\n',
    "a: @x\n",
    "a: !!str 5\n",
    "a: 2026-12-02\n",
    "? a\n: 1\n",
    "a: 1\n---\nb: 2\n",
    "%YAML 1.1\n---\na: 1\n",
    "a: 1\n  b: 2\n",
    "- a\nb: 1\n",
    "a: " + "[" * 50 + "]" * 50 + "\n",
]


@pytest.mark.parametrize("text", BEYOND)
def test_yaml_beyond_ours_is_refused_with_its_line(text):
    with pytest.raises(InferopsError) as caught:
        read_yaml(text, "f.yaml")
    assert "f.yaml" in caught.value.where


_SCALARS = st.text(alphabet="aZ09_-+.:,#'\"[]{}&*!|>%@` xeobnyf~=?\\", max_size=9)


@given(st.lists(st.tuples(st.sampled_from(["a", "b-c", "'q'", '"d e"', "1", "on"]), _SCALARS), max_size=4))
@settings(max_examples=400, deadline=None)
def test_what_is_read_is_what_pyyaml_reads(pairs):
    yaml = pytest.importorskip("yaml")
    text = "".join(f"{key}: {value}\n" for key, value in pairs)
    try:
        mine = read_yaml(text, "f.yaml")
    except InferopsError:
        return  # refused, not guessed
    assert repr(yaml.safe_load(text)) == repr(mine)
