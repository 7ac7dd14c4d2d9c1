# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What must be true once the driver is in: module, user space, device nodes. nvidia-smi alone proves none of it."""

from __future__ import annotations

from .branches import same_version
from .facts import Facts
from .plan import Plan


def problems(facts: Facts, plan: Plan) -> list[str]:
    """Return what is not as wanted, each in one sentence; empty when all is."""
    found = [f"{step.name} is still to be done: {', '.join(step.items)} ({step.why})" for step in plan.steps]
    if facts.loaded is not None:
        apart = sorted({p.version for p in facts.packages if p.in_set and not same_version(p.version, facts.loaded.version)})
        found += [f"module {facts.loaded.version} is loaded, packages are of {', '.join(apart)}"] if apart else []
        wanted = {"nvidiactl", "nvidia-uvm", *(f"nvidia{index}" for index in range(len(facts.cards)))}
        lacking = sorted(wanted - facts.nodes)
        found += [f"device nodes are not there: {', '.join('/dev/' + name for name in lacking)}"] if lacking else []
    unbound = [card.address for card in facts.cards if card.driver != "nvidia"]
    found += [f"the module did not take these cards: {', '.join(unbound)}"] if unbound else []
    return found
