# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Check one command line against the source of one release (static tier): read, parse, resolve, judge."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from . import config_file
from .context import Context, hide_secrets, is_secret
from .facts import Facts
from .findings import Finding, accept_findings, in_order, read_accept
from .flags import FlagTable, read_flags
from .interpret import resolve
from .parser import ArgvError, Parsed, parse
from .report import Report
from .rules import expecting, graphs, parsing, pipeline, resolving, spelling
from .source import SourceTree, open_source

RULES: tuple[Callable[[Context], Any], ...] = (
    spelling.twice,
    spelling.abbreviated,
    spelling.deprecated,
    resolving.refused,
    resolving.overrides,
    resolving.undecided,
    graphs.switched_off,
    pipeline.async_depth,
    pipeline.cards,
    pipeline.layer_split,
    pipeline.model_can,
)


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
) -> Report:
    """Return what this release would do with argv and what there is to say about it.

    source_root is what open_source takes, or a tree already open. An absent fact is unknown. Raises InferopsError where the check
    cannot run: no source, a shape no reader knows, malformed facts, accept or expect.
    """
    tree = source_root if isinstance(source_root, SourceTree) else open_source(source_root)
    table = read_flags(tree)
    known = Facts.from_dict(facts or {})
    accepted = read_accept(accept)
    wanted = expecting.read_expect(expect or {}, table)
    day = today or datetime.date.today()
    words = [str(word) for word in argv]
    found: list[Finding] = []
    try:
        merged = _with_config(table, words, read_text, found)
        parsed = parse(table, merged)
    except ArgvError as stop:
        error = ArgvError(hide_secrets(stop.message, words), flag=stop.flag)
        hidden = [hide_secrets(word, words) for word in words]
        found += parsing.refusal(error, table, hidden)
        ready = accept_findings(in_order(found), accepted, day)
        return Report(tree.version, table.style, "static", "parse_error", error.message, findings=ready)

    def again(changed: Parsed) -> Any:
        return resolve(tree, table, changed, known, model_config, env or {})

    context = Context(tree, table, words, parsed, known, model_config, env or {}, again(parsed), again)
    for rule in RULES:
        found += rule(context)
    found += expecting.expected(context, wanted)
    resolution = context.resolution
    return Report(
        tree.version,
        table.style,
        "static",
        resolution.outcome,
        resolution.message,
        _public(resolution.effective),
        _public(resolution.changed),
        [entry for entry in resolution.undecided if not is_secret(entry["field"])],
        accept_findings(in_order(found), accepted, day),
    )


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
