# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Start a module of SGLang where there is no GPU and torchvision has no compiled operators: sglang_on_cpu.py MODULE ARGUMENTS…

The benchmark imports the whole package. It registers shapes of operators that a build for another torch does not have; none of
them is called by the benchmark, so those registrations are left out.
"""

from __future__ import annotations

import runpy
import sys
from typing import Any

import torch

_register = torch.library.register_fake


def _as_is(function: Any) -> Any:
    return function


def _lenient(operator: Any, *rest: Any, **named: Any) -> Any:
    if isinstance(operator, str) and operator.startswith("torchvision::"):
        return _as_is
    return _register(operator, *rest, **named)


torch.library.register_fake = _lenient
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
