# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The places that set a field, strung together in the order the release runs them, each with the conditions of its callers.

By name: whatever a function of the argument code names and that is a function known here is followed where it is named first.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from .sites import Function, Mention, Site, functions_of
from .source import LANDMARK, SourceTree

# Releases that resolve on demand, releases that resolve while the record is built; then the checks, which also write.
ENTRIES = ("resolve_once", "__post_init__", "check_server_args")
# Lists of functions that the argument code runs in a loop, and the decorators that fill them (arg_groups/, 0.5.14 on).
REGISTRIES = {
    "_MODEL_OVERRIDE_FNS": ("register_model_override", "_register_for"),
    "_PREDICATE_OVERRIDE_FNS": ("register_model_override_predicate",),
    "POST_PROCESS_PASSES": ("register_post_process",),
}
MODEL_REGISTRIES = (*REGISTRIES["_MODEL_OVERRIDE_FNS"], *REGISTRIES["_PREDICATE_OVERRIDE_FNS"])
SERVER_RUNS, CALLED, UNCALLED = "run time", "resolution", "not called"
MAX_DEPTH = 40


@dataclass(frozen=True)
class Path:
    """A site with the functions that lead to it, outermost first. ``when``: resolution, run time, or not called here."""

    site: Site
    calls: tuple[str, ...]
    when: str
    models: str | None = None


def find_paths(tree: SourceTree, names: Collection[str]) -> list[Path]:
    """Return every place that sets one of the fields: in the order of the resolution, then the uncalled, then the late."""
    inside, outside = functions_of(tree, names)
    walk = _Walk(tree, inside, outside)
    out = [path for name in ENTRIES for path in walk.entry(name)]
    reached = {path.site.source for path in out}
    for function in inside:
        out += [Path(s, (), UNCALLED, _models(function)) for s in _sites(function) if s.source not in reached]
    for function in outside:
        out += [Path(s, (), SERVER_RUNS) for s in _sites(function) if s.source not in reached]
    return out


def _sites(function: Function) -> list[Site]:
    return [step for step in function.steps if isinstance(step, Site)]


def _models(function: Function) -> str | None:
    """Return for which model architectures a function is registered, None for one that is for all."""
    found = [one for one in function.decorators if one.partition("(")[0] in MODEL_REGISTRIES]
    return ", ".join(one.partition("(")[2].rstrip(")").replace("'", "") for one in found) or None


class _Walk:
    def __init__(self, tree: SourceTree, inside: list[Function], outside: list[Function]) -> None:
        self.tree = tree
        self.outside = {id(one) for one in outside}
        self.by_name: dict[str, list[Function]] = {}
        for function in [*inside, *outside]:
            self.by_name.setdefault(function.name, []).append(function)
        self.registered: dict[str, list[Function]] = {
            name: [one for one in inside if any(text.partition("(")[0] in makers for text in one.decorators)]
            for name, makers in REGISTRIES.items()
        }
        self.done: set[int] = set()
        self.imports: dict[str, dict[str, str]] = {}

    def entry(self, name: str) -> Iterator[Path]:
        for function in self.by_name.get(name, ()):
            if function.rel == LANDMARK and id(function) not in self.done:
                yield from self._run(function, (), ())

    def _run(self, function: Function, calls: tuple[str, ...], guards: tuple[str, ...]) -> Iterator[Path]:
        self.done.add(id(function))
        calls = (*calls, function.name)
        models = _models(function)
        for step in function.steps:
            if isinstance(step, Site):
                yield Path(replace(step, guards=_joined(guards, step.guards)), calls, CALLED, models)
            elif len(calls) < MAX_DEPTH:
                for other in self._meant(step, function.rel):
                    if id(other) not in self.done:
                        yield from self._run(other, calls, _joined(guards, step.guards))

    def _meant(self, step: Mention, rel: str) -> list[Function]:
        if step.name in self.registered:
            return self.registered[step.name]
        found = self.by_name.get(step.name, [])
        if not found:
            return []
        home = self._imported(rel).get(step.name)
        fitting = [one for one in found if one.rel in (home, rel)]
        if fitting:
            return fitting
        # A method of an object that the source alone does not tell (a platform, an algorithm): any of that name.
        return [one for one in found if step.given] if any(id(one) in self.outside for one in found) else found

    def _imported(self, rel: str) -> dict[str, str]:
        if rel not in self.imports:
            names: dict[str, str] = {}
            for node in ast.walk(self.tree.module(rel) or ast.Module([], [])):
                if isinstance(node, ast.ImportFrom) and node.module:
                    home = self.tree.find(node.module)
                    names |= {alias.asname or alias.name: home for alias in node.names if home}
            self.imports[rel] = names
        return self.imports[rel]


def _joined(outer: tuple[str, ...], inner: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*outer, *inner)))
