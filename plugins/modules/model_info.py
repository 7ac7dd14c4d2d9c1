#!/usr/bin/python
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Module model_info: what a model folder holds, and whether its weights are all there."""

from __future__ import annotations

DOCUMENTATION = r"""
module: model_info
short_description: Read a model folder and verify that its weights are complete
version_added: 0.1.0
author: [Inferops (@inferops)]
description:
  - Reads C(config.json), and compares the weight files with C(model.safetensors.index.json) and with their own headers.
  - Reads no weights, so that a folder of 600 GB takes seconds. A file that is missing, cut short, a pickle, a Git LFS pointer
    or of another model fails the task by name, and so do weights of fewer layers than the config says.
  - Changes nothing and downloads nothing.
options:
  path:
    description: Folder that holds C(config.json) and the weights.
    type: path
    required: true
  weights_required:
    description: Whether a folder without any weights fails. Weights that are there must be complete in any case.
    type: bool
    default: true
  accepted_code:
    description:
      - SHA-256 of each Python file of the folder, by its path in it, as somebody read and accepted it.
      - A file that changed, was added or is gone fails the task by name. Empty means that nothing is said about code.
    type: dict
    default: {}
  tp_size:
    description: Tensor parallel ranks, for RV(stages).
    type: int
    default: 1
  pp_size:
    description: Pipeline stages, for RV(stages).
    type: int
    default: 1
  partition:
    description: Layers of each stage as C(SGLANG_PP_LAYER_PARTITION) has them, such as V(8,8,8); empty is SGLang's own split.
    type: str
    default: ""
  kv_cache_dtype:
    description: As C(--kv-cache-dtype) has it, for RV(stages).
    type: str
    default: auto
  source_root:
    description: Folder that holds the C(sglang) package of a release, for RV(parsers). Read, not imported.
    type: path
attributes:
  check_mode:
    description: Reads only, so check mode does the same.
    support: full
  diff_mode:
    description: Nothing is changed.
    support: none
requirements:
  - Python 3.11 or newer on the target
"""

EXAMPLES = r"""
- name: Verify the weights before anything is stopped
  inferops.sglang.model_info:
    path: /srv/models/kimi-k2.6
    pp_size: 8
  register: model

- name: Say what it is
  ansible.builtin.debug:
    msg: "{{ model.architectures[0] }}, {{ model.num_layers }} layers, {{ model.weights_bytes }} bytes on disk"
"""

RETURN = r"""
path:
  description: The folder.
  returned: success
  type: str
config:
  description: Content of C(config.json), as the argument check and the gate take it.
  returned: success
  type: dict
architectures:
  description: Names by which SGLang chooses the model's code.
  returned: success
  type: list
  elements: str
  sample: [KimiK25ForConditionalGeneration]
num_layers:
  description: Decoder layers; V(null) where the config does not say.
  returned: success
  type: int
  sample: 61
context_tokens:
  description: Longest context the config allows [tokens]; V(null) where it does not say.
  returned: success
  type: int
quantization:
  description: Quantization method; V(null) for none.
  returned: success
  type: str
  sample: compressed-tensors
counted_weights_bytes:
  description: Weights of the language model counted from the config [bytes]; V(null) for an architecture that is not known.
  returned: success
  type: int
parameters:
  description: Parameters counted from the config; V(null) for an architecture that is not known.
  returned: success
  type: int
  sample: 1026000000000
stages:
  description: >-
    One card of each stage with C(pp_rank), C(layers), C(weights_bytes) and C(kv_bytes_per_token), counted from the config;
    V(null) for an architecture that is not known.
  returned: success
  type: list
  elements: dict
  sample: [{pp_rank: 0, layers: 7, weights_bytes: 63100000000, kv_bytes_per_token: 8064}]
parsers:
  description: >-
    For C(tool_call) and C(reasoning) the parsers that the release has (C(known)) and those that are called like the model
    (C(alike), the longest name first). The model's card says which one it needs.
  returned: when O(source_root) is given
  type: dict
weights_bytes:
  description: Size of all weight files on disk [bytes]; 0 without weights.
  returned: success
  type: int
index:
  description: Name of the index file; V(null) where a single file or none holds the weights.
  returned: success
  type: str
shards:
  description: Number of weight files, all present and whole.
  returned: success
  type: int
  sample: 64
code_files:
  description: SHA-256 of each Python file of the folder by its path in it; SGLang runs them with C(--trust-remote-code).
  returned: success
  type: dict
  sample: {configuration_kimi_k25.py: 1f0c6c0f...}
"""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._core.errors import InferopsError
from ..module_utils._core.topology.checkpoint import model_facts
from ..module_utils._core.topology.described import parameters, parsers, stages

SPEC = {
    "path": {"type": "path", "required": True},
    "weights_required": {"type": "bool", "default": True},
    "accepted_code": {"type": "dict", "default": {}},
    "tp_size": {"type": "int", "default": 1},
    "pp_size": {"type": "int", "default": 1},
    "partition": {"type": "str", "default": ""},
    "kv_cache_dtype": {"type": "str", "default": "auto"},
    "source_root": {"type": "path"},
}


def main() -> None:
    module = AnsibleModule(argument_spec=SPEC, supports_check_mode=True)
    options = {name: module.params[name] for name in ("weights_required", "accepted_code")}
    try:
        facts = model_facts(module.params["path"], **options)
        cards = {name: module.params[name] for name in ("tp_size", "pp_size", "partition", "kv_cache_dtype")}
        facts |= {"parameters": parameters(facts["config"]), "stages": stages(facts["config"], **cards)}
        if module.params["source_root"]:
            facts["parsers"] = parsers(Path(module.params["source_root"]) / "sglang", facts["config"])
    except InferopsError as exc:
        module.fail_json(msg=str(exc), **exc.details)
    module.exit_json(changed=False, **facts)


if __name__ == "__main__":
    main()
