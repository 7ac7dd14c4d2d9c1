"""What the fake can do with a question: the kinds of items that have one right answer, read from the words of the prompt."""

from __future__ import annotations

import operator
import re
import zlib

_OPERATORS = {
    "+": operator.add, "plus": operator.add, "-": operator.sub, "minus": operator.sub,
    "*": operator.mul, "x": operator.mul, "×": operator.mul, "times": operator.mul,
}  # fmt: skip
_SUM = re.compile(r"(-?\d+)\s*([+*x×-]|plus|minus|times)\s*(-?\d+)")
_REPEAT = re.compile(
    r"(?:repeat|reply with|say|answer with)(?: exactly| only| just)?(?: the word)?s?:?\s+"
    r"[\"'\u201c]?([\w .-]+?)[\"'\u201d.]?\s*$",
    re.I,
)
_SORT = re.compile(r"sort these numbers from smallest to largest: ([\d, ]+)\.", re.I)
_LARGEST = re.compile(r"which of these numbers is the largest: ([\d, ]+)\?", re.I)
_REVERSE = re.compile(r"write the letters ((?:\w )+)in reverse order", re.I)
_COUNT = re.compile(r"how many times does the word (\w+) occur here: ([\w ]+)\?", re.I)
_WEEKDAY = re.compile(r"comes (\d+) days after (\w+day)\?", re.I)
_TOLD = re.compile(r"\bthe (code word|secret number) is (\w+)", re.I)
_ASKED = re.compile(r"\b(code word|secret number)\b[^.?]*\?", re.I)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _numbers(text: str) -> list[int]:
    return [int(word) for word in re.findall(r"\d+", text)]


def solve(question: str, conversation: str) -> str | None:
    """The right answer to a question, given all that was said before it; None when it is none of the kinds."""
    low = question.lower()
    if (asked := _ASKED.search(low)) and (
        told := [found[2] for found in _TOLD.finditer(conversation) if found[1].lower() == asked[1]]
    ):
        return told[-1]
    if found := _SORT.search(low):
        return ", ".join(map(str, sorted(_numbers(found[1]))))
    if found := _LARGEST.search(low):
        return str(max(_numbers(found[1])))
    if found := _REVERSE.search(low):
        return "".join(reversed(found[1].split()))
    if found := _COUNT.search(low):
        return str(found[2].split().count(found[1]))
    if found := _WEEKDAY.search(low):
        return _DAYS[(_DAYS.index(found[2]) + int(found[1])) % 7].capitalize()
    if found := _SUM.search(low):
        return str(_OPERATORS[found[2]](int(found[1]), int(found[3])))
    if found := _REPEAT.search(question.strip()):
        return found[1].strip()
    return None


def mistaken(answer: str, question: str, ratio: float) -> str:
    """A wrong answer in a share of the questions, the same ones each time; a model of lower quality."""
    if zlib.crc32(question.encode()) % 1000 >= ratio * 1000:
        return answer
    return str(int(answer) + 1) if answer.lstrip("-").isdigit() else "perhaps"
