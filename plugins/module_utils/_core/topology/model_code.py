# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Code that comes with a model and runs with ``trust_remote_code``: what there is, and what changed since it was accepted."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from ..errors import InferopsError

HIDDEN = "."
"""Folders of download tools (.cache, .git) begin with it; nothing in them is imported."""


def code_files(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every Python file of a model folder by its path in it, sorted."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder)
        if any(part.startswith(HIDDEN) for part in name.parts) or not path.is_file():
            continue
        try:
            found[name.as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as exc:
            raise InferopsError(
                f"cannot read {path}: {exc.strerror or exc}",
                where=str(path),
                why="it is code that runs with trust_remote_code, so it must be looked at",
                do="make it readable for the user that checks, or take it out of the folder",
            ) from exc
    return found


def check_accepted(folder: Path, found: Mapping[str, str], accepted: Mapping[str, str]) -> None:
    """Refuse code that is not what was accepted; nothing accepted means that nothing was said about it."""
    if not accepted:
        return
    differ = {
        **{name: "was added since" for name in found if name not in accepted},
        **{name: "is gone" for name in accepted if name not in found},
        **{name: "changed" for name in found if name in accepted and found[name] != accepted[name].lower()},
    }
    if not differ:
        return
    first = min(differ)
    raise InferopsError(
        f"the model's own code is not what was accepted: {', '.join(f'{name} {how}' for name, how in sorted(differ.items()))}",
        where=str(folder / first),
        why="it runs inside the server with trust_remote_code; whoever can change it runs what they want there",
        do="read the difference, then accept these: " + ", ".join(f"{name}: {digest}" for name, digest in found.items()),
    )
