# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The webhook gets verdict and link of the report; its address stays out of the log, and its failure changes nothing."""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import playing
import pytest

pytestmark = playing.in_a_clone

PLAY = """
- hosts: gpu1
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: inferops.sglang.sglang_release, tasks_from: webhook}
"""
RESULT = {
    "release": "0123456789ab",
    "action": "replace",
    "outcome": "rolled_back",
    "verdict": "fail",
    "message": "went back to release ab",
    "reasons": ["24.7 of 33.8 tok/s"],
    "gate": {"points": [{"concurrency": 1, "output_tokens_per_s": 24.7}]},
}


@pytest.mark.parametrize("status", [204, 500])
def test_it_gets_the_verdict_and_its_failure_changes_nothing(tmp_path, status):
    posted = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_): ...

    server = HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "play.yml").write_text(PLAY)
    told = {
        "ansible_python_interpreter": sys.executable,
        "sglang_release_instance": "kimi",
        "sglang_release_webhook_url": f"http://127.0.0.1:{server.server_port}/token-canary",
        "sglang_release_report_url": "https://reports.example.com",
        "__sglang_release_result": RESULT,
    }
    done = playing.ansible_playbook("-vvv", "-i", "gpu1,", "-c", "local", str(tmp_path / "play.yml"), "-e", json.dumps(told))
    server.shutdown()
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    (body,) = posted
    assert {key: body[key] for key in ("host", "instance", "outcome", "verdict", "reasons")} == {
        "host": "gpu1",
        "instance": "kimi",
        "outcome": "rolled_back",
        "verdict": "fail",
        "reasons": ["24.7 of 33.8 tok/s"],
    }
    assert body["report"] == "https://reports.example.com/gpu1/kimi/report.html"
    assert body["points"] == RESULT["gate"]["points"]
    assert ("did not take it (status 500)" in said) == (status == 500)
    assert "token-canary" not in said
