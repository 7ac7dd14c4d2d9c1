# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A weight file by its header alone: is it whole, is it safetensors at all, which tensors does it hold.

A safetensors file begins with the header's length (8 bytes, little endian) and a JSON header with each tensor's dtype, shape and
data_offsets, so that a download cut short, or the wrong file under the right name, shows without reading 600 GB.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

LENGTH_BYTES = 8
MAX_HEADER_BYTES = 100_000_000
"""The format's own limit."""
BITS = {
    **dict.fromkeys(("F64", "I64", "U64", "C64"), 64),
    **dict.fromkeys(("F32", "I32", "U32"), 32),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 16),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "I8", "U8", "BOOL"), 8),
    "F4": 4,
}
"""A type that is not among these is taken at its word: its tensors are not measured against their shape."""
CODE = "loading a pickle runs code of whoever made it"
DISGUISES = (
    (b"PK\x03\x04", f"is a PyTorch pickle under this name; {CODE}"),
    *((mark, f"is a pickle under this name; {CODE}") for mark in (b"\x80\x02", b"\x80\x04")),
    (b"version https://git-lfs", "is a pointer of Git LFS, not the file it points to"),
    (b"<", "is a web page or XML, as a failed download leaves it"),
    (b"{", "is JSON, perhaps the error that a server answered with"),
)


class NotWhole(Exception):
    """Says in words what is wrong with a file."""


def tensor_names(path: Path, size: int) -> frozenset[str]:
    """Return the names of the tensors in a file of ``size`` bytes; raises NotWhole with what is wrong with it."""
    if size == 0:
        raise NotWhole("is empty")
    try:
        with path.open("rb") as file:
            start = file.read(LENGTH_BYTES)
            length = int.from_bytes(start, "little")
            if not 2 <= length <= MAX_HEADER_BYTES or LENGTH_BYTES + length > size:
                raise NotWhole(_disguise(start + file.read(32)) or f"has no whole safetensors header ({size} bytes)")
            text = file.read(length)
    except OSError as exc:
        raise NotWhole(f"cannot be read: {exc.strerror or exc}") from exc
    try:
        header = json.loads(text)
        tensors = {str(name): _span(entry) for name, entry in header.items() if name != "__metadata__"}
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError) as exc:
        raise NotWhole("has a header that is not safetensors") from exc
    _check_places(tensors, size - LENGTH_BYTES - length)
    return frozenset(tensors)


def _span(entry: Any) -> tuple[int, int, int | None]:
    """Return where a tensor begins and ends, and how many bytes its shape takes, None where its type is unknown."""
    begin, end = (int(place) for place in entry["data_offsets"])
    bits = BITS.get(str(entry["dtype"]))
    needs = None if bits is None else math.ceil(math.prod(int(side) for side in entry["shape"]) * bits / 8)
    return begin, end, needs


def _check_places(tensors: dict[str, tuple[int, int, int | None]], there: int) -> None:
    """Tensors follow each other without a gap from 0 to the end of the file, each as long as its shape says."""
    reached = 0
    for name, (begin, end, needs) in sorted(tensors.items(), key=lambda item: item[1][:2]):
        if begin != reached or end < begin:
            raise NotWhole(f"has a header whose tensors overlap or leave a gap at {name}")
        if needs is not None and end - begin != needs:
            raise NotWhole(f"has a header in which {name} takes {end - begin} bytes and its shape {needs}")
        reached = end
    if reached != there:
        raise NotWhole(f"has {there} bytes of tensors, its header says {reached}")


def _disguise(start: bytes) -> str | None:
    return next((words for mark, words in DISGUISES if start.lstrip().startswith(mark)), None)
