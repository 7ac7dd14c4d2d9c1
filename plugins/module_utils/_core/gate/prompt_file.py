# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Load with prompts of the user's own: lines of text or JSON, in an order made from the seed, none twice before all were sent."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import InferopsError
from . import plan_values as read

KEYS = ("file", "fresh")
JSON_NAMES = (".jsonl", ".ndjson", ".json")
Message: TypeAlias = Mapping[str, Any]
Prompt: TypeAlias = "str | tuple[Message, ...]"


@dataclass(frozen=True)
class PromptFile:
    """``fresh``: a short mark before each prompt, of this run and request alone, keeps all of them out of the prefix cache."""

    file: str
    fresh: bool = True


def prompt_file(raw: Any) -> PromptFile | None:
    """Return what the plan says of prompts; None: they are generated."""
    if raw is None:
        return None
    values = read.section(raw, KEYS, "plan.prompts", "key of prompts")
    name = read.text(values.get("file"), "plan.prompts.file")
    if name is None:
        raise InferopsError("prompts name no file", where="plan.prompts.file", do="write prompts: {file: /path/prompts.jsonl}")
    return PromptFile(name, read.choice(values, "fresh", True, (True, False), where="plan.prompts"))


class FilePrompts:
    """Deals the prompts of a file: shuffled by the seed, and anew each time all have been sent."""

    words: int | None = None

    def __init__(self, prompts: Sequence[Prompt], *, seed: int, nonce: str, fresh: bool) -> None:
        self.prompts = tuple(prompts)
        self._seed, self._nonce, self._fresh = seed, nonce, fresh
        self._order: list[int] = []
        self.sent = 0

    def prompt(self, point: int, request: int) -> Prompt:
        """Return the next prompt; ``point`` and ``request`` only make its mark."""
        place = self.sent % len(self.prompts)
        if place == 0:
            self._order = list(range(len(self.prompts)))
            random.Random(f"prompts/{self._seed}/{self.sent}").shuffle(self._order)
        self.sent += 1
        chosen = self.prompts[self._order[place]]
        if not self._fresh:
            return chosen
        # It differs from its first character on: where a cache keeps single tokens, a bracket before it would be found.
        digest = hashlib.sha256(f"{self._seed}/{self._nonce}/{point}/{request}".encode()).digest()
        mark = base64.b64encode(digest, b"xy")[:10].decode()
        if isinstance(chosen, str):
            return f"{mark}: {chosen}"
        first = chosen[0]
        return ({**first, "content": f"{mark}: {first['content']}"}, *chosen[1:])

    def facts(self) -> dict[str, Any]:
        """Return what tells one set of prompts from another."""
        text = json.dumps(self.prompts, sort_keys=True)
        return {"count": len(self.prompts), "digest": hashlib.sha256(text.encode()).hexdigest()[:16]}

    def note(self) -> str:
        mark = (
            ", each behind a mark of its own that no cache holds"
            if self._fresh
            else " as they stand there: a cache may hold them"
        )
        return f"prompts are the {len(self.prompts)} of the plan's file{mark}; their lengths are what they are"


def read_prompts(path: Path, endpoint: str) -> tuple[Prompt, ...]:
    """Return the prompts of a file, or raise InferopsError with the line that cannot be sent."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise InferopsError("the prompt file cannot be read", where=str(path), why=str(exc), do="check path and rights") from exc
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not numbered:
        raise InferopsError("the prompt file is empty", where=str(path), do="write one prompt on each line")
    if path.suffix not in JSON_NAMES:
        return tuple(line for dummy, line in numbered)
    return tuple(_prompt(line, f"{path}:{number}", endpoint) for number, line in numbered)


def _prompt(line: str, where: str, endpoint: str) -> Prompt:
    try:
        raw = json.loads(line)
    except ValueError as exc:
        raise InferopsError("a line of the prompt file is not JSON", where=where, why=str(exc), do="correct it") from exc
    raw = {"prompt": raw} if isinstance(raw, str) else raw
    given = [key for key in ("prompt", "messages") if isinstance(raw, dict) and raw.get(key) is not None]
    if given == ["prompt"] and isinstance(raw["prompt"], str) and raw["prompt"].strip():
        return str(raw["prompt"])
    if given != ["messages"] or not _are_messages(raw["messages"]):
        raise InferopsError(
            "a line of the prompt file is not a prompt",
            where=where,
            do='write {"prompt": "text"}, or for chat {"messages": [{"role": "user", "content": "text"}]}',
        )
    if endpoint != "chat":
        raise InferopsError("messages can only be sent to chat", where=where, do="add endpoint: chat to the plan, or use prompt")
    return tuple(raw["messages"])


def _are_messages(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and all(isinstance(one.get(key), str) for key in ("role", "content")) for one in value)
    )
