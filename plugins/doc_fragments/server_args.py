# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a command line of SGLang, its host and its model are called in every module that takes them."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  argv:
    description: Arguments in launch order, one list element per word, without the program. Not together with O(args).
    type: list
    elements: str
  args:
    description:
      - Arguments keyed by SGLang's field names; rendered with the flag table of the release they are for.
      - A value of V(null), and V(false) for a plain switch, is left out.
    type: dict
  model_config_path:
    description:
      - The model's C(config.json), or the folder that holds it.
      - Without it whatever depends on the model stays undecided.
    type: path
  facts:
    description:
      - What is known of the host, with the keys C(platform), C(gpu_name), C(gpu_count), C(sm), C(gpu_memory_mib) [MiB per card],
        C(gpu_bandwidth_gb_s) [GB/s], C(cuda_version), C(driver_version), C(packages).
      - An absent key is unknown, not false; an unknown key is an error.
    type: dict
    default: {}
  env:
    description: Environment of the server, such as E(SGLANG_PP_LAYER_PARTITION).
    type: dict
    default: {}
  accept:
    description: Findings to let pass. What SGLang itself refuses cannot be accepted.
    type: list
    elements: dict
    default: []
    suboptions:
      code:
        description: Code of the finding, such as V(SGA301).
        type: str
        required: true
      reason:
        description: Why it is right here; kept in the result.
        type: str
        required: true
      expires:
        description: Last day the acceptance counts, as YYYY-MM-DD. Without it, it does not end.
        type: str
"""
