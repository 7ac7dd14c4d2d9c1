# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Lines that appear while a task runs: which host says it, when there are several, and files that grow on the target."""

from __future__ import annotations

import json
from typing import Any

from ansible.utils.display import Display


class Live:
    """Prints lines of one host; in a play of several hosts each line begins with its name in the inventory."""

    def __init__(self, task_vars: dict[str, Any] | None) -> None:
        known = task_vars or {}
        several = len(known.get("ansible_play_hosts_all") or ()) > 1
        self.head = f"  {known['inventory_hostname']}: " if several else "  "

    def say(self, text: str) -> None:
        Display().display(self.head + text)

    def warn(self, text: str) -> None:
        Display().warning(self.head.strip() + " " + text if self.head.strip() else text)


class Growing:
    """A file of JSON lines on the target that is read while it grows: remembers how far, counts whole lines only."""

    def __init__(self) -> None:
        self.offset = 0

    @property
    def tail(self) -> str:
        """Return the words of the command that prints what is new; the file's name comes behind them."""
        return f"tail -c +{self.offset + 1}"

    def take(self, output: str) -> list[str]:
        """Return the texts of the whole lines in what the command printed."""
        whole = output[: output.rfind("\n") + 1]
        self.offset += len(whole.encode())
        return [_text(line) for line in whole.splitlines()]


def unix_lines(output: str) -> str:
    """Return output as the file has it: ssh may ask for a terminal, which turns line ends into CR LF, and offsets count bytes."""
    return output.replace("\r\n", "\n")


def _text(line: str) -> str:
    try:
        return str(json.loads(line)["text"])
    except (ValueError, KeyError, TypeError):
        return line
