# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The result folder on a disk that fills up: whole lines, a readable result, no exception in the middle of a load."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.folder import RESERVE, RESERVED_BYTES, ResultFolder

LIMITED = """
import json, resource, sys
sys.path.insert(0, sys.argv[2])
from _core.gate.folder import ResultFolder
from pathlib import Path
folder = ResultFolder(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
for number in range(400):
    folder.sample({"number": number, "text": "x" * 100})
problem = folder.problem
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
folder.result({"verdict": "inconclusive"})
folder.progress({"text": "last"})
folder.close()
print(json.dumps(problem))
"""


@pytest.fixture
def core():
    import ansible_collections.inferops.sglang.plugins.module_utils._core as core

    return Path(core.__file__).parents[1]


def test_what_does_not_fit_is_left_out_line_by_line(tmp_path, core):
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    done = subprocess.run([sys.executable, "-c", LIMITED, str(tmp_path), core], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == "File too large"
    lines = [json.loads(line) for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    assert 100 < len(lines) < 400
    assert [line["number"] for line in lines] == list(range(len(lines)))
    assert json.loads((tmp_path / "result.json").read_text()) == {"verdict": "inconclusive"}
    assert "last" in (tmp_path / "progress.jsonl").read_text()
    assert not (tmp_path / RESERVE).exists()


def test_room_is_held_until_it_is_needed(tmp_path):
    folder = ResultFolder(tmp_path)
    assert (tmp_path / RESERVE).stat().st_blocks * 512 >= RESERVED_BYTES
    folder.sample({"a": 1})
    assert (folder.problem, (tmp_path / RESERVE).exists()) == (None, True)
    folder.close()
    folder.sample({"a": 2})
    assert (tmp_path / "samples.jsonl").read_text() == '{"a":1}\n'


def test_a_folder_that_cannot_be_opened_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InferopsError, match="cannot be written"):
        ResultFolder(tmp_path / "file")
