# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The live tier against real releases: SGLang itself is asked, and reading its source must come to the same.

Runs where the oracle's environment is in the cache already; it is too large to be made for this alone.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / ".collections")]
import environment  # noqa: E402
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.check import check  # noqa: E402
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.live.ask import Interpreter  # noqa: E402
from cards import HARDWARE  # noqa: E402
from executor import MODELS  # noqa: E402
from score import model_of  # noqa: E402

CARDS = "8xRTXPRO6000"
# One per way a release has recorded its decisions.
RELEASES = ("0.5.5", "0.5.10", "0.5.14", "0.5.19", "0.5.23")
LINES = (
    ["--pp-size", "8", "--disable-cuda-graph"],
    ["--attention-backend", "torch_native", "--enable-mixed-chunk"],
    ["--enable-hierarchical-cache", "--disable-radix-cache"],
    ["--pp", "8"],
)
SITE = """
import sys, pathlib, tempfile
sys.path[:0] = {path!r}
import fake_gpu, stand_ins
from cards import HARDWARE
fake_gpu.pretend(HARDWARE[{cards!r}], pathlib.Path(tempfile.mkdtemp()))
stand_ins.install(pathlib.Path({source!r}))
"""


def in_cache(version: str) -> bool:
    made = (environment.cache("oracle", "venv") / ".made-from").exists()
    return made and any(environment.cache("oracle", "sglang").glob(f"{version}-*"))


@pytest.fixture(scope="module", params=RELEASES)
def asked(request, tmp_path_factory):
    """A release, its source, and an interpreter that has it, with the cards the harness stands in for."""
    version = request.param
    if not in_cache(version):
        pytest.skip(f"the oracle's environment for {version} is not in the cache: python tests/oracle/environment.py {version}")
    place = environment.ensure(version)
    path = [str(one) for one in (place.overlay, place.source, HERE) if one is not None]
    site = tmp_path_factory.mktemp(f"site-{version}")
    (site / "sitecustomize.py").write_text(SITE.format(path=path, cards=CARDS, source=str(place.source)))
    env = {"PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"}
    return version, place.source, Interpreter(str(place.python), env, timeout_s=300)


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_what_is_read_is_what_sglang_does(asked, line):
    version, source, interpreter = asked
    argv = ["--model-path", str(MODELS / "llama"), *line]
    situation = {"source_root": source, "facts": HARDWARE[CARDS].facts(), "model_config": model_of("llama")}
    read, live = check(argv, **situation), check(argv, live=interpreter, **situation)

    assert (live.tier, live.sglang_version) == ("live", version), live.text()
    assert [finding.text() for finding in live.findings if finding.code == "SGA701"] == []
    assert (live.outcome, live.message) == (read.outcome, read.message)
    assert {name: change["to"] for name, change in live.changed.items()} == {
        name: one["to"] for name, one in read.changed.items()
    }
    for name, change in live.changed.items():
        if change["source"] is not None:
            rel, dummy, number = change["source"].rpartition(":")
            assert int(number) <= len((source / "sglang" / rel).read_text().splitlines()), name
    if "--disable-cuda-graph" in line:
        assert live.changed["disable_overlap_schedule"]["source"] == read.changed["disable_overlap_schedule"]["source"]
