# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Let torch, triton and nvidia-smi answer like a host with GPUs. All is put in below SGLang, whose code stays as published."""

from __future__ import annotations

import contextlib
import os
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cards import Cards

CUDA = "13.0"
_NVIDIA_SMI = """#!/bin/sh
case "$*" in
*memory.total*) answer={memory} ;;
*compute_cap*) answer={major}.{minor} ;;
*name*) answer='{name}' ;;
*) echo 'Driver Version: 580.00  CUDA Version: {cuda}'; exit ;;
esac
card=0
while [ $card -lt {count} ]; do echo "$answer"; card=$((card + 1)); done
"""


def _always(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


def pretend(cards: Cards, folder: Path) -> None:
    """Call once, before SGLang is imported. ``folder``: an empty one for the programs put on PATH."""
    _put_nvidia_smi(cards, folder)
    _answer_for_cuda(cards)
    _tolerate_missing_operators()
    _fill_renamed(folder)


def _put_nvidia_smi(cards: Cards, folder: Path) -> None:
    major, minor = cards.capability
    program = folder / "nvidia-smi"
    program.write_text(
        _NVIDIA_SMI.format(memory=cards.memory_mib, major=major, minor=minor, name=cards.name, cuda=CUDA, count=cards.count)
    )
    program.chmod(0o755)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
    os.environ["CUDA_HOME"] = str(folder)


def _answer_for_cuda(cards: Cards) -> None:
    import torch

    total = cards.memory_mib << 20
    major, minor = cards.capability
    properties = types.SimpleNamespace(
        name=cards.name,
        total_memory=total,
        major=major,
        minor=minor,
        multi_processor_count=cards.multiprocessors,
        warp_size=32,
        is_integrated=False,
        uuid="GPU-0",
        gcnArchName="",
        L2_cache_size=96 << 20,
        regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=1536,
        shared_memory_per_block_optin=101376,
    )
    torch.version.cuda, torch.version.hip = CUDA, None
    answers = {
        "is_available": True,
        "is_initialized": True,
        "device_count": cards.count,
        "current_device": 0,
        "set_device": None,
        "get_device_capability": cards.capability,
        "get_device_name": cards.name,
        "get_device_properties": properties,
        "mem_get_info": (total - (1 << 30), total),
        "memory_allocated": 0,
        "memory_reserved": 0,
        "empty_cache": None,
        "synchronize": None,
        "_lazy_init": None,
        "get_arch_list": [f"sm_{cards.sm}"],
    }
    for name, value in answers.items():
        setattr(torch.cuda, name, _always(value))
    torch.backends.cuda.is_built = _always(True)
    torch._C._cuda_getDeviceCount = _always(cards.count)
    # A CPU build of torch lacks these; releases and triton ask for them at import.
    for holder, name, value in (
        (torch._C, "_cuda_getCurrentRawStream", 0),
        (torch._C, "_cuda_getDevice", 0),
        (torch._C, "_cuda_setDevice", None),
        (getattr(torch._C, "_cpu", None), "_is_amx_tile_supported", False),
        (getattr(torch._C, "_cpu", None), "_is_avx512_supported", False),
        (getattr(torch._C, "_cpu", None), "_is_avx512_vnni_supported", False),
    ):
        if holder is not None and not hasattr(holder, name):
            setattr(holder, name, _always(value))


def _tolerate_missing_operators() -> None:
    """SGLang registers shape functions for operators that a kernel wheel would have brought; without it they are no error."""
    import torch.library

    for name in ("register_fake", "impl_abstract"):
        real = getattr(torch.library, name, None)
        if real is not None:
            setattr(torch.library, name, _forgiving(real))


def _forgiving(register: Callable[..., Any]) -> Callable[..., Any]:
    def call(operator: Any, function: Any = None, /, **kwargs: Any) -> Any:
        def attach(target: Any) -> Any:
            with contextlib.suppress(Exception):
                register(operator, target, **kwargs)
            return target

        return attach if function is None else attach(function)

    return call


def _fill_renamed(folder: Path) -> None:
    """Names that older releases import and that the newer packages of this environment no longer have."""
    with contextlib.suppress(ImportError):
        from triton.runtime import cache

        for name in ("default_cache_dir", "default_dump_dir", "default_override_dir"):
            if not hasattr(cache, name):
                setattr(cache, name, _always(str(folder)))
    with contextlib.suppress(Exception):
        import transformers.models.mllama.image_processing_mllama as mllama

        if not hasattr(mllama, "is_valid_list_of_images"):
            mllama.is_valid_list_of_images = bool
    with contextlib.suppress(Exception):
        from transformers.utils import import_utils

        # The placeholder of a class whose package is missing raises on any attribute, even while SGLang only registers it.
        def quiet(cls: type, key: str) -> Any:
            try:
                return type.__getattribute__(cls, key)
            except AttributeError:
                if key.startswith("__"):
                    raise
                return _always(None)

        import_utils.DummyObject.__getattribute__ = quiet
