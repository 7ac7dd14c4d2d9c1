"""A model from a hub to one host, from there to the next by rsync over ssh; damage never gets a name."""

import re

import pytest

FOLDER = "/srv/weights/tiny/0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        ("truncated", "model-2-of-2.safetensors"),
        ("missing", "model-2-of-2.safetensors"),
        ("pickle", "model-2-of-2.safetensors"),
        ("code", "modeling_tiny.py"),
    ],
)
def test_damage_is_refused_with_the_file_named_and_gets_no_name(host, kept, damage, name):
    said = re.search(rf"refused {damage}: (.*?)(?:TASK|PLAY)", (kept / "damaged.log").read_text(), re.DOTALL)
    assert said and name in said[1]
    assert not host.file(f"/srv/weights/tiny/{damage}").exists


def test_check_mode_predicts_a_deployment_to_its_end_before_there_are_weights(kept):
    said = (kept / "predicted.log").read_text()
    assert said.count("would fetch") == 2
    assert len(re.findall(r"nothing is promoted; deploying release \w+", said)) >= 2
    assert re.findall(r"story-model-\d .*failed=(\d+)", said) == ["0", "0"]


def test_the_weights_are_whole_and_read_only(host):
    there = host.check_output(f"cd {FOLDER} && ls").split()
    assert {"model-1-of-2.safetensors", "model-2-of-2.safetensors", "tokenizer.json", "modeling_tiny.py"} <= set(there)
    assert host.check_output(f"find {FOLDER} -perm /222") == ""


def test_one_download_for_the_fleet_and_then_nothing(kept):
    first, again = ((kept / f"{name}.log").read_text() for name in ("delivered", "again"))
    assert first.count("from hub inferops/tiny") == 1
    assert len(re.findall(r"fetched .* from rsync \S+:/srv/weights/tiny/", first)) == 1
    assert re.findall(r"changed=(\d+)", first) == ["1", "1"]
    assert re.findall(r"changed=(\d+)", again) == ["0", "0"]
    print(re.search(r"role time \S+ s", again)[0])


def test_the_token_is_in_no_output_and_no_file(host, kept):
    assert not any("hf_canary" in (kept / f"{name}.log").read_text() for name in ("delivered", "again", "damaged"))
    assert host.run("grep -rlq hf_canary /srv/weights /var/log /root/.cache").rc != 0
