# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Weights of a vision tower. SGLang makes it on every pipeline stage: the wrapper's __init__ asks for no rank.

Source: srt/models/kimi_k25.py (KimiK25ForConditionalGeneration.__init__, 0.5.10 … 0.5.23); defaults of absent keys:
KimiK25VisionConfig in srt/configs/kimi_k25.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .families import first_of

# Architectures whose tower is this one. Any other's is named as not counted.
MOONVIT_3D = ("KimiK25ForConditionalGeneration",)
CHANNELS = 3


def vision_parameters(architecture: str | None, config: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return (parameters tensor parallelism splits, parameters every rank holds), None where the tower is not known here.

    >>> vision_parameters("KimiK25ForConditionalGeneration", {"vision_config": {}})
    (411342192, 59801728)
    """
    vision = config.get("vision_config")
    if architecture not in MOONVIT_3D or not isinstance(vision, Mapping):
        return None

    def size(default: int, *keys: str) -> int:
        value = first_of(vision, *keys)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default

    width = size(1152, "vt_hidden_size", "hidden_size")
    inner = size(4304, "vt_intermediate_size", "intermediate_size")
    layers = size(27, "vt_num_hidden_layers", "num_hidden_layers")
    patch = size(14, "patch_size")
    height, across = size(64, "init_pos_emb_height"), size(64, "init_pos_emb_width")
    merge = vision.get("merge_kernel_size")
    merged = width * (merge[0] * merge[1] if isinstance(merge, (list, tuple)) and len(merge) == 2 else 4)
    out = size(7168, "text_hidden_size")
    attention = 4 * width * width + 4 * width
    mlp = 2 * width * inner + width + inner
    embedding = CHANNELS * patch * patch * width + width + height * across * width
    norms = (2 * layers + 2) * 2 * width
    projector = merged * merged + merged + merged * out + out
    return layers * (attention + mlp), embedding + norms + projector
