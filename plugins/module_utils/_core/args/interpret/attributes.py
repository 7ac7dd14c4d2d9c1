# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Names and attributes: reading and writing them, and noting what was read to decide what."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from .frames import Frame, Site
from .operators import lift
from .values import (
    MISSING,
    NO_NEEDS,
    Bound,
    Class,
    Config,
    Dict,
    External,
    Function,
    Instance,
    List,
    Module,
    Native,
    Obj,
    Raised,
    Record,
    Stash,
    Super,
    Unknown,
    View,
    needs_of,
    present,
)
from .whole import Whole

# Frames whose early returns are not the reason of what happens below them: they only order the steps.
STASH = "_resolved_overrides"
_ORDERING = frozenset({"resolve_once", "run_resolution_pipeline", "__post_init__", "__init__"})


class Attributes(Whole):
    """Lookup along frames, modules, classes, instances, the record and its views."""

    def read(self, taint: Iterable[str] | None) -> None:
        if taint:
            self.reads.update(taint)

    def here(self) -> str:
        frame = self.frames[-1] if self.frames else None
        return f"{frame.module.rel}:{frame.line}" if frame else ""

    def name(self, name: str, frame: Frame) -> Any:
        scope: Frame | None = frame
        while scope is not None:
            if name in scope.cells and name not in scope.globals:
                self.read(scope.taints.get(name))
                return present(scope.cells[name])
            scope = scope.parent
        if frame.cls is not None and frame.function is None:
            value = self.class_attribute(frame.cls, name)
            if value is not MISSING:
                return value
        value = self.module_name(frame.module, name)
        if value is not MISSING:
            return value
        value = self.builtin(name)
        if value is MISSING:
            return Unknown((f"{name} at {frame.module.rel}:{frame.line}",))
        return value

    def module_name(self, module: Module, name: str) -> Any:
        if name in module.cells:
            self.read(module.taints.get(name))
            return present(module.cells[name])
        if name in module.pending:
            return Unknown((f"{module.name}.{name}",))
        override = self.known_name(module, name)
        if override is not MISSING:
            module.cells[name] = override
            return override
        statements = self.loader.statements(module, name)
        if not statements:
            return self._star_or_submodule(module, name)
        module.pending.add(name)
        try:
            self.detached(lambda: self.run_toplevel(statements, module, name))
        finally:
            module.pending.discard(name)
        if name not in module.cells:
            return MISSING
        return present(module.cells[name])

    def _star_or_submodule(self, module: Module, name: str) -> Any:
        for statement in self.loader.statements(module, "*"):
            if isinstance(statement, ast.ImportFrom):
                source = self.loader.module(self.absolute(statement, module))
                if source is not None:
                    value = self.module_name(source, name)
                    if value is not MISSING:
                        return value
        if module.rel.endswith("/__init__.py"):
            inner = self.loader.module(f"{module.name}.{name}")
            if inner is not None:
                return inner
        return MISSING

    def absolute(self, statement: ast.ImportFrom, module: Module) -> str:
        if not statement.level:
            return statement.module or ""
        base = self.loader.package_of(module).split(".")
        base = base[: len(base) - (statement.level - 1)]
        return ".".join([*base, statement.module] if statement.module else base)

    def attribute(self, value: Any, name: str) -> Any:
        """``value.name``; raises AttributeError of the program where it certainly has none."""
        if isinstance(value, Unknown):
            return lift(lambda one: self.attribute(one, name), value)
        found = self.find_attribute(value, name)
        if found is MISSING and isinstance(value, Config):
            return Unknown((f"model.{value.path}{name}",))  # asked for without a default: the class will have it
        if found is MISSING:
            kind = value.cls.name if isinstance(value, Instance) and value.cls else type(value).__name__
            raise Raised("AttributeError", f"'{kind}' object has no attribute '{name}'", self.here())
        return found

    def find_attribute(self, value: Any, name: str) -> Any:
        """``value.name``, MISSING where it certainly has none."""
        if isinstance(value, View):
            return self._view_attribute(value, name)
        if isinstance(value, Record):
            return self._record_attribute(value, name)
        if isinstance(value, Config):
            return self.config_attribute(value, name)
        if isinstance(value, Instance):
            return self._instance_attribute(value, name)
        if isinstance(value, Class):
            return self._class_member(value, name)
        if isinstance(value, Module):
            if name == "__path__":
                return List([value.rel.rpartition("/")[0]])
            found = self.module_name(value, name)
            return found if found is not MISSING else Unknown((f"{value.name}.{name}",))
        if isinstance(value, External):
            return self.external_attribute(value, name)
        if isinstance(value, Super):
            return self._super_attribute(value, name)
        if isinstance(value, (Function, Bound, Native)):
            function = value.function if isinstance(value, Bound) else value
            if name in ("__name__", "__qualname__"):
                return function.name if name == "__name__" else getattr(function, "qualname", function.name)
            return self.builtin_method(value, name)
        return self.builtin_method(value, name)

    def _view_attribute(self, view: View, name: str) -> Any:
        record = view.record
        if name == "_server_args":
            return record
        held = record.decided.cells.get(name, MISSING)
        if held is not MISSING:
            self.read_field(record, name)
            raw = record.cells.get(name, MISSING)
            return present(held, raw) if raw is not MISSING else present(held)
        return self._record_attribute(record, name)

    def _record_attribute(self, record: Record, name: str) -> Any:
        if name == STASH:
            return Stash(record)
        held = record.cells.get(name, MISSING)
        if held is not MISSING:
            self.read_field(record, name)
            if isinstance(held, Unknown) and held.options and MISSING in held.options:
                return present(held)
            return held
        return self._instance_attribute(record, name)

    def read_field(self, record: Record, name: str) -> None:
        sites = record.origin.cells.get(name)
        if sites:
            for site in sites:
                self.read(site.because)
        elif name in self.explicit:
            self.reads.add(self.explicit[name])
        self.read(record.taints.get(name))

    def _instance_attribute(self, instance: Instance, name: str) -> Any:
        held = instance.cells.get(name, MISSING)
        if held is not MISSING:
            self.read(instance.taints.get(name))
            return present(held)
        if name == "__class__":
            return instance.cls if instance.cls is not None else Unknown(("class",))
        if name == "__dict__":
            return Dict(dict(instance.cells))
        if instance.cls is None:
            return Unknown((f"file {instance.cells['_path_']}",)) if "_path_" in instance.cells else MISSING
        if name in ("value", "name") and "_value_" in instance.cells:
            return instance.cells["_value_" if name == "value" else "_name_"]
        found = self.class_attribute(instance.cls, name)
        if found is MISSING:
            getter = self.class_attribute(instance.cls, "__getattr__")
            if isinstance(getter, Function) and not isinstance(instance, Record):
                return self.call(Bound(getter, instance), [name], {})
            return self.enum_attribute(instance, name)
        return self.bind_method(found, instance, instance.cls)

    def bind_method(self, found: Any, this: Any, cls: Class) -> Any:
        if isinstance(found, Function):
            if found.decorators & {"property", "cached_property"}:
                return self.call(Bound(found, this), [], {})
            if "staticmethod" in found.decorators:
                return found
            return Bound(found, cls if "classmethod" in found.decorators else this)
        return found

    def _class_member(self, cls: Class, name: str) -> Any:
        if name in ("__name__", "__qualname__"):
            return cls.name
        if name == "__mro__":
            return tuple(cls.mro())
        found = self.class_attribute(cls, name)
        if found is MISSING:
            return self.enum_class_attribute(cls, name)
        if isinstance(found, Function) and "classmethod" in found.decorators:
            return Bound(found, cls)
        return found

    def class_attribute(self, cls: Class, name: str) -> Any:
        """Return an attribute of a class along its bases, not bound, MISSING where there is none."""
        for one in cls.mro():
            if name in one.cells:
                return one.cells[name]
            if name in one.bindings and name not in one.pending:
                one.pending.add(name)
                try:
                    self.detached(lambda one=one: self.run_class_body(one, name))
                finally:
                    one.pending.discard(name)
                if name in one.cells:
                    return one.cells[name]
        return MISSING

    def _super_attribute(self, value: Super, name: str) -> Any:
        this_cls = value.this.cls if isinstance(value.this, Instance) and value.this.cls else value.cls
        order = this_cls.mro()
        after = order[order.index(value.cls) + 1 :] if value.cls in order else value.cls.mro()[1:]
        for one in after:
            found = self.class_attribute(one, name)
            if found is not MISSING:
                return self.bind_method(found, value.this, this_cls)
        if name == "__init__" and any(one.endswith("PretrainedConfig") for one in this_cls.base_names()):
            return Native(name, lambda interpreter, args, kwargs: interpreter.keep(value.this, kwargs))
        if name in ("__init__", "__post_init__", "__setattr__", "__init_subclass__"):
            return Native(name, lambda interpreter, args, kwargs: None)
        return Unknown((f"super().{name}",))

    def keep(self, this: Any, kwargs: dict[str, Any]) -> None:
        """What transformers' PretrainedConfig does with the arguments it does not know: they become attributes."""
        for name, value in kwargs.items():
            if isinstance(this, Instance) and name != "**":
                self.write(this, name, value)

    def set_attribute(self, value: Any, name: str, new: Any, taint: frozenset[str], frame: Frame | None = None) -> None:
        if isinstance(value, View):
            value = value.record
        if isinstance(value, Unknown):
            for option in value.options or ():
                if isinstance(option, Instance):
                    self._assign_maybe(option, name, new, value.needs)
            return
        if isinstance(value, Record):
            self.set_field(value, name, new, taint, frame)
            return
        if isinstance(value, Obj) and not isinstance(value, (List, Dict)):
            setter = self.class_attribute(value.cls, name) if isinstance(value, Instance) and value.cls else MISSING
            if isinstance(setter, Function) and "setter" in setter.decorators:
                self.call(Bound(setter, value), [new], {})
                return
            self.write(value, name, new)
            value.taints[name] = taint
            self.note_site(value, name, new, taint)

    def _assign_maybe(self, option: Instance, name: str, new: Any, needs: frozenset[str]) -> None:
        old = option.cells.get(name, MISSING)
        self.write(option, name, Unknown(needs | needs_of(old, new)))

    def note_site(self, value: Obj, name: str, new: Any, taint: frozenset[str]) -> None:
        self.leaf_sites[id(value), name] = (value, self.site(self.frames[-1] if self.frames else None, None, new, taint))

    def set_field(self, record: Record, name: str, new: Any, taint: frozenset[str], frame: Frame | None = None) -> None:
        """Write a field of the record itself: the older style, and bookkeeping in every style."""
        if name == STASH:
            self.replace_declarations(record, new)
            return
        site = self.site(frame or self.frames[-1], None, new, taint)
        self.write(record, name, new)
        if name in record.decided.cells:
            self.write(record.decided, name, MISSING)
        self.write(record.origin, name, (site,))
        record.taints[name] = frozenset()

    def decide(self, record: Record, name: str, new: Any, site: Site) -> None:
        """Declare the value of a field over what was asked."""
        if isinstance(new, Unknown) and new.options is not None and MISSING in new.options:
            old = record.decided.cells.get(name, record.cells.get(name, MISSING))
            new = present(new, old)
            before = record.origin.cells.get(name, ())
            self.write(record.decided, name, new)
            self.write(record.origin, name, (*before, site))
            return
        self.write(record.decided, name, new)
        self.write(record.origin, name, (site,))

    def site(self, frame: Frame | None, line: int | None, value: Any, taint: frozenset[str] | None = None) -> Site:
        """Return where the current statement stands: its line, the innermost condition around it, and why that holds."""
        reads = frozenset(self.reads) if taint is None else taint
        stack = self.frames
        if frame is not None and stack and frame is not stack[-1] and frame.function is None and frame.parent is None:
            stack = [frame]
        position = len(stack) - 1
        innermost = stack[position] if stack else frame
        if innermost is None:
            return Site("", "always", reads, value)
        source = f"{innermost.module.rel}:{line or innermost.line}"
        while position >= 0:
            at = stack[position]
            ordering = at.function is not None and at.function.name in _ORDERING
            for guard in reversed(at.guards):
                if guard.positive or not ordering:
                    if at is not innermost:
                        source = f"{at.module.rel}:{at.line}"
                    return Site(source, guard.text, reads | guard.reads, value)
            position -= 1
        return Site(source, "always", reads, value)

    @staticmethod
    def guard(test: ast.expr, frame: Frame) -> ast.expr:
        """Return a condition as it is shown; of a rule held in a variable, the rule."""
        if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and not test.args and test.func.id in frame.cells:
            rule = frame.cells[test.func.id]
            if isinstance(rule, Function) and isinstance(rule.node, ast.Lambda):
                return rule.node.body
        return test

    def doubt_needs(self) -> frozenset[str]:
        return NO_NEEDS.union(*self.doubt) if self.doubt else NO_NEEDS
