"""The simulated time of a pipelined decoder: parameters, and a discrete-event model driven by them."""

from __future__ import annotations

from .continuous import Continuous
from .faults import Faults
from .parameters import FITTED, Parameters
from .pipeline import Pipeline, PrefillDone, TokenDone
from .stages import Stage, build_stages

__all__ = ["FITTED", "Continuous", "Faults", "Parameters", "Pipeline", "PrefillDone", "Stage", "TokenDone", "build_stages"]
