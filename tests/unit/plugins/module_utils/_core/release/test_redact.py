"""Secrets are cut out of whatever is kept."""

from __future__ import annotations

import json

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.release import redact
from hypothesis import given
from hypothesis import strategies as st

KEYS = st.text(st.sampled_from("abcdefXYZ0189-_"), min_size=8, max_size=40)


@given(KEYS)
def test_key_never_survives_in_the_forms_sglang_prints(key):
    texts = [
        f"server_args=ServerArgs(model_path='x', api_key='{key}', admin_api_key=\"{key}\", tp_size=8)",
        json.dumps({"api_key": key, "launch_command": ["--api-key", key]}),
        f"--api-key {key} --tp-size 8",
        f"Authorization: Bearer {key}",
    ]
    for text in texts:
        assert key not in redact.scrub(text, [key])
    assert key not in redact.scrub(texts[0])


def test_what_is_no_secret_stays():
    text = "ServerArgs(api_key=None, tp_size=8, tokenizer_path='/srv')"
    assert redact.scrub(text) == text


def test_only_allowed_fields_are_kept():
    kept = redact.keep_allowed(
        {"tp_size": 8, "api_key": "k", "launch_command": ["x"], "internal_states": [], "host": "h", "new_field": 1}
    )
    assert kept == {"tp_size": 8}


@pytest.mark.parametrize(
    "text", ['api-key: "sk 1"\n', "api-key: 'sk 1'\n# note\n", "api_key: sk 1 # note\n", '{"api-key": "sk 1", "x": 2}'], ids=str
)
def test_config_file_is_read_in_each_form(text):
    assert redact.read_secrets(text)["api_key"] == "sk 1"
    assert redact.secret_values(redact.read_secrets(text)) == ("sk 1",)
