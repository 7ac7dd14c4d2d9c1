# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The shape of a model as config.json tells it: layers, bytes by part, cache bytes. What it does not tell is None."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .families import FAMILIES, Family, expert_count, first_of, is_moe_layer, shared_expert_width, text_config
from .quantization import Quantization
from .vision import vision_parameters

BITS_PER_BYTE = 8
MAX_LAYERS = 10_000
"""More is a damaged config, not a model."""
# --kv-cache-dtype values whose element size is known (SGLang 0.5.23 choices); auto follows the model's dtype.
KV_ELEMENT_BYTES = {"fp8_e4m3": 1.0, "fp8_e5m2": 1.0, "bf16": 2.0, "bfloat16": 2.0}


@dataclass(frozen=True)
class Layer:
    """Weight bytes of one decoder layer. Sharded parts divide by tp_size, replicated ones do not."""

    attention: float
    attention_replicated: float
    dense: float
    """Dense MLP, or the shared experts of an MoE layer."""
    router: float
    expert: float
    """One routed expert; 0 in a dense layer."""
    experts: int
    active: int
    window: int | None = None
    """Tokens a sliding-window layer looks back; None = all."""

    @property
    def total(self) -> float:
        return self.attention + self.attention_replicated + self.dense + self.router + self.expert * self.experts

    def held(self, tp_size: int, attention_tp: int | None = None) -> float:
        """Bytes one rank of tp_size holds. attention_tp: ranks that share one copy of the attention, fewer under DP attention.

        Experts take the same room under expert parallelism: fewer of them instead of narrower ones.
        """
        split = self.attention / (attention_tp or tp_size)
        return split + (self.dense + self.expert * self.experts) / tp_size + self.attention_replicated + self.router


@dataclass(frozen=True)
class ModelShape:
    """What a config.json says about size. ``unknown`` names what it does not; those values are None."""

    architecture: str | None
    family: Family | None
    num_layers: int | None
    hidden_size: int | None
    vocab_size: int | None
    context_tokens: int | None
    quantization: str | None
    dtype_bytes: float | None
    layers: tuple[Layer, ...] | None
    embedding_bytes: float | None
    head_bytes: float | None
    head_tied: bool
    kv_elements: int | None
    """Cached elements per token and layer: MLA latent + rope; else 2 × head_dim for one KV head."""
    kv_heads: int | None
    """KV heads that tensor parallelism can split; None for MLA, whose cache every rank holds whole."""
    vision_split_bytes: float = 0.0
    """Vision tower: what tensor parallelism splits. Every pipeline stage holds the whole tower."""
    vision_whole_bytes: float = 0.0
    uncounted: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> ModelShape:
        """Read a Hugging Face config.json (already parsed). Never raises: what is missing is named in ``unknown``."""
        text = text_config(config)
        names = config.get("architectures")
        architecture = str(names[0]) if isinstance(names, list) and names else None
        family = FAMILIES.get(architecture) if architecture else None
        dtype = first_of(text, "torch_dtype", "dtype") or first_of(config, "torch_dtype", "dtype")
        quantization = Quantization.from_config(first_of(config, "quantization_config") or text.get("quantization_config"), dtype)
        missing = [] if architecture else ["architectures"]
        if architecture and family is None:
            missing.append(f"weights of {architecture}")
        layers = _layers(text, family, quantization, missing) if family else None
        hidden, vocab = _whole(text, "hidden_size"), _whole(text, "vocab_size")
        full = quantization.full_bits
        table = hidden * vocab / BITS_PER_BYTE if hidden and vocab else None
        head_bits = quantization.bits("lm_head")
        kv_elements, kv_heads = _cache(text, family)
        vision = vision_parameters(architecture, config) if full else None
        return cls(
            architecture=architecture,
            family=family,
            num_layers=_whole(text, "num_hidden_layers"),
            hidden_size=hidden,
            vocab_size=vocab,
            context_tokens=_whole(text, "max_position_embeddings"),
            quantization=quantization.method,
            dtype_bytes=full / BITS_PER_BYTE if full else None,
            layers=layers,
            embedding_bytes=table * full if table and full else None,
            head_bytes=table * head_bits if table and head_bits else None,
            head_tied=bool(first_of(text, "tie_word_embeddings")),
            kv_elements=kv_elements,
            kv_heads=kv_heads,
            vision_split_bytes=vision[0] * full / BITS_PER_BYTE if vision and full else 0.0,
            vision_whole_bytes=vision[1] * full / BITS_PER_BYTE if vision and full else 0.0,
            uncounted=("vision tower",) if vision is None and isinstance(config.get("vision_config"), Mapping) else (),
            unknown=tuple(dict.fromkeys(missing)),
        )

    @property
    def weights_bytes(self) -> float | None:
        """All weights: decoder layers, embedding, head, vision tower (norms are left out: below 0.01 %)."""
        if self.layers is None or self.embedding_bytes is None or self.head_bytes is None:
            return None
        language = sum(layer.total for layer in self.layers) + self.embedding_bytes + (0 if self.head_tied else self.head_bytes)
        return language + self.vision_split_bytes + self.vision_whole_bytes

    def vision_held(self, tp_size: int) -> float:
        """Bytes of the vision tower on one card, the same on every stage."""
        return self.vision_split_bytes / tp_size + self.vision_whole_bytes

    def kv_bytes(self, *, tp_size: int = 1, kv_cache_dtype: str = "auto") -> float | None:
        """Cache bytes per token and layer on one rank; MLA caches are replicated under TP, KV heads are split."""
        element = self.dtype_bytes if kv_cache_dtype == "auto" else KV_ELEMENT_BYTES.get(kv_cache_dtype)
        if self.kv_elements is None or element is None:
            return None
        heads = 1 if self.kv_heads is None else -(-self.kv_heads // tp_size)
        return self.kv_elements * heads * element


def _whole(config: Mapping[str, Any], key: str) -> int | None:
    value = config.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _layers(text: Mapping[str, Any], family: Family, quantization: Quantization, missing: list[str]) -> tuple[Layer, ...] | None:
    count = _whole(text, "num_hidden_layers")
    if count is None or count > MAX_LAYERS:
        missing.append("num_hidden_layers")
        return None
    try:
        layers = [_layer(text, family, quantization, index, missing) for index in range(count)]
    except (TypeError, ValueError, ZeroDivisionError) as exc:
        missing.append(f"a value of another kind than expected ({exc})")
        return None
    known = tuple(layer for layer in layers if layer is not None)
    return known if len(known) == count else None


def _layer(text: Mapping[str, Any], family: Family, quantization: Quantization, index: int, missing: list[str]) -> Layer | None:
    moe = is_moe_layer(text, index)
    needs = ["hidden_size", "num_attention_heads", *(["num_experts_per_tok"] if moe else [])]
    if family == "mla":
        needs += ["kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"]
    width_key = "moe_intermediate_size" if moe and text.get("moe_intermediate_size") else "intermediate_size"
    absent = [key for key in (*needs, width_key) if _whole(text, key) is None]
    if absent:
        missing += absent
        return None
    prefix = f"model.layers.{index}"

    def size(parameters: float, module: str) -> float | None:
        bits = quantization.bits(f"{prefix}.{module}")
        return None if bits is None else parameters * bits / BITS_PER_BYTE

    hidden, width = int(text["hidden_size"]), int(text[width_key])
    sharded, replicated = _attention(text, family)
    expert_names = "mlp.experts.0.gate_proj"
    parts = {
        "attention": size(sharded, "self_attn.o_proj"),
        "attention_replicated": size(replicated, "self_attn.kv_a_proj_with_mqa"),
        "dense": size(3 * hidden * shared_expert_width(text), "mlp.shared_experts.gate_proj")
        if moe
        else size(3 * hidden * width, "mlp.gate_proj"),
        "expert": size(3 * hidden * width, expert_names) if moe else 0.0,
        "router": hidden * expert_count(text) * quantization.full_bits / BITS_PER_BYTE if moe and quantization.full_bits else 0.0,
    }
    if quantization.full_bits is None:
        missing.append("torch_dtype")
        return None
    if any(value is None for value in parts.values()):
        missing.append(f"bytes per parameter of quantization {quantization.method}")
        return None
    kinds = text.get("layer_types")
    sliding = isinstance(kinds, list) and index < len(kinds) and kinds[index] == "sliding_attention"
    return Layer(
        **{name: float(value or 0.0) for name, value in parts.items()},
        experts=expert_count(text) if moe else 0,
        active=int(text["num_experts_per_tok"]) if moe else 0,
        window=_whole(text, "sliding_window") if sliding else None,
    )


def _attention(text: Mapping[str, Any], family: Family) -> tuple[float, float]:
    """Parameters of the attention projections: those tensor parallelism splits, those every rank holds.

    Sources: srt/models/deepseek_v2.py (q_a and kv_a are replicated), llama.py (qkv, o).
    """
    hidden, heads = int(text["hidden_size"]), int(text["num_attention_heads"])
    if family == "mla":
        latent, rope = int(text["kv_lora_rank"]), int(text["qk_rope_head_dim"])
        nope, value = int(text["qk_nope_head_dim"]), int(text["v_head_dim"])
        q_rank = _whole(text, "q_lora_rank")
        query = (q_rank or hidden) * heads * (nope + rope)
        return query + latent * heads * (nope + value) + heads * value * hidden, (q_rank or 0) * hidden + hidden * (latent + rope)
    dim = _whole(text, "head_dim") or hidden // heads
    kv_heads = _whole(text, "num_key_value_heads") or heads
    return 2 * hidden * heads * dim + 2 * hidden * kv_heads * dim, 0.0


def _cache(text: Mapping[str, Any], family: Family | None) -> tuple[int | None, int | None]:
    if family == "mla":
        latent, rope = _whole(text, "kv_lora_rank"), _whole(text, "qk_rope_head_dim")
        return (latent + rope if latent and rope else None), None
    hidden, heads = _whole(text, "hidden_size"), _whole(text, "num_attention_heads")
    if family is None or not hidden or not heads:
        return None, None
    return 2 * (_whole(text, "head_dim") or hidden // heads), _whole(text, "num_key_value_heads") or heads
