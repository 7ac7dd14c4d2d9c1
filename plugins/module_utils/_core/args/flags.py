# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The flag table of one release: what each flag is called, where its value goes, what it accepts."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from ..errors import InferopsError

if TYPE_CHECKING:
    from .config_file import ConfigRules
    from .source import SourceTree


class Unknown:
    """The one value that means: the source does not let us decide this. Its truth is an error on purpose."""

    _one: Unknown | None = None

    def __new__(cls) -> Unknown:
        if cls._one is None:
            cls._one = super().__new__(cls)
        return cls._one

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __bool__(self) -> bool:
        raise TypeError("UNKNOWN is neither true nor false; ask `is UNKNOWN`")

    def __copy__(self) -> Unknown:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Unknown:
        return self

    def __reduce__(self) -> tuple[type[Unknown], tuple[()]]:
        return (Unknown, ())


UNKNOWN = Unknown()
# Stands for "no default was given"; argparse then leaves None, or False for store_true.
NO_DEFAULT = object()
# What an action gives that leaves its destination as it is.
NOTHING = object()


class Act(Protocol):
    """An action class of the release: called, it gives what it stores, NOTHING or UNKNOWN, or raises where it stops."""

    @property
    def name(self) -> str: ...

    def __call__(self, values: Any, option_string: str) -> Any: ...


@dataclass(frozen=True)
class Flag:
    """One flag. ``choices`` and ``default`` may be UNKNOWN; unknown choices are not enforced.

    action: argparse's own word, boolean_optional, or what a class of the release does: deprecated (accepted, no effect),
    deprecated_true, deprecated_const, deprecated_alias, deprecated_error, custom, ``unknown``. ``act`` does it for given values.
    type: name of the converter in the source (``int``, ``json.loads``, ``human_readable_int`` …); ``convert`` runs it.
    """

    strings: tuple[str, ...]
    dest: str
    action: str = "store"
    nargs: str | int | None = None
    choices: tuple[Any, ...] | Unknown | None = None
    default: Any = None
    type: str | None = None
    required: bool = False
    deprecated: bool = False
    source: str = ""
    const: Any = None
    # What the release itself says about a deprecated flag: the flag to use instead, or the text it stops with.
    new_flag: str | None = None
    help: str = ""
    convert: Callable[[str], Any] | None = field(default=None, compare=False, repr=False)
    act: Act | None = field(default=None, compare=False, repr=False)

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every string the parser knows it by, the ``--no-…`` twins argparse adds included."""
        if self.action != "boolean_optional":
            return self.strings
        return (*self.strings, *("--no-" + string[2:] for string in self.strings if string.startswith("--")))

    @property
    def long(self) -> str:
        """The spelling to write: the first long one that matches the field's own name, else the first."""
        spelled = "--" + self.dest.replace("_", "-")
        return spelled if spelled in self.strings else self.strings[0]


@dataclass(frozen=True)
class FlagTable:
    """All flags of a release plus the fields of its argument record with their defaults.

    ``renames`` maps an argparse destination to the field it feeds where the two differ; ``config`` says how --config is merged.
    """

    version: str
    style: str
    flags: tuple[Flag, ...]
    fields: Mapping[str, Any]
    field_source: Mapping[str, str] = field(default_factory=dict)
    renames: Mapping[str, str] = field(default_factory=dict)
    config: ConfigRules | None = None

    def field_of(self, flag: Flag) -> str:
        return self.renames.get(flag.dest, flag.dest)

    def flag_for(self, field_name: str) -> Flag | None:
        """Return the flag that sets a field: one that is not deprecated if there is one."""
        found = [flag for flag in self.flags if self.field_of(flag) == field_name]
        current = [flag for flag in found if not flag.deprecated]
        return (current or found or [None])[0]  # type: ignore[list-item]

    def default_of(self, field_name: str) -> Any:
        """Return what the parser leaves in a field nobody names: the default of its first flag, else of the field itself."""
        for flag in self.flags:
            if self.field_of(flag) == field_name and flag.default != argparse.SUPPRESS:
                return flag.default
        return self.fields.get(field_name)

    def by_string(self, string: str) -> Flag | None:
        return next((flag for flag in self.flags if string in flag.strings), None)

    def spell(self, field_name: str) -> str:
        """Return how a field is written on the command line, its long form spelled like the field where there is one."""
        flag = self.flag_for(field_name)
        if flag is None:
            return field_name
        own = "--" + field_name.replace("_", "-")
        return own if own in flag.strings else flag.long

    def in_full(self, spelled: str, flag: Flag) -> str:
        """Return what a word that means a flag stands for: the word itself unless it is a short form."""
        if spelled in flag.spellings:
            return spelled
        fitting = [string for string in flag.spellings if string.startswith(spelled)]
        own = self.spell(self.field_of(flag))
        return own if own in fitting or not fitting else fitting[0]


def read_flags(tree: SourceTree) -> FlagTable:
    """Read the flag table; the reader is chosen by looking at the source, not at the version.

    Raises InferopsError naming the file and the shapes expected where no reader fits.
    """
    from .config_file import read_rules  # deferred, like the readers: they build on this file
    from .readers import add_argument, annotated
    from .source import LANDMARK

    tree.required(LANDMARK)
    why = (
        "expected ServerArgs.add_cli_args with add_argument calls, fields annotated A[…] in ServerArgs, "
        "or namespace classes in srt/arg_groups/fields/*.py"
    )
    for reader in (annotated, add_argument):
        try:
            if "flags" not in tree.memo and reader.fits(tree):
                tree.memo["flags"] = replace(reader.read(tree), config=read_rules(tree))
        except (RecursionError, MemoryError) as exc:
            why = f"it is nested too deeply to be followed ({type(exc).__name__})"
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, argparse.ArgumentTypeError) as exc:
            why = f"the reader for {reader.STYLE} stumbled: {type(exc).__name__}: {exc}"
    if "flags" in tree.memo:
        return cast(FlagTable, tree.memo["flags"])
    raise InferopsError(
        f"the arguments of SGLang {tree.version} have a shape no reader here knows",
        where=f"{tree.label}: {LANDMARK}",
        why=why,
        do="check with the live tier on a host that has this release installed, or use a release that is read",
    )
