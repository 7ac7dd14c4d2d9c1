"""Let SGLang import on a machine without a GPU: no kernel wheel for the CPU exists, and its layers take their torch path.

On PYTHONPATH of the recorded engine, or installed beside it (`tests/fakes/build cpu-wheel`).  Nothing of SGLang is edited.
What it does to torch happens when SGLang or torchvision is imported, by whatever process: the check asks the release from one
whose command line names no SGLang.
"""

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Absent(ModuleType):
    """A module whose every attribute is a function that raises when called."""

    def __getattr__(self, name):
        if name.startswith("__") or name == "scalar_type":
            raise AttributeError(name)

        def absent(*_args, **_kwargs):
            raise RuntimeError(f"{self.__name__}.{name} is a stand-in: no such kernel on this machine")

        absent.default = absent
        return absent


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, fullname, path=None, target=None):
        if fullname in ("torchvision", "sglang.srt"):
            _patch_torch()
        if fullname == "sgl_kernel.scalar_type":
            raise ModuleNotFoundError(fullname, name=fullname)  # SGLang then uses its own
        if fullname == "sgl_kernel" or fullname.startswith("sgl_kernel."):
            return ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        module = _Absent(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module):
        import torch

        torch.ops.sgl_kernel = _Absent("torch.ops.sgl_kernel")


def _patch_torch():
    import torch.library

    real = torch.library.register_fake
    if real.__module__ == __name__:
        return

    def register_fake(op, *args, **kwargs):
        if isinstance(op, str) and op.split("::")[0] in {"torchvision", "sgl_kernel"}:
            return (lambda function: function) if not args or args[0] is None else None
        return real(op, *args, **kwargs)

    torch.library.register_fake = register_fake


sys.meta_path.insert(0, _Finder())
