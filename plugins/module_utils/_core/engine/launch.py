# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""How a release is started, by what its own source holds.

``python -m sglang.launch_server`` is there in every release from 0.4.6 to 0.5.23. ``sglang serve`` came with 0.5.5,
looks at the model first to tell a diffusion model from a language model, and is what a release without the module leaves.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from ..errors import InferopsError

MODULE, CLI, CLI_SERVE = "sglang/launch_server.py", "sglang/cli/main.py", "sglang/cli/serve.py"
MODULE_WORDS = ["-m", "sglang.launch_server"]


def launch_words(source: Path | None, engine_dir: str) -> tuple[list[str], str]:
    """Return the words after the interpreter, and why these; raises InferopsError where no known form fits."""
    if source is None:
        return list(MODULE_WORDS), "no source to read yet; every release known has this form"
    present = _present(source)
    if MODULE in present:
        return list(MODULE_WORDS), f"{MODULE} is there"
    if {CLI, CLI_SERVE} <= present:
        return [f"{engine_dir}/bin/sglang", "serve"], f"{MODULE} is gone, {CLI_SERVE} is there"
    raise InferopsError(
        "this release of SGLang cannot be started in a way that is known",
        where=str(source),
        why=f"neither {MODULE} nor {CLI_SERVE} is there",
        do="see whether the installation is whole, or set sglang_engine_launch to the words after the interpreter",
    )


def _present(source: Path) -> set[str]:
    names = (MODULE, CLI, CLI_SERVE)
    if source.is_dir():
        return {name for name in names if (source / name).is_file()}
    try:
        with zipfile.ZipFile(source) as archive:
            return set(names) & set(archive.namelist())
    except (OSError, zipfile.BadZipFile) as exc:
        raise InferopsError(
            "the wheel of SGLang cannot be read", where=str(source), why=str(exc), do="copy that file again"
        ) from exc
