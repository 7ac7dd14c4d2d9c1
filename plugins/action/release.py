# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Submit a release, then follow it live until the host has ended the attempt."""

from __future__ import annotations

import json
import os
import shlex
import time
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.told import failure_text
from ansible_collections.inferops.sglang.plugins.module_utils._core.release.unit_texts import runner_unit
from ansible_collections.inferops.sglang.plugins.plugin_utils.live import Growing, Live, unix_lines

POLL_S = 2.0
# Longer than any phase is silent by itself: then the journal of the runner is asked.
SILENT_S = 60.0
# The host finishes by itself; a controller that hears nothing for this long says so and stops to follow.
LOST_S = 900.0
MARK = "@@inferops@@"
DONE = ("promoted", "serving")


class ActionModule(ActionBase):
    """See the module of the same name."""

    TRANSFERS_FILES = False
    _requires_connection = True

    def run(self, tmp: Any = None, task_vars: dict | None = None) -> dict:
        super().run(tmp, task_vars)
        self._live = Live(task_vars)
        result = self._submit(task_vars)
        if result.get("action") == "recover" and not result.get("failed") and not self._task.check_mode:
            self._live.say(str(result["message"]))
            recovered = self._follow(result)
            self._live.say(f"the attempt before ended: {recovered.get('message')}")
            result = self._submit(task_vars)
        if result.get("failed") or self._task.check_mode or result.get("outcome") != "submitted":
            return result
        self._live.say("from here on the host carries it to an end, also when this play is interrupted; the next run tells how")
        return self._judge(result, self._follow(result))

    def _submit(self, task_vars: dict | None) -> dict:
        args = dict(self._task.args)
        # The parent: tasks run in workers that ansible-playbook forks.
        args.setdefault("owner", f"ansible, pid {os.getppid()}")
        result = self._execute_module(module_name="inferops.sglang.release", module_args=args, task_vars=task_vars)
        last = result.get("last_attempt")
        if last and last.get("outcome") not in (None, *DONE):
            head = f"last attempt {last['attempt']} ({last['kind']} of {last['id']})"
            self._live.say(f"{head}: {last['outcome']}: {last['message']}")
            for reason in last.get("reasons") or []:
                self._live.say(f"  {reason}")
        if result.get("forecast_text") and not result.get("failed"):
            self._live.say(str(result["message"]))
            self._live.say(str(result["forecast_text"]))
        return result

    def _follow(self, submitted: dict) -> dict:
        """Print progress as it appears and return the attempt once it has ended."""
        progress, heard, asked = Growing(), time.monotonic(), False
        while True:
            command = (
                f"cat {shlex.quote(submitted['attempt_file'])}; echo; echo {MARK}; "
                f"{progress.tail} {shlex.quote(submitted['progress_file'])} 2>/dev/null"
            )
            answer = unix_lines(self._low_level_execute_command(command).get("stdout", ""))
            head, dummy, tail = answer.partition(f"{MARK}\n")
            for text in progress.take(tail):
                heard, asked = time.monotonic(), False
                self._live.say(text)
            try:
                attempt = json.loads(head)
            except ValueError:
                attempt = {}
            if attempt.get("attempt") != submitted["attempt"] and attempt:
                return {"outcome": "superseded", "message": f"attempt {attempt.get('attempt')} took its place", "reasons": []}
            if attempt.get("outcome"):
                return attempt
            silent = time.monotonic() - heard
            if silent > LOST_S:
                message = f"nothing heard for {LOST_S:.0f} s; the host goes on by itself"
                return {"outcome": "lost", "message": message, "reasons": []}
            if silent > SILENT_S and not asked:
                asked = True
                self._live.say(f"nothing new for {SILENT_S:.0f} s; the journal on the host ends with: {self._journal()}")
            time.sleep(POLL_S)

    def _journal(self) -> str:
        command = f"journalctl --no-pager --output=cat --lines=1 _SYSTEMD_UNIT={shlex.quote(runner_unit(self._instance()))}"
        return unix_lines(self._low_level_execute_command(command).get("stdout", "")).strip() or "nothing"

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
