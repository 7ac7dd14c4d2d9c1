# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Before the load: is the model there, and does it answer sense."""

from __future__ import annotations

from ..errors import InferopsError
from .asking import Asker, first_token_late
from .client import Client
from .plan import GatePlan
from .stream import Trace

MARKS = 4
# An answer that ends by itself says nothing about max_tokens: this one cannot.
LONG_QUESTION, LONG_LIMIT = "Count from 1 to 1000, one number after the other.", 8


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


def over(trace: Trace, max_tokens: int) -> bool:
    """Tell whether an answer is longer than it may be, by usage or by what arrived: a chunk of text is a token at least."""
    return (trace.output_tokens or 0) > max_tokens or len(trace.chunks) > max_tokens + 1


async def before_load(asker: Asker, plan: GatePlan, *, stream_interval: int | None) -> list[str]:
    """Ask one plain question, then for more than ``max_tokens`` allows; return what was wrong."""
    if reasons := await sanity(asker, plan, stream_interval=stream_interval):
        return reasons
    trace = await asker.ask([{"role": "user", "content": LONG_QUESTION}], max_tokens=LONG_LIMIT)
    if trace.status != "ok" and not trace.output_tokens:  # So few tokens may have no text, which is no fault.
        return [f"sanity probe: {trace.error}"]
    return [f"sanity probe: {beyond(trace, LONG_LIMIT, stream_interval or 1)}"] if over(trace, LONG_LIMIT) else []


async def sanity(asker: Asker, plan: GatePlan, *, stream_interval: int | None) -> list[str]:
    """Ask one plain question, as clients do; return why the answer cannot be trusted (nothing when it can)."""
    question = plan.sanity
    trace = await asker.ask([{"role": "user", "content": question.prompt}], max_tokens=question.max_tokens)
    if trace.status != "ok":
        return [f"sanity probe: {trace.error}"]
    reasons = []
    if (late := first_token_late(trace, plan)) is not None:
        reasons.append(f"sanity probe: {late}")
    if over(trace, question.max_tokens):
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
