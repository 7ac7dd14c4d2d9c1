"""Every cause of docs/diagnosis.md has its picture, and the picture is of what the code does now."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))
import diagnosis_pictures as pictures
from _core.gate.diagnosis import CODES

PAGE = pictures.ROOT / "docs" / "diagnosis.md"
# Signs beside a cause, and figures that are not what they seem: there is no fault to switch on.
WITHOUT = {"GATE-POWER", "GATE-HEADROOM", "GATE-CACHED", "GATE-ABOVE-BOUND"}


def test_every_cause_has_a_picture_on_its_page():
    shown = set(re.findall(r"\(images/diagnosis/(GATE-[A-Z0-9-]+)\.svg\)", PAGE.read_text("utf-8")))
    assert shown == {file.stem for file in pictures.FOLDER.glob("*.svg")} == set(pictures.TELLING) == set(CODES) - WITHOUT


@pytest.mark.parametrize("code", ["GATE-EAGER"])
def test_a_picture_drawn_anew_is_the_one_on_the_page(code):
    assert pictures.picture(code, *pictures.runs(code)) == (pictures.FOLDER / f"{code}.svg").read_text("utf-8")


def test_what_was_not_measured_is_no_bar():
    faulty, sound = {"1": None, "8": 2.0}, {"1": 4.0, "8": 4.0}
    drawn = pictures.bars(0, 300, pictures.SPEED, faulty, sound)
    assert drawn.count('class="with"') == 1
    assert drawn.count('class="without"') == 2
