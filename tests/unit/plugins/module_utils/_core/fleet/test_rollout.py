# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plan of a rolling upgrade: everybody once, the canary first, never below the share, and linear in the hosts."""

from __future__ import annotations

import time

import pytest
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.fleet.rollout import batch_size, rollout
from hypothesis import given
from hypothesis import strategies as st

FLEETS = st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=40).map(
    lambda states: {f"gpu{number}": state for number, state in enumerate(states)}
)


def batches(plan):
    """Cut the hosts as a play does: the last number of serial repeats."""
    left, sizes = list(plan.hosts), list(plan.serial)
    while left:
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        yield left[:size]
        left = left[size:]


@given(FLEETS, st.integers(1, 10), st.floats(0, 1), st.data())
def test_the_share_is_kept_in_every_batch_or_the_plan_is_refused(fleet, batch, share, data):
    canary = data.draw(st.sampled_from([None, *fleet]))
    try:
        plan = rollout(fleet, canary=canary, batch=batch, min_serving_ratio=share)
    except InferopsError:
        plan, refused = rollout(fleet, canary=canary, batch=batch), True
    else:
        refused = False
    assert sorted(plan.hosts) == sorted(fleet)
    assert plan.hosts[0] == (canary or next(iter(fleet)))
    serving = {name for name, state in fleet.items() if state}
    seen = []
    for part in batches(plan):
        assert len(part) <= (batch if seen else 1)
        seen.append(len(serving - set(part)))
        serving |= set(part)
    assert min(seen) == plan.lowest
    assert refused == (min(seen) / len(fleet) < share)


def test_a_refusal_names_what_is_down_and_what_to_do():
    with pytest.raises(InferopsError) as refused:
        rollout({"a": True, "b": False, "c": True}, min_serving_ratio=0.6)
    assert "1 of 3 servers would be left, 60% are to serve" in str(refused.value)
    assert "2 serve now; b not" in str(refused.value)
    assert rollout({"a": True, "b": False, "c": True}, canary="b", min_serving_ratio=0.6).lowest == 2, "what is down goes first"


@pytest.mark.parametrize(
    ("how", "named"),
    [
        ({"canary": "x"}, "inferops_canary"),
        ({"batch": 0}, "inferops_batch"),
        ({"batch": "101%"}, "inferops_batch"),
        ({"batch": "half"}, "inferops_batch"),
        ({"min_serving_ratio": 60}, "inferops_min_serving_ratio"),
    ],
)
def test_values_that_mean_nothing_are_refused_by_name(how, named):
    with pytest.raises(InferopsError) as refused:
        rollout({"a": True}, **how)
    assert refused.value.details["where"] == named


def test_shares_of_a_fleet_round_down_to_one_at_least():
    assert [batch_size("25%", hosts) for hosts in (1, 3, 8, 200)] == [1, 1, 2, 50]


def cpu(work):
    """Return the least CPU time of five runs [s]."""
    found = []
    for _ in range(5):
        since = time.process_time()
        work()
        found.append(time.process_time() - since)
    return min(found)


def test_planning_is_linear_in_the_hosts():
    few, many = ({f"gpu{number}": True for number in range(count)} for count in (2_000, 16_000))
    ratio = cpu(lambda: rollout(many, canary="gpu1999", batch=3)) / cpu(lambda: rollout(few, canary="gpu1999", batch=3))
    assert ratio < 8 * 2, ratio


def test_a_play_takes_two_hundred_hosts_in_their_order_in_linear_time(tmp_path):
    """The order goes to the play as a list of names; Ansible must not look through all hosts for each of them."""
    times = {}
    for count in (200, 1600):
        path = tmp_path / f"{count}.ini"
        path.write_text("[sglang]\n" + "".join(f"gpu{number}\n" for number in range(count)))
        inventory = InventoryManager(loader=DataLoader(), sources=[str(path)])
        plan = rollout({host.name: True for host in inventory.get_hosts("sglang")}, canary="gpu150", batch="10%")

        def taken(inventory=inventory, plan=plan):
            inventory.clear_pattern_cache()
            return [host.name for host in inventory.get_hosts(list(plan.hosts), order="inventory")]

        assert taken() == list(plan.hosts)
        times[count] = cpu(taken)
    assert times[1600] / times[200] < 8 * 2.5, times
