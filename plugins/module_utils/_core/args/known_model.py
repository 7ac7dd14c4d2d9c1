# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The model's configuration as SGLang sees it: config.json, plus what transformers' classes are known to add."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from . import known_configs
from .interpret.methods import from_native, to_native
from .interpret.values import MISSING, Config, Dict, External, Native, Unknown, needs_of
from .known_types import HEADS, OPEN, PROBED, PROBED_NESTED, RATIO, ROPE, TYPES

# Attributes every PretrainedConfig has (transformers 4.4x … 5.x, configuration_utils.py), absent from config.json or not.
_BASE = {
    "is_encoder_decoder": False,
    "tie_word_embeddings": True,
    "pruned_heads": None,
    "return_dict": True,
    "output_hidden_states": False,
    "_name_or_path": "",
    "name_or_path": "",
    "architectures": None,
    "quantization_config": MISSING,
    "num_labels": 2,
}
# Attributes a model's own configuration class may default when config.json does not name them: not ours to say.
_CLASS_DEFAULTS = frozenset(
    [
        "num_key_value_heads",
        "head_dim",
        "sliding_window",
        "max_position_embeddings",
        "num_hidden_layers",
        "num_attention_heads",
        "hidden_size",
        "vocab_size",
        "intermediate_size",
        "rope_theta",
        "rms_norm_eps",
        "attention_dropout",
        "hidden_act",
        "layer_types",
        "max_window_layers",
        "use_sliding_window",
        "num_experts",
        "num_local_experts",
        "n_routed_experts",
        "kv_lora_rank",
        "q_lora_rank",
        "qk_nope_head_dim",
        "qk_rope_head_dim",
        "v_head_dim",
        "attention_bias",
        "query_pre_attn_scalar",
    ]
)
# Model types of code that comes with the checkpoint (its configuration class is DeepSeek-V3's).
_REMOTE = {"kimi_k2": "deepseek_v3"}
# Nested configurations that stay plain dicts.
_PLAIN = frozenset(
    {"quantization_config", "compression_config", "speculative_config", "generation_config", "dflash_config", "dspark_config"}
)


def build(raw: Mapping[str, Any], path: str = "", parent: str = "") -> Config:
    """Return config.json as attributes; nested ``…_config`` objects become configurations of their own."""
    made = Config({}, path)
    named = str(raw.get("model_type", ""))
    made.kind = _REMOTE.get(named, named) if named in TYPES or named in _REMOTE or not path else f"{parent}.{path[:-1]}"
    for key, value in raw.items():
        if key in ("torch_dtype", "dtype") and isinstance(value, str):
            made.cells["torch_dtype"] = made.cells["dtype"] = External(f"torch.{value.removeprefix('torch.')}")
        elif isinstance(value, Mapping) and key.endswith("_config") and key not in _PLAIN:
            made.cells[key] = build(value, f"{path}{key}.", made.kind)
        else:
            made.cells[key] = from_native(value)
    _rope(made, raw)
    return made


def _rope(made: Config, raw: Mapping[str, Any]) -> None:
    """transformers 5 gathers rope_scaling and rope_theta in rope_parameters, and answers the old name with the new one."""
    scaling = raw.get("rope_parameters") or raw.get("rope_scaling")
    if scaling is None and "rope_theta" not in raw:
        return
    merged = dict(scaling or {})
    merged.setdefault("rope_type", merged.get("type", "default"))
    if "rope_theta" in raw:
        merged.setdefault("rope_theta", raw["rope_theta"])
    made.cells["rope_parameters"] = from_native(merged)


def config_attribute(interpreter: Any, config: Config, name: str) -> Any:
    """``config.name``: what config.json says, else what every configuration has, else unknown where its class may say."""
    if name in config.cells:
        if name != "architectures" or config.path:
            interpreter.read((f"model.{config.path}{name}",))
        else:
            interpreter.read((f"model.architectures={_first(config.cells[name])}",))
        return config.cells[name]
    if name in _METHODS:
        return Native(name, lambda i, args, kwargs: _METHODS[name](i, config, args, kwargs))
    kind = TYPES.get(config.kind)
    if kind is not None and name in kind:
        return _class_default(config, name, kind[name])
    told = kind is not None and (name in PROBED or (name in PROBED_NESTED and bool(config.path)))
    if name in _CLASS_DEFAULTS and not told and not config.complete:
        return Unknown((f"model.{config.path}{name}",))
    if name in ("torch_dtype", "dtype"):
        return None
    return _BASE.get(name, MISSING)


def _class_default(config: Config, name: str, value: Any) -> Any:
    """Return what a configuration class answers for a name config.json does not hold."""
    need = Unknown((f"model.{config.path}{name}",))
    if value == OPEN:
        return need
    if value in (HEADS, ROPE):
        return config.cells.get(value, need)
    if value == RATIO:
        top, bottom = (config.cells.get(part) for part in value.split(" // "))
        return top // bottom if isinstance(top, int) and isinstance(bottom, int) and bottom else need
    return value


def _first(value: Any) -> Any:
    plain = to_native(value)
    return plain[0] if isinstance(plain, list) and plain else plain


def _to_dict(interpreter: Any, config: Config, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return Dict(
        {key: _to_dict(interpreter, one, [], {}) if isinstance(one, Config) else one for key, one in config.cells.items()}
    )


def _update(interpreter: Any, config: Config, args: list[Any], kwargs: dict[str, Any]) -> None:
    if args and isinstance(args[0], Dict):
        for key, value in args[0].cells.items():
            interpreter.write(config, key, value)


def _text_config(interpreter: Any, config: Config, args: list[Any], kwargs: dict[str, Any]) -> Any:
    for key in ("text_config", "llm_config", "thinker_config", "language_config"):
        if isinstance(config.cells.get(key), Config):
            return config.cells[key]
    return config


def _get(interpreter: Any, config: Config, args: list[Any], kwargs: dict[str, Any]) -> Any:
    found = config_attribute(interpreter, config, args[0])
    return (args[1] if len(args) > 1 else None) if found is MISSING else found


_METHODS: dict[str, Callable[..., Any]] = {"to_dict": _to_dict, "update": _update, "get_text_config": _text_config, "get": _get}


class Model:
    """The model under test; other checkpoints (drafts) are known where their folder can be read here."""

    def __init__(self, raw: Mapping[str, Any] | None, path: str | None, read_text: Callable[[str], str] | None = None) -> None:
        self.raw = raw
        self.path = path
        self.read_text = read_text

    def classes(self) -> dict[str, Callable[..., Any]]:
        """Without config.json the model's derived settings are unknown as a whole."""
        return {} if self.raw is not None else {"ModelConfig": lambda i, cls, args, kwargs: Unknown(("model",))}

    def functions(self) -> dict[str, Callable[..., Any]]:
        return {
            "get_config": self._config,
            "get_generation_config": lambda i, f, a, k: None,
            "check_gguf_file": self._gguf,
            "resolve_hf_gguf_reference": self._gguf_reference,
            "normalize_rope_scaling_compat": lambda i, f, a, k: None,  # done by ``build``
            "has_hf_quant_config": lambda i, f, a, k: Unknown(("model.files",)),
            "has_fp8_weights_in_checkpoint": lambda i, f, a, k: Unknown(("model.files",)),
        }

    def exists(self, path: Any) -> Any:
        """Whether a file of the model is there: its folder and config.json, where a configuration was given."""
        if self.raw is None or not isinstance(path, str) or self.path is None:
            return Unknown(("model.files",))
        if path in (self.path, f"{self.path}/config.json"):
            return True
        # A folder may hold more settings (quantisation by ModelOpt …); config.json of such models says so too.
        return False if path.startswith(f"{self.path}/") else Unknown((f"file {path}",))

    def is_folder(self, path: Any) -> Any:
        if isinstance(path, str) and path != self.path:
            return Unknown((f"file {path}",))
        return True if self.raw is not None and path == self.path else Unknown(("model.files",))

    def is_file(self, path: Any) -> Any:
        return False if self.raw is not None and path == self.path else self.exists(path)

    def _config(self, interpreter: Any, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        asked = args[0] if args else kwargs.get("model", kwargs.get("model_path"))
        if isinstance(asked, Unknown):
            return Unknown(asked.needs)
        raw = self.raw if asked == self.path else self._other(asked)
        if raw is None:
            return Unknown(("model" if asked == self.path else f"model of {asked}",))
        made = build(raw)
        known_configs.complete(interpreter, made, raw)
        override = kwargs.get("model_override_args")
        if isinstance(override, Dict):
            for key, value in override.cells.items():
                self._override(made, key, value)
        elif isinstance(override, Unknown):
            return Unknown(override.needs)
        return made

    def _other(self, path: Any) -> Mapping[str, Any] | None:
        """Return the config.json of another checkpoint, None where it is not a folder that can be read here."""
        if self.read_text is None or not isinstance(path, str):
            return None
        try:
            raw = json.loads(self.read_text(f"{path}/config.json"))
        except (OSError, ValueError, RecursionError):
            return None
        return raw if isinstance(raw, dict) else None

    @staticmethod
    def _override(config: Config, key: Any, value: Any) -> None:
        current = config.cells.get(key)
        if isinstance(value, Dict) and isinstance(current, Config):
            current.cells |= value.cells
        else:
            config.cells[key] = value

    def _gguf(self, interpreter: Any, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        asked = args[0] if args else None
        if isinstance(asked, str):
            return Unknown(("model.files",)) if asked.endswith(".gguf") else False
        return Unknown(("model.files",))

    def _gguf_reference(self, interpreter: Any, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A GGUF file to be fetched from the hub (0.5.19 on): none where the name does not speak of GGUF."""
        asked = args[0] if args else None
        if asked == self.path and self.raw is not None:
            return None
        if isinstance(asked, str):
            return Unknown((f"file {asked}",)) if "gguf" in asked.lower() or ":" in asked else None
        return Unknown(needs_of(asked) or {"model.files"})
