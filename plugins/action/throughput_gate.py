# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Action throughput_gate: starts the gate on the target and prints its progress while it runs there."""

from __future__ import annotations

import shlex
import time
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible_collections.inferops.sglang.plugins.plugin_utils.live import Growing, Live, unix_lines

POLL_S = 2.0
LOST_POLLS = 10
MODULE = "inferops.sglang.throughput_gate"
ENDED = "ended"


class ActionModule(ActionBase):
    """Three steps: start (module), follow (shell, renews the lease), collect (module)."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        args = dict(self._task.args)
        waits = boolean(args.get("wait", True), strict=False)
        if self._task.check_mode or args.get("run_id") is not None or not waits:
            return {**result, **self._module(args, task_vars)}
        started = self._module({**args, "wait": False}, task_vars)
        if started.get("failed"):
            return {**result, **started}
        # Ctrl-C from here on leaves the target alone: its lease expires, the load ends, what was measured is kept.
        self._follow(started, Live(task_vars))
        return {**result, **self._module({**args, "run_id": started["run_id"]}, task_vars)}

    def _module(self, args: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        return dict(self._execute_module(module_name=MODULE, module_args=args, task_vars=task_vars))

    def _follow(self, started: dict[str, Any], live: Live) -> None:
        progress, lost = Growing(), 0
        while True:
            try:
                output = self._poll(started, progress)
                lost = 0
            except AnsibleConnectionFailure as exc:
                lost += 1
                if lost >= LOST_POLLS:
                    raise
                live.warn(f"gate  lost the connection ({exc}); trying again")
                time.sleep(POLL_S)
                continue
            body, dummy, state = output.rpartition("\n#")
            texts = progress.take(body)
            for text in texts:
                live.say(text)
            if state.strip() != ENDED:
                time.sleep(POLL_S)
            elif not texts:
                return

    def _poll(self, started: dict[str, Any], progress: Growing) -> str:
        """Renew the lease, return new progress and a last line that says whether the process is still there."""
        path, lease, pid = shlex.quote(started["progress"]), shlex.quote(started["lease"]), int(started["pid"])
        command = (
            f"touch -c {lease}; s={ENDED}; kill -0 {pid} 2>/dev/null && s=running; "
            f"[ -d /proc/{pid} ] && s=running; {progress.tail} {path} 2>/dev/null; printf '\\n#%s\\n' $s"
        )
        return unix_lines(str(self._low_level_execute_command(command).get("stdout", "")))
