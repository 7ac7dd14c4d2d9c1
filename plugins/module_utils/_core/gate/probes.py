# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Before the load: is the model there, does it answer sense, and in which form does the server take our prompts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import InferopsError
from .asking import COMPLETIONS, REFUSED, Asker, first_token_late
from .client import Client
from .plan import GatePlan
from .prompts import PromptMaker
from .stream import Trace

CALIBRATIONS = 3
MARKS = 4


@dataclass(frozen=True)
class Wire:
    """How this server is asked: with token ids or words, with a running token count in each chunk or without."""

    maker: PromptMaker
    model: str
    plan: GatePlan
    running_usage: bool = True

    def body(self, point: int, request: int, output_tokens: int | None = None) -> dict[str, Any]:
        """Return the body of one load request: fixed length, no early end, streamed with usage."""
        options = {"include_usage": True, "continuous_usage_stats": True} if self.running_usage else {"include_usage": True}
        return {
            "model": self.model,
            "prompt": self.maker.prompt(point, request),
            "max_tokens": self.plan.output_tokens if output_tokens is None else output_tokens,
            "temperature": self.plan.temperature,
            "ignore_eos": True,
            "stream": True,
            "stream_options": options,
        }


async def served_model(client: Client, wanted: str | None) -> str:
    """Return the model to ask for; raise InferopsError when the server is away, starting, locked or serves another one."""
    where = f"{client.base_url}/v1/models"
    try:
        status, listing = await client.get_json("/v1/models")
    except (OSError, TimeoutError) as exc:
        why = str(exc) or "no answer within 10 s"
        raise InferopsError("the server cannot be reached", where=where, why=why, do="start it, or correct base_url") from None
    if status in (401, 403):
        raise InferopsError(
            f"the server wants an API key (HTTP {status})", where=where, do="give it with --api-key-file or INFEROPS_API_KEY"
        )
    if status != 200 or not isinstance(listing, dict):
        do = "wait until it is ready" if status == 503 else "check that base_url is an OpenAI-compatible server"
        raise InferopsError(f"the server does not list its models (HTTP {status})", where=where, do=do)
    names = [entry["id"] for entry in listing.get("data") or [] if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
    if not names or (wanted is not None and wanted not in names):
        found = ", ".join(names) or "none"
        raise InferopsError(
            f"the server does not serve {wanted or 'any model'}",
            where=where,
            why=f"it lists: {found}",
            do="correct plan.model or the server",
        )
    return wanted if wanted is not None else names[0]


def beyond(trace: Trace, max_tokens: int, stream_interval: int) -> str:
    """Say what an answer shows whose usage is above max_tokens: tokens that were made, or a count that cannot be right.

    The server is to blame either way; only the chunks that arrived tell which of the two it is.
    """
    if trace.events * stream_interval > max_tokens:
        return f"max_tokens {max_tokens} was ignored: {trace.output_tokens} tokens came in {trace.events} chunks"
    return (
        f"usage says {trace.output_tokens} tokens where max_tokens was {max_tokens} and {trace.events} chunks with text arrived: "
        "count and answer disagree"
    )


async def sanity(asker: Asker, plan: GatePlan, *, stream_interval: int | None) -> list[str]:
    """Ask one plain question, as clients do; return why the answer cannot be trusted (nothing when it can)."""
    question = plan.sanity
    trace = await asker.ask([{"role": "user", "content": question.prompt}], max_tokens=question.max_tokens)
    if trace.status != "ok":
        return [f"sanity probe: {trace.error}"]
    reasons = []
    if (late := first_token_late(trace, plan)) is not None:
        reasons.append(f"sanity probe: {late}")
    if trace.output_tokens is not None and trace.output_tokens > question.max_tokens:
        reasons.append(f"sanity probe: {beyond(trace, question.max_tokens, stream_interval or 1)}")
    if degenerate(trace, plan):
        reasons.append(f"sanity probe: the answer is garbage ({trace.text[:40]!r})")
    elif question.expect is not None and question.expect.lower() not in trace.text.lower():
        reasons.append(f"sanity probe: {question.expect!r} is not in the answer ({trace.text[:80]!r})")
    return reasons


def degenerate(trace: Trace, plan: GatePlan) -> bool:
    """Tell whether a text is white space, marks without a letter or digit, or hardly any different characters for its length."""
    visible = {character for character in trace.distinct if not character.isspace()}
    needed = plan.correctness.min_distinct_characters
    marks_alone = trace.characters >= MARKS and not any(map(str.isalnum, visible))
    return not visible or marks_alone or (trace.characters >= 4 * needed and len(visible) < needed)


async def settle_wire(client: Client, plan: GatePlan, model: str, maker: PromptMaker) -> tuple[Wire | None, str | None]:
    """Find out how to ask; return (wire, None) or (None, why the server cannot be loaded).

    Token ids give the exact length. A server that refuses them gets words, calibrated on its own count of the prompt.
    """
    wire = Wire(maker, model, plan)
    trace = await _probe(client, wire, 0)
    if trace.http_status in REFUSED:
        wire = Wire(maker, model, plan, running_usage=False)
        trace = await _probe(client, wire, 1)
    if trace.http_status in REFUSED:
        maker.words = plan.input_tokens
        for attempt in range(CALIBRATIONS):
            trace = await _probe(client, wire, 2 + attempt)
            if trace.status != "ok" or trace.input_tokens is None or trace.input_tokens == plan.input_tokens:
                break
            maker.calibrate(trace.input_tokens)
    return (wire, None) if trace.status == "ok" else (None, f"first load request: {trace.error}")


async def _probe(client: Client, wire: Wire, number: int) -> Trace:
    # Point -1: these prompts never come again in a point. A few tokens are enough to see the form of the answer.
    return await _ask(client, wire.plan, COMPLETIONS, wire.body(-1, number, output_tokens=min(8, wire.plan.output_tokens)))


async def _ask(client: Client, plan: GatePlan, path: str, body: dict[str, Any]) -> Trace:
    return await client.generate(
        path, body, stall_s=plan.stall_timeout_s, total_s=max(plan.max_seconds_per_point, plan.stall_timeout_s)
    )
