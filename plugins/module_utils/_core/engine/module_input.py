# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Options that the modules of an engine share, and the values they become."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .plan import Wanted
from .prune import UNIT_DIRS


def shared_spec() -> dict[str, dict[str, Any]]:
    """Return the argument spec; the lock is no secret, but it would fill the log."""
    return {
        "version": {"type": "str", "required": True},
        "lock": {"type": "str", "required": True, "no_log": True},
        "lock_path": {"type": "str", "default": "lock"},
        "root": {"type": "path", "default": "/opt/inferops/engines"},
        "python": {"type": "path", "default": "/usr/bin/python3"},
        "wheelhouse": {"type": "str", "default": ""},
        "bundle": {"type": "str", "default": ""},
        "compile": {"type": "bool", "default": True},
        "launch": {"type": "list", "elements": "str", "default": []},
        "driver_version": {"type": "str", "default": ""},
        "space_mib": {"type": "int", "default": 0},
        "accepted_pins": {"type": "list", "elements": "str", "default": []},
        "interpreter": {"type": "str", "default": ""},
        "interpreter_sha256": {"type": "str", "default": ""},
    }


def keeping_spec() -> dict[str, dict[str, Any]]:
    """Return the argument spec of what says which engines stay."""
    return {
        "keep": {"type": "int", "default": -1},
        "state_dir": {"type": "path", "default": "/var/lib/inferops"},
        "unit_dirs": {"type": "list", "elements": "path", "default": list(UNIT_DIRS)},
        "wait_s": {"type": "int", "default": 3600},
    }


def wanted(params: Mapping[str, Any]) -> Wanted:
    return Wanted(
        version=params["version"],
        lock=params["lock"],
        lock_path=params["lock_path"],
        root=params["root"],
        python=params["python"],
        wheelhouse=params["wheelhouse"],
        bundle=params["bundle"],
        compile=params["compile"],
        launch=list(params["launch"]),
        driver=params["driver_version"],
        space_mib=params["space_mib"],
        accepted_pins=list(params["accepted_pins"]),
        interpreter=params["interpreter"],
        interpreter_sha256=params["interpreter_sha256"],
    )
