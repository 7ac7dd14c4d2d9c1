# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Submit a release, then follow it live until the host has ended the attempt."""

from __future__ import annotations

import json
import shlex
import time
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.told import failure_text

POLL_S = 2.0
# The host finishes by itself; a controller that hears nothing for this long says so and stops to follow.
SILENT_S = 900.0
MARK = "@@inferops@@"
DONE = ("promoted", "serving")


class ActionModule(ActionBase):
    """See the module of the same name."""

    TRANSFERS_FILES = False
    _requires_connection = True

    def run(self, tmp: Any = None, task_vars: dict | None = None) -> dict:
        super().run(tmp, task_vars)
        result = self._submit(task_vars)
        if result.get("action") == "recover" and not result.get("failed") and not self._task.check_mode:
            _say(str(result["message"]))
            recovered = self._follow(result)
            _say(f"the attempt before ended: {recovered.get('message')}")
            result = self._submit(task_vars)
        if result.get("failed") or self._task.check_mode or result.get("outcome") != "submitted":
            return result
        return self._judge(result, self._follow(result))

    def _submit(self, task_vars: dict | None) -> dict:
        args = dict(self._task.args)
        args.setdefault("owner", f"ansible, pid {_controller_pid()}")
        result = self._execute_module(module_name="inferops.sglang.release", module_args=args, task_vars=task_vars)
        last = result.get("last_attempt")
        if last and last.get("outcome") not in (None, *DONE):
            _say(f"last attempt {last['attempt']} ({last['kind']} of {last['id']}): {last['outcome']}: {last['message']}")
            for reason in last.get("reasons") or []:
                _say(f"  {reason}")
        if result.get("forecast_text") and not result.get("failed"):
            _say(str(result["message"]))
            _say(str(result["forecast_text"]))
        return result

    def _follow(self, submitted: dict) -> dict:
        """Print progress as it appears and return the attempt once it has ended."""
        offset, heard = 0, time.monotonic()
        while True:
            command = (
                f"cat {shlex.quote(submitted['attempt_file'])}; echo; echo {MARK}; "
                f"tail -c +{offset + 1} {shlex.quote(submitted['progress_file'])} 2>/dev/null"
            )
            answer = self._low_level_execute_command(command)
            # ssh asks for a terminal, which turns line ends into CR LF; offsets count the file's own bytes.
            head, dummy, tail = answer.get("stdout", "").replace("\r\n", "\n").partition(f"{MARK}\n")
            whole = tail[: tail.rfind("\n") + 1]
            offset += len(whole.encode())
            for line in whole.splitlines():
                heard = time.monotonic()
                _say(_text(line))
            try:
                attempt = json.loads(head)
            except ValueError:
                attempt = {}
            if attempt.get("attempt") != submitted["attempt"] and attempt:
                return {"outcome": "superseded", "message": f"attempt {attempt.get('attempt')} took its place", "reasons": []}
            if attempt.get("outcome"):
                return attempt
            if time.monotonic() - heard > SILENT_S:
                return {
                    "outcome": "lost",
                    "message": f"nothing heard for {SILENT_S:.0f} s; the host goes on by itself",
                    "reasons": [],
                }
            time.sleep(POLL_S)

    def _instance(self) -> str:
        args = self._task.args
        return str((args.get("spec") or {}).get("instance") or args.get("instance"))

    def _judge(self, submitted: dict, attempt: dict) -> dict:
        gate = attempt.get("gate")
        out = {
            **submitted,
            "outcome": attempt["outcome"],
            "message": attempt.get("message", ""),
            "reasons": attempt.get("reasons") or [],
            "failed_in": attempt.get("failed_in"),
        }
        if gate:
            out.update(gate=gate, verdict=gate["verdict"], report_folder=gate["folder"])
        if attempt["outcome"] not in DONE:
            out["failed"] = True
            out["msg"] = failure_text(attempt, instance=self._instance())
        return out


def _text(line: str) -> str:
    try:
        return str(json.loads(line)["text"])
    except (ValueError, KeyError, TypeError):
        return line


def _say(text: str) -> None:
    Display().display(f"  {text}")


def _controller_pid() -> int:
    """Return the process id of ansible-playbook itself: tasks run in forked workers."""
    import os

    return os.getppid()
