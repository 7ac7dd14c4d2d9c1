# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""An action plugin whose target is this machine: modules are answered by the test, commands run in a real shell."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import Any

from ansible.utils.display import Display


def action(plugin: Any, args: dict[str, Any], answers: list[Any], *, check_mode: bool = False, crlf: bool = False) -> Any:
    """Return the plugin with a list of what its module answers, in turn; ``asked`` keeps what the module was given."""

    class Faked(plugin):
        asked: list[dict[str, Any]] = []  # noqa: RUF012 - one per call of this function

        def _execute_module(self, *, module_name: str, module_args: dict, task_vars: Any) -> dict:
            self.asked.append(module_args)
            answer = answers.pop(0)
            return answer() if callable(answer) else answer

        def _low_level_execute_command(self, command: str) -> dict[str, Any]:
            done = subprocess.run(["sh", "-c", command], text=True, capture_output=True, check=False)
            return {"rc": done.returncode, "stdout": done.stdout.replace("\n", "\r\n") if crlf else done.stdout}

    # What ActionBase itself looks at; the rest of a task does not matter here.
    task = SimpleNamespace(args=args, check_mode=check_mode, async_val=0, environment=None, delegate_to=None, action="x")
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/nonexistent"))
    return Faked(task, connection, SimpleNamespace(), None, None, None)


class Screen:
    """Collects what is displayed."""

    def __init__(self, monkeypatch: Any) -> None:
        self.lines: list[str] = []
        monkeypatch.setattr(Display, "display", lambda dummy, text, *args, **kwargs: self.lines.append(text))


ONE = {"inventory_hostname": "a", "ansible_play_hosts_all": ["a"]}
TWO = {"inventory_hostname": "a", "ansible_play_hosts_all": ["a", "b"]}
