# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether the answers are right, beside how fast they come: tool calls, cached turns, a graded set, a long context."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from . import graded_items
from .asking import NO_THINKING, Asker, said
from .cached_turn import cached_turn
from .long_context import long_context
from .plan import GatePlan
from .plan_correctness import Graded as GradedRule
from .scored import Graded, Score, scored
from .stream import Trace
from .tool_items import TOOLS, CallItem, call_items
from .verdict import FAIL, INCONCLUSIVE

TOOL_TOKENS = 256
TOOL_CONCURRENCY = 10
T = TypeVar("T")
R = TypeVar("R")


@dataclass
class Answers:
    """What the probes found: reasons that refuse the server, reasons that leave the matter open, notes, figures."""

    wrong: list[str] = field(default_factory=list)
    doubtful: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    def take(self, name: str, score: Score) -> None:
        self.wrong += score.reasons(FAIL)
        self.doubtful += score.reasons(INCONCLUSIVE)
        self.figures[name] = score.as_dict()


async def check_answers(
    asker: Asker,
    plan: GatePlan,
    *,
    resolved: Mapping[str, Any],
    promoted: Mapping[str, Any] | None,
    nonce: str,
    say: Callable[[str], None],
) -> Answers:
    """Ask everything that the plan asks for, cheapest first; a server that has refused itself is not asked further."""
    found, rules = Answers(), plan.correctness
    asker.template = NO_THINKING
    items = _graded_items(plan)
    if rules.multi_turn and resolved.get("disable_radix_cache") is not True:
        say("asking twice, the second time from the prefix cache")
        turn = await cached_turn(asker, seed=f"{plan.seed}/{nonce}", plan=plan)
        found.wrong += turn.wrong
        found.doubtful += turn.doubtful
        found.notes += turn.notes
        found.figures["multi_turn"] = turn.as_dict()
    calls = rules.tool_calls
    if not found.wrong and calls.items and (calls.asked or resolved.get("tool_call_parser")):
        say(f"asking for {calls.items} tool calls")
        found.take("tool_calls", await _tool_calls(asker, plan))
    if not found.wrong and rules.graded is not None:
        say(f"asking {len(items)} questions with known answers")
        score = await _graded(asker, plan, rules.graded, items, promoted)
        found.take("graded", score)
        found.figures["graded"]["set"] = graded_items.digest(items)
    if not found.wrong and rules.long_context is not None:
        say(f"asking for a fact in {rules.long_context.input_tokens} tokens")
        hidden = await long_context(asker, seed=f"{plan.seed}/{nonce}", plan=plan, rule=rules.long_context)
        found.wrong += hidden.wrong
        found.doubtful += hidden.doubtful
        found.figures["long_context"] = hidden.as_dict()
    return found


async def _tool_calls(asker: Asker, plan: GatePlan) -> Score:
    rule = plan.correctness.tool_calls

    async def one(item: CallItem) -> Graded:
        messages = [{"role": "user", "content": item.prompt}]
        trace = await asker.ask(messages, max_tokens=TOOL_TOKENS, tools=TOOLS)
        calls = [trace.tool_calls[index] for index in sorted(trace.tool_calls)]
        why = trace.error if trace.status != "ok" else item.problem(calls, trace.finish_reason)
        shown = "; ".join(f"{call.name}({call.arguments})" for call in calls) or said(trace)
        return Graded(item.name, item.prompt, shown, why)

    answers = await in_parallel(one, call_items(rule.items, plan.seed), at_once=TOOL_CONCURRENCY)
    return scored("tool calls", answers, confidence=plan.confidence, least=rule.min_valid_ratio, least_name="min_valid_ratio")


def _graded_items(plan: GatePlan) -> tuple[graded_items.Item, ...]:
    """Return the items before anything is asked, so that a broken file is refused at once."""
    rule = plan.correctness.graded
    if rule is None:
        return ()
    return graded_items.generated(rule.items, plan.seed) if rule.file is None else graded_items.from_file(Path(rule.file))


async def _graded(
    asker: Asker,
    plan: GatePlan,
    rule: GradedRule,
    items: Sequence[graded_items.Item],
    promoted: Mapping[str, Any] | None,
) -> Score:
    async def one(item: graded_items.Item) -> Graded:
        trace = await asker.ask([{"role": "user", "content": item.prompt}], max_tokens=rule.max_tokens)
        return Graded(item.kind, item.prompt, said(trace), _wrong(item, trace))

    answers = await in_parallel(one, items, at_once=rule.concurrency)
    old = ((promoted or {}).get("correctness") or {}).get("graded") or {}
    return scored(
        "graded set",
        answers,
        confidence=plan.confidence,
        least=rule.min_accuracy,
        least_name="min_accuracy",
        to_promoted=rule.min_ratio_to_promoted,
        promoted=old if old.get("set") == graded_items.digest(items) else None,
    )


def _wrong(item: graded_items.Item, trace: Trace) -> str | None:
    if trace.status != "ok":
        return trace.error
    return None if item.right(said(trace)) else f"{item.kind}: {item.answer!r} was right"


async def in_parallel(ask: Callable[[T], Coroutine[Any, Any, R]], items: Sequence[T], *, at_once: int) -> list[R]:
    """Ask for every item, at most ``at_once`` at a time; answers in the order of the items."""
    free = asyncio.Semaphore(at_once)

    async def one(item: T) -> R:
        async with free:
            return await ask(item)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(item)) for item in items]
    return [task.result() for task in tasks]
