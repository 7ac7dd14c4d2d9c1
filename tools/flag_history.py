#!/usr/bin/env python3
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Write the table of first and last release of every flag, out of published releases.

tools/flag_history.py FOLDER [> plugins/module_utils/_core/args/history.py]

FOLDER holds one wheel or unpacked release per entry; each is read as the check reads it, nothing of it runs.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins" / "module_utils"))

from _core.args.flags import FlagTable, read_flags
from _core.args.source import open_source
from _core.args.versions import release_key

HEAD = '''# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which releases have which flag: written by tools/flag_history.py out of the published wheels, not by hand.

Each line of FLAGS is ``FIRST LAST DEPRECATED: flags without their dashes``, the first three as numbers into RELEASES;
DEPRECATED is the first release that calls the flag deprecated, ``-`` where none does. A flag with a gap stands once per span.
RENAMED is what the last release that had a retired flag said to use instead.
"""

from __future__ import annotations

RELEASES = (
'''


def spans(tables: list[FlagTable]) -> dict[str, list[tuple[int, int, int | None]]]:
    """Return {flag: [(first, last, first release that calls it deprecated)]} in numbers into tables."""
    out: dict[str, list[tuple[int, int, int | None]]] = {}
    for number, table in enumerate(tables):
        for flag in table.flags:
            for string in flag.spellings:
                known = out.setdefault(string, [])
                since = number if flag.deprecated else None
                if known and known[-1][1] == number - 1:
                    first, dummy, before = known.pop()
                    known.append((first, number, since if before is None else before if flag.deprecated else None))
                elif not known or known[-1][1] != number:
                    known.append((number, number, since))
    return out


def renames(tables: list[FlagTable]) -> dict[str, str]:
    """Return {retired flag: the flag its release names instead}."""
    return {
        string: flag.new_flag
        for table in tables
        for flag in table.flags
        for string in flag.strings
        if flag.new_flag and re.fullmatch(r"--[a-z0-9-]+(=\S+)?", flag.new_flag)
    }


def main(folder: str) -> int:
    tables = [read_flags(open_source(path)) for path in Path(folder).iterdir() if path.is_dir() or path.suffix == ".whl"]
    tables.sort(key=lambda table: release_key(table.version))
    groups: dict[tuple[int, int, int | None], list[str]] = {}
    for string, found in spans(tables).items():
        for span in found:
            groups.setdefault(span, []).append(string.removeprefix("--"))
    lines = [
        HEAD
        + textwrap.fill(" ".join(f'"{table.version}",' for table in tables), 126, initial_indent="    ", subsequent_indent="    ")
    ]
    lines.append(')\n\nFLAGS = """\\')
    for (first, last, since), names in sorted(
        groups.items(), key=lambda entry: [number if number is not None else -1 for number in entry[0]]
    ):
        text = f"{first} {last} {'-' if since is None else since}: {' '.join(sorted(names))}"
        lines += textwrap.wrap(text, 128, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    lines += ['"""', "", "RENAMED = {"]
    lines += [f'    "{old}": "{new}",' for old, new in sorted(renames(tables).items())]
    print("\n".join([*lines, "}"]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
