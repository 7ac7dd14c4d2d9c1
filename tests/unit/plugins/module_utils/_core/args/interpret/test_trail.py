# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The trail tells what every exit left behind, however many there are, in one walk over it."""

from __future__ import annotations

import random

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.interpret.machine import Exit, Machine
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.interpret.values import MISSING, Obj


def _run(seed):
    """Write at random, note the state at each exit; return what was noted, and the state at the start."""
    rng = random.Random(seed)
    machine, objects = Machine(), [Obj() for dummy in range(4)]
    exits, states = [], []
    start, before = 0, None
    for step in range(rng.randint(1, 60)):
        if before is None and rng.random() < 0.2:
            start, before = len(machine.trail), [dict(one.cells) for one in objects]
        if rng.random() < 0.3:
            exits.append(Exit(len(machine.trail)))
            states.append([dict(one.cells) for one in objects])
        value = MISSING if rng.random() < 0.2 else step
        machine.write(rng.choice(objects), rng.choice("abc"), value)
    return machine, start, before or [{} for dummy in objects], objects, exits, states


@pytest.mark.parametrize("seed", range(200))
def test_each_exit_gets_the_state_as_it_was_there(seed):
    machine, start, before, objects, exits, states = _run(seed)
    for one, delta, state in zip(exits, machine.deltas(start, exits), states, strict=True):
        if one.pos <= start:
            assert delta == {}
            continue
        cells = [dict(one) for one in before]
        for obj, key, value in delta.values():
            cells[objects.index(obj)][key] = value
        assert [{key: value for key, value in one.items() if value is not MISSING} for one in cells] == state


def test_what_belongs_to_an_exit_besides_comes_last():
    machine, obj = Machine(), Obj()
    machine.write(obj, "a", 1)
    leaving = Exit(1)
    leaving.delta = {(id(obj), "a"): (obj, "a", 2), (id(obj), "b"): (obj, "b", 3)}
    assert [value for _obj, _key, value in machine.deltas(0, [leaving])[0].values()] == [2, 3]


def test_a_refusal_that_a_try_block_passes_on_costs_no_state(run, monkeypatch):
    """400 writes in one try block, 40 refusals on some paths between them: no path is put together only to be raised on from."""
    applied, meet = [], Machine.meet

    def counted(self, deltas, needs, clock):
        applied.append(sum(len(delta) for delta in deltas))
        return meet(self, deltas, needs, clock)

    monkeypatch.setattr(Machine, "meet", counted)
    write = "".join(f"    self.f{{0}}_{number} = {number}\n" for number in range(10))
    each = f"{write}    if get_device_sm() == {{0}}:\n        raise ValueError('sm {{0}}')\n"
    body = "".join(each.format(number) for number in range(40))
    found = run(f"try:\n{body}except BaseException:\n    self.failed = True\n    raise\nself.page_size = 7")
    assert found.outcome == "unknown"
    assert len(found.doubts) == 40
    assert found.effective["page_size"] == 7
    assert sum(applied) < 2000
