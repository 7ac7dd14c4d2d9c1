# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Read the record after interpretation: what is in effect, what differs from what was asked, what stayed open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .frames import Site
from .limits import heavy
from .operators import equal, plain_enum
from .values import MISSING, SMEARED, Config, Dict, External, Instance, List, Record, Set, Unknown, present

# Chosen at random, by the machine, or not an argument's effect at all.
NOISE = frozenset({"random_seed", "nccl_port", "rl_on_policy_target_seed", "model_config", "model_specific_adjustment"})
SECRETS = frozenset({"api_key", "admin_api_key", "ssl_keyfile_password", "watermark_key", "watermark_key_b"})
FACTS = ("sm", "platform", "gpu_", "cuda_version", "driver_version", "packages", "model")


def is_fact(need: str) -> bool:
    """Return whether a need is a fact a caller can tell, not something of our own reading."""
    return need.startswith(FACTS) and not need.startswith(("model of", "model.files"))


class Report:
    """The tables of one finished interpretation."""

    def __init__(self, interpreter: Any, record: Record, requested: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        self.interpreter = interpreter
        self.record = record
        self.requested = requested
        self.defaults = defaults

    def facts_among(self, needs: Iterable[str]) -> bool:
        """Return whether something a caller could have told would decide it."""
        return any(is_fact(one) for one in needs)

    def fields(self) -> list[str]:
        return [name for name in self.requested if not name.startswith("_") and name not in NOISE and name not in SECRETS]

    def current(self, name: str) -> Any:
        record = self.record
        held = record.decided.cells.get(name, MISSING)
        raw = record.cells.get(name, MISSING)
        value = raw if held is MISSING else present(held, raw)
        return self._fallback(name, value)

    def _fallback(self, name: str, value: Any) -> Any:
        return self.interpreter.fallbacks.get(name, value) if value is None else value

    def all_undecided(self, need: str) -> list[Mapping[str, Any]]:
        return [{"field": name, "to": None, "source": None, "guard": None, "needs": [need]} for name in self.fields()]

    def tables(self) -> tuple[dict[str, Any], dict[str, Any], list[Mapping[str, Any]]]:
        effective: dict[str, Any] = {}
        changed: dict[str, Any] = {}
        undecided: list[Mapping[str, Any]] = []
        for name in self.fields():
            before, after = self.requested[name], self.current(name)
            leaves = list(self._leaves(name, after))
            for path, value in leaves:
                asked = self.defaults.get(path, before if path == name else None)
                sites = self.record.origin.cells.get(path) or self.record.origin.cells.get(name) or ()
                self._one(path, asked, value, sites, (effective, changed, undecided))
        return effective, changed, undecided

    def _leaves(self, name: str, value: Any) -> Iterable[tuple[str, Any]]:
        """Nested settings become dotted names; where the whole is unknown, so is every leaf."""
        known = [path for path in self.defaults if path.startswith(f"{name}.")]
        if isinstance(value, Instance) and value.cls is not None and "_value_" not in value.cells:
            for key, one in value.cells.items():
                yield from self._leaves(f"{name}.{key}", one)
        elif known and isinstance(value, Unknown):
            for path in known:
                yield path, Unknown(value.needs)
        elif known:
            for path in known:
                yield path, self.defaults[path]
        else:
            yield name, value

    def _one(
        self, path: str, asked: Any, value: Any, sites: tuple[Site, ...], tables: tuple[dict[str, Any], dict[str, Any], list[Any]]
    ) -> None:
        effective, changed, undecided = tables
        plain = as_json(value)
        if plain is OPEN:
            undecided.append(self._open(path, value, sites))
            return
        effective[path] = plain
        asked_plain = as_json(asked)
        if asked_plain is OPEN:
            # A default that hangs on the host: where it can be none that equals the result, it was replaced all the same.
            possible = [as_json(one) for one in (asked.options or ())] if isinstance(asked, Unknown) else []
            if not possible or any(one is OPEN or same_json(one, plain) for one in possible):
                return
            asked_plain = None
        if not same_json(asked_plain, plain):
            site = sites[-1] if sites else None
            changed[path] = {
                "from": asked_plain,
                "to": plain,
                "source": site.source if site else None,
                "guard": site.guard if site else None,
                "because": sorted(site.because) if site else [],
            }

    def _open(self, path: str, value: Any, sites: tuple[Site, ...]) -> Mapping[str, Any]:
        options = [as_json(one) for one in (value.options or ())] if isinstance(value, Unknown) else []
        options = [one for one in options if one is not OPEN]
        to = next((as_json(one.value) for one in reversed(sites) if as_json(one.value) is not OPEN), None)
        site = sites[-1] if sites else None
        return {
            "field": path,
            "to": to if to is not None else (options[-1] if options else None),
            "source": site.source if site else None,
            "guard": site.guard if site else None,
            "needs": sorted(deep_needs(value)),
            "options": options,
        }


class _Open:
    def __repr__(self) -> str:
        return "OPEN"


OPEN = _Open()


def as_json(value: Any) -> Any:
    """Return a value as JSON would hold it, OPEN where some of it is not known or it has more parts than any setting."""
    return OPEN if heavy(value) else _as_json(value)


def _as_json(value: Any) -> Any:
    value = plain_enum(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Set):
        items = _as_json(value.items)
        return OPEN if items is OPEN else sorted(map(str, items))
    if isinstance(value, List):
        return _as_json(value.items)
    if isinstance(value, (tuple, range)):
        items = [_as_json(one) for one in value]
        return OPEN if any(one is OPEN for one in items) else items
    if isinstance(value, Dict):
        if SMEARED in value.cells:
            return OPEN
        pairs = {str(key): _as_json(one) for key, one in value.cells.items()}
        return OPEN if any(one is OPEN for one in pairs.values()) else pairs
    if isinstance(value, Instance) and not isinstance(value, Config):
        if "_value_" in value.cells:
            return _as_json(value.cells["_value_"])
        pairs = {key: _as_json(one) for key, one in value.cells.items()}
        return OPEN if any(one is OPEN for one in pairs.values()) else pairs
    # A type of torch prints as its name; of anything else outside the source the name is not the value.
    if isinstance(value, External) and value.name.startswith("torch."):
        return value.name
    return OPEN


def same_json(a: Any, b: Any) -> bool:
    if isinstance(a, bool) != isinstance(b, bool):
        return False
    return bool(a == b)


def deep_needs(value: Any) -> set[str]:
    if isinstance(value, Unknown):
        return set(value.needs)
    if isinstance(value, External):
        return {value.name}
    if heavy(value):
        return {"large value"}
    out: set[str] = set()
    inner: Iterable[Any] = ()
    if isinstance(value, List):
        inner = value.items if isinstance(value.items, tuple) else (value.items,)
    elif isinstance(value, tuple):
        inner = value
    elif isinstance(value, (Dict, Instance)):
        inner = value.cells.values()
    for one in inner:
        out |= deep_needs(one)
    return out


__all__ = ["OPEN", "Report", "as_json", "deep_needs", "equal", "same_json"]
