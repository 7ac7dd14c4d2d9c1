#!/usr/bin/python
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Module driver_info: what driver a host has, what lies between it and the wanted one, and what its logs say."""

from __future__ import annotations

DOCUMENTATION = r"""
module: driver_info
short_description: Plan the NVIDIA driver of a host and read what went wrong
version_added: 0.1.0
author: [Inferops (@inferops)]
description:
  - Reads the host (packages, loaded module, cards on the PCI bus, Secure Boot, headers, package sources, processes on the
    cards, space) and returns the steps to the wanted driver, what is in the way of them, and whether a reboot is due and why.
  - With O(logs) the kernel log, the build log of DKMS and given output are held against a table of known faults.
  - Changes nothing. Needs no NVML and no package but Python's own.
options:
  branch:
    description: Wanted driver branch, such as V(580).
    type: int
    required: true
  version:
    description: Wanted driver version, such as V(580.95.05). Empty takes any of the branch.
    type: str
    default: ""
  kernel_module:
    description: Flavour of the kernel modules.
    type: str
    choices: [open, closed]
    default: open
  source:
    description: Where packages come from.
    type: str
    choices: [nvidia, distribution, mirror, offline]
    default: nvidia
  display:
    description: Whether the part for displays is wanted too, and not the one for computing alone.
    type: bool
    default: false
  cuda:
    description: Version of CUDA that must run.
    type: str
    default: "13.0"
  cuda_toolkit:
    description: Toolkit to install, such as V(13-0). Empty installs none.
    type: str
    default: ""
  cuda_toolkit_compiler_only:
    description: Whether the compiler and the headers of the runtime are enough of it.
    type: bool
    default: true
  fabric_manager:
    description: V(auto) wants it exactly where the PCI bus shows an NVSwitch.
    type: str
    choices: [auto, present, absent]
    default: auto
  container_toolkit:
    description: Whether nvidia-container-toolkit is wanted.
    type: bool
    default: false
  reboot_allowed:
    description: Whether the plan may hold a reboot.
    type: bool
    default: false
  reboot_window:
    description: When it may be, in the host's own time, such as V(22:00-04:00). Empty means any time.
    type: str
    default: ""
  reload_allowed:
    description: Whether modules may be swapped in the running kernel.
    type: bool
    default: false
  stop_units:
    description: Units that may be stopped because they have cards open.
    type: list
    elements: str
    default: []
  source_file:
    description: The one file that may name NVIDIA's repository.
    type: path
    default: /etc/apt/sources.list.d/inferops-nvidia.sources
  controller_boot_id:
    description: Boot id of the machine that runs the play. Where it is the target's own, the target is never rebooted.
    type: str
    default: ""
  logs:
    description: Whether to read the kernel log and the build log of DKMS and look for known faults.
    type: bool
    default: false
  package_output:
    description: What a package manager printed, to look in too.
    type: str
    default: ""
  nvml_output:
    description: What NVML or CUDA said, to look in too.
    type: str
    default: ""
attributes:
  check_mode:
    description: Reads only, so check mode does the same.
    support: full
  diff_mode:
    description: Nothing is changed.
    support: none
"""

EXAMPLES = r"""
- name: See what stands between this host and branch 580
  inferops.sglang.driver_info:
    branch: 580
    logs: true
  register: driver

- name: Stop where something is in the way
  ansible.builtin.assert:
    that: driver.plan.refusals | length == 0
"""

RETURN = r"""
facts:
  description: What was read. A value that nobody could tell is null.
  returned: success
  type: dict
plan:
  description:
    - C(steps) in order, each with C(name), C(items) and C(why); C(refusals), each with C(what), C(where), C(why), C(do) and
      C(text); C(way) with C(kind) (V(none), V(load), V(reload), V(reboot)) and C(reason).
    - Besides what the steps are made of, C(packages), C(spec), C(pin), C(moved), C(removed), C(extras), C(headers), C(unheld),
      C(lock), C(blacklist), C(build), C(fabric_manager), C(prebuilt), C(reboot), C(empty) and C(notes).
  returned: success
  type: dict
problems:
  description: What is not as wanted, one sentence each. Empty when module, packages, cards and device nodes are.
  returned: success
  type: list
  elements: str
findings:
  description:
    - Known faults that the logs show, the likelier root first, with C(code), C(verdict), C(evidence), C(count), C(why), C(do)
      and C(stop).
  returned: success
  type: list
  elements: dict
findings_text:
  description: The same for people.
  returned: success
  type: str
"""

from dataclasses import asdict
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.driver.after import problems
from ..module_utils._core.driver.classify import classify, told
from ..module_utils._core.driver.fault import DKMS, KERNEL, NVML, PACKAGES
from ..module_utils._core.driver.plan import make_plan
from ..module_utils._core.driver.read import read_facts
from ..module_utils._core.driver.wish import Wish
from ..module_utils._core.errors import InferopsError


def argument_spec() -> dict:
    return {
        "branch": {"type": "int", "required": True},
        "version": {"type": "str", "default": ""},
        "kernel_module": {"type": "str", "choices": ["open", "closed"], "default": "open"},
        "source": {"type": "str", "choices": ["nvidia", "distribution", "mirror", "offline"], "default": "nvidia"},
        "display": {"type": "bool", "default": False},
        "cuda": {"type": "str", "default": "13.0"},
        "cuda_toolkit": {"type": "str", "default": ""},
        "cuda_toolkit_compiler_only": {"type": "bool", "default": True},
        "fabric_manager": {"type": "str", "choices": ["auto", "present", "absent"], "default": "auto"},
        "container_toolkit": {"type": "bool", "default": False},
        "reboot_allowed": {"type": "bool", "default": False},
        "reboot_window": {"type": "str", "default": ""},
        "reload_allowed": {"type": "bool", "default": False},
        "stop_units": {"type": "list", "elements": "str", "default": []},
        "source_file": {"type": "path", "default": "/etc/apt/sources.list.d/inferops-nvidia.sources"},
        "controller_boot_id": {"type": "str", "default": ""},
        "logs": {"type": "bool", "default": False},
        "package_output": {"type": "str", "default": ""},
        "nvml_output": {"type": "str", "default": ""},
    }


def wish_of(p: dict) -> Wish:
    return Wish(
        branch=p["branch"],
        version=p["version"],
        flavour=p["kernel_module"],
        source=p["source"],
        full=p["display"],
        cuda=p["cuda"],
        toolkit=p["cuda_toolkit"],
        toolkit_compiler_only=p["cuda_toolkit_compiler_only"],
        fabric_manager=p["fabric_manager"],
        container_toolkit=p["container_toolkit"],
        reboot_allowed=p["reboot_allowed"],
        reboot_window=p["reboot_window"],
        reload_allowed=p["reload_allowed"],
        stop_units=tuple(p["stop_units"]),
        own_source=p["source_file"],
    )


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    p = module.params

    def run(argv):
        if module.get_bin_path(argv[0], opt_dirs=["/usr/sbin", "/sbin"]) is None:
            return 127, ""
        status, out, dummy = module.run_command(list(argv), environ_update={"LC_ALL": "C", "LANG": "C"})
        return status, out

    try:
        wish = wish_of(p)
    except InferopsError as exc:
        module.fail_json(msg=str(exc), **exc.details)
    facts = read_facts(run, controller_boot_id=p["controller_boot_id"])
    plan = make_plan(facts, wish)
    texts = {PACKAGES: p["package_output"], NVML: p["nvml_output"]}
    if p["logs"]:
        logs = sorted(Path("/var/lib/dkms").glob("nvidia*/*/build/make.log"))
        texts |= {KERNEL: run(["dmesg"])[1], DKMS: "\n".join(log.read_text(errors="replace") for log in logs)}
    findings = classify(texts)
    known = {key: sorted(value) if isinstance(value, frozenset) else value for key, value in asdict(facts).items()}
    module.exit_json(
        changed=False,
        facts=known,
        plan=plan.as_dict(),
        problems=problems(facts, plan),
        findings=[finding.as_dict() for finding in findings],
        findings_text=told(findings),
    )


if __name__ == "__main__":
    main()
