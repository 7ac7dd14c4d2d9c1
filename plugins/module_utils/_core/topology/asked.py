# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The sizes a release resolves a command line to, and the share of a card that it would take by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InferopsError
from .arguments import SizeArguments, read_argv

FRACTION = "mem_fraction_static"


@dataclass(frozen=True)
class Asked:
    """``own_fraction`` is what the release takes where nobody names one, ``own_source`` the line that says so."""

    sizes: SizeArguments
    fraction_given: bool
    own_fraction: float | None = None
    own_source: str | None = None
    undecided: tuple[str, ...] = ()


def asked_sizes(
    argv: Sequence[str],
    source: Any,
    facts: Mapping[str, Any],
    model_config: Mapping[str, Any],
    env: Mapping[str, str],
) -> Asked:
    """Read argv by itself, or with a source resolve it as that release does.

    Raises InferopsError where the release refuses the command line, with its message.
    """
    if source is None:
        sizes = read_argv(argv)
        return Asked(sizes, sizes.mem_fraction_static is not None)
    # Deferred: the args area, which need not be read for the other uses of this one.
    from ..args.check import check
    from ..args.flags import read_flags
    from ..args.parser import ArgvError
    from ..args.rewrite import rewrite
    from ..args.source import open_source

    tree = open_source(source)
    table = read_flags(tree)

    def resolve(words: Sequence[str]) -> Any:
        report = check(words, source_root=tree, facts=facts, model_config=model_config, env=env)
        if report.outcome in ("parse_error", "fatal"):
            raise InferopsError(
                f"SGLang {tree.version} refuses the arguments: {report.message}",
                where="ARGV",
                do="correct them; inferops check explains each finding",
            )
        return report

    try:
        steps = rewrite(argv, table, table).steps
    except ArgvError as stop:
        raise InferopsError(
            f"SGLang {tree.version} refuses the arguments: {stop.message}", where="ARGV", do="see inferops check"
        ) from stop
    report = resolve(argv)
    given = any(step.use.field == FRACTION for step in steps)
    own = report if not given else resolve([word for step in steps if step.use.field != FRACTION for word in step.old])
    change = own.changed.get(FRACTION) or {}
    undecided = tuple(str(entry["field"]) for entry in report.undecided if entry["field"] in _NEEDED)
    return Asked(
        SizeArguments.from_values(report.effective),
        given,
        own.effective.get(FRACTION),
        str(change["source"]) if change.get("source") else None,
        undecided,
    )


_NEEDED = ("pp_size", "tp_size", FRACTION, "kv_cache_dtype", "page_size", "max_total_tokens", "dp_size", "attn_dp_size")
