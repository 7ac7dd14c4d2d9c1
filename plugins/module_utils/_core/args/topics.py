# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Topics of ``explain``: which fields of a release a feature is made of, and which places that set them belong to it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..errors import InferopsError

if TYPE_CHECKING:
    from .flags import FlagTable

# Names of fields, as all releases 0.4.6 … 0.5.23 spell them. Any other word is looked for in the names of the fields.
TOPICS = {
    "cuda_graph": r"cuda_graph",
    "prefill_graph": r"cuda_graph\w*prefill|prefill\w*cuda_graph|piecewise_cuda_graph|breakable_cuda_graph|^cuda_graph_config$"
    r"|^cuda_graph_tc_compiler$|^disable_cuda_graph$",
    "overlap": r"overlap_schedule$",
    "radix_cache": r"^disable_radix_cache$|^enable_radix_cache$",
    "attention_backend": r"^((prefill|decode)_)?attention_backend$",
    "chunked_prefill": r"chunked_prefill",
    "page_size": r"^page_size$",
}


def topic_name(text: str) -> str:
    """Return a topic as it is looked up: ``--CUDA-Graph`` is ``cuda_graph``."""
    return text.strip().lstrip("-").replace("-", "_").lower()


def topic_fields(topic: str, table: FlagTable) -> tuple[str, ...]:
    """Return the fields a topic is about: a topic of ours, a field by its full name, or every field with the word in its name.

    Raises InferopsError where the release has none.
    """
    name = topic_name(topic)
    if name in table.fields and name not in TOPICS:
        return (name,)
    pattern = TOPICS.get(name) or re.escape(name)
    found = tuple(field for field in table.fields if name and re.search(pattern, field))
    if found:
        return found
    import difflib

    near = difflib.get_close_matches(name, [*TOPICS, *table.fields], n=3)
    raise InferopsError(
        f"nothing of SGLang {table.version} is called {topic}",
        where="TOPIC",
        do=f"try {', '.join(near)}" if near else f"try {', '.join(TOPICS)}, or a field name",
    )


def belongs(topic: str, field: str) -> bool:
    """Whether a place that sets a field is about the topic: of nested graph settings ``prefill_graph`` takes its own phase."""
    from .writes import NESTED  # deferred: the command line names the topics in its help and reads no source for that

    return not (topic_name(topic) == "prefill_graph" and field.startswith(f"{NESTED}.decode"))
