# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The collection's static tier as a function from a case to an answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

COLLECTIONS = Path(__file__).resolve().parents[2] / ".collections"
MODELS = Path(__file__).resolve().parents[1] / "fixtures" / "oracle" / "models"
if str(COLLECTIONS) not in sys.path:
    sys.path.insert(0, str(COLLECTIONS))

# version, argv, facts, config.json or None, environment, files next to the command line
Resolve = Callable[..., Any]


def resolver(sources: Mapping[str, Path]) -> Resolve:
    """Return a function that parses and resolves with our static tier, one open source per release."""
    from ansible_collections.inferops.sglang.plugins.module_utils._core.args.config_file import merge
    from ansible_collections.inferops.sglang.plugins.module_utils._core.args.facts import Facts
    from ansible_collections.inferops.sglang.plugins.module_utils._core.args.flags import read_flags
    from ansible_collections.inferops.sglang.plugins.module_utils._core.args.interpret import resolve
    from ansible_collections.inferops.sglang.plugins.module_utils._core.args.parser import ArgvError, parse
    from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import open_source

    trees = {version: open_source(path) for version, path in sources.items()}
    tables = {version: read_flags(tree) for version, tree in trees.items()}

    def run(
        version: str,
        argv: list[str],
        facts: dict[str, Any],
        model: dict[str, Any] | None,
        env: Mapping[str, str] | None = None,
        files: Mapping[str, str] | None = None,
    ) -> Any:
        try:
            words = merge(tables[version], argv, (files or {}).__getitem__)
            parsed = parse(tables[version], words)
        except ArgvError as exc:
            return str(exc)
        # Without the model's configuration nothing is known of its draft either.
        read_text = _of_models if model is not None else None
        return resolve(
            trees[version], tables[version], parsed, Facts.from_dict(facts), model, dict(env or {}), read_text=read_text
        )

    return run


def _of_models(path: str) -> str:
    """Read a file of a model as cases name it; no other file."""
    if not path.startswith("@models/"):
        raise FileNotFoundError(path)
    return (MODELS / path.removeprefix("@models/")).read_text(encoding="utf-8")


def read_table(source: Path) -> Any:
    """Return the static flag table of an unpacked release."""
    from ansible_collections.inferops.sglang.plugins.module_utils._core.args.flags import read_flags
    from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import open_source

    return read_flags(open_source(source))
