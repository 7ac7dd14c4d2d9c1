# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""One table over hosts: none is left out, and a host without a result is no pass."""

from __future__ import annotations

from ansible_collections.inferops.sglang.plugins.module_utils._core.gate.hosts_table import hosts_table

POINT = {"concurrency": 1, "output_tokens_per_s": 35.6, "ci": [35.1, 36.1], "ttft_ms": {"p50": 120.0}, "verdict": "pass"}


def test_every_host_has_its_lines():
    slow = [{**POINT, "output_tokens_per_s": 20.0, "verdict": "fail"}, {**POINT, "concurrency": 8, "verdict": "observed"}]
    answers = {
        "a": {"verdict": "pass", "reasons": [], "points": [POINT]},
        "b": {"verdict": "fail", "reasons": ["too slow", "and hot"], "points": slow},
        "c": {"msg": "the server cannot be reached\n  where: http://c"},
        "d": None,
    }
    assert hosts_table(answers) == [
        "host  verdict     load  tok/s     interval  TTFT ms  of the point",
        "a     pass        1      35.6  35.1 … 36.1      120  pass",
        "b     fail        1      20.0  35.1 … 36.1      120  fail",
        "                  8      35.6  35.1 … 36.1      120  observed",
        "c     not judged  –         –            –        –  –",
        "d     not judged  –         –            –        –  –",
        "b: too slow",
        "b: and hot",
        "c: the server cannot be reached",
        "d: an earlier task failed, see above",
    ]
