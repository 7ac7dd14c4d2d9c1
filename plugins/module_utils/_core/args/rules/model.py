# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the model's config.json and the code that runs the model in this release say: its architecture, whether it has stages."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..context import Context
from ..findings import Finding
from ..outline import members
from ..readers.evaluate import Evaluator
from ..readers.names import ClassRef
from .pipeline import size_of

MODELS = "srt/models/"
REGISTRY = "srt/models/registry.py"
# What runs a model that has no file of its own, from 0.4.7 on; models of a package named by the variable are not seen here.
FALLBACK = "TransformersForCausalLM"
EXTERNAL_MODELS = "SGLANG_EXTERNAL_MODEL_PACKAGE"
# ModelRunner asks the signature of the model's forward for this parameter (0.4.6.post2 … 0.5.23); from 0.5.6 on it insists.
PROXY = "pp_proxy_tensors"


def architecture(ctx: Context) -> Iterator[Finding]:
    """Refuse a config.json that names no architecture (R99): every release chooses the model's code by it."""
    override = ctx.asked("json_model_override_args")
    if ctx.model_config is None or _names(ctx) or "architectures" in str(override):
        return
    registry = ctx.line(REGISTRY, "not supported for now")
    yield Finding(
        "SGA405",
        "error",
        "the model's config.json has no architectures",
        where="config.json: architectures",
        why="SGLang chooses the model's code by this list; the server would stop after start, each time it is started",
        do='add the list from the model\'s publisher, such as "architectures": ["LlamaForCausalLM"]',
        source=registry,
    )


def _names(ctx: Context) -> list[str]:
    names = (ctx.model_config or {}).get("architectures")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def model_can(ctx: Context) -> Iterator[Finding]:
    """Check in the code that would run the model that it can be split into stages (R1: an hour of loading tells it otherwise)."""
    pp_size = size_of(ctx, "pp_size")
    names = _names(ctx)
    if pp_size is None or pp_size < 2 or not names or ctx.env.get(EXTERNAL_MODELS):
        return
    own = _model_class(ctx, names[0]) if ctx.asked("model_impl") != "transformers" else None
    code = own or _model_class(ctx, FALLBACK)
    takes = _takes_proxy(ctx, code) if code is not None else False
    if takes is not False:
        return
    spelled = ctx.parsed.explicit.get("pp_size")
    yield Finding(
        "SGA404",
        "error",
        f"{names[0]} cannot run in pipeline stages in SGLang {ctx.table.version}, and pp_size is {pp_size}",
        why=_why_not(ctx, own, code),
        do="use a release whose model file takes it, or pp_size 1",
        source=f"{code.rel}:{code.node.lineno}" if code is not None else ctx.line(REGISTRY, "not supported for now"),
        **ctx.at(spelled),
    )


def _why_not(ctx: Context, own: ClassRef | None, code: ClassRef | None) -> str:
    if code is None:
        return f"no file of {MODELS} has this architecture, and this release has no other way to run it"
    check = ctx.line("srt/model_executor/model_runner.py", "Pipeline Parallel is not compatible with this model")
    late = (
        f"the server would stop only after the weights are loaded [{check}]"
        if check
        else "nothing asks for it before the first pass, and there a stage gets nothing from the one before it"
    )
    if own is not None:
        return f"its forward takes no {PROXY}; {late}"
    return f"it would run, if at all, through transformers [{code.rel}], and forward takes no {PROXY} there; {late}"


def _model_class(ctx: Context, name: str) -> ClassRef | None:
    for rel in ctx.tree.glob(MODELS):
        if f"class {name}(" not in (ctx.tree.read(rel) or ""):
            continue
        for stmt in ctx.tree.statements(rel, name):
            if isinstance(stmt, ast.ClassDef):
                return ClassRef(rel, stmt)
    return None


def _takes_proxy(ctx: Context, cls: ClassRef, depth: int = 0) -> bool | None:
    """Return whether forward of a class or of its nearest base takes the parameter; None where that is not to be seen."""
    for stmt in members(cls.node).get("forward", ()):
        if isinstance(stmt, ast.FunctionDef):
            arguments = stmt.args
            named = [arg.arg for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
            if PROXY in named:
                return True
            return None if arguments.kwarg is not None else False
    evaluator = Evaluator(ctx.tree)
    for base in cls.node.bases:
        parent = evaluator.static(base, cls.rel)
        if not isinstance(parent, ClassRef) or depth > 6:
            if ast.unparse(base) not in ("nn.Module", "torch.nn.Module"):
                return None
            continue
        found = _takes_proxy(ctx, parent, depth + 1)
        if found is not None:
            return found
    return None
