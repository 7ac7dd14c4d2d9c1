# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Tool calls of one streamed answer, put together from their pieces as the OpenAI API and SGLang send them.

SGLang 0.5.23 (srt/entrypoints/openai/serving_chat.py, _process_tool_call_stream): the first piece of a call brings id and
name, the following ones null for both and the next piece of the arguments; finish_reason becomes "tool_calls".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class StreamedCall:
    """One call as far as it has come."""

    name: str = ""
    arguments: str = ""


def take_calls(calls: dict[int, StreamedCall], delta: Any) -> str:
    """Add the pieces in ``delta.tool_calls`` to the calls by their index; return their text, which are output tokens too."""
    text = ""
    for piece in delta if isinstance(delta, list) else ():
        function = piece.get("function") if isinstance(piece, dict) else None
        if not isinstance(function, dict):
            continue
        index = piece.get("index")
        call = calls.setdefault(index if isinstance(index, int) else 0, StreamedCall())
        name, arguments = function.get("name"), function.get("arguments")
        if isinstance(name, str):
            call.name += name
            text += name
        if isinstance(arguments, str):
            call.arguments += arguments
            text += arguments
    return text
