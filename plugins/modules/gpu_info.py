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
  - Changes nothing.
options: {}
attributes:
  check_mode:
    description: Reads only, so check mode does the same.
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
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.gate.nvml import gpu_facts


def main() -> None:
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    module.exit_json(changed=False, **gpu_facts())


if __name__ == "__main__":
    main()
