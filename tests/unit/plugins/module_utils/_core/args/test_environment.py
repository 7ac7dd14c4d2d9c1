"""Environment variables that act as arguments."""

from __future__ import annotations

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.check import check

PP8 = ["--model-path", "m", "--pp-size", "8"]
LAYERS = {"num_hidden_layers": 61}


def found(wheel, code, env, model_config=None):
    report = check(PP8, source_root=wheel("0.5.10"), env=env, model_config=model_config)
    return [finding for finding in report.findings if finding.code == code]


@pytest.mark.wheel
@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("SGLANG_PP_LAYER_PARTITION", None),
        ("SGLANG_LOGGING_CONFIG_PATH", None),
        ("HF_HOME", None),
        ("SGLANG_PP_LAYER_PARTITON", "advice"),
        ("SGLANG_NO_SUCH_THING", "info"),
    ],
)
def test_a_variable_nobody_reads_is_named(wheel, name, level):
    got = found(wheel, "SGA112", {name: "7,7,7,8,8,8,8,8"})
    assert [finding.level for finding in got] == ([level] if level else [])
    if level == "advice":
        assert got[0].do == "write SGLANG_PP_LAYER_PARTITION"


@pytest.mark.wheel
@pytest.mark.parametrize("config", [None, LAYERS])
@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("7,7,7,8,8,8,8,8", None),
        ("7,7,7,8,8,8,8", "7 entries, pp_size is 8"),
        ("7,7,7,8,8,8,8,x", "not a comma list"),
        ("", "not a comma list"),
        ("8,8,8,8,8,8,8,8", "sums to 64"),
    ],
)
def test_r18_a_layer_partition_that_does_not_fit_is_refused(wheel, value, why, config):
    """A layer partition must have one entry a stage and add up to the layers (R18)."""
    got = found(wheel, "SGA403", {"SGLANG_PP_LAYER_PARTITION": value}, config)
    if why is None or (config is None and "sums" in why):
        assert got == []
    else:
        assert why in got[0].why
