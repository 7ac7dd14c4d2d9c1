# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Items with answers that can be checked: made from a seed, or read from a file of the user's."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import InferopsError

MATCHES = ("number", "numbers", "text", "contains")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
WORDS = ("garden", "banana", "letter", "window", "summer", "planet", "basket", "ribbon", "copper", "meadow", "cannon", "pepper")
SYLLABLES = ("ka", "lo", "mi", "re", "tu", "se", "vo", "da", "ne", "pi", "go", "zu")
_NUMBER = re.compile(r"-?\d+")


@dataclass(frozen=True)
class Item:
    """One question: ``match`` says how an answer is compared with the right one."""

    kind: str
    prompt: str
    answer: str
    match: str = "text"

    def right(self, text: str) -> bool:
        """Tell whether a text gives the right answer: in its last line, or with its last number.

        >>> Item("sum", "", "42", "number").right("17 + 25 = **42**.")
        True
        """
        lines = [line for line in text.splitlines() if line.strip()]
        last = lines[-1] if lines else ""
        if self.match == "number":
            return _NUMBER.findall(text.replace(",", ""))[-1:] == [self.answer]
        if self.match == "numbers":
            return _NUMBER.findall(last) == _NUMBER.findall(self.answer)
        if self.match == "contains":
            return self.answer.casefold() in text.casefold()
        bare, wanted = _bare(last), _bare(self.answer)
        return bare == wanted or bare.rpartition(" ")[2] == wanted


def generated(count: int, seed: int) -> tuple[Item, ...]:
    """Return ``count`` items, the same ones for the same seed, each kind in turn."""
    source = random.Random(f"graded/{seed}")
    return tuple(KINDS[index % len(KINDS)](source) for index in range(count))


def from_file(path: Path) -> tuple[Item, ...]:
    """Return the items of a file with one JSON object {prompt, answer, match, kind} per line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise InferopsError("the graded set cannot be read", where=str(path), why=str(exc), do="check path and rights") from exc
    items = tuple(_item(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip())
    if not items:
        raise InferopsError("the graded set is empty", where=str(path), do='write lines such as {"prompt": "…", "answer": "…"}')
    return items


def digest(items: Sequence[Item]) -> str:
    """Return a fingerprint of a set: two scores can be compared only on the same items."""
    text = json.dumps([[item.prompt, item.answer, item.match] for item in items])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _item(line: str, where: str) -> Item:
    try:
        raw = json.loads(line)
    except ValueError as exc:
        raise InferopsError("a line of the graded set is not JSON", where=where, why=str(exc), do="correct it") from exc
    known = set(Item.__dataclass_fields__)
    if (
        not isinstance(raw, dict)
        or not {"prompt", "answer"} <= set(raw) <= known
        or not all(isinstance(v, str) for v in raw.values())
    ):
        raise InferopsError("a line is not an item", where=where, do='write {"prompt": "…", "answer": "…"}, all values as text')
    if raw.get("match", "text") not in MATCHES:
        raise InferopsError(f"match {raw['match']!r} is none of {', '.join(MATCHES)}", where=where, do="correct it")
    return Item(**{"kind": "own", **raw})


def _bare(text: str) -> str:
    return text.strip(" \t\"'`*_.:!\u201c\u201d\u2018\u2019").casefold()


def _sum(source: random.Random) -> Item:
    a, b = source.randint(12, 899), source.randint(12, 899)
    return Item("sum", f"What is {a} + {b}? Answer with the number alone.", str(a + b), "number")


def _difference(source: random.Random) -> Item:
    a, b = source.randint(12, 899), source.randint(12, 899)
    return Item("difference", f"What is {a} - {b}? Answer with the number alone.", str(a - b), "number")


def _product(source: random.Random) -> Item:
    a, b = source.randint(12, 99), source.randint(3, 9)
    return Item("product", f"What is {a} * {b}? Answer with the number alone.", str(a * b), "number")


def _copied(source: random.Random) -> Item:
    word = "".join(source.choices(SYLLABLES, k=5))
    return Item("copy", f"Repeat exactly: {word}", word)


def _reversed(source: random.Random) -> Item:
    word = source.choice(WORDS)[: source.randint(4, 5)]
    return Item("reverse", f"Write the letters {' '.join(word)} in reverse order, joined into one word.", word[::-1])


def _sorted(source: random.Random) -> Item:
    numbers = source.sample(range(10, 100), 5)
    asked = ", ".join(map(str, numbers))
    prompt = f"Sort these numbers from smallest to largest: {asked}. Answer with the numbers alone, separated by commas."
    return Item("sort", prompt, ", ".join(map(str, sorted(numbers))), "numbers")


def _largest(source: random.Random) -> Item:
    numbers = source.sample(range(100, 1000), 6)
    asked = ", ".join(map(str, numbers))
    prompt = f"Which of these numbers is the largest: {asked}? Answer with the number alone."
    return Item("largest", prompt, str(max(numbers)), "number")


def _counted(source: random.Random) -> Item:
    words = source.choices(WORDS[:3], k=source.randint(5, 9))
    wanted = source.choice(words)
    prompt = f"How many times does the word {wanted} occur here: {' '.join(words)}? Answer with the number alone."
    return Item("count", prompt, str(words.count(wanted)), "number")


def _weekday(source: random.Random) -> Item:
    start, later = source.randrange(7), source.randint(2, 6)
    prompt = f"Which day of the week comes {later} days after {DAYS[start]}? Answer with the day alone."
    return Item("weekday", prompt, DAYS[(start + later) % 7])


KINDS: tuple[Callable[[random.Random], Item], ...] = (
    _sum, _difference, _product, _copied, _reversed, _sorted, _largest, _counted, _weekday,
)  # fmt: skip
