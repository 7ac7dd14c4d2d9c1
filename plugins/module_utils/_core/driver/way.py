# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""How the wanted kernel module gets into the kernel: it is there, by loading, by swapping, by one reboot; with the reason."""

from __future__ import annotations

from dataclasses import dataclass

from .branches import same_version
from .facts import Facts
from .wish import Wish

RIVALS = ("nouveau", "nova", "nova_core", "nova_drm", "nvidiafb")
_BOUND_BY = {"nouveau", "nova", "nova-core", "nova_core", "NovaCore", "nvidiafb"}


@dataclass(frozen=True)
class Way:
    """``kind`` is none, load, reload or reboot."""

    kind: str
    reason: str


def owners(facts: Facts) -> list[str]:
    """Return the rival modules that are loaded or have a card."""
    bound = {card.driver for card in facts.cards if card.driver in _BOUND_BY}
    return sorted({module for module in RIVALS if module in facts.modules} | {str(driver) for driver in bound})


def way(facts: Facts, wish: Wish, *, target: str | None) -> Way:
    """Return how to get there. ``target`` is the version that will be on disk, None where any of the branch will be."""
    rivals = owners(facts)
    if rivals:
        return Way(
            "reboot",
            f"{', '.join(rivals)} {'has' if len(rivals) == 1 else 'have'} the cards and cannot be unloaded under a console",
        )
    if facts.loaded is None:
        return Way("load", "no NVIDIA module is loaded yet")
    why = _differs(facts, wish, target)
    if why is None:
        return Way("none", f"module {facts.loaded.version} is loaded and is the wanted one")
    if wish.reload_allowed:
        return Way("reload", why)
    return Way("reboot", why)


def _differs(facts: Facts, wish: Wish, target: str | None) -> str | None:
    loaded = facts.loaded
    if loaded is None:
        return None
    if loaded.flavour is not None and loaded.flavour != wish.flavour:
        return f"the {loaded.flavour} module {loaded.version} is loaded, the {wish.flavour} one is wanted"
    if target is not None and not same_version(target, loaded.version):
        return f"module {loaded.version} is loaded, {target.partition('-')[0]} is wanted"
    if not loaded.version.startswith(f"{wish.branch}.") or (wish.version and not same_version(wish.version, loaded.version)):
        return f"module {loaded.version} is loaded, {wish.version or f'branch {wish.branch}'} is wanted"
    return None
