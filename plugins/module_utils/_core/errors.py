# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The one refusal type: what, where, why, what to do."""

from __future__ import annotations

from typing import Any


class InferopsError(Exception):
    """A refusal a person can act on.

    ``str()`` gives one sentence and up to three labelled lines; ``details`` gives the same as a dict
    with the keys where, why and do, those that are known.
    """

    def __init__(self, what: str, *, where: str | None = None, why: str | None = None, do: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.why = why
        self.do = do

    @property
    def details(self) -> dict[str, Any]:
        return {key: value for key, value in (("where", self.where), ("why", self.why), ("do", self.do)) if value is not None}

    def __str__(self) -> str:
        lines = [self.what] + [f"  {key + ':':<6} {value}" for key, value in self.details.items()]
        return "\n".join(lines)
