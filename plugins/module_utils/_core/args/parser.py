# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A real argparse parser built from the flag table, so that prefixes, ambiguity, choices and messages are SGLang's own."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from .flags import NOTHING, UNKNOWN, Flag, FlagTable

# prepare_server_args builds its parser with this name; it shows in usage lines only.
PROG = "sglang serve"


class ArgvError(Exception):
    """SGLang would stop at parsing with this message. ``flag`` is the word of argv it is about, where one is."""

    def __init__(self, message: str, *, flag: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.flag = flag


@dataclass(frozen=True)
class Use:
    """One use of a flag in argv: the word as spelled, the flag it means, the field it sets."""

    spelled: str
    flag: Flag
    field: str
    value: Any


@dataclass(frozen=True)
class Parsed:
    """What SGLang's parser would hand to its argument record.

    values: every field with the value asked for or its default (UNKNOWN where the source does not decide it).
    explicit: the fields named in argv, each with the flag as spelled last. uses: all of them in order.
    """

    values: Mapping[str, Any]
    explicit: Mapping[str, str]
    uses: tuple[Use, ...] = field(default=())


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ArgvError(message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse what is no choice, in the words of Python 3.11; later ones drop the quotation marks of the choices."""
        if value is UNKNOWN or action.choices is None or value in action.choices:  # what no converter could make refuses nothing
            return
        choices = ", ".join(map(repr, action.choices))
        raise argparse.ArgumentError(action, f"invalid choice: {value!r} (choose from {choices})")

    def _get_option_tuples(self, option_string: str) -> Any:
        """Keep a short form as it was typed: argparse hands the action the full flag it stands for."""
        found: list[Any] = super()._get_option_tuples(option_string)
        if len(found) != 1:
            return found
        action, dummy, *rest = found[0]
        return [(action, option_string.partition("=")[0], *rest)]

    def print_help(self, file: Any = None) -> None:
        """Say nothing: `--help` among launch arguments ends in ArgvError like any other stop."""

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise ArgvError(message or "stops after printing its help or version")


class _Recorded(argparse.Action):
    """Does what the release's action does and notes the use."""

    def __init__(self, *args: Any, flag: Flag, field_name: str, uses: list[Use], **kwargs: Any) -> None:
        self.flag = flag
        self.field_name = field_name
        self.uses = uses
        super().__init__(*args, **kwargs)

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        value = self.outcome(parser, values, option_string or "")
        if value is not NOTHING:
            setattr(namespace, self.dest, value)
        shown = None if value is NOTHING else value
        self.uses.append(Use(option_string or self.option_strings[0], self.flag, self.field_name, shown))

    def outcome(self, parser: argparse.ArgumentParser, values: Any, option_string: str) -> Any:
        if self.flag.act is not None:
            try:
                return self.flag.act(values, option_string)
            except (ValueError, argparse.ArgumentTypeError) as exc:
                parser.error(str(exc))
        action = self.flag.action
        if action in ("store_true", "store_false"):
            return action == "store_true"
        if action == "store_const":
            return self.flag.const
        if action == "boolean_optional":
            return not option_string.startswith("--no-")
        return UNKNOWN if action == "unknown" else values


def build(table: FlagTable, uses: list[Use] | None = None) -> argparse.ArgumentParser:
    """Return the parser; every use of a flag is appended to uses."""
    uses = [] if uses is None else uses
    parser = _Parser(prog=PROG)
    for flag in table.flags:
        _add(parser, table, flag, uses)
    return parser


def parse(table: FlagTable, argv: Sequence[str]) -> Parsed:
    """Parse argv as the release does. Raises ArgvError with argparse's own message where it would stop."""
    uses: list[Use] = []
    parser = build(table, uses)
    try:
        namespace = parser.parse_args([str(word) for word in argv])
    except ArgvError as exc:
        raise ArgvError(exc.message, flag=blamed(exc.message, argv)) from None
    found = {table.renames.get(name, name): value for name, value in vars(namespace).items()}
    values = {name: found.get(name, default) for name, default in table.fields.items()}
    explicit = {use.field: use.spelled for use in uses if use.flag.action != "deprecated"}
    return Parsed(values, explicit, tuple(uses))


def blamed(message: str, argv: Sequence[str]) -> str | None:
    """Return the word of argv a message of argparse is about.

    >>> blamed("unrecognized arguments: --nope 3", ["--nope", "3"])
    '--nope'
    """
    for word in argv:
        name = word.partition("=")[0]
        if (
            name.startswith("-")
            and name in message.replace("=", " ").replace(",", " ").replace("/", " ").replace(":", " ").split()
        ):
            return str(word)
    return None


def _add(parser: argparse.ArgumentParser, table: FlagTable, flag: Flag, uses: list[Use]) -> None:
    common: dict[str, Any] = {"dest": flag.dest, "default": flag.default, "required": flag.required}
    record: dict[str, Any] = {"action": _Recorded, "flag": flag, "field_name": table.field_of(flag), "uses": uses}
    if flag.action in ("store_true", "store_false", "boolean_optional", "store_const"):
        nargs: Any = 0
    else:
        nargs = flag.nargs
        if nargs == "?":
            common["const"] = flag.const
    if isinstance(flag.choices, tuple):
        common["choices"] = list(flag.choices)
    if nargs is not UNKNOWN:
        common["nargs"] = nargs
    if nargs != 0:
        common["type"] = flag.convert
    parser.add_argument(*flag.spellings, **record, **{key: value for key, value in common.items() if not _idle(key, value)})


def _idle(key: str, value: Any) -> bool:
    return value is None and key in ("type", "choices", "nargs")
