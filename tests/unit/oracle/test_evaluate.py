"""The table of figures in the documentation: written between its marks, from cases that are executed once."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import evaluate
import pytest

PAGE = f"# Page\nbefore\n{evaluate.BEGIN}old\n{evaluate.END}after\n"


def test_the_table_replaces_what_stood_between_the_marks_and_nothing_else(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)

    evaluate.put("new\n", page)
    evaluate.put("newer\n", page)

    assert page.read_text() == PAGE.replace("old\n", "newer\n")


def test_a_page_without_marks_is_left_alone(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("no marks\n")

    with pytest.raises(ValueError, match="figures: begin"):
        evaluate.put("new\n", page)

    assert page.read_text() == "no marks\n"


def test_the_page_of_this_repository_has_the_marks():
    text = evaluate.PAGE.read_text()

    assert text.count(evaluate.BEGIN) == text.count(evaluate.END) == 1


def test_every_row_has_a_cell_for_every_column_and_the_command_makes_it_again():
    rows = [["0.5.23", *["1"] * (len(evaluate.HEADER) - 1)]]
    text = evaluate.markdown(rows, seed=5, count=9, cost=3, releases=["0.5.23"])

    assert "--seed 5 --count 9 --cost 3 --write 0.5.23`" in text
    assert {line.count("|") for line in text.splitlines() if line.startswith("|")} == {len(evaluate.HEADER) + 1}


def test_cases_are_executed_once_for_a_seed_and_a_count(tmp_path, monkeypatch):
    made = []

    def record(version, *, count, seed, folder):
        made.append((version, count, seed))
        folder.mkdir(exist_ok=True)
        (folder / f"{version}.json").write_text('{"table": {}, "changed": {}, "cases": []}')

    monkeypatch.setattr(evaluate.environment, "cache", lambda *names: tmp_path / names[-1])
    monkeypatch.setattr(evaluate.oracle, "record", record)

    for seed in (1, 1, 2):
        assert evaluate.executed("0.5.23", seed=seed, count=3) == ([], {})

    assert made == [("0.5.23", 3, 1), ("0.5.23", 3, 2)]


def test_a_release_below_a_bar_is_named(monkeypatch):
    case = {
        **{"id": "one", "sglang_version": "1", "argv": [], "model_config": "llama", "hardware": "8xH200"},
        **{"outcome": "ok", "changed": {"page_size": [None, 1]}},
    }
    answer = SimpleNamespace(outcome="ok", message=None, source="x:1", changed={}, effective={"page_size": 64}, undecided=())
    monkeypatch.setattr(evaluate.environment, "unpack", lambda version: version)
    monkeypatch.setattr(evaluate.scoring, "resolver", lambda sources: lambda *args, **more: answer)
    monkeypatch.setattr(evaluate, "read_table", lambda source: SimpleNamespace(flags=()))

    cells, short = evaluate.row("1", [case], {"actions": []}, sample=0)

    assert cells[evaluate.HEADER.index("key settings")] == "0/1/0"
    assert any(line.startswith("1: ") and "key settings wrong" in line for line in short)


def test_the_memory_of_a_check_is_its_own_and_not_that_of_who_starts_it():
    held = bytearray(300 << 20)
    held[:: 1 << 12] = b"x" * len(held[:: 1 << 12])

    seconds, mib = evaluate.measured([sys.executable, "-S", "-c", "pass"])
    _seconds, larger = evaluate.measured([sys.executable, "-S", "-c", "b'x' * (200 << 20)"])

    assert seconds > 0 and mib < 60
    assert larger > 200
    assert held
