# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The files that a plan names: read before anything is touched, since a wrong line cannot be corrected half-way."""

from __future__ import annotations

from pathlib import Path

from . import graded_items
from .plan import GatePlan
from .prompt_file import read_prompts


def check_files(plan: GatePlan) -> None:
    """Raise InferopsError for a file of the plan that is absent, or holds a line that could not be sent or judged."""
    if plan.prompts is not None:
        read_prompts(Path(plan.prompts.file), plan.endpoint)
    graded = plan.correctness.graded
    if graded is not None and graded.file is not None:
        graded_items.from_file(Path(graded.file))
