# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Stand-ins for packages that exist only for GPU hosts: importable, answer anything, say they have the version a release pins."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import re
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

PACKAGES = (
    # kernels and what they are built with
    *("sgl_kernel", "sgl_fa4", "flashinfer", "flashinfer_cubin", "flashinfer_jit_cache", "flash_attn", "flash_attn_interface"),
    *("flash_mla", "deep_gemm", "deep_ep", "cuda", "cuda_pathfinder", "cutlass", "quack", "tilelang", "triton_kernels", "aiter"),
    *("apache_tvm_ffi", "tvm_ffi", "torchao", "humming", "kernels", "fla", "causal_conv1d", "mamba_ssm", "vllm", "nvidia"),
    *("fast_hadamard_transform", "nvshmem", "numba"),
    # transfer and memory
    *("mooncake", "nixl", "mori", "hf3fs", "lmcache", "torch_memory_saver"),
    # media, grammars, servers, tools
    *("torchcodec", "torchaudio", "torchvision", "decord", "soundfile", "soxr", "librosa", "av", "timm"),
    *("xgrammar", "llguidance", "outlines_core", "mistral_common", "tml_renderers", "deepseek_recipe"),
    *("smg_grpc_servicer", "smg_grpc_proto", "litellm", "easydict", "watchfiles", "py_spy", "blobfile", "gguf"),
)
# Newer than any version a release asks for.
_VERSION = "99.0.0"
_KERNEL_WHEELS = ("sgl-kernel", "sglang-kernel")


class _AnythingType(type):
    def __getattr__(cls, name: str) -> Any:
        return _attribute(name)

    def __or__(cls, other: Any) -> Any:
        return typing.Any

    __ror__ = __or__

    def __iter__(cls) -> Iterator[Any]:
        return iter(())


def _attribute(name: str) -> Any:
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    return Anything


def _decorated(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the function or class that a call only decorates, else None."""
    alone = len(args) == 1 and not kwargs and isinstance(args[0], (types.FunctionType, type))
    return args[0] if alone else None


class Anything(metaclass=_AnythingType):
    """A class, base class, decorator, context manager or constant of a package that is not there. False in conditions."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return _decorated(args, kwargs) or object.__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _decorated(args, kwargs) or self

    def __getattr__(self, name: str) -> Any:
        return _attribute(name)

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def __init_subclass__(cls, **kwargs: Any) -> None:
        pass

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.any_schema()

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __bool__(self) -> bool:
        return False

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *dummy: object) -> bool:
        return False


class _Package(types.ModuleType):
    version = _VERSION

    def __getattr__(self, name: str) -> Any:
        return self.version if name == "__version__" else _attribute(name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names: Iterable[str], versions: dict[str, str]) -> None:
        self.names, self.versions = frozenset(names), versions

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        known = fullname.partition(".")[0] in self.names
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True) if known else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = _Package(spec.name)
        module.version = self.versions.get(_distribution(spec.name.partition(".")[0]), _VERSION)
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__path__ = []
        module.__file__ = f"/stand-in/{module.__name__.replace('.', '/')}/__init__.py"


def _distribution(name: str) -> str:
    return name.lower().replace("_", "-")


def pinned(source: Path) -> dict[str, str]:
    """Return the versions that the release's own metadata asks for, by normalised distribution name."""
    found: dict[str, str] = {}
    for path in source.glob("sglang-*.dist-info/METADATA"):
        for name, version in re.findall(
            r"^Requires-Dist: ([\w.-]+)(?:\[[^]]*\])?\s*\(?(?:==|>=)([^;,)\s]+)", path.read_text(encoding="utf-8"), re.M
        ):
            found.setdefault(_distribution(name), version)
    return found


def install(source: Path) -> None:
    """Make imports and version queries of missing packages succeed. ``source``: the folder with sglang and its dist-info."""
    versions = pinned(source)
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    sys.meta_path.append(_Finder(missing, versions))
    real = importlib.metadata.version
    standing_in = {*map(_distribution, missing), *_KERNEL_WHEELS}

    def version(name: str) -> str:
        try:
            return real(name)
        except importlib.metadata.PackageNotFoundError:
            key = _distribution(name)
            if key in versions:
                return versions[key]
            if key in standing_in:
                return _VERSION
            raise

    importlib.metadata.version = version
