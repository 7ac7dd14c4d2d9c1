"""Building the oracle's environment: which transformers a release gets, and what is said where it cannot be built."""

from __future__ import annotations

import environment
import pytest
import stand_ins
import wheels


@pytest.mark.parametrize(
    ("pin", "era"),
    [
        ("4.51.1", "4.51.1"),
        ("4.53.2", "4.57.1"),
        ("5.0.0rc0", "5.3.0"),
        ("5.6.0", "5.12.1"),
        ("5.12.1", "5.12.1"),
        ("5.19.0", "5.19.0"),
    ],
)
def test_a_release_runs_with_the_first_transformers_not_older_than_its_pin(pin, era):
    assert environment.era_of(pin) == era


def test_too_little_space_is_said_before_gigabytes_are_fetched(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "NEEDED_BYTES", 1 << 60)

    with pytest.raises(environment.InferopsError) as caught:
        environment._check_space(tmp_path)

    assert "INFEROPS_CACHE" in str(caught.value)


def test_the_locked_packages_get_the_python_they_are_locked_for(monkeypatch):
    found = environment.lab.oldest_python()
    assert found is None or environment._oldest() == found

    monkeypatch.setattr(environment.lab, "oldest_python", lambda: None)
    with pytest.raises(environment.InferopsError) as caught:
        environment._oldest()

    assert "Python 3.11" in str(caught.value)


def test_a_wheel_that_is_not_to_be_had_is_said_with_what_to_do(monkeypatch):
    def none(version):
        raise wheels.NoWheel(f"sglang {version} could not be downloaded: no route")

    monkeypatch.setattr(wheels, "fetch", none)

    with pytest.raises(environment.InferopsError) as caught:
        environment.unpack("0.5.23")

    assert "no route" in str(caught.value) and "reachable" in str(caught.value)


def test_a_stand_in_says_the_version_that_the_release_pins(tmp_path):
    folder = tmp_path / "sglang-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        'Requires-Dist: torchao==0.9.0; extra == "srt"\nRequires-Dist: outlines<=0.1\nRequires-Dist: A_b>=2'
    )

    assert stand_ins.pinned(tmp_path) == {"torchao": "0.9.0", "a-b": "2"}


def test_anything_can_be_what_a_release_makes_of_a_missing_package():
    anything = stand_ins.Anything

    class Below(anything.Base):
        pass

    @anything.register("x")
    def decorated():
        return 1

    assert decorated() == 1 and Below().some.thing is anything and not anything()
    assert list(anything.CONSTANT) == [] and (anything | None) is not None
