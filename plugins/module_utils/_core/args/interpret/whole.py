# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What each layer of the interpreter may ask of the layers above it.

The layers: machine, attributes, comprehensions, expressions, control, statements, calls, interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from .machine import Machine

if TYPE_CHECKING:
    from .frames import Frame, Site
    from .modules import Loader
    from .values import Class, Dict, Raised
    from .visits import Visit


class Whole(Machine):
    """Declarations only: state shared by the layers, and methods a lower layer calls on a higher one."""

    loader: Loader
    frames: list[Frame]
    reads: set[str]
    handling: list[Raised]
    in_message: int
    explicit: dict[str, str]
    call_sites: dict[str, Any]
    leaf_sites: dict[tuple[int, str], tuple[Any, Site]]
    environ: Dict
    watched: Collection[tuple[str, int]]
    visits: list[Visit]
    record_class: Class | None
    fallbacks: dict[str, Any]
    import_guards: list[Frame]
    step: Callable[[], int]
    tick: Callable[[], None]
    spend: Callable[[int], None]
    # Supplied by expressions, statements and calls.
    eval: Any
    assign: Any
    block: Callable[..., bool]
    call: Any
    call_node: Any
    detached: Any
    run_toplevel: Any
    run_class_body: Any
    make_class: Any
    _taint: Any
    # Supplied by the interpreter, where knowledge enters.
    builtin: Any
    builtin_method: Any
    call_plain: Any
    is_exception: Callable[..., bool]
    known_name: Any
    known_function: Any
    known_class: Any
    external: Any
    external_attribute: Any
    has_external: Any
    call_external: Any
    importable: Any
    replace_declarations: Any
    config_attribute: Any
    class_value: Any
    enum_attribute: Any
    enum_class_attribute: Any
    special_item: Any
    special_iterate: Callable[[Any], list[Any] | None]
