# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Evaluate expressions of the source; whatever is not understood is unknown, never an error of ours."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..conditions import Words, negated, text_of
from .comprehensions import Comprehensions
from .frames import Frame
from .machine import NORMAL
from .operators import arithmetic, compare, formatted, lift, negate, plain_enum, truth
from .values import (
    MISSING,
    NO_NEEDS,
    SMEARED,
    Dict,
    Function,
    List,
    Module,
    Raised,
    Unknown,
    join,
    needs_of,
    present,
)

# Objects whose methods only print; their arguments are not even evaluated.
_SILENT = frozenset({"logger", "logging", "warnings"})


class Expressions(Comprehensions):
    """``eval`` and one method per kind of expression."""

    def eval(self, node: ast.expr, frame: Frame) -> Any:
        method = getattr(self, "_eval_" + type(node).__name__, None)
        if method is None:
            return Unknown((f"{type(node).__name__} at {frame.module.rel}:{node.lineno}",))
        return method(node, frame)

    def _eval_Constant(self, node: ast.Constant, frame: Frame) -> Any:
        return node.value

    def _eval_Name(self, node: ast.Name, frame: Frame) -> Any:
        return self.name(node.id, frame)

    def _eval_Attribute(self, node: ast.Attribute, frame: Frame) -> Any:
        return self.attribute(self.eval(node.value, frame), node.attr)

    def _eval_NamedExpr(self, node: ast.NamedExpr, frame: Frame) -> Any:
        value = self.eval(node.value, frame)
        self.assign(node.target, value, frame, frozenset(self.reads))
        return value

    def _eval_UnaryOp(self, node: ast.UnaryOp, frame: Frame) -> Any:
        value = self.eval(node.operand, frame)
        if isinstance(node.op, ast.Not):
            return negate(value)
        sign: Callable[[Any], Any] = {
            ast.USub: lambda x: -x,
            ast.UAdd: lambda x: +x,
            ast.Invert: lambda x: ~x,
        }[type(node.op)]

        def apply(x: Any) -> Any:
            x = plain_enum(x)
            return sign(x) if isinstance(x, (int, float)) else Unknown(("sign of a value",))

        return lift(apply, value)

    def _eval_BinOp(self, node: ast.BinOp, frame: Frame) -> Any:
        value = arithmetic(node.op, self.eval(node.left, frame), self.eval(node.right, frame))
        if isinstance(value, (tuple, str)):
            self.spend(len(value))
        elif isinstance(value, List) and isinstance(value.items, tuple):
            self.spend(len(value.items))
        return value

    def _eval_BoolOp(self, node: ast.BoolOp, frame: Frame) -> Any:
        return self._bool_chain(isinstance(node.op, ast.And), node.values, frame)

    def _bool_chain(self, is_and: bool, nodes: list[ast.expr], frame: Frame) -> Any:
        left = self.eval(nodes[0], frame)
        if len(nodes) == 1:
            return left
        decided = truth(left)
        if not isinstance(decided, Unknown):
            return self._bool_chain(is_and, nodes[1:], frame) if decided is is_and else left
        # Left alone decides nothing: the right side may or may not run, and may settle it whatever the left is.
        stays = self._keep(left, not is_and)
        arms: list[Callable[[], Any]] = [lambda: stays, lambda: self._bool_chain(is_and, nodes[1:], frame)]
        right = self._either(arms, decided.needs, [partial(text_of, nodes[0])] * 2, raw=True)
        values = [value for value in right if value is not MISSING]
        if len(values) == 2:
            outcome = truth(values[1])
            if outcome is not is_and and not isinstance(outcome, Unknown):
                truths = [truth(value) for value in values]
                if all(one is (not is_and) for one in truths):
                    return values[1]
                return values[1] if isinstance(values[1], bool) else join(values, decided.needs)
        return join(values, decided.needs)

    @staticmethod
    def _keep(value: Any, wanted: bool) -> Any:
        """Return what is left of a value once its truth is known."""
        if isinstance(value, Unknown) and value.options is not None:
            rest = tuple(option for option in value.options if option is not MISSING and truth(option) is not (not wanted))
            if len(rest) == 1:
                return rest[0]
            return Unknown(value.needs, rest or None)
        if isinstance(value, Unknown) and not wanted:
            return value
        return value

    def _either(self, arms: list[Callable[[], Any]], needs: frozenset[str], guards: Sequence[Words], *, raw: bool = False) -> Any:
        """Evaluate alternatives of an expression, each on the state as it is; return the join of those that come through."""
        values: list[Any] = [MISSING] * len(arms)

        def run(index: int) -> bool:
            values[index] = arms[index]()
            return NORMAL

        self.fork([partial(run, index) for index in range(len(arms))], needs, guards)
        if raw:
            return values
        return join([value for value in values if value is not MISSING], needs)

    def _eval_Compare(self, node: ast.Compare, frame: Frame) -> Any:
        left = self.eval(node.left, frame)
        outcome: Any = True
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.eval(right_node, frame)
            one = compare(op, left, right)
            decided = truth(one)
            if decided is False:
                return False
            if isinstance(decided, Unknown):
                outcome = one
            left = right
        return outcome

    def _eval_IfExp(self, node: ast.IfExp, frame: Frame) -> Any:
        test = truth(self.eval(node.test, frame))
        if not isinstance(test, Unknown):
            return self.eval(node.body if test else node.orelse, frame)
        arms: list[Callable[[], Any]] = [lambda: self.eval(node.body, frame), lambda: self.eval(node.orelse, frame)]
        return self._either(arms, test.needs, [partial(text_of, node.test), partial(negated, node.test)])

    def _eval_JoinedStr(self, node: ast.JoinedStr, frame: Frame) -> Any:
        parts: list[str] = []
        needs: frozenset[str] = NO_NEEDS
        for part in node.values:
            if isinstance(part, ast.Constant):
                parts.append(str(part.value))
                continue
            value = self.eval(part.value, frame)  # type: ignore[attr-defined]
            if isinstance(value, Unknown):
                needs |= value.needs or frozenset(("text",))
                parts.append("…")
            else:
                parts.append(self._formatted(part, value, frame))
        text = "".join(parts)
        return Unknown(needs, None) if needs and not self.in_message else text

    def _formatted(self, part: Any, value: Any, frame: Frame) -> str:
        spec = self.eval(part.format_spec, frame) if part.format_spec is not None else ""
        if part.conversion in (ord("r"), ord("a")):
            return self.show(value, quoted=True)
        if isinstance(value, (int, float)) and isinstance(spec, str):
            try:
                text = formatted(value, spec)
                return text if isinstance(text, str) else str(value)
            except (ValueError, TypeError):
                return str(value)
        return self.show(value)

    def _eval_List(self, node: ast.List, frame: Frame) -> Any:
        return List(self._elements(node.elts, frame))

    def _eval_Tuple(self, node: ast.Tuple, frame: Frame) -> Any:
        return tuple(self._elements(node.elts, frame))

    def _eval_Set(self, node: ast.Set, frame: Frame) -> Any:
        return self.make_set(self._elements(node.elts, frame))

    def _elements(self, nodes: list[ast.expr], frame: Frame) -> list[Any]:
        out: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                value = self.eval(node.value, frame)
                items = self.iterate(value)
                if items is None:
                    out.append(Unknown(needs_of(value) | {"*items"}))
                else:
                    out += items
            else:
                out.append(self.eval(node, frame))
        return out

    def _eval_Dict(self, node: ast.Dict, frame: Frame) -> Any:
        out = Dict()
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            value = self.eval(value_node, frame)
            if key_node is None:
                if isinstance(value, Dict):
                    out.cells |= value.cells
                    out.sites |= value.sites
                elif isinstance(value, Unknown):
                    out.cells[SMEARED] = value
                continue
            key = self.key(self.eval(key_node, frame))
            if isinstance(key, Unknown):
                out.cells[SMEARED] = key
            else:
                out.cells[key] = value
                out.sites[key] = self.site(frame, value_node.lineno, value)
        return out

    def _eval_Subscript(self, node: ast.Subscript, frame: Frame) -> Any:
        value = self.eval(node.value, frame)
        if isinstance(node.slice, ast.Slice):
            bounds = [
                None if part is None else self.eval(part, frame) for part in (node.slice.lower, node.slice.upper, node.slice.step)
            ]
            return lift(self._sliced, value, *bounds)
        return self.item(value, self.eval(node.slice, frame))

    @staticmethod
    def _sliced(value: Any, lower: Any, upper: Any, step: Any) -> Any:
        try:
            cut = slice(lower, upper, step)
            if isinstance(value, List):
                return List(value.items[cut]) if isinstance(value.items, tuple) else Unknown(value.items.needs)
            if isinstance(value, (str, tuple)):
                return value[cut]
        except (TypeError, ValueError):
            pass
        return Unknown(("slice",))

    def item(self, value: Any, index: Any) -> Any:
        """``value[index]``."""
        if isinstance(value, Unknown) or (isinstance(index, Unknown) and not isinstance(value, Dict)):
            return lift(self.item, value, index)
        if isinstance(value, Dict):
            return self._dict_item(value, index)
        items = value.items if isinstance(value, List) else value
        if isinstance(items, Unknown):
            return Unknown(items.needs)
        if isinstance(items, (tuple, str)) and isinstance(index, int):
            try:
                return items[index]
            except IndexError:
                raise Raised("IndexError", "list index out of range", self.here()) from None
        if items is None:
            raise Raised("TypeError", "'NoneType' object is not subscriptable", self.here())
        return self.special_item(value, index)

    def _dict_item(self, value: Dict, index: Any) -> Any:
        if isinstance(index, Unknown):
            return lift(lambda one: self._dict_item(value, one), index)
        key = self.key(index)
        held = value.cells.get(key, MISSING)
        if held is not MISSING:
            self.read(value.taints.get(key))
            return present(held)
        if SMEARED in value.cells:
            return Unknown(value.cells[SMEARED].needs)
        raise Raised("KeyError", self.show(index, quoted=True), self.here())

    def _eval_Lambda(self, node: ast.Lambda, frame: Frame) -> Any:
        return self.make_function(node, frame)

    def _eval_Starred(self, node: ast.Starred, frame: Frame) -> Any:
        return self.eval(node.value, frame)

    def _eval_Await(self, node: ast.Await, frame: Frame) -> Any:
        return Unknown(("await",))

    def is_silent(self, node: ast.Call) -> bool:
        func = node.func
        return isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in _SILENT

    def _eval_Call(self, node: ast.Call, frame: Frame) -> Any:
        if self.is_silent(node) and node.func.attr != "getLogger":  # type: ignore[attr-defined]
            return None
        return self.call_node(node, frame)

    def make_function(self, node: Any, frame: Frame) -> Function:
        made = Function(node, frame.module, None if frame.function is None and frame.parent is None else frame, frame.cls)
        made.defaults = [self.eval(one, frame) for one in node.args.defaults]
        made.kw_defaults = [MISSING if one is None else self.eval(one, frame) for one in node.args.kw_defaults]
        for decorator in getattr(node, "decorator_list", ()):
            made.decorators.add(text_of(decorator).partition("(")[0].rpartition(".")[2])
        return made

    def is_module(self, value: Any) -> bool:
        return isinstance(value, Module)
