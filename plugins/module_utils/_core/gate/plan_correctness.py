# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a plan asks of the answers themselves: which probes run, how many items, and what they must reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import InferopsError
from . import plan_values as read

WHERE = "plan.correctness"
KEYS = (
    "min_distinct_characters",
    "max_cached_tokens_ratio",
    "length_tolerance_ratio",
    "max_first_token_s",
    "multi_turn",
    "tool_calls",
    "graded",
    "long_context",
)
SANITY_KEYS = ("prompt", "expect", "max_tokens")


@dataclass(frozen=True)
class Sanity:
    """A question with a known short answer; with ``expect: null`` only garbage is refused."""

    prompt: str = "What is 17 + 25? Answer with the number alone."
    expect: str | None = "42"
    max_tokens: int = 256


@dataclass(frozen=True)
class ToolCalls:
    """Calls that the server's parser must turn into the right name and valid arguments; 0 items = not asked.

    ``asked`` is false for the default, which runs only where the server says that it has a parser.
    """

    items: int = 10
    min_valid_ratio: float = 0.7
    asked: bool = False


@dataclass(frozen=True)
class Graded:
    """Items with checkable answers, made from the plan's seed or read from a file of the user's."""

    items: int = 200
    file: str | None = None
    min_accuracy: float | None = None
    min_ratio_to_promoted: float | None = None
    max_tokens: int = 256
    concurrency: int = 16


@dataclass(frozen=True)
class LongContext:
    """One fact hidden in a text of ``input_tokens``, asked for at its end."""

    input_tokens: int
    max_seconds: float = 600.0


@dataclass(frozen=True)
class Correctness:
    """What must be true of the answers for a figure to count."""

    min_distinct_characters: int = 4
    max_cached_tokens_ratio: float = 0.01
    length_tolerance_ratio: float = 0.05
    max_first_token_s: float | None = None
    multi_turn: bool = True
    tool_calls: ToolCalls = ToolCalls()
    graded: Graded | None = None
    long_context: LongContext | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the section as it would be written."""
        calls: Any = {"items": self.tool_calls.items, "min_valid_ratio": self.tool_calls.min_valid_ratio}
        if not self.tool_calls.asked:
            calls = None if self.tool_calls.items else False
        return {
            **vars(self),
            "tool_calls": calls,
            "graded": None if self.graded is None else vars(self.graded).copy(),
            "long_context": None if self.long_context is None else vars(self.long_context).copy(),
        }


def correctness(raw: Any) -> Correctness:
    """Return the section as values, or raise InferopsError naming the key."""
    rules, default = read.section(raw, KEYS, WHERE, "correctness rule"), Correctness()

    def share(key: str) -> float:
        return read.number(rules, key, getattr(default, key), low=0, high=1, where=WHERE)

    first = rules.get("max_first_token_s")
    return Correctness(
        min_distinct_characters=read.whole(
            rules, "min_distinct_characters", default.min_distinct_characters, least=1, where=WHERE
        ),
        max_cached_tokens_ratio=share("max_cached_tokens_ratio"),
        length_tolerance_ratio=share("length_tolerance_ratio"),
        max_first_token_s=None
        if first is None
        else read.checked_number(first, f"{WHERE}.max_first_token_s", low=0.01, high=3600),
        multi_turn=read.choice(rules, "multi_turn", True, (True, False), where=WHERE),
        tool_calls=_tool_calls(rules.get("tool_calls")),
        graded=_graded(rules.get("graded")),
        long_context=_long_context(rules.get("long_context")),
    )


def sanity(raw: Any) -> Sanity:
    """Return the question; one of the user's own has no expected answer unless it is given."""
    values = read.section(raw, SANITY_KEYS, "plan.sanity", "key of the sanity probe")
    prompt = read.text(values.get("prompt"), "plan.sanity.prompt")
    expect = read.text(values.get("expect"), "plan.sanity.expect")
    return Sanity(
        prompt=Sanity.prompt if prompt is None else prompt,
        expect=Sanity.expect if prompt is None and "expect" not in values else expect,
        max_tokens=read.whole(values, "max_tokens", Sanity.max_tokens, least=1, where="plan.sanity"),
    )


def _tool_calls(raw: Any) -> ToolCalls:
    where, default = f"{WHERE}.tool_calls", ToolCalls()
    if raw is None:
        return default
    if raw is False:
        return ToolCalls(items=0)
    values: Mapping[str, Any] = {} if raw is True else read.section(raw, ("items", "min_valid_ratio"), where, "key of tool calls")
    return ToolCalls(
        items=read.whole(values, "items", default.items, least=1, where=where),
        min_valid_ratio=read.number(values, "min_valid_ratio", default.min_valid_ratio, low=0, high=1, where=where),
        asked=True,
    )


def _graded(raw: Any) -> Graded | None:
    where = f"{WHERE}.graded"
    if raw is None or raw is False:
        return None
    values = {} if raw is True else read.section(raw, tuple(Graded.__dataclass_fields__), where, "key of the graded set")

    def limit(key: str) -> float | None:
        return None if values.get(key) is None else read.checked_number(values[key], f"{where}.{key}", low=0, high=1)

    return Graded(
        items=read.whole(values, "items", Graded.items, least=1, where=where),
        file=read.text(values.get("file"), f"{where}.file"),
        min_accuracy=limit("min_accuracy"),
        min_ratio_to_promoted=limit("min_ratio_to_promoted"),
        max_tokens=read.whole(values, "max_tokens", Graded.max_tokens, least=1, where=where),
        concurrency=read.whole(values, "concurrency", Graded.concurrency, least=1, where=where),
    )


def _long_context(raw: Any) -> LongContext | None:
    where = f"{WHERE}.long_context"
    if raw is None or raw is False:
        return None
    values = read.section(raw, ("input_tokens", "max_seconds"), where, "key of the long-context probe")
    if values.get("input_tokens") is None:
        raise InferopsError("the long-context probe has no length", where=where, do="add input_tokens: 100000")
    return LongContext(
        read.whole(values, "input_tokens", 0, least=64, where=where),
        read.number(values, "max_seconds", LongContext.max_seconds, low=1, high=7200, where=where),
    )
