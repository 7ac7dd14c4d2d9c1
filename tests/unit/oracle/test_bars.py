"""A score that is short of a bar says so; each kind of mistake in the static tier turns a score red."""

from __future__ import annotations

from types import SimpleNamespace

import bars
import pytest
import score as scoring
from static_tier import COLLECTIONS  # noqa: F401  (puts the collection on the path)

CASE = {
    "id": "one",
    "sglang_version": "1.0",
    "argv": ["--model-path", "@models/llama"],
    "model_config": "llama",
    "hardware": "8xH200",
    "outcome": "ok",
    "changed": {"page_size": [None, 1], "device": [None, "cuda"]},
}
RIGHT = {"page_size": (None, 1), "device": (None, "cuda")}


def _answer(changed=None, *, outcome="ok", message=None, undecided=(), effective=None):
    told = {name: {"from": a, "to": b, "source": "x:1"} for name, (a, b) in (RIGHT if changed is None else changed).items()}
    settings = {**{name: one["to"] for name, one in told.items()}, **(effective or {})}
    fields = tuple({"field": name} for name in undecided)
    return SimpleNamespace(outcome=outcome, message=message, source="x:1", changed=told, effective=settings, undecided=fields)


def _short(*pairs):
    answers = iter([answer for _case, answer in pairs])
    return bars.short_of(scoring.score([case for case, _answer in pairs], lambda *args, **more: next(answers)))


def test_the_right_answer_reaches_every_bar():
    assert _short((CASE, _answer())) == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("argument --x: invalid choice", "parse verdicts wrong"),
        (_answer(outcome="fatal", message="no"), "false fatal"),
        (_answer({**RIGHT, "page_size": (None, 64)}), "key settings wrong"),
        (_answer({**RIGHT, "device": (None, "cpu")}), "changed fields wrong"),
        (_answer({**RIGHT, "dtype": ("auto", "half")}), "false changes"),
        (_answer({"device": (None, "cuda")}, undecided=("page_size",)), "key settings exact"),
        (_answer({"page_size": (None, 1)}, undecided=("device",)), "changed fields exact"),
        (_answer(outcome="unknown", message="perhaps"), "verdict ok or fatal"),
    ],
)
def test_each_mistake_is_below_a_bar(answer, said):
    assert any(said in line for line in _short((CASE, answer)))


def test_a_refusal_needs_its_own_message():
    case = {**CASE, "outcome": "fatal", "message_contains": "pp is incompatible", "changed": {}}

    assert _short((case, _answer({}, outcome="fatal", message="pp is incompatible with dp"))) == []
    assert _short((case, _answer({}, outcome="fatal", message="something else"))) != []
    assert _short((case, _answer({}))) != []


def test_twins_compare_what_a_switch_changes():
    without = {**CASE, "id": "without", "effective": {"disable_radix_cache": True, "page_size": 1}}
    case = {**CASE, "twin": "without", "effective": {"disable_radix_cache": True, "page_size": 1}}
    same, other = _answer(effective={"disable_radix_cache": True}), _answer(effective={"disable_radix_cache": False})

    assert _short((case, same), (without, same)) == []
    assert any("twins" in line for line in _short((case, same), (without, other)))


def test_without_facts_silence_is_fine_and_a_wrong_word_is_not():
    def blind(answer):
        return bars.short_uninformed(scoring.score([CASE], lambda *args, **more: answer, informed=False))

    assert blind(_answer({}, undecided=("page_size", "device"))) == []
    assert blind(_answer({"device": (None, "cpu")}, undecided=("page_size",))) != []
    assert blind(_answer(outcome="fatal", message="no")) != []


def test_tables_differ_in_strings_or_choices():
    real = {"actions": [{"flags": ["--a", "--b"], "choices": ["x", "y"]}, {"flags": ["--c", "--no-c"], "choices": None}]}

    def table(*flags):
        return SimpleNamespace(flags=flags)

    def flag(*strings, choices=None, action="store"):
        return SimpleNamespace(strings=strings, choices=choices, action=action)

    c = flag("--c", action="boolean_optional")
    fine = bars.score_table(table(flag("--a", "--b", choices=("y", "x")), c), real)
    assert (fine.missing, fine.surplus, fine.wrong_choices, fine.strings, fine.choices) == ((), (), (), 4, 2)
    assert bars.score_table(table(flag("--a", choices=("x", "y")), c), real).missing == ("--b",)
    assert bars.score_table(table(flag("--a", "--b", "--d", choices=("x", "y")), c), real).surplus == ("--d",)
    assert bars.score_table(table(flag("--a", "--b", choices=("x",)), c), real).wrong_choices == ("--a", "--b")
