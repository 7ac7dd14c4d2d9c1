#!/usr/bin/python
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Module throughput_gate: put load on a running server and judge it against a plan."""

from __future__ import annotations

DOCUMENTATION = r"""
module: throughput_gate
short_description: Judge the throughput of a running SGLang server against a plan
version_added: 0.1.0
author: [Inferops (@inferops)]
description:
  - Puts a closed loop of streamed requests, or arrivals at a rate, on the HTTP API, watches the cards and the engine's own
    counters beside it, and says C(pass), C(fail) or C(inconclusive) with a diagnosis.
  - Runs on the target, in a process of its own under a lease. It ends by itself when nobody follows it any more, so that a
    lost controller leaves no load behind; the server is never stopped or changed.
  - Prints a line of progress every few seconds, also without a terminal.
  - A server may only be loaded by one gate at a time.
options:
  base_url:
    description: Address of the server as the target sees it, without C(/v1). The target may be another machine than the server's.
    type: str
    required: true
  plan:
    description:
      - The gate plan, see C(docs/metrics.md). An unknown key or limit is refused by name.
      - A point without limits is observed only. A plan without any is held to the promoted release, on a first deploy to a
        share of the bound.
    type: dict
    required: true
  out_dir:
    description: Result folder on the target. An earlier result in it is replaced.
    type: path
    required: true
  context:
    description:
      - What is known around the gate, for the bound and the diagnosis.
      - Keys are C(model_config), C(tp_size), C(pp_size), C(partition), C(kv_cache_dtype), C(bandwidth_gb_s),
        C(bandwidths_gb_s), C(gpu_count), C(promoted_result), C(server_here). An absent key is unknown; layout is then read
        from the running server.
      - C(server_here) says whether the server runs on the target, whose cards are then its own. Absent, the way to its
        address tells. Cards of a server elsewhere are not observed.
    type: dict
    default: {}
  api_key_file:
    description: File on the target that holds the API key alone. The key enters neither the result nor any log.
    type: path
  lease_s:
    description: Seconds without a follower after which the gate ends by itself, from 5 to 3600.
    type: float
    default: 60
  fail_on:
    description: Verdicts that fail the task. With an empty list it never fails because of a verdict.
    type: list
    elements: str
    choices: [fail, inconclusive]
    default: [fail, inconclusive]
  wait:
    description: Whether to follow the gate until it ends. Without, the task returns RV(run_id) at once and the lease runs.
    type: bool
    default: true
  run_id:
    description: Id of a gate that an earlier task started in O(out_dir). It is followed, its result returned, no load added.
    type: str
attributes:
  check_mode:
    description: Validates the plan, says what would be done, and puts no load on the server.
    support: full
  diff_mode:
    description: Nothing is changed.
    support: none
requirements:
  - Python 3.11 or newer and aiohttp on the target; nvidia-ml-py to observe the cards
"""

EXAMPLES = r"""
- name: Judge the server on this host
  inferops.sglang.throughput_gate:
    base_url: http://127.0.0.1:30000
    out_dir: /var/lib/inferops/kimi/gate
    plan:
      model: kimi-k2.6
      points:
        - {concurrency: 1, min_output_tokens_per_s: 33.8}
        - {concurrency: 8}
        - {concurrency: 16, min_output_tokens_per_s: 148.5, max_ttft_p90_ms: 4000}
    context:
      bandwidth_gb_s: 1600
"""

RETURN = r"""
verdict:
  description: The word of the whole run.
  returned: when the gate has ended
  type: str
  sample: pass
reasons:
  description: Why it is not a pass, one sentence each.
  returned: when the gate has ended
  type: list
  elements: str
points:
  description: Figures, limits and verdict per concurrency, see C(docs/metrics.md).
  returned: when the gate has ended
  type: list
  elements: dict
diagnosis:
  description: What the evidence says about the causes.
  returned: when the gate has ended
  type: list
  elements: dict
report:
  description: Path of the HTML report on the target.
  returned: when the gate has ended
  type: str
run_id:
  description: Id of this run.
  returned: when a gate was started or followed
  type: str
pid:
  description: Process that runs it.
  returned: when a gate was started or followed
  type: int
progress:
  description: File to which a line of JSON is added every few seconds.
  returned: when a gate was started or followed
  type: str
lease:
  description: File whose modification time a follower renews.
  returned: when a gate was started or followed
  type: str
"""


from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.errors import InferopsError
from ..module_utils._core.gate import detached
from ..module_utils._core.gate.plan import GatePlan


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "base_url": {"type": "str", "required": True},
            "plan": {"type": "dict", "required": True},
            "out_dir": {"type": "path", "required": True},
            "context": {"type": "dict", "default": {}},
            "api_key_file": {"type": "path", "no_log": False},
            "lease_s": {"type": "float", "default": 60},
            "fail_on": {
                "type": "list",
                "elements": "str",
                "choices": ["fail", "inconclusive"],
                "default": ["fail", "inconclusive"],
            },
            "wait": {"type": "bool", "default": True},
            "run_id": {"type": "str"},
        },
        supports_check_mode=True,
    )
    p = module.params
    try:
        if module.check_mode:
            points = ", ".join(point.words for point in GatePlan.from_dict(p["plan"]).points)
            module.exit_json(changed=False, message=f"would load {p['base_url']} at {points} and judge it")
        answer = detached.run_or_follow(p)
    except InferopsError as exc:
        module.fail_json(msg=str(exc), **exc.details)
    if answer.get("verdict") in p["fail_on"]:
        module.fail_json(msg=detached.sentence(answer), **answer)
    module.exit_json(changed=False, **answer)


if __name__ == "__main__":
    main()
