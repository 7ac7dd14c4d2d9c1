# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Check one command line against one release: read its source, parse, resolve, ask SGLang itself if wished, judge."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InferopsError
from . import config_file
from .context import Context, hide_secrets, is_secret
from .facts import TORCH, Facts
from .findings import Finding, accept_findings, in_order, read_accept
from .flags import FlagTable, read_flags
from .interpret import Resolution, resolve
from .interpret.visits import Visit
from .parser import ArgvError, Parsed, parse
from .report import UNREADABLE, Report
from .rules import card, environment, expecting, graphs, model, pipeline, resolving, slots, spelling, switches, values
from .seldom import collecting_seldom
from .source import SourceTree, open_source

if TYPE_CHECKING:
    from .live.ask import Answer, Interpreter

# What only a live tier or a refused command line needs is imported there: it takes a tenth of a check otherwise.
RULES: tuple[Callable[[Context], Any], ...] = (
    spelling.twice,
    spelling.abbreviated,
    spelling.deprecated,
    environment.unread,
    values.log_level,
    resolving.refused,
    resolving.overrides,
    resolving.undecided,
    resolving.late,
    graphs.switched_off,
    pipeline.async_depth,
    pipeline.cards,
    pipeline.layer_split,
    model.architecture,
    model.model_can,
    slots.async_depth_range,
    slots.crowding,
    switches.off_switches,
    switches.without_effect,
    switches.overruled_graphs,
    card.backends,
    card.slow_cache,
    card.memory_share,
    card.memory_left,
)


@collecting_seldom()
def check(
    argv: Sequence[str],
    *,
    source_root: str | Path | SourceTree,
    facts: Mapping[str, Any] | None = None,
    model_config: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    accept: Sequence[Mapping[str, Any]] = (),
    expect: Mapping[str, Any] | None = None,
    today: datetime.date | None = None,
    read_text: Callable[[str], str] = config_file.read_text,
    live: Interpreter | None = None,
    watch: Collection[tuple[str, int]] = (),
) -> Report:
    """Return what this release would do with argv and what there is to say about it.

    source_root is what open_source takes, or a tree already open. An absent fact is unknown. live: the interpreter that is asked
    too; what it answers counts. watch: statements, as (file, line), whose execution the report notes in ``visits``. Raises
    InferopsError where the check cannot run: no source, malformed facts, accept or expect, a shape no reader knows unless live
    answers for it.
    """
    tree = source_root if isinstance(source_root, SourceTree) else open_source(source_root)
    known = Facts.from_dict(facts or {}).through(tree.read(TORCH))
    accepted = read_accept(accept)
    day = today or datetime.date.today()
    words = [str(word) for word in argv]
    answer: Answer | None = None
    unasked: list[Finding] = []
    if live is not None:
        from .live import tiers

        answer = tiers.usable(live.ask(words), tree)
        unasked = [tiers.not_asked(answer, live.python, alone=False)] if answer.outcome == "unavailable" else []
    answered = answer if not unasked else None
    found: list[Finding] = []
    visits: list[Visit] = []

    def finished(style: str, result: Any, more: Iterable[Finding] = ()) -> Report:
        """Put the report together; ``result`` has outcome, message and the three tables."""
        every = [*found, *more, *(unasked if style != UNREADABLE else ())]
        return Report(
            tree.version,
            style,
            "live" if answered is not None else "static",
            result.outcome,
            result.message,
            _public(result.effective),
            _public(result.changed),
            [entry for entry in result.undecided if not is_secret(entry["field"])],
            accept_findings(in_order(every), accepted, day),
            visits,
        )

    try:
        table = read_flags(tree)
    except InferopsError as unread:
        if answer is None or live is None:
            raise
        return _alone(finished, answer, live.python, tree, unread, expect)
    wanted = expecting.read_expect(expect or {}, table)
    try:
        merged = _with_config(table, words, read_text, found)
        parsed = parse(table, merged)
    except ArgvError as stop:
        if found and answered is None and stop.message.startswith("the following arguments are required"):
            return _without_file(finished, table, words)  # the file may have them
        error = ArgvError(hide_secrets(stop.message, words), flag=stop.flag)
        return _unparsed(finished, answered, tree, table, words, error)

    if found and live is None:
        return _without_file(finished, table, words)

    def again(changed: Parsed) -> Any:
        return resolve(tree, table, changed, known, model_config, env or {}, read_text=read_text)

    try:
        static = resolve(tree, table, parsed, known, model_config, env or {}, watch=watch, read_text=read_text)
    except InferopsError as unread:
        if answer is None or live is None:
            raise
        return _alone(finished, answer, live.python, tree, unread, expect)
    visits += static.visits
    resolution = static
    if answered is not None:
        from .live import tiers
        from .rules import parsing

        found = [one for one in found if one.code != "SGA106"]  # SGLang itself has read the file
        found += tiers.disagreements(answered, static.outcome, static.message, static)
        resolution = tiers.resolution(answered, tree, static)
        if answered.outcome == "parse_error":
            found += parsing.refusal(ArgvError(answered.message or ""), table, [hide_secrets(word, words) for word in words])
            return finished(table.style, resolution)
    context = Context(tree, table, words, parsed, known, model_config, env or {}, resolution, again)
    for rule in RULES:
        found += rule(context)
    found += expecting.expected(context, wanted)
    return finished(table.style, resolution)


def _without_file(finished: Callable[..., Report], table: FlagTable, words: list[str]) -> Report:
    """Report a command line of which a part, in a file, cannot be read: each setting may be another."""
    path = words[words.index(config_file.FLAG) + 1]
    fields = sorted(table.fields)
    undecided = tuple({"field": name, "to": None, "source": None, "guard": None, "needs": [path]} for name in fields)
    return finished(table.style, Resolution("unknown", f"the options in {path} are not known here", undecided=undecided))


def _unparsed(
    finished: Callable[..., Report],
    answered: Answer | None,
    tree: SourceTree,
    table: FlagTable,
    words: list[str],
    error: ArgvError,
) -> Report:
    """Report a command line the parser refuses as its source reads, and what SGLang's own parser says to it."""
    from .live import tiers
    from .rules import parsing

    result = Resolution("parse_error", error.message)
    if answered is None or answered.outcome == "parse_error":
        hidden = [hide_secrets(word, words) for word in words]
        return finished(table.style, result, parsing.refusal(error, table, hidden))
    odd = tiers.disagreements(answered, "parse_error", error.message, None)
    return finished(table.style, tiers.resolution(answered, tree), [*odd, *tiers.stopped(answered, tree)])


def _alone(
    finished: Callable[..., Report],
    answer: Answer,
    python: str,
    tree: SourceTree,
    unread: InferopsError,
    expect: Mapping[str, Any] | None,
) -> Report:
    """Report on a release whose source cannot be read: what SGLang itself says, or that nobody can tell."""
    from .live import tiers

    if answer.outcome == "unavailable":
        result = Resolution("unknown", unread.what)
        return finished(UNREADABLE, result, [tiers.not_asked(answer, python, alone=True)])
    more = [*tiers.alone(answer, tree, unread), *expecting.unjudged(expect or {})]
    return finished(UNREADABLE, tiers.resolution(answer, tree), more)


def _public(values: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out secrets; values picked at random and bookkeeping are left out by the resolution already."""
    return {name: value for name, value in values.items() if not is_secret(name) and not name.startswith("_")}


def _with_config(table: FlagTable, words: list[str], read_text: Callable[[str], str], found: list[Finding]) -> list[str]:
    try:
        return config_file.merge(table, words, read_text)
    except (OSError, UnicodeDecodeError) as exc:
        reason = f"it cannot be read here: {exc}"
    except InferopsError as exc:
        reason = f"{exc.what}; {exc.why}"
    at = words.index(config_file.FLAG)
    found.append(
        Finding(
            "SGA106",
            "unknown",
            f"the options in {words[at + 1]} are not checked",
            flag=config_file.FLAG,
            where=f"argv[{at}]",
            why=reason,
            do="check where the file is, or put the options into the arguments",
            position=at,
        )
    )
    return words
