# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""SGLang asked in a container, with a stand-in podman that runs the program here."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ansible_collections.inferops.sglang.plugins.module_utils._core.args.live.ask import Container, Interpreter

IMAGE = "registry.example/sglang@sha256:" + "d" * 64
STAND_IN = """#!{python}
import json, os, sys
with open({calls!r}, "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1] == "run":
    folder = next(w for w in sys.argv if w.startswith("--workdir=")).partition("=")[2]
    os.chdir(folder)
    os.execv({python!r}, [{python!r}, *sys.argv[sys.argv.index({image!r}) + 1:]])
"""


def test_it_is_asked_without_a_network_and_is_gone_afterwards(tmp_path):
    program, calls = tmp_path / "podman", tmp_path / "calls"
    program.write_text(STAND_IN.format(python=sys.executable, calls=str(calls), image=IMAGE))
    program.chmod(0o755)
    container = Container(IMAGE, ["--device=nvidia.com/gpu=all"], ["/srv/models/kimi", ""], str(program))
    answer = Interpreter(sys.executable, {"NAME": "value"}, container=container).ask(["--model-path", "/srv/models/kimi"])
    # Here is no SGLang to import: the program ran, its answer came back through the folder.
    assert answer.outcome == "unavailable"
    assert "sglang" in str(answer.message)
    run, gone = (json.loads(line) for line in calls.read_text().splitlines())
    for word in ("--network=none", "--read-only", "--pull=never", "--device=nvidia.com/gpu=all", "--env=NAME=value"):
        assert word in run
    assert [word for word in run if word.endswith(":ro")] == ["--volume=/srv/models/kimi:/srv/models/kimi:ro"]
    assert gone[0] == "rm"
    assert f"--name={gone[-1]}" in run
    assert not Path(run[[word.startswith("--workdir=") for word in run].index(True)].partition("=")[2]).exists()
