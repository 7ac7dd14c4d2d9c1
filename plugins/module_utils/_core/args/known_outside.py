# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The world outside SGLang's source: torch's probes, the standard library, files, packages."""

from __future__ import annotations

import ast
import math
import re
import sys
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

from .facts import Facts
from .interpret.builtin import PURE_EXTERNAL, pure_external
from .interpret.limits import searchable
from .interpret.methods import from_native
from .interpret.values import (
    MISSING,
    SMEARED,
    Class,
    Config,
    Dict,
    External,
    Function,
    Instance,
    List,
    Native,
    Obj,
    Raised,
    Record,
    Unknown,
    View,
    needs_of,
)
from .known_hardware import Host
from .known_model import Model

# Attributes of torch that only its builds for one platform have.
_TORCH_PARTS = {"npu": "npu", "hpu": "hpu", "musa": "musa"}
_TORCH_ALWAYS = frozenset({"cuda", "xpu", "mps", "cpu", "backends", "version", "distributed"})
_AVAILABLE = {
    "torch.cuda.is_available": {"cuda", "hip"},
    "torch.xpu.is_available": {"xpu"},
    "torch.npu.is_available": {"npu"},
    "torch.hpu.is_available": {"hpu"},
    "torch.mps.is_available": {"mps"},
    "torch.backends.mps.is_available": {"mps"},
    "torch.musa.is_available": {"musa"},
}
# Packages that SGLang's own requirements bring on CUDA; their absence would be a broken installation.
_REQUIRED = frozenset(
    [
        "flashinfer",
        "flashinfer_python",
        "flashinfer_cubin",
        "sgl_kernel",
        "triton_kernels",
        "xgrammar",
        "outlines",
        "llguidance",
        "torch",
        "torchao",
        "torchvision",
        "transformers",
        "triton",
        "msgspec",
        "orjson",
        "pydantic",
        "fastapi",
        "uvicorn",
        "uvloop",
        "zmq",
        "numpy",
        "requests",
        "aiohttp",
        "huggingface_hub",
        "compressed_tensors",
        "cutlass",
        "cuda",
        "pynvml",
    ]
)
# Packages that its requirements for CUDA do not bring: there only where told.
_EXTRA = frozenset({"vllm"})
_REQUIRES = re.compile(r"^Requires-Dist:\s*([\w.-]+)(.*)$", re.MULTILINE)
# Plain values of the standard library, on the 64-bit Linux that SGLang runs on.
_VALUES = {
    "typing.TYPE_CHECKING": False,
    "sys.platform": "linux",
    "sys.maxsize": (1 << 63) - 1,
    "math.inf": math.inf,
    "math.pi": math.pi,
}
# Registries filled by decorators: which text a file must hold to take part.
_REGISTRIES = {"_MODEL_OVERRIDE_FNS": "register", "_PREDICATE_OVERRIDE_FNS": "register"}
_REGISTERS = ("register_model_override", "register_model_override_predicate", "_register_for", "_register")


class Outside:
    """Answers for names, attributes and calls that lead out of the source."""

    def __init__(self, host: Host, model: Model, facts: Facts) -> None:
        self.host = host
        self.model = model
        self.facts = facts
        self.scanned = False

    def name(self, interpreter: Any, module: Any, name: str) -> Any:
        if name == "current_platform":
            return self._platform(interpreter)
        if name in _REGISTRIES and not self.scanned:
            self._scan(interpreter, module)
            return module.cells.get(name, MISSING)
        return MISSING

    def _platform(self, interpreter: Any) -> Any:
        """The built-in platform object; a plugin's is out of reach."""
        names = {
            "cuda": "CudaSRTPlatform",
            "hip": "RocmSRTPlatform",
            "cpu": "CpuSRTPlatform",
            "npu": "NPUSRTPlatform",
            "xpu": "XpuSRTPlatform",
        }
        places = {"cuda": "cuda", "hip": "rocm", "cpu": "cpu", "npu": "npu", "xpu": "xpu"}
        known = self.facts.platform
        tries = [(places[known], names[known])] if known in places else []
        for place, cls_name in [*tries, ("interface", "SRTPlatform")]:
            module = interpreter.loader.module(f"sglang.srt.platforms.{place}")
            if module is not None:
                cls = interpreter.module_name(module, cls_name)
                if isinstance(cls, Class):
                    return Instance(cls, {"is_out_of_tree": Native("is_out_of_tree", lambda i, a, k: False)})
        return External("current_platform")

    def _scan(self, interpreter: Any, module: Any) -> None:
        """Run the decorators that register model overrides, in the files that use them."""
        self.scanned = True
        for name in _REGISTRIES:
            statements = interpreter.loader.statements(module, name)
            if statements:
                interpreter.detached(lambda statements=statements, name=name: interpreter.run_toplevel(statements, module, name))
        registry = module.cells.get("_MODEL_OVERRIDE_FNS")
        if interpreter.architecture is None and isinstance(registry, Dict):  # what is under a name that nobody can tell
            registry.cells[SMEARED] = Unknown(("model.architectures",))
        tree = interpreter.loader.tree
        rels = [rel for rel in tree.glob("srt/arg_groups/") if any(mark in (tree.read(rel) or "") for mark in _REGISTERS)]
        for rel in sorted(rels, key=lambda one: ("model_overrides/" not in one, one)):
            self._scan_file(interpreter, rel, module)

    def _scan_file(self, interpreter: Any, rel: str, registry: Any) -> None:
        dotted = "sglang." + rel.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        module = interpreter.loader.module(dotted)
        if module is None:
            return
        arch = interpreter.architecture
        for chunk in interpreter.loader.chunks(module):
            text = chunk.text
            if not any(f"@{mark}" in text or f".{mark}" in text for mark in _REGISTERS):
                continue
            if "predicate" not in text and "*" not in text and (arch is None or f'"{arch}"' not in text):
                continue
            for statement in chunk.parse():
                if isinstance(statement, ast.FunctionDef):
                    self._register(interpreter, module, statement)

    @staticmethod
    def _register(interpreter: Any, module: Any, statement: ast.FunctionDef) -> None:
        from .interpret.frames import Frame

        def run() -> None:
            frame = Frame(module)
            interpreter.frames.append(frame)
            try:
                for decorator in reversed(statement.decorator_list):
                    text = ast.unparse(decorator).partition("(")[0].rpartition(".")[2]
                    if text in _REGISTERS:
                        made = interpreter.module_name(module, statement.name)
                        interpreter.call(interpreter.eval(decorator, frame), [made], {})
            except Raised:
                pass
            finally:
                interpreter.frames.pop()

        interpreter.detached(run)

    def external(self, interpreter: Any, name: str) -> Any:
        if name == "torch.version.cuda":
            return self.host.cuda_version(interpreter)
        if name in ("torch.version.hip", "torch.version.musa"):
            there = self.host.platform(interpreter, {name.rpartition(".")[2]})
            return None if there is False else there if isinstance(there, Unknown) else Unknown((name,))
        if name == "os.environ":
            return interpreter.environ
        return _VALUES.get(name, External(name))

    def has_external(self, interpreter: Any, base: str, name: str) -> Any:
        if base in ("torch", "torch.version"):
            if name in _TORCH_PARTS:
                return self.host.platform(interpreter, {_TORCH_PARTS[name]})
            if name in _TORCH_ALWAYS:
                return True
        return Unknown((f"{base}.{name}",))

    def importable(self, interpreter: Any, name: str) -> Any:
        """Whether a package of another project can be imported: three-valued, by ``spec_of``."""
        if name.partition(".")[0] in sys.stdlib_module_names:
            return True
        found = self.spec_of(interpreter, name)
        return found if isinstance(found, Unknown) else found is not None

    def call_external(self, interpreter: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if name in PURE_EXTERNAL:
            return pure_external(interpreter, name, args, kwargs)
        if name in _AVAILABLE:
            return self.host.platform(interpreter, _AVAILABLE[name])
        run = _CALLS.get(name) or _CALLS.get(name.removeprefix("builtins."))
        if run is not None:
            return run(self, interpreter, args, kwargs)
        if name.rpartition(".")[2][:1].isupper() and name.startswith("builtins."):
            return Instance(
                None, {"_raised_": Raised(name.rpartition(".")[2], interpreter.show(args[0]) if args else "", interpreter.here())}
            )
        return Unknown((f"{name}()",) if not needs_of(*args) else needs_of(*args) | {f"{name}()"})

    def spec_of(self, interpreter: Any, package: Any) -> Any:
        """``find_spec``: by the packages told, else what a whole installation has, without the extras of its metadata."""
        if not isinstance(package, str):
            return Unknown(("packages",))
        top = package.partition(".")[0]
        if self.facts.packages is not None:
            names = {one.lower().replace("-", "_") for one in self.facts.packages}
            if top.lower() in names or f"{top.lower()}_python" in names:
                return External(f"spec of {top}")
        if top in _EXTRA:
            return None
        if top in _REQUIRED:
            return External(f"spec of {top}")
        tree = interpreter.loader.tree
        if top.lower() not in _extras(tree):
            return Unknown((f"packages.{top}",))
        return External(f"spec of {top}") if tree.exists(f"../{top}/__init__.py") else None


def _extras(tree: Any) -> set[str]:
    """Return what the release's metadata requires for an extra only (``granian; extra == "http2"``)."""
    if "extras" not in tree.memo:
        required = _REQUIRES.findall(tree.store.metadata() or "")
        names = [(name.lower().replace("-", "_"), "extra ==" in marker) for name, marker in required]
        tree.memo["extras"] = {name for name, extra in names if extra} - {name for name, extra in names if not extra}
    extras: set[str] = tree.memo["extras"]
    return extras


def _replace(outside: Outside, interpreter: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    old = args[0]
    if not isinstance(old, Instance) or isinstance(old, Record):
        return Unknown(needs_of(old) or {"replace()"})
    made = Instance(old.cls, dict(old.cells))
    for key in old.cells:
        held = interpreter.leaf_sites.get((id(old), key))
        if held:
            interpreter.leaf_sites[id(made), key] = (made, held[1])
    for key, value in kwargs.items():
        if key != "**":
            made.cells[key] = value
            interpreter.note_site(made, key, value, frozenset(interpreter.reads))
        else:
            made.cells = {name: Unknown(needs_of(value) or {"replace()"}) for name in made.cells}
    return made


def _deepcopy(outside: Outside, interpreter: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return _copied(interpreter, args[0])


def _copied(interpreter: Any, value: Any) -> Any:
    if isinstance(value, Config):
        copied = {key: _copied(interpreter, one) for key, one in value.cells.items()}
        made_config = Config(copied, value.path, complete=value.complete)
        made_config.kind = value.kind
        return made_config
    if isinstance(value, (Record, View)):
        return value
    if isinstance(value, Instance):
        made = Instance(value.cls, {key: _copied(interpreter, one) for key, one in value.cells.items()})
        for key in value.cells:
            held = interpreter.leaf_sites.get((id(value), key))
            if held:
                interpreter.leaf_sites[id(made), key] = (made, held[1])
        return made
    if isinstance(value, Dict):
        made_dict = Dict({key: _copied(interpreter, one) for key, one in value.cells.items()})
        made_dict.sites = dict(value.sites)
        return made_dict
    if isinstance(value, List) and isinstance(value.items, tuple):
        return type(value)(_copied(interpreter, one) for one in value.items)
    if isinstance(value, tuple):
        return tuple(_copied(interpreter, one) for one in value)
    return value


def _getenv(outside: Outside, interpreter: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    method = interpreter.attribute(interpreter.environ, "get")
    return interpreter.call(method, [*args, *kwargs.values()], {})


def _fields(outside: Outside, interpreter: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    cls = args[0].cls if isinstance(args[0], Instance) else args[0]
    if not isinstance(cls, Class) or cls is interpreter.record_class:
        return List()
    return List(Instance(None, {"name": name}) for name in interpreter.record_fields(cls))


def _asdict(outside: Outside, interpreter: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return Dict(dict(args[0].cells)) if isinstance(args[0], Instance) else Unknown(("asdict",))


def _identity_decorator(outside: Outside, interpreter: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if len(args) == 1 and isinstance(args[0], (Function, Native, Class)):
        return args[0]
    return Native("decorator", lambda i, a, k: a[0])


def _partial(outside: Outside, interpreter: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    function, first = args[0], list(args[1:])
    return Native("partial", lambda i, a, k: i.call(function, [*first, *a], {**kwargs, **k}))


def _capability(outside: Outside, interpreter: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return outside.host.capability(interpreter)


def _import_module(outside: Outside, interpreter: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A module by its full name: of the source, else something outside it."""
    if not args or not isinstance(args[0], str):
        return Unknown(needs_of(*args) or {"import_module()"})
    found = interpreter.loader.module(args[0])
    return found if found is not None else interpreter.external(args[0])


def _iter_modules(outside: Outside, interpreter: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """The files of packages of the source, by name as Python lists them: (finder, name, is a package)."""
    folders = interpreter.iterate(args[0]) if args else None
    prefix = args[1] if len(args) > 1 else kwargs.get("prefix", "")
    if not folders or not isinstance(prefix, str) or not all(isinstance(one, str) for one in folders):
        return Unknown(needs_of(*args, prefix) or {"iter_modules()"})
    found: dict[str, bool] = {}
    for folder in folders:
        for rel in interpreter.loader.tree.glob(f"{folder}/"):
            name, slash, rest = rel[len(folder) + 1 :].partition("/")
            if rest == "__init__.py":
                found[name] = True
            elif not slash and name.endswith(".py") and name != "__init__.py":
                found.setdefault(name.removesuffix(".py"), False)
    return List((None, prefix + name, found[name]) for name in sorted(found))


def _path(outside: Outside, interpreter: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """``pathlib.Path`` of a known text."""
    wrong = next((one for one in args if one is None or isinstance(one, (bool, int, float, tuple, List, Dict))), MISSING)
    if wrong is not MISSING:
        kind = interpreter.call(interpreter.builtin("type"), [wrong], {})
        said = f"expected str, bytes or os.PathLike object, not {getattr(kind, '__name__', kind)}"
        raise Raised("TypeError", said, interpreter.here())
    if not args or not all(isinstance(one, str) or (isinstance(one, Instance) and "_path_" in one.cells) for one in args):
        return Unknown(needs_of(*args) or {"path"})
    path = PurePosixPath(*(one if isinstance(one, str) else one.cells["_path_"] for one in args))
    text = str(path)
    ask = {"exists": outside.model.exists, "is_dir": outside.model.is_folder, "is_file": outside.model.is_file}
    made = Instance(None, {"_path_": text, "name": path.name, "suffix": path.suffix})
    made.cells["_join_"] = lambda more: _path(outside, interpreter, [text, more], {})
    made.cells["expanduser"] = Native("expanduser", lambda i, a, k: made)
    for name, question in ask.items():
        made.cells[name] = Native(name, lambda i, a, k, question=question: question(text))
    return made


def _match(outside: Outside, interpreter: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A match of a pattern: only whether there is one."""
    if len(args) >= 2 and isinstance(args[0], str) and isinstance(args[1], str):
        if not searchable(args[0], args[1]):
            return Unknown(("search",))
        try:
            found = re.match(args[0], args[1])
        except re.error:
            return Unknown(("pattern",))
        if found is None:
            return None
        groups = from_native(list(found.groups()))
        return Instance(
            None,
            {
                "group": Native(
                    "group",
                    lambda i, a, k: (
                        from_native(found.group(*a)) if all(isinstance(x, (int, str)) for x in a) else Unknown(("group",))
                    ),
                ),
                "groups": Native("groups", lambda i, a, k: groups),
            },
        )
    return Unknown(needs_of(*args) or {"pattern"})


_CALLS: dict[str, Callable[..., Any]] = {
    "dataclasses.replace": _replace,
    "msgspec.structs.replace": _replace,
    "copy.replace": _replace,
    "copy.deepcopy": _deepcopy,
    "copy.copy": _deepcopy,
    "dataclasses.fields": _fields,
    "msgspec.structs.fields": _fields,
    "dataclasses.asdict": _asdict,
    "os.getenv": _getenv,
    "os.environ.get": _getenv,
    "pathlib.Path": _path,
    "pkgutil.iter_modules": _iter_modules,
    "glob.glob": lambda o, i, a, k: List() if o.model.exists(f"{a[0]}") is False else Unknown(("model.files",)),
    "os.listdir": lambda o, i, a, k: Unknown(needs_of(*a) or {f"file {a[0]}"}),
    "os.path.exists": lambda o, i, a, k: o.model.exists(a[0]),
    "os.path.isdir": lambda o, i, a, k: o.model.is_folder(a[0]),
    "os.path.isfile": lambda o, i, a, k: o.model.is_file(a[0]),
    "os.path.expanduser": lambda o, i, a, k: a[0],
    "functools.lru_cache": _identity_decorator,
    "functools.cache": _identity_decorator,
    "functools.wraps": _identity_decorator,
    "functools.partial": _partial,
    "logging.getLogger": lambda o, i, a, k: External("logger"),
    "enum.auto": lambda o, i, a, k: External("enum.auto()"),
    "torch.cuda.get_device_capability": _capability,
    "torch.cuda.get_device_name": lambda o, i, a, k: o.host.fact(i, "gpu_name"),
    "torch.cpu.is_available": lambda o, i, a, k: True,
    "platform.machine": lambda o, i, a, k: o.host.machine(i),
    "torch.cuda.device_count": lambda o, i, a, k: o.host.fact(i, "gpu_count"),
    "importlib.import_module": _import_module,
    "importlib.util.find_spec": lambda o, i, a, k: o.spec_of(i, a[0]),
    "typing.cast": lambda o, i, a, k: a[1],
    "re.match": _match,
    "re.fullmatch": lambda o, i, a, k: _match(o, i, [f"(?:{a[0]})\\Z", *a[1:]] if isinstance(a[0], str) else a, k),
}


def _skip(value: Any) -> Callable[..., Any]:
    return lambda interpreter, function, args, kwargs: value


def _version_check(interpreter: Any, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """SGLang's pins meet SGLang's checks; a broken installation is the live tier's to find."""
    return True


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "assert_pkg_version": _skip(None),
    "check_pkg_version_at_least": _version_check,
    "is_in_ci": lambda i, f, a, k: i.call_external("os.getenv", ["SGLANG_IS_IN_CI", "false"], {}) == "true",
    "set_default_server_args": lambda i, f, a, k: Unknown(("npu defaults",)),
}

__all__ = ["FUNCTIONS", "Obj", "Outside"]
