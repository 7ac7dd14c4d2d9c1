# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Run a module that may take hours away from the connection, and print what it writes about its progress meanwhile."""

from __future__ import annotations

import json
import shlex
import time
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible_collections.inferops.sglang.plugins.plugin_utils.live import Growing, Live, unix_lines

FIRST_S, POLL_S = 0.1, 2.0
"""Between two looks: soon at first, so that what is done already costs no time."""
LIMIT_S = 7 * 24 * 3600
LOST_POLLS = 30
MARK = "@@inferops@@"


class Followed(ActionBase):
    """An action whose module of the same name tells its progress in a file on the target.

    The module runs on when the connection is lost or the play ends; the next run finds what it has done.
    """

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = True

    def places(self, args: dict[str, Any]) -> tuple[str, str]:
        """Return the target's progress file, and the file that is there when nothing long is to be done; empty for none."""
        raise NotImplementedError

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        args = dict(self._task.args)
        path, done = self.places(args)
        asked = self._task.async_val
        short, offset = (True, 0) if self._task.check_mode or asked or not path else self._before(path, done)
        if short:
            return {**result, **self._execute_module(module_args=args, task_vars=task_vars, wrap_async=bool(asked))}
        live, progress = Live(task_vars), Growing()
        progress.offset = offset
        self._task.async_val = LIMIT_S
        try:
            started = self._execute_module(module_args=args, task_vars=task_vars, wrap_async=True)
        finally:
            self._task.async_val = asked
        if "results_file" not in started:
            return {**result, **started}
        self._follow(path, str(started["results_file"]), progress, live)
        return {**result, **self._collect(started, task_vars)}

    def _before(self, path: str, done: str) -> tuple[bool, int]:
        """Return whether there is nothing long to do, and the size of what an earlier run told [bytes]."""
        test = f"test -n {shlex.quote(done)} -a -e {shlex.quote(done)} && echo done"
        answer = self._low_level_execute_command(f"wc -c < {shlex.quote(path)} 2>/dev/null || echo 0; {test}")
        size, *rest = str(answer.get("stdout", "")).split() or ["0"]
        return bool(rest), int(size) if size.isdigit() else 0

    def _follow(self, path: str, results_file: str, progress: Growing, live: Live) -> None:
        wait, lost = FIRST_S, 0
        while True:
            time.sleep(wait)
            wait = min(POLL_S, 2 * wait)
            try:
                if self._look(path, results_file, progress, live):
                    return
                lost = 0
            except AnsibleConnectionFailure as exc:
                lost += 1
                if lost >= LOST_POLLS:
                    raise
                live.warn(f"lost the connection ({exc}); the host goes on, trying again")

    def _look(self, path: str, results_file: str, progress: Growing, live: Live) -> bool:
        """Print what is new; tell whether the module has ended."""
        results, told = shlex.quote(results_file), shlex.quote(path)
        size = f"wc -c < {told} 2>/dev/null || echo 0"
        command = f"cat {results}; echo; echo {MARK}; {size}; echo {MARK}; {progress.tail} {told} 2>/dev/null"
        answer = unix_lines(str(self._low_level_execute_command(command).get("stdout", "")))
        state, dummy, rest = answer.partition(f"{MARK}\n")
        length, dummy, tail = rest.partition(f"{MARK}\n")
        if length.strip().isdigit() and int(length) < progress.offset:
            progress.offset = 0  # Begun anew by what is followed.
            return False
        for text in progress.take(tail):
            live.say(text)
        try:
            return json.loads(state).get("finished", True) is not False
        except (ValueError, AttributeError):
            return False

    def _collect(self, started: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        job, results_file = str(started["ansible_job_id"]), str(started["results_file"])
        asked = {"jid": job, "_async_dir": results_file.rpartition("/")[0]}
        result = dict(self._execute_module(module_name="ansible.legacy.async_status", module_args=asked, task_vars=task_vars))
        self._low_level_execute_command(f"rm -f {shlex.quote(results_file)}")
        for name in ("ansible_job_id", "started", "finished", "results_file"):
            result.pop(name, None)
        return result
