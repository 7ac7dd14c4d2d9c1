# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What SGLang makes of a parsed command line: outcome, effective settings, what changed and why, what cannot be told."""

from __future__ import annotations

import ast
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ...errors import InferopsError
from ..flags import UNKNOWN
from .frames import Frame
from .interpreter import Interpreter
from .methods import from_native, to_native
from .outcome import Report, is_fact
from .values import MISSING, Class, Dict, Function, Instance, OutOfBudget, Raised, Record, Unknown

if TYPE_CHECKING:
    from ..facts import Facts
    from ..flags import FlagTable
    from ..parser import Parsed
    from ..source import SourceTree
    from .knowledge import Knowledge
    from .visits import Visit

# A draft model of no architecture that SGLang treats in a way of its own.
PLAIN_DRAFT = '{"architectures": ["PlainDraft"]}'
# Frames of ours per frame of the source are about ten; the interpreter stops following calls at MAX_DEPTH.
RECURSION = 4000
# One of each kind of NVIDIA card SGLang tells apart (compute capability x 10).
CAPABILITIES = (80, 89, 90, 100, 110, 120, 121)
ENTRY_MODULE = "sglang.srt.server_args"
GRAPHS = "sglang.srt.model_executor.cuda_graph_config"
# In this order: releases that resolve on demand, releases that resolve while the record is built.
ENTRIES = ("resolve_once", "__post_init__")


@dataclass(frozen=True)
class Resolution:
    """Result of one interpretation; the dicts have the shapes of the check report."""

    outcome: str
    message: str | None = None
    source: str | None = None
    effective: Mapping[str, Any] = field(default_factory=dict)
    changed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    undecided: tuple[Mapping[str, Any], ...] = ()
    doubts: tuple[Mapping[str, Any], ...] = ()
    steps: int = 0
    visits: tuple[Visit, ...] = ()

    @property
    def telling(self) -> set[str]:
        """The facts that, told, would settle the refusals that only some paths meet."""
        return {need for one in self.doubts for need in one["needs"] if is_fact(need)}


def resolve(
    tree: SourceTree,
    table: FlagTable,
    parsed: Parsed,
    facts: Facts,
    model_config: Mapping[str, Any] | None,
    env: Mapping[str, str],
    budget_s: float = 20.0,
    watch: Collection[tuple[str, int]] = (),
    clock: Callable[[], float] = time.thread_time,
    read_text: Callable[[str], str] | None = None,
) -> Resolution:
    """Interpret the release's own argument code on a parsed command line. Never raises for what it finds in the source.

    facts, model_config: absent is unknown. env: complete, a variable that is not in it is not set. budget_s [s] is of the
    processor, so that a crowded machine changes no answer; limits.MAX_WORK bounds it first.
    watch: statements, as (file, line), whose execution is noted in ``visits``. read_text: reads the config.json of a draft
    model; without it other checkpoints are unknown.
    """
    from ..known import knowledge

    end = clock() + budget_s
    path = parsed.values.get("model_path")

    def run(known: Facts, read: Callable[[str], str] | None = read_text) -> Resolution:
        visits: list[Visit] = []
        hooks = knowledge(known, model_config, path if isinstance(path, str) else None, read)
        found = _resolve(tree, table, parsed, hooks, model_config, env, max(0.0, end - clock()), clock, watch, visits)
        return replace(found, visits=tuple(visits)) if watch else found

    first = run(facts)
    if first.outcome == "ok" and any(_of_draft(one) for one in first.doubts):
        return _by_draft(first, run(facts, lambda path: PLAIN_DRAFT))
    if first.outcome == "unknown" and facts.sm is None and facts.platform == "cuda" and first.telling == {"sm"}:
        return _by_card(first, (run(replace(facts, sm=sm)) for sm in CAPABILITIES))
    return first


def _of_draft(doubt: Mapping[str, Any]) -> bool:
    return any(need.startswith("model of ") for need in doubt["needs"])


def _by_draft(first: Resolution, plain: Resolution) -> Resolution:
    """Doubt a command line that only an unusual draft model would save; that an unusual one would be refused says nothing."""
    if plain.outcome != "fatal" or plain.source not in {one["source"] for one in first.doubts if _of_draft(one)}:
        return first
    return replace(first, outcome="unknown", message=plain.message, source=plain.source)


def _by_card(first: Resolution, cards: Iterable[Resolution]) -> Resolution:
    """Judge a refusal that seems to hang on the card by the outcome on each kind of card; the settings stay as open."""
    refused = next((one for one in cards if one.outcome != "ok"), None)
    if refused is None:
        return replace(first, outcome="ok", message=None, source=None)
    return replace(first, message=refused.message, source=refused.source)


def _resolve(
    tree: SourceTree,
    table: FlagTable,
    parsed: Parsed,
    hooks: Knowledge,
    model_config: Mapping[str, Any] | None,
    env: Mapping[str, str],
    budget_s: float,
    clock: Callable[[], float],
    watch: Collection[tuple[str, int]],
    visits: list[Visit],
) -> Resolution:
    from ..known_record import read_fallbacks

    interpreter = Interpreter(tree, hooks, env, budget_s, clock)
    interpreter.architecture = _architecture(model_config)
    interpreter.explicit = dict(parsed.explicit)
    interpreter.fallbacks = read_fallbacks(tree)
    interpreter.watched, interpreter.visits = watch, visits
    requested = {name: _given(name, value) for name, value in {**table.fields, **parsed.values}.items()}
    report = Report(interpreter, Record(None, dict(requested)), requested, {})
    deep = sys.getrecursionlimit()
    sys.setrecursionlimit(max(deep, RECURSION))
    try:
        record = _record(interpreter, requested)
        if record is None:
            return _open(report, f"no class {hooks.record_name} in srt/server_args.py of this release", "source")
        report = Report(interpreter, record, requested, phase_defaults(interpreter, requested))
        _run(interpreter, record)
        return _finished(interpreter, report)
    except Raised as exc:
        if exc.doubtful:
            return _open(report, f"could not follow the source at {exc.source}: {exc.kind} {exc.message}", "source")
        return Resolution("fatal", exc.message or exc.kind, exc.source or None, steps=interpreter.steps)
    except OutOfBudget as exc:
        return _open(report, str(exc) or "not decided within the processor time a check may take", "time")
    except InferopsError:
        raise  # the source cannot be read at all: a damaged wheel
    except RecursionError:
        return _open(report, "the source nests deeper than can be followed", "recursion")
    except Exception as exc:  # a construct we mishandle must not stop the check: nothing is decided then
        return _open(report, f"could not follow the source at {interpreter.here()}: {exc!r}", "source")
    finally:
        sys.setrecursionlimit(deep)


def _open(report: Report, message: str, need: str) -> Resolution:
    return Resolution("unknown", message, undecided=tuple(report.all_undecided(need)), steps=report.interpreter.steps)


def _finished(interpreter: Interpreter, report: Report) -> Resolution:
    """Read the tables; a refusal on some path only counts where a fact that could be told decides it."""
    effective, changed, undecided = report.tables()
    refusals = interpreter.refusals
    doubts = tuple(
        {"message": one.message, "source": one.source, "guard": one.guard, "needs": sorted(one.needs)} for one in refusals
    )
    telling = next(
        (one for one in refusals if report.facts_among(one.needs) or any(need.startswith("file ") for need in one.needs)), None
    )
    if telling is not None:
        outcome, message, source = "unknown", telling.message or telling.kind, telling.source
        return Resolution(outcome, message, source, effective, changed, tuple(undecided), doubts, interpreter.steps)
    return Resolution("ok", None, None, effective, changed, tuple(undecided), doubts, interpreter.steps)


def _architecture(model_config: Mapping[str, Any] | None) -> str | None:
    names = (model_config or {}).get("architectures")
    return names[0] if isinstance(names, list) and names and isinstance(names[0], str) else None


def _given(name: str, value: Any) -> Any:
    return Unknown((f"default of {name}",)) if value is UNKNOWN else from_native(value)


def _record(interpreter: Interpreter, requested: Mapping[str, Any]) -> Record | None:
    """Build the argument record: the class as written in the source, its fields as parsed."""
    module = interpreter.loader.module(ENTRY_MODULE)
    if module is None:
        return None
    statements = interpreter.loader.statements(module, interpreter.knowledge.record_name)
    node = next((one for one in statements if isinstance(one, ast.ClassDef)), None)
    if node is None:
        return None
    made: list[Class] = []
    interpreter.detached(lambda: made.append(interpreter.make_class(node, Frame(module))))
    interpreter.record_class = made[0]
    return Record(made[0], dict(requested))


def _run(interpreter: Interpreter, record: Record) -> None:
    if record.cls is None:
        return
    for name in ENTRIES:
        entry = interpreter.class_attribute(record.cls, name)
        if isinstance(entry, Function):
            interpreter.call_function(entry, [record], {})
            break
    if not record.origin.cells:
        raise InferopsError(
            f"how SGLang {interpreter.loader.tree.version} resolves its arguments has a shape no reader here knows",
            where=f"srt/server_args.py: {interpreter.knowledge.record_name}",
            why=f"expected a method {' or '.join(ENTRIES)} that fills in what was left open; nothing was",
            do="use a release that is read; the proof after start shows the values",
        )
    _reported(interpreter, record)
    check = interpreter.class_attribute(record.cls, "check_server_args")
    if isinstance(check, Function):
        interpreter.call_function(check, [record], {})


def _reported(interpreter: Interpreter, record: Record) -> None:
    """Apply what the record's own ``resolved_dict`` adds to the resolved fields (0.5.22 on: enable_dp_attention)."""
    if record.cls is None:
        return
    report = interpreter.class_attribute(record.cls, "resolved_dict")
    if not isinstance(report, Function):
        return
    frame = Frame(report.module, None, report)
    frame.cells["self"] = record
    interpreter.frames.append(frame)
    try:
        for statement in report.node.body:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if (
                isinstance(target, ast.Subscript)
                and isinstance(target.slice, ast.Constant)
                and isinstance(target.slice.value, str)
            ):
                frame.line = statement.lineno
                interpreter.reads = set()
                value = interpreter.eval(statement.value, frame)
                interpreter.decide(record, target.slice.value, value, interpreter.site(frame, None, value))
    finally:
        interpreter.frames.pop()


def phase_defaults(interpreter: Interpreter, requested: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is asked of the graph phases: the JSON setting, else the flag of the phase, else the release's own default."""
    module = interpreter.loader.module(GRAPHS)
    maker = interpreter.module_name(module, "default_cuda_graph_config") if module is not None else MISSING
    if not isinstance(maker, Function):
        return {}
    holder: list[Any] = []
    interpreter.detached(lambda: holder.append(interpreter.call_function(maker, [], {})))
    out: dict[str, Any] = {}
    if isinstance(holder[0], Instance):
        for phase, settings in holder[0].cells.items():
            if isinstance(settings, Instance):
                for key, value in settings.cells.items():
                    asked = requested.get(f"cuda_graph_{key}_{phase}")
                    asked = value if asked is None else asked
                    out[f"cuda_graph_config.{phase}.{key}"] = _inner(requested.get("cuda_graph_config"), phase, key, asked)
    return out


def _inner(config: Any, phase: str, key: str, default: Any) -> Any:
    settings = config.cells.get(phase) if isinstance(config, Dict) else None
    return settings.cells.get(key, default) if isinstance(settings, Dict) else default


__all__ = ["Dict", "Resolution", "phase_defaults", "resolve", "to_native"]
