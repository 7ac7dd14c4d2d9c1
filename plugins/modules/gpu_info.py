#!/usr/bin/python
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Module gpu_info: what NVML says about the cards of a host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_info
short_description: Read the GPUs of a host through NVML
version_added: 0.1.0
author: [Inferops (@inferops)]
description:
  - Returns facts about cards and driver in the shape that the argument check, the memory plan and the gate take.
  - A host without NVML or without the Python package nvidia-ml-py is not a failure. RV(available) is then false and every
    fact is absent, which means unknown and not zero.
  - Changes nothing on the cards. With O(measure_bandwidth) it copies within the memory of idle cards for a second each.
options:
  measure_bandwidth:
    description:
      - Whether to measure the memory bandwidth of idle cards by copies through the CUDA driver, for the bound of the gate.
      - A card with a process on it, or with more than 2 GiB taken, is left alone.
    type: bool
    default: false
  create_contexts:
    description:
      - Whether to create a CUDA context on every idle card and make a small copy there, in processes of their own
        with a time limit.
      - NVML may list a card on which CUDA fails, for example where the device node nvidia-uvm is missing.
    type: bool
    default: false
  bandwidth_file:
    description: File on the target that keeps what was measured, so that a card that serves is still known.
    type: path
attributes:
  check_mode:
    description: Reads only, so check mode does the same; but it creates no context, measures nothing and keeps nothing.
    support: full
  diff_mode:
    description: Nothing is changed.
    support: none
requirements:
  - Python 3.11 or newer and nvidia-ml-py on the target
"""

EXAMPLES = r"""
- name: Read the cards
  inferops.sglang.gpu_info:
  register: cards

- name: Measure the memory of the cards while nothing runs on them
  inferops.sglang.gpu_info:
    measure_bandwidth: true
    bandwidth_file: /var/lib/inferops/bandwidth.json

- name: Stop where a card is missing
  ansible.builtin.assert:
    that: [cards.available, cards.facts.gpu_count == 8]
"""

RETURN = r"""
available:
  description: Whether NVML answered.
  returned: always
  type: bool
reason:
  description: Why it did not, else null.
  returned: always
  type: str
facts:
  description:
    - Keys C(platform), C(gpu_name), C(gpu_count), C(sm), C(gpu_memory_mib), C(driver_version), C(cuda_version), as far as known.
    - C(gpu_name), C(sm) and C(gpu_memory_mib) are absent when the cards differ.
  returned: always
  type: dict
  sample: {platform: cuda, gpu_name: NVIDIA RTX PRO 6000 Blackwell Server Edition, gpu_count: 8, sm: 120, gpu_memory_mib: 97887}
gpus:
  description:
    - One entry per card with C(index), C(uuid), C(name), C(sm), C(memory_mib), C(power_limit_w), C(power_limit_range_w),
      C(persistence_mode), C(ecc), C(pci_bus_id). A value that the card does not tell is null.
  returned: always
  type: list
  elements: dict
contexts:
  description:
    - With O(create_contexts), one entry per card in the order of RV(gpus), with C(uuid), C(works) and C(said).
    - C(works) is null for a card that was left alone, and C(said) tells why.
  returned: always
  type: list
  elements: dict
bandwidths_gb_s:
  description:
    - Memory bandwidth of each card in the order of RV(gpus) [GB/s], read and written bytes of a copy together.
    - Null where that of one card is neither measured nor known from before.
  returned: always
  type: list
  elements: float
bandwidth_notes:
  description: Why cards were not measured.
  returned: always
  type: list
  elements: str
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.gate.card_bandwidth import card_bandwidths, card_contexts
from ..module_utils._core.gate.nvml import gpu_facts


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "measure_bandwidth": {"type": "bool", "default": False},
            "create_contexts": {"type": "bool", "default": False},
            "bandwidth_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    p = module.params
    file = None if p["bandwidth_file"] is None else Path(p["bandwidth_file"])
    measured = card_bandwidths(allowed=p["measure_bandwidth"] and not module.check_mode, file=file)
    contexts = card_contexts(allowed=p["create_contexts"] and not module.check_mode)
    module.exit_json(changed=False, **gpu_facts(), **contexts, **measured)


if __name__ == "__main__":
    main()
