# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Call functions, methods, classes of the source: bind arguments, run the body, meet at the return."""

from __future__ import annotations

import ast
from functools import partial
from typing import Any

from ..conditions import text_of
from ..outline import fields, members
from .frames import Frame
from .machine import DEAD, ENDED, Exit
from .statements import Statements
from .values import (
    MISSING,
    SMEARED,
    Bound,
    Class,
    Dict,
    External,
    Function,
    Instance,
    Module,
    Native,
    Obj,
    Raised,
    Super,
    Unknown,
    join,
    needs_of,
)

MAX_DEPTH = 60
MAX_SELF = 3
_RECORDS = ("dataclass", "Struct")


def _yields(body: list[ast.stmt]) -> bool:
    """Whether statements yield for the function they stand in, not for one defined within."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        one = waiting.pop()
        if isinstance(one, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting += ast.iter_child_nodes(one)
    return False


class Calls(Statements):
    """``call`` for everything that can be called."""

    def call_node(self, node: ast.Call, frame: Frame) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            this = frame.cells.get(self._first_parameter(frame), MISSING)
            return Super(frame.cls, this) if frame.cls is not None and this is not MISSING else Unknown(("super()",))
        function = self.eval(node.func, frame)
        args: list[Any] = []
        for one in node.args:
            value = self.eval(one.value if isinstance(one, ast.Starred) else one, frame)
            if not isinstance(one, ast.Starred):
                args.append(value)
                continue
            items = self.iterate(value)
            args += items if items is not None else [Unknown(needs_of(value) or {"*arguments"})]
        kwargs: dict[str, Any] = {}
        sites: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.eval(keyword.value, frame)
            if keyword.arg is not None:
                kwargs[keyword.arg] = value
                continue
            if isinstance(value, Dict):
                kwargs |= {key: one for key, one in value.cells.items() if isinstance(key, str)}
                sites |= {key: one for key, one in value.sites.items() if isinstance(key, str)}
                if SMEARED in value.cells:
                    kwargs["**"] = value.cells[SMEARED]
            elif isinstance(value, Unknown):
                kwargs["**"] = value
        self.call_sites = sites
        return self.call(function, args, kwargs)

    def _first_parameter(self, frame: Frame) -> str:
        node = frame.function.node if frame.function else None
        return node.args.args[0].arg if node is not None and node.args.args else ""

    def call(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if isinstance(function, Bound):
            return self.call(function.function, [function.this, *args], kwargs)
        if isinstance(function, Native):
            return self._call_native(function, args, kwargs)
        if isinstance(function, Function):
            return self.call_function(function, args, kwargs)
        if isinstance(function, Class):
            return self.instantiate(function, args, kwargs)
        if isinstance(function, External):
            return self.call_external(function.name, args, kwargs)
        if isinstance(function, Instance) and function.cls is not None:
            method = self.class_attribute(function.cls, "__call__")
            if isinstance(method, Function):
                return self.call_function(method, [function, *args], kwargs)
        if isinstance(function, Unknown):
            return self._call_unknown(function, args, kwargs)
        if function is None:
            raise Raised("TypeError", "'NoneType' object is not callable", self.here())
        return self.call_plain(function, args, kwargs)

    def _call_native(self, function: Native, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Run a callable of ours; one that does not take these arguments leaves its result open."""
        try:
            return function.run(self, args, kwargs)
        except TypeError as exc:
            step = exc.__traceback__.tb_next if exc.__traceback__ else None
            if step is not None and step.tb_next is not None:
                raise  # not its parameters: an error on the way
            return Unknown((f"{function.name}()",))

    def _call_unknown(self, function: Unknown, args: list[Any], kwargs: dict[str, Any]) -> Any:
        options = [one for one in function.options or () if one is not MISSING]
        if options and len(options) <= 4:
            return self._either(
                [partial(self.call, one, args, kwargs) for one in options], function.needs, ["call"] * len(options)
            )
        return Unknown(function.needs | needs_of(*args))

    def call_function(self, function: Function, args: list[Any], kwargs: dict[str, Any]) -> Any:
        known = self.known_function(function, args, kwargs)
        if known is not MISSING:
            return known
        blind = bool(args) and not kwargs and all(isinstance(one, Unknown) and one.options is None for one in args)
        under_way = [one for one in self.frames if one.function is function]
        # Blind within blind tells nothing the outer call does not: followed, a function that calls itself twice costs 2 ** depth.
        if len(self.frames) > MAX_DEPTH or len(under_way) > MAX_SELF or (blind and any(one.blind for one in under_way)):
            return Unknown((f"recursion in {function.name}",))
        self.tick()
        frame = Frame(function.module, function.closure, function)
        frame.blind = blind
        frame.cls = function.cls
        self._bind_parameters(function, frame, args, kwargs)
        outer = self.reads
        self.reads = set()
        self.frames.append(frame)
        self.pending.append(frame.returns)
        try:
            if isinstance(function.node, ast.Lambda):
                frame.line = function.node.lineno
                value = self.eval(function.node.body, frame)
                frame.reads |= self.reads
                return value
            if self.is_generator(function):
                return Unknown((f"generator {function.name}",))
            return self._run_body(function, frame)
        finally:
            self.frames.pop()
            self.pending[:] = [exits for exits in self.pending if exits is not frame.returns]
            self.reads = outer
            self.read(frame.reads)

    def _run_body(self, function: Function, frame: Frame) -> Any:
        returns = frame.returns
        try:
            flow = self.block(function.node.body, frame)
        except Raised as exc:
            if not returns:
                raise
            self.doubtful_after(exc, returns)
            flow = DEAD
        if flow:
            frame.reads |= frame.cond_reads
            returns.append(Exit(len(self.trail)))
        if not returns:
            raise Raised(ENDED, "", self.here())
        exits = list(returns)
        returns.clear()
        return self.merge(exits)

    def is_generator(self, function: Function) -> bool:
        node = function.node
        known: bool | None = getattr(node, "generates", None)
        if known is None:
            may = "yield" in (self.loader.tree.read(function.module.rel) or "")
            known = node.generates = isinstance(node, ast.AsyncFunctionDef) or (may and _yields(node.body))
        return known

    def _bind_parameters(self, function: Function, frame: Frame, args: list[Any], kwargs: dict[str, Any]) -> None:
        spec = function.node.args
        names = [one.arg for one in [*spec.posonlyargs, *spec.args]]
        cells = frame.cells
        rest = dict(kwargs)
        spread = rest.pop("**", None)
        for name, value in zip(names, args, strict=False):
            cells[name] = value
        if len(args) > len(names) and spec.vararg is None:
            message = f"{function.name}() takes {len(names)} positional arguments but {len(args)} were given"
            raise Raised("TypeError", message, self.here())
        if spec.vararg is not None:
            cells[spec.vararg.arg] = tuple(args[len(names) :])
        offset = len(names) - len(function.defaults)
        for index, name in enumerate(names):
            if name in rest:
                cells[name] = rest.pop(name)
            elif name not in cells and index >= offset:
                cells[name] = function.defaults[index - offset]
        for one, default in zip(spec.kwonlyargs, function.kw_defaults, strict=True):
            if one.arg in rest:
                cells[one.arg] = rest.pop(one.arg)
            elif default is not MISSING:
                cells[one.arg] = default
        if spec.kwarg is not None:
            cells[spec.kwarg.arg] = Dict(rest)
            cells[spec.kwarg.arg].sites |= {key: one for key, one in self.call_sites.items() if key in rest}
            if spread is not None:
                cells[spec.kwarg.arg].cells[SMEARED] = spread
        for name in [*names, *(one.arg for one in spec.kwonlyargs)]:
            if name not in cells:
                if spread is None:
                    raise Raised("TypeError", f"{function.name}() missing required argument: '{name}'", self.here())
                cells[name] = Unknown(needs_of(spread) or {name})
        for name, value in cells.items():
            if isinstance(value, Unknown) and value.options and MISSING in value.options:
                rest_options = [one for one in value.options if one is not MISSING]
                index = names.index(name) - offset if name in names else -1
                if 0 <= index < len(function.defaults):
                    rest_options.append(function.defaults[index])
                cells[name] = join(rest_options, value.needs)
        taint = frozenset(self.reads)
        for name in cells:
            frame.taints[name] = taint if not isinstance(cells[name], Obj) else frozenset()

    def make_class(self, node: ast.ClassDef, frame: Frame) -> Class:
        made = Class(node.name, node, frame.module)
        made.bases = tuple(self.eval(base, frame) for base in node.bases)
        made.bindings = members(node)
        return made

    def is_record_class(self, cls: Class) -> bool:
        for one in cls.mro():
            for decorator in one.node.decorator_list:
                if "dataclass" in text_of(decorator):
                    return True
        return bool(cls.base_names() & {"msgspec.Struct", "Struct", "NamedTuple", "typing.NamedTuple"})

    def record_fields(self, cls: Class) -> dict[str, tuple[Class, ast.expr | None]]:
        """Return the fields of a dataclass or Struct: the class each comes from and the expression of its default."""
        out: dict[str, tuple[Class, ast.expr | None]] = {}
        for one in reversed(cls.mro()):
            for statement in fields(one.node):
                if not isinstance(statement.target, ast.Name):
                    continue
                if not text_of(statement.annotation).startswith(("ClassVar", "typing.ClassVar")):
                    out[statement.target.id] = (one, statement.value)
        return out

    def instantiate(self, cls: Class, args: list[Any], kwargs: dict[str, Any]) -> Any:
        known = self.known_class(cls, args, kwargs)
        if known is not MISSING:
            return known
        made = Instance(cls)
        initializer = self.class_attribute(cls, "__init__")
        outer, self.reads = self.reads, set()
        try:
            if isinstance(initializer, Function):
                self.call_function(initializer, [made, *args], kwargs)
            elif self.is_record_class(cls):
                self._fill_fields(cls, made, args, kwargs)
            else:
                self._inherit(cls, made, args, kwargs)
        finally:
            self.reads = outer
        return made

    def _inherit(self, cls: Class, made: Instance, args: list[Any], kwargs: dict[str, Any]) -> None:
        if cls.base_names() & {"Exception", "ValueError", "RuntimeError", "TypeError", "KeyError"}:
            made.cells["args"] = tuple(args)

    def _fill_fields(self, cls: Class, made: Instance, args: list[Any], kwargs: dict[str, Any]) -> None:
        fields = self.record_fields(cls)
        names = list(fields)
        given = dict(zip(names, args, strict=False)) | {key: one for key, one in kwargs.items() if key != "**"}
        for name in given:
            if name not in fields:
                raise Raised("TypeError", f"{cls.name}.__init__() got an unexpected keyword argument '{name}'", self.here())
        for name, (owner, default) in fields.items():
            if name in given:
                value = given[name]
                self.note_site(made, name, value, frozenset(self.reads))
            elif "**" in kwargs:
                value = Unknown(needs_of(kwargs["**"]))
            elif default is None:
                raise Raised("TypeError", f"{cls.name}.__init__() missing required argument: '{name}'", self.here())
            else:
                value = self.field_default(owner, default)
            self.write(made, name, value)
        after = self.class_attribute(cls, "__post_init__")
        if isinstance(after, Function):
            self.call_function(after, [made], {})

    def field_default(self, owner: Class, node: ast.expr) -> Any:
        frame = Frame(owner.module)
        frame.cls = owner
        frame.line = node.lineno
        if isinstance(node, ast.Call) and text_of(node.func).rpartition(".")[2] == "field":
            options = {one.arg: one.value for one in node.keywords}
            if "default" in options:
                return self.eval(options["default"], frame)
            if "default_factory" in options:
                return self.call(self.eval(options["default_factory"], frame), [], {})
            return Unknown((f"{owner.name} default",))
        return self.eval(node, frame)

    def run_toplevel(self, statements: list[ast.stmt], module: Module, name: str) -> None:
        frame = Frame(module)
        frame.cells = module.cells
        frame.taints = module.taints
        for statement in statements:
            frame.line = statement.lineno
            self.frames.append(frame)
            try:
                self.statement(statement, frame)
            except Raised as exc:
                if isinstance(statement, ast.ImportFrom) and exc.kind == "ImportError":
                    raise  # the file does not fit its neighbour: nothing that uses it may be passed over
                module.cells.setdefault(name, Unknown((f"{module.name}.{name}: {exc.kind}",)))
            finally:
                self.frames.pop()

    def run_class_body(self, cls: Class, name: str) -> None:
        frame = Frame(cls.module)
        frame.cells = cls.cells
        frame.cls = cls
        for statement in cls.bindings[name]:
            self.frames.append(frame)
            try:
                self.statement(statement, frame)
            except Raised as exc:
                cls.cells.setdefault(name, Unknown((f"{cls.name}.{name}: {exc.kind}",)))
            finally:
                self.frames.pop()
        value = cls.cells.get(name, MISSING)
        if isinstance(value, Function) and value.cls is None:
            value.cls = cls
        elif value is not MISSING:
            cls.cells[name] = self.class_value(cls, name, value)

    def detached(self, run: Any) -> None:
        """Evaluate something that belongs to no path: a module or class body."""
        saved = (self.trail, self.pending, self.tries, self.doubt, self.reads, self.frames, self.handling, Obj.clock)
        self.trail, self.pending, self.tries, self.doubt, self.reads = [], [], [], [], set()
        self.frames, self.handling = [], []
        count = len(self.refusals)
        Obj.clock = -1_000_000_000
        try:
            run()
        finally:
            (self.trail, self.pending, self.tries, self.doubt, self.reads, self.frames, self.handling, Obj.clock) = saved
            del self.refusals[count:]
