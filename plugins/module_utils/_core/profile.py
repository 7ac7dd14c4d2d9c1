# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A profile: model, hardware and topology as one validated mapping, and the launch arguments that come out of it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import InferopsError

SECTIONS: dict[str, tuple[str, ...] | None] = {
    "model": ("served_name", "path", "architecture", "size_bytes"),
    "hardware": ("gpu_name", "gpu_count", "gpu_memory_mib", "bandwidth_gb_s", "sm"),
    "topology": ("tp_size", "pp_size"),
    "args": None,  # any field of the release; the check knows them, this file does not
    "env": None,
    "expect": None,
    "gate": ("plan",),
    "sources": None,
}
WORDS = ("name", "title")

# Who owns an argument: a field has one variable that sets it, so that two places can never disagree.
OWNERS = {
    "model_path": "sglang_service_model_path",
    "served_model_name": "sglang_service_served_name",
    "host": "the front: the engine always listens on loopback, see sglang_release_front_listen",
    "port": "sglang_service_port",
    "api_key": "sglang_service_api_key",
    "admin_api_key": "sglang_service_admin_api_key",
    "config": "the role: secrets are handed over in it",
}
# --model is SGLang's own second spelling of --model-path (srt/arg_groups/fields/model.py, 0.5.23; add_argument before).
OWNED_FLAGS = {"--" + field.replace("_", "-"): field for field in OWNERS} | {"--model": "model_path"}


def nearest(word: str, known: Sequence[str]) -> str:
    """Return ``, did you mean 'x'?`` for the closest known word, or an empty string."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f", did you mean {close[0]!r}?" if close else ""


def validate_profile(data: Any, where: str = "profile") -> dict[str, Any]:
    """Return the profile with every section present; raise InferopsError that names the first thing wrong.

    ``model.served_name`` is required, all else is optional. An unknown key is an error: a misspelled
    ``hardwear`` would otherwise silently switch the hardware checks off.
    """
    if not isinstance(data, Mapping):
        raise InferopsError(f"a profile is a mapping, not {type(data).__name__}", where=where, do="see docs/variables.md")
    known = (*WORDS, *SECTIONS)
    for key in data:
        if key not in known:
            raise InferopsError(
                f"unknown key {key!r} in the profile{nearest(str(key), known)}", where=where, do=f"use {', '.join(known)}"
            )
    profile: dict[str, Any] = {word: str(data.get(word) or "") for word in WORDS}
    for section, keys in SECTIONS.items():
        profile[section] = _section(data.get(section), section, keys, where)
    if not profile["model"].get("served_name"):
        raise InferopsError(
            "the profile has no model.served_name", where=where, why="clients and the gate ask for the model by it"
        )
    for field in profile["topology"]:
        if field in profile["args"]:
            raise InferopsError(
                f"{field} is set twice in the profile", where=f"{where}: topology and args", do="keep it in topology"
            )
    _positive(profile, "hardware", ("gpu_count", "gpu_memory_mib", "bandwidth_gb_s", "sm"), where)
    _positive(profile, "topology", ("tp_size", "pp_size"), where)
    return profile


def _section(value: Any, section: str, keys: tuple[str, ...] | None, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InferopsError(f"{section} is a mapping, not {type(value).__name__}", where=where)
    for key in value:
        if not isinstance(key, str) or (keys is not None and key not in keys):
            raise InferopsError(
                f"unknown key {key!r} in {section}{nearest(str(key), keys or ())}",
                where=where,
                do=f"use {', '.join(keys)}" if keys else "keys are words",
            )
    return dict(value)


def _positive(profile: Mapping[str, Any], section: str, keys: Sequence[str], where: str) -> None:
    for key in keys:
        value = profile[section].get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value <= 0):
            raise InferopsError(f"{section}.{key} is a number above 0, not {value!r}", where=where)


def launch_args(profile: Mapping[str, Any], overrides: Mapping[str, Any], owned: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments by field name: topology, then the profile's, then the site's, then those the role owns.

    An override of ``None`` takes the profile's argument away. A field in OWNERS is refused in ``overrides``
    and in the profile. ``owned`` values of None are left out.

    >>> launch_args({"topology": {"pp_size": 8}, "args": {"a": 1, "b": 2}}, {"a": None, "b": 3}, {"port": 30000})
    {'pp_size': 8, 'b': 3, 'port': 30000}
    """
    for origin, mapping in (("the profile's args", profile.get("args") or {}), ("sglang_service_args", overrides)):
        for field in mapping:
            if field in OWNERS:
                raise InferopsError(
                    f"{field} does not belong into {origin}", where=f"{origin}.{field}", do=f"set {OWNERS[field]}"
                )
            if field.startswith("-") or "-" in field:
                raise InferopsError(
                    f"{field!r} is a flag; arguments are keyed by SGLang's field names",
                    where=f"{origin}.{field}",
                    do=f"write {field.lstrip('-').replace('-', '_')}, or put the words into sglang_service_argv",
                )
    merged = {**(profile.get("topology") or {}), **(profile.get("args") or {}), **overrides, **owned}
    return {field: value for field, value in merged.items() if value is not None}


def launch_argv(argv: Sequence[Any], owned: Mapping[str, Any]) -> list[str]:
    """Return the raw words followed by those the role owns; refuse a raw word that sets what the role owns.

    argparse takes any unambiguous prefix, so a prefix of an owned flag is refused as well.

    >>> launch_argv(["--pp-size", 8], {"model_path": "/m", "port": 30000})
    ['--pp-size', '8', '--model-path', '/m', '--port', '30000']
    """
    words = [str(word) for word in argv]
    for position, word in enumerate(words):
        option = word.partition("=")[0]
        if len(option) <= 2 or not option.startswith("--"):
            continue
        flag = option if option in OWNED_FLAGS else next((flag for flag in OWNED_FLAGS if flag.startswith(option)), None)
        if flag is not None:
            raise InferopsError(
                f"{option} does not belong into sglang_service_argv",
                where=f"sglang_service_argv[{position}]",
                why="an argument has one owner, and a secret must never be in a process list",
                do=f"take it out and set {OWNERS[OWNED_FLAGS[flag]]}",
            )
    for field, value in owned.items():
        if value is not None:
            words += ["--" + field.replace("_", "-"), str(value)]
    return words


def known_facts(profile: Mapping[str, Any], measured: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts for the check: what was measured on the host, else what the profile is made for.

    A profile without hardware whose ``device`` is cpu is a CPU profile; of any other nothing is known.

    >>> known_facts({"hardware": {"sm": 120, "bandwidth_gb_s": 1600}, "args": {}}, {"sm": 90, "gpu_count": None})
    {'platform': 'cuda', 'sm': 90, 'gpu_bandwidth_gb_s': 1600}
    """
    hardware = dict(profile.get("hardware") or {})
    facts: dict[str, Any] = {}
    if hardware:
        facts["platform"] = "cuda"
    elif (profile.get("args") or {}).get("device") == "cpu":
        facts["platform"] = "cpu"
    for key in ("gpu_name", "gpu_count", "sm", "gpu_memory_mib"):
        if key in hardware:
            facts[key] = hardware[key]
    if "bandwidth_gb_s" in hardware:
        facts["gpu_bandwidth_gb_s"] = hardware["bandwidth_gb_s"]
    return {**facts, **{key: value for key, value in measured.items() if value is not None}}
