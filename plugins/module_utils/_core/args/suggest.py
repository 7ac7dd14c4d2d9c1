# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What somebody probably meant by a flag the release does not have.

Suggested is only what means the same: a known successor, the same letters with other dashes, or a slip of the pen in one word.
A word the release itself uses in its flags is meant as written: `--enable-x` never becomes `--disable-x`, nor fp8 fp4.
"""

from __future__ import annotations

from collections.abc import Iterable

from .flags import FlagTable
from .renames import known_renames

# What a person may choose instead, beside what means the same (renames.py), which comes first. `spelling=value` names the value.
# Executed on the releases 0.4.3 … 0.5.23.
SUCCESSORS: dict[str, tuple[str, ...]] = {
    "--multi-item-scoring-delimiter": ("--enable-mis",),
    "--disable-piecewise-cuda-graph": ("--disable-prefill-cuda-graph",),
    "--enable-dp-attention": ("--attn-dp-size",),
    "--enable-ep-moe": ("--ep-size",),
    "--nsa-prefill": ("--dsa-prefill-backend",),
    "--nsa-decode": ("--dsa-decode-backend",),
    "--file-storage-pth": ("--file-storage-path",),
    "--return-hidden-states": ("--enable-return-hidden-states",),
    "--hybrid-kvcache-ratio": ("--swa-full-tokens-ratio",),
    "--fp8-gemm-runner-backend": ("--fp8-gemm-backend",),
    "--fp4-gemm-runner-backend": ("--fp4-gemm-backend",),
    "--fp8-gemm-backend": ("--fp8-gemm-runner-backend",),
    "--fp4-gemm-backend": ("--fp4-gemm-runner-backend",),
}
# Ends that say "the number itself": of several flags a short form could mean, the one that is only longer by this is likeliest.
_PLAIN_ENDS = ("-size", "-path", "-length", "-name", "-backend")
# A word shorter than this is an abbreviation: one letter more or less makes another of it.
_SHORTEST = 4


def plain(word: str) -> str:
    """Return a word as SGLang's flags are written.

    >>> plain("-reasoning_parser=x")
    '--reasoning-parser'
    """
    return "--" + word.partition("=")[0].lstrip("-").replace("_", "-").lower()


def suggest(word: str, table: FlagTable) -> str | None:
    """Return the flag meant by an unknown word, None where none surely is."""
    strings = [string for flag in table.flags for string in flag.spellings]
    meant = plain(word)
    for candidate in (*successors(meant), meant):
        if candidate.partition("=")[0] in strings:
            return candidate
    if word != meant:  # a short form, or a slip of the dashes
        extended = [string for string in strings if string.startswith(meant)]
        if len(extended) == 1:
            return extended[0]
    known = {part for string in strings for part in _parts(string)}
    near = [string for string in strings if _slip(meant, string, known)]
    return near[0] if len(near) == 1 else None


def successors(flag: str) -> tuple[str, ...]:
    """Return what replaced a flag, in order of preference."""
    same = [rename.spelled for rename in known_renames(flag) if rename.spelled is not None]
    return (*same, *SUCCESSORS.get(flag, ()))


def likeliest(short: str, candidates: list[str]) -> str | None:
    """Return which of the flags an ambiguous short form most likely means, None where none stands out.

    >>> likeliest("--pp", ["--pp-size", "--pp-max-micro-batch-size", "--pp-async-batch-depth"])
    '--pp-size'
    """
    for end in _PLAIN_ENDS:
        if short + end in candidates:
            return short + end
    found = [new for new in successors(short) if new.partition("=")[0] in candidates]
    return found[0] if found else None


def near_name(name: str, known: Iterable[str]) -> str | None:
    """Return the one name that differs by a slip of the pen in one of its words, None where none or several do.

    >>> near_name("SGLANG_PP_LAYER_PARTITON", ["SGLANG_PP_LAYER_PARTITION", "SGLANG_PORT"])
    'SGLANG_PP_LAYER_PARTITION'
    """
    names = set(known)
    words = {part for one in names for part in one.split("_")}
    near = [one for one in names if _slip(name, one, words, "_")]
    return near[0] if len(near) == 1 else None


def _parts(flag: str) -> list[str]:
    return flag.lstrip("-").split("-")


def _slip(word: str, flag: str, known: set[str], joint: str = "-") -> bool:
    """Whether word is flag with one of its words written wrong, and that wrong word is none the release has."""
    mine, its = word.lstrip("-").split(joint), flag.lstrip("-").split(joint)
    if "".join(mine) == "".join(its):
        return True
    if len(mine) != len(its):
        return False
    differing = [(one, other) for one, other in zip(mine, its, strict=True) if one != other]
    return len(differing) == 1 and _same_word(*differing[0], known)


def _same_word(written: str, meant: str, known: set[str]) -> bool:
    if written.rstrip("sS") == meant.rstrip("sS"):
        return True
    if written in known or min(len(written), len(meant)) < _SHORTEST or any(char.isdigit() for char in written + meant):
        return False
    return _one_edit(written, meant)


def _one_edit(one: str, other: str) -> bool:
    """Whether two words differ by one letter more, less, other, or by two neighbours swapped."""
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    left, right = one[start:], other[start:]
    swapped = left[:2] == right[:2][::-1] and left[2:] == right[2:]
    return left[1:] == right[1:] or left[1:] == right or left == right[1:] or swapped
