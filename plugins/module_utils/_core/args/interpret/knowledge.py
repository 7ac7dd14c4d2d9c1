# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where facts of the host, the model and the outside world enter the interpretation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .values import MISSING

Hook = Callable[..., Any]


def _no_name(interpreter: Any, module: Any, name: str) -> Any:
    return MISSING


@dataclass
class Knowledge:
    """Hooks by name; every table may be empty, then the source alone is interpreted."""

    record_name: str
    external: Hook
    has_external: Hook
    call_external: Hook
    importable: Hook
    config_attribute: Hook
    functions: dict[str, Hook] = field(default_factory=dict)
    classes: dict[str, Hook] = field(default_factory=dict)
    name: Hook = _no_name
