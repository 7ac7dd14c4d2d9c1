"""Each refusal names its reason, and the host is untouched."""

import re

import pytest


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("graphs_off", r"SGA301"),
        ("graphs_off", r"SGA310"),
        ("graphs_off", r"srt/\S+\.py:\d+"),
        ("ambiguous", r"SGA102"),
        ("ambiguous", r"--pp-size 8"),
        ("unknown_flag", r"SGA101"),
        ("unknown_flag", r"--reasoning-parser"),
        ("idle_card", r"SGA402"),
        ("unknown_profile", r"k2_6_pp8_rtx_pro_6000"),
        ("missing_model", r"/srv/models/not-there"),
        ("unknown_limit", r"min_output_tokens_per_s"),
    ],
)
def test_the_message_names(kept, name, says):
    """R2, R7, R11, R101."""
    assert re.search(says, (kept / f"{name}.log").read_text())


def test_nothing_is_on_the_host(view, host):
    assert (view.units, view.releases, view.attempt, view.promoted) == ({}, [], None, None)
    assert not host.file("/var/lib/inferops").exists
    assert not host.user("sglang").exists
