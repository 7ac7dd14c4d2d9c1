"""The proof compares a running server with what was asked and expected."""

from __future__ import annotations

import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.host import Answer
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.proof import prove

INFO = {
    "pp_async_batch_depth": 8,
    "attention_backend": "triton",
    "mem_fraction_static": 0.85,
    "chunked_prefill_size": 2048,
    "random_seed": 7,
    "api_key": "sk-1",
    "cuda_graph_config": {"decode": {"backend": "full"}, "prefill": {"backend": "disabled"}},
}
CHECK = {
    "effective": {"pp_async_batch_depth": 8, "attention_backend": "triton", "random_seed": 1, "mem_fraction_static": 0.85},
    "changed": {},
    "undecided": [],
}
ARGV = ["--pp-async-batch-depth", "8", "--attention-backend=triton"]


def server(info=None, names=("kimi",), content="one", models=200):
    def http(url, *, key, body, timeout_s):
        if url.endswith("/v1/models"):
            return Answer(models, json.dumps({"data": [{"id": name} for name in names]}))
        if url.endswith("/server_info"):
            return Answer(200, json.dumps(INFO | (info or {})))
        if url.endswith("/metrics"):
            return Answer(200, "")
        if content is None:
            return Answer(None, "timed out")
        return Answer(200, json.dumps({"choices": [{"message": {"content": content}}], "usage": {"completion_tokens": 3}}))

    return http


def failures(http, **how):
    return prove(http, "http://x", served_name="kimi", argv=ARGV, check=CHECK, **how).failures


def test_what_was_asked_runs():
    expect = {
        "decode_graphs": "enabled",
        "prefill_graphs": "disabled",
        "attention_backend": "triton",
        "mem_fraction_static": 0.85,
    }
    proof = prove(server(), "http://x", served_name="kimi", argv=ARGV, check=CHECK, expect=expect)
    assert proof.failures == []
    assert "api_key" not in proof.resolved


def test_one_misresolved_field_fails():
    """R52."""
    assert len(failures(server({"pp_async_batch_depth": 0}))) == 1


def test_difference_that_the_check_explains_is_no_failure():
    changed = {"pp_async_batch_depth": {"from": 8, "to": 0, "source": "srt/server_args.py:1", "guard": "g", "because": []}}
    check = {**CHECK, "effective": {**CHECK["effective"], "pp_async_batch_depth": 0}, "changed": changed}
    proof = prove(server({"pp_async_batch_depth": 0}), "http://x", served_name="kimi", argv=ARGV, check=check)
    assert proof.failures == []
    assert proof.differences[0]["explained"] == "srt/server_args.py:1: g"


def test_default_that_the_check_sees_otherwise_is_told_but_fails_nothing():
    check = {**CHECK, "effective": {**CHECK["effective"], "chunked_prefill_size": 4096}}
    proof = prove(server(), "http://x", served_name="kimi", argv=ARGV, check=check)
    assert (proof.failures, len(proof.notes)) == ([], 1)


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({"cuda_graph_config": {"decode": {"backend": "disabled"}}}, 1),
        ({"cuda_graph_config": None, "disable_cuda_graph": True}, 1),
        ({"cuda_graph_config": None, "disable_cuda_graph": False}, 0),
        ({"cuda_graph_config": None}, 1),
    ],
)
def test_decode_graphs_are_read_in_both_shapes_and_not_reported_is_not_enabled(info, expected):
    assert len(failures(server(info), expect={"decode_graphs": "enabled"})) == expected


def test_served_name_must_be_listed():
    """R65: an answering port says nothing about the model."""
    assert failures(server(names=())) == ["/v1/models lists nothing, not kimi"]


@pytest.mark.parametrize("content", [None, ""])
def test_accepting_is_not_generating(content):
    """R59."""
    (failure,) = failures(server(content=content))
    assert failure.startswith("accepts but does not generate")


def test_unknown_expectation_is_not_met():
    assert failures(server(), expect={"no_such_field": 1}) == ["no_such_field is not reported in the running server, expected 1"]
