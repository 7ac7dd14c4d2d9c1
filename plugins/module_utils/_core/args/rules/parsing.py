# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""From the message argparse would stop with to a finding that names what to write instead."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..findings import Finding
from ..flags import Flag, FlagTable
from ..parser import ArgvError
from ..suggest import likeliest
from ..versions import removed
from .unknown_flag import answer

_AMBIGUOUS = re.compile(r"^ambiguous option: (?P<word>\S+) could match (?P<candidates>.+)$")
_UNRECOGNIZED = re.compile(r"^unrecognized arguments: (?P<words>.+)$", re.DOTALL)
_REQUIRED = re.compile(r"^the following arguments are required: (?P<names>.+)$")
_PROGRAM = re.compile(r"(?:.*/)?(?:python[0-9.]*|sglang|numactl|env)")
_ARGUMENT = re.compile(r"^argument (?P<names>[^:]+): (?P<what>.+)$", re.DOTALL)


def refusal(error: ArgvError, table: FlagTable, argv: Sequence[str]) -> list[Finding]:
    """Return the findings for a command line the release's parser refuses: one, or one per unknown flag."""
    if argv and _PROGRAM.fullmatch(argv[0]):
        return [_program(table, argv)]
    if match := _UNRECOGNIZED.match(error.message):
        words = match["words"].split(" ")
        flags = [word for word in words if word.startswith("-")]
        return [_unrecognized(word, table, argv) for word in dict.fromkeys(flags)] or [_unrecognized(words[0], table, argv)]
    return [_refusal(error, table, argv)]


def _program(table: FlagTable, argv: Sequence[str]) -> Finding:
    end = next((index for index, word in enumerate(argv) if word.startswith("--")), len(argv))
    return Finding(
        "SGA101",
        "error",
        f"the arguments begin with the program: {' '.join(argv[:end])}",
        flag=argv[0],
        where="argv[0]",
        why=f"only what follows the program is an argument of SGLang {table.version}",
        do="leave out the words before the first flag",
        position=0,
    )


def _refusal(error: ArgvError, table: FlagTable, argv: Sequence[str]) -> Finding:
    message = error.message
    if match := _AMBIGUOUS.match(message):
        return _ambiguous(match["word"], match["candidates"].split(", "), table, argv)
    if match := _REQUIRED.match(message):
        return Finding(
            "SGA104",
            "error",
            f"{match['names']} is required by SGLang {table.version} and missing",
            flag=match["names"].partition("/")[0].partition(",")[0],
            why=f'the server would stop with "{message}"',
            do="add it to the arguments",
        )
    if match := _ARGUMENT.match(message):
        return _value(match["names"], match["what"], message, table, argv)
    return _finding(
        "SGA105",
        f"SGLang {table.version} stops at parsing: {message}",
        error.flag,
        argv,
        source=None,
        why=None,
        do="correct what the message names"
        if not message.startswith("Unsupported config option")
        else "take it out of the file and write it into the arguments",
    )


def _ambiguous(word: str, candidates: list[str], table: FlagTable, argv: Sequence[str]) -> Finding:
    name = word.partition("=")[0]
    best = likeliest(name, candidates)
    value = _value_after(name, argv)
    do = f"write {best}{' ' + value if value else ''}" if best else f"write one of {', '.join(candidates)} in full"
    flag = table.by_string(best or candidates[0])
    over = removed(name, table.version)
    told = f"; the flag of that name was {over.removal()}" if over else ""
    return _finding(
        "SGA102",
        f"{name} is ambiguous in SGLang {table.version}: it could mean {', '.join(candidates)}{told}",
        name,
        argv,
        source=flag.source if flag else None,
        why=f'short forms must fit exactly one flag; the server would stop with "ambiguous option: {word}"',
        do=do,
    )


def _unrecognized(word: str, table: FlagTable, argv: Sequence[str]) -> Finding:
    name = word.partition("=")[0]
    if not name.startswith("-"):
        previous = argv[argv.index(word) - 1] if word in argv and argv.index(word) else None
        return _finding(
            "SGA101",
            f"{word} is not taken by any flag of SGLang {table.version}",
            word,
            argv,
            source=None,
            why=f"it follows {previous}, which takes no further value" if previous else "it is no flag and follows none",
            do="remove it, or write the flag it belongs to",
        )
    found = answer(name, _value_after(name, argv), table)
    flag = table.by_string(found.better.partition("=")[0]) if found.better else None
    return _finding(
        "SGA101",
        f"{name} is not a flag of SGLang {table.version}{found.tail}",
        name,
        argv,
        source=flag.source if flag else None,
        why='the server would stop with "unrecognized arguments"',
        do=found.do,
    )


def _value(names: str, what: str, message: str, table: FlagTable, argv: Sequence[str]) -> Finding:
    strings = names.split("/")
    flag = next((found for string in strings if (found := table.by_string(string))), None)
    spelled = next((word for word in argv if word.partition("=")[0] in strings), None)
    missing = what.startswith("expected ") and "argument" in what
    return _finding(
        "SGA104" if missing else "SGA103",
        f"{strings[0]}: {what}",
        spelled or strings[0],
        argv,
        source=flag.source if flag else None,
        why=f"the parser of SGLang {table.version} refuses it",
        do=_what_it_takes(flag, spelled.partition("=")[0] if spelled else strings[0], missing=missing),
    )


def _what_it_takes(flag: Flag | None, name: str, *, missing: bool) -> str:
    if flag is not None and isinstance(flag.choices, tuple):
        return f"write {name} with one of {', '.join(str(choice) for choice in flag.choices)}"
    kind = (
        {"int": "a whole number", "float": "a number", "json.loads": "JSON"}.get(flag.type or "", "a value")
        if flag
        else "a value"
    )
    return f"write {name} followed by {kind}" + (", or remove it" if missing else "")


def _value_after(name: str, argv: Sequence[str]) -> str | None:
    for index, word in enumerate(argv):
        if word == name and index + 1 < len(argv) and not argv[index + 1].startswith("-"):
            return argv[index + 1]
        if word.startswith(name + "="):
            return word.partition("=")[2]
    return None


def _finding(
    code: str, message: str, flag: str | None, argv: Sequence[str], *, source: str | None, why: str | None, do: str | None
) -> Finding:
    name = flag.partition("=")[0] if flag else None
    position = next((index for index, word in enumerate(argv) if word.partition("=")[0] == name), -1)
    where = f"argv[{position}]" if position >= 0 else None
    return Finding(code, "error", message, flag=name, where=where, why=why, do=do, source=source, position=position)
