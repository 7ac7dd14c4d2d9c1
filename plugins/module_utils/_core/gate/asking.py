# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""One plain question to the server, in the form that it takes; an answer that runs far past its limit is cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .client import Client
from .plan import GatePlan
from .stream import Trace

COMPLETIONS = "/v1/completions"
CHAT = "/v1/chat/completions"
REFUSED = (400, 404, 405, 415, 422)
# Kimi's and Qwen's template switch thinking off by these names; other templates pass over what they do not know.
NO_THINKING = {"thinking": False, "enable_thinking": False}
Message = Mapping[str, str]


@dataclass
class Asker:
    """Asks with temperature 0. What the server refuses once (template arguments, chat at all) is not tried again."""

    client: Client
    plan: GatePlan
    model: str
    template: Mapping[str, Any] | None = None
    chat: bool = True

    async def ask(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        tools: Sequence[Mapping[str, Any]] | None = None,
        total_s: float | None = None,
    ) -> Trace:
        """Return the trace of one answer; never raises for what the server does."""
        body = {"model": self.model, "max_tokens": max_tokens, "temperature": 0, "stream": True}
        body["stream_options"] = {"include_usage": True}
        while self.chat:
            more: dict[str, Any] = {} if self.template is None else {"chat_template_kwargs": dict(self.template)}
            if tools:
                more["tools"] = list(tools)
            trace = await self._send(CHAT, {**body, "messages": list(messages), **more}, total_s)
            if trace.http_status not in REFUSED or (tools and self.template is None):
                return trace
            self.chat = self.template is not None
            self.template = None
        prompt = "\n\n".join(message["content"] for message in messages)
        return await self._send(COMPLETIONS, {**body, "prompt": prompt}, total_s)

    async def _send(self, path: str, body: dict[str, Any], total_s: float | None) -> Trace:
        limit = max(self.plan.max_seconds_per_point, self.plan.stall_timeout_s) if total_s is None else total_s
        stall = self.plan.stall_timeout_s if total_s is None else total_s
        return await self.client.generate(path, body, stall_s=stall, total_s=limit)


def first_token_late(trace: Trace, plan: GatePlan) -> str | None:
    """Say by how much the first token came too late, None when it was in time or none is set."""
    limit = plan.correctness.max_first_token_s
    if limit is None or trace.first_ns is None or trace.first_ns - trace.planned_ns <= limit * 1e9:
        return None
    return f"the first token came after {(trace.first_ns - trace.planned_ns) / 1e9:.1f} s, {limit:g} s are allowed"


def said(trace: Trace) -> str:
    """Return what was answered; the whole text where everything counts as reasoning."""
    return (trace.answer or trace.text).strip()
