# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""From a rewritten command line and two reports to findings: what the upgrade breaks, announces and changes for it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .context import hide_secrets, is_secret, shown
from .findings import Finding, in_order
from .flags import FlagTable
from .report import Report
from .rewrite import Rewriting, Step
from .same_result import Comparison, Result
from .versions import removed

_AMBIGUOUS = re.compile(r"^ambiguous option: \S+ could match (?P<candidates>.+)$")
_PARSING = ("SGA101", "SGA102", "SGA103", "SGA104", "SGA105")
# Fields that say who and where, not how it serves.
_QUIET = ("launch_command",)


def upgrade_findings(
    old: FlagTable,
    new: FlagTable,
    before: Report,
    rewritten: Report,
    rewriting: Rewriting | None,
    comparison: Comparison | None,
    file_words: int = 0,
) -> list[Finding]:
    """Return what there is to say about one command line, those of argv first, in its order."""
    found: list[Finding] = []
    for step in rewriting.steps if rewriting is not None else ():
        found += _broken(step, old, new, file_words)
        found += _announced(step, old, new, file_words)
    found += _refused(before, rewritten, rewriting, old, new)
    for result in comparison.different if comparison is not None else ():
        if not is_secret(result.field) and result.field not in _QUIET:
            found.append(_different(result, old, new))
    return in_order(found)


def _broken(step: Step, old: FlagTable, new: FlagTable, file_words: int) -> Iterator[Finding]:
    if step.problem is None:
        return
    name = step.old[0].partition("=")[0]
    ambiguous = _AMBIGUOUS.match(step.problem)
    exact = name in step.use.flag.strings
    do = "write " + _text(step, step.new) if step.new else None
    if step.kind == "left out":
        do = f"leave it out: {step.reason}"
    elif step.kind == "stuck":
        do = step.reason or f"decide without it; SGLang {new.version} has nothing known to mean the same (inferops flags)"
    where = _where(step, file_words)
    if not exact and (ambiguous or step.kind == "spelled"):
        code, message = "SGA602", f"{name} is short for {step.use.flag.long} in SGLang {old.version}, and not in {new.version}"
        why = f"there it could mean {ambiguous['candidates']}" if ambiguous else step.problem
    elif new.by_string(name) is not None:
        code, message = "SGA603", f"SGLang {new.version} does not take {_text(step, step.old)}"
        why = f'its parser stops with "{_hidden(step, step.problem)}"'
    else:
        span = removed(name, new.version)
        code, message = "SGA601", f"{name} is gone in SGLang {new.version}" + (f": {span.removal()}" if span else "")
        stops = f'"{_hidden(step, step.problem)}"'
        why = f"SGLang {old.version} takes it, {new.version} stops with {stops}"
        if ambiguous:
            why = f"it is an ambiguous short form there: {stops}, before anything is loaded"
    yield Finding(
        code, "error", message, flag=name, where=where, why=why, do=do, source=step.use.flag.source, position=step.position
    )


def _announced(step: Step, old: FlagTable, new: FlagTable, file_words: int) -> Iterator[Finding]:
    name = step.old[0].partition("=")[0]
    flag = new.by_string(name)
    if step.problem is not None or flag is None or not flag.deprecated or step.use.flag.deprecated:
        return
    told = flag.new_flag or flag.help
    rewritten = step.new and step.new != step.old
    do = f"write {_text(step, step.new)}" if rewritten else f"the release says: {told}" if told else "leave it out"
    yield Finding(
        "SGA604",
        "deprecated",
        f"{name} is deprecated in SGLang {new.version} and was not in {old.version}",
        flag=name,
        where=_where(step, file_words),
        why="a later release removes it, and the command line then stops at parsing",
        do=do,
        source=flag.source,
        position=step.position,
    )


def _refused(before: Report, after: Report, rewriting: Rewriting | None, old: FlagTable, new: FlagTable) -> Iterator[Finding]:
    """What blocks on the new release and did not on the old: a refusal of SGLang, or of our check.

    A release beside itself is no upgrade: then whatever blocks is said, as the check does.
    """
    renamed = (
        {step.old[0].partition("=")[0]: step.new[0].partition("=")[0] for step in rewriting.steps if step.new}
        if rewriting
        else {}
    )
    known = {(finding.code, renamed.get(finding.flag or "", finding.flag)) for finding in before.findings if finding.blocks}
    both = before.outcome in ("parse_error", "fatal") or old.version == new.version
    for finding in after.findings:
        if not finding.blocks or (finding.code in _PARSING and rewriting is not None and rewriting.stuck):
            continue
        if finding.code == "SGA201" and not both:
            yield Finding(
                "SGA607",
                "error",
                f"SGLang {new.version} refuses what {old.version} takes: {after.message}",
                flag=finding.flag,
                where=finding.where,
                why=finding.why,
                do=finding.do,
                source=finding.source,
                position=finding.position,
            )
        elif both or (finding.code, finding.flag) not in known:
            yield finding


def _different(result: Result, old: FlagTable, new: FlagTable) -> Finding:
    change = f"{shown(result.before)} in SGLang {old.version}, {shown(result.after)} in {new.version}"
    name = result.new_field if result.new_field == result.field else f"{result.field} (now {result.new_field})"
    guard = f"under {result.guard}" if result.guard else None
    if result.cause == "overridden":
        trigger = f", because of {', '.join(result.because)}" if result.because else ""
        return Finding(
            "SGA606", "override", f"SGLang {new.version} newly changes {name}{trigger}: {change}", why=guard, source=result.source
        )
    if result.cause == "default":
        spelled = new.spell(result.new_field.partition(".")[0])
        return Finding(
            "SGA605",
            "info",
            f"another default: {name} is {change}",
            why="the command line does not name it",
            do=f"write {spelled} to keep the old value" if spelled.startswith("--") else None,
            source=result.source,
        )
    why = {
        "asked": "the same words are read as another value",
        "freed": f"SGLang {old.version} changed it, {new.version} does not",
    }.get(result.cause, guard or "worked out from other fields")
    return Finding("SGA609", "info", f"another result: {name} is {change}", why=why, source=result.source)


def _where(step: Step, file_words: int) -> str:
    return f"argv[{step.position - file_words}]" if step.position >= file_words else "the file given with --config"


def _text(step: Step, words: tuple[str, ...]) -> str:
    return " ".join(public_words(step, words))


def public_words(step: Step, words: tuple[str, ...]) -> list[str]:
    """Return the words of a step without a secret's value."""
    if not is_secret(step.use.field):
        return list(words)
    if not words:
        return []
    head = words[0].partition("=")[0]
    return [f"{head}=…" if "=" in words[0] else head, *["…" for word in words[1:]]]


def _hidden(step: Step, text: str) -> str:
    return hide_secrets(text, step.old)
