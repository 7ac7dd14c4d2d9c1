# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a check does, counted: steps of the interpretation, characters parsed, files read; and the memory it takes.

Seconds depend on the machine and its other work, these do not. A limit is a fifth above what the release takes today.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from known_hosts import RTX_PRO_6000

ROOT = Path(__file__).resolve().parents[6]
KIMI = ROOT / "tests" / "fixtures" / "oracle" / "models" / "kimi_k25" / "config.json"
PP8 = ["--model-path", "m", "--trust-remote-code", "--pp-size", "8"]
DRAFT = ["--model-path", "m", "--tp-size", "8", "--speculative-algorithm", "EAGLE"]
READ_ELSEWHERE = {"SGLANG_PP_LAYER_PARTITION": "8,8,8,8,8,7,7,7"}
MEMORY_MIB = 75
OFF = [*PP8, "--disable-cuda-graph"]

# A process of its own: the hook that sees what is parsed cannot be taken away again, nor the memory of the tests.
COUNT = """
import json, resource, sys
parsed = [0]
def hook(event, args):
    if event == "compile" and args[1] == "<unknown>" and args[0] is not None:
        parsed[0] += len(args[0].strip())
sys.addaudithook(hook)
sys.path.insert(0, sys.argv[1])
from _core.args import check as checking
from _core.args.source import open_source
asked, steps, tree = json.loads(sys.argv[2]), [0], open_source(sys.argv[3])
resolve = checking.resolve
def counted(*args, **more):
    found = resolve(*args, **more)
    steps[0] += found.steps
    return found
checking.resolve = counted
report = checking.check(source_root=tree, **asked)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"outcome": report.outcome, "steps": steps[0], "parsed": parsed[0], "files": len(tree.looked_for), "mib": peak}))
"""


def work(wheel, version, argv, env, *, told=True):
    """Return the counts of one check, nothing of it kept from before. told: of a host and a model."""
    facts = {"facts": RTX_PRO_6000, "model_config": json.loads(KIMI.read_text(encoding="utf-8"))} if told else {}
    asked = {"argv": argv, "env": env, **facts}
    words = [sys.executable, "-I", "-c", COUNT, str(ROOT / "plugins" / "module_utils"), json.dumps(asked), str(wheel(version))]
    # Small processes start it: the peak that a new process begins with is the size of the one that it comes from.
    done = subprocess.run(["/bin/sh", "-c", '"$@"; exit $?', "sh", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.wheel
@pytest.mark.parametrize(
    ("version", "argv", "env", "steps", "parsed", "files"),
    [
        ("0.5.15", PP8, {}, 3_300, 690_000, 1_860),
        ("0.5.18", PP8, READ_ELSEWHERE, 3_800, 880_000, 570),
        ("0.5.23", PP8, {}, 5_600, 1_120_000, 480),
        ("0.5.23", DRAFT, {}, 6_100, 1_180_000, 290),
    ],
)
def test_a_check_does_no_more_than_it_has_to(wheel, version, argv, env, steps, parsed, files):
    took = work(wheel, version, argv, env)
    assert over(took, {"steps": steps, "parsed": parsed, "files": files, "mib": MEMORY_MIB}) == {}


@pytest.mark.wheel
def test_nor_where_nothing_is_told_and_each_condition_is_open(wheel):
    took = work(wheel, "0.5.23", OFF, {}, told=False)
    # Nearer to what it takes: a function that calls itself blindly, providers no name leads to, frames that hold each other.
    assert over(took, {"steps": 19_000, "parsed": 920_000, "files": 164, "mib": 70}) == {}


def over(took, limits):
    """Return what is above its limit: (count, limit) by name."""
    return {name: (took[name], limit) for name, limit in limits.items() if took[name] > limit}
