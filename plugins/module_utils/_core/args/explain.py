# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Why a feature is as it is: every path of the release that changes it, its guard, and which one decides for a command line."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InferopsError
from .context import shown
from .flags import FlagTable
from .report import Report
from .sites import Site, find_sites
from .source import SourceTree


@dataclass(frozen=True)
class Explanation:
    """The fields of a topic, the places that set them, and the result for a command line where one was given."""

    topic: str
    version: str
    fields: tuple[str, ...]
    defaults: dict[str, Any]
    sites: tuple[Site, ...]
    report: Report | None

    def decides(self, site: Site) -> bool | None:
        """Return whether a place decides the final value for this command line; None where no command line was given."""
        if self.report is None:
            return None
        return any(change.get("source") == site.source for change in self.report.changed.values())

    def as_dict(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "sglang_version": self.version,
            "fields": list(self.fields),
            "sites": [{**vars(site), "guards": list(site.guards), "decides": self.decides(site)} for site in self.sites],
            "result": self._result(),
        }

    def _result(self) -> dict[str, Any] | None:
        if self.report is None:
            return None
        out: dict[str, Any] = {}
        for source in (self.report.effective, self.report.changed):
            out |= {name: source[name] for name in source if name.partition(".")[0] in self.fields}
        return out

    def text(self) -> str:
        lines = [f"{self.topic} in SGLang {self.version}: {', '.join(self.fields)}", ""]
        for site in self.sites:
            mark = {None: " ", True: "*", False: " "}[self.decides(site)]
            lines.append(f"{mark} {site.text()}")
        if not self.sites:
            lines.append("  nothing in the argument code of this release sets it")
        if self.report is not None:
            lines += ["", "result for this command line (* above: the place that decides)"]
            for name, value in sorted(self.report.effective.items()):
                if name.partition(".")[0] in self.fields:
                    change = self.report.changed.get(name)
                    cause = f"  [{change['source']}]" if change else ""
                    lines.append(f"  {name} = {shown(value)}{cause}")
            for entry in self.report.undecided:
                if str(entry["field"]).partition(".")[0] in self.fields:
                    lines.append(
                        f"  {entry['field']}: not decided; needs {', '.join(entry.get('needs') or ['more than the source'])}"
                    )
        return "\n".join(lines)


def topic_fields(topic: str, table: FlagTable) -> tuple[str, ...]:
    """Return the fields a topic is about: ``cuda-graph`` is every field with cuda_graph in its name, a full name only itself.

    Raises InferopsError where the release has none.
    """
    name = topic.strip().lstrip("-").replace("-", "_").lower()
    if name in table.fields:
        return (name,)
    found = tuple(field for field in table.fields if name and name in field)
    if found:
        return found
    near = difflib.get_close_matches(name, table.fields, n=3)
    raise InferopsError(
        f"nothing of SGLang {table.version} is called {topic}",
        where="TOPIC",
        do=f"try {', '.join(near)}" if near else "try cuda-graph, overlap, attention-backend, or a field name",
    )


def explain(topic: str, tree: SourceTree, table: FlagTable, report: Report | None) -> Explanation:
    """Return the paths that change a topic; with a report of a command line also which of them decides."""
    names = topic_fields(topic, table)
    sites: Sequence[Site] = find_sites(tree, names)
    defaults = {name: table.fields[name] for name in names}
    return Explanation(topic, tree.version, names, defaults, tuple(sites), report)
