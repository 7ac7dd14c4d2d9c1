# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What was proven of a folder and stays so: size, time and inode of each file, and its SHA-256 where it was read.

A second look compares what the file system says and reads no weights; a file that differs in any of the three is read again.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from .carry import GIB, SAY_S
from .listing import File

AT_ONCE = 4
PIECE = 4 * 2**20
Files = dict[str, dict[str, Any]]


def look(folder: Path) -> Files:
    """Return size, time and inode of every file of a folder by its path in it."""
    found: Files = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            stat = path.stat()
            key = path.relative_to(folder).as_posix()
            found[key] = {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "inode": stat.st_ino, "sha256": None}
    return found


def read(path: Path) -> Files:
    """Return what was proven; a record that is missing or damaged proves nothing."""
    try:
        files = json.loads(path.read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return files if isinstance(files, dict) and all(isinstance(entry, dict) for entry in files.values()) else {}


def write(path: Path, files: Files, **about: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(path.name + ".new")
    aside.write_text(json.dumps({"schema": 1, **about, "files": files}, indent=1) + "\n", encoding="utf-8")
    aside.replace(path)


def same(now: Mapping[str, Any], before: Mapping[str, Any] | None) -> bool:
    return before is not None and all(now[key] == before.get(key) for key in ("size", "mtime_ns", "inode"))


def prove(folder: Path, before: Files, wanted: Mapping[str, File], say: Callable[[str], None]) -> Files:
    """Return the files of a folder, each with the size and SHA-256 that is wanted of it; raises InferopsError naming the first.

    ``before`` is what an earlier proof found: files that are the same since are not read again.
    """
    now = look(folder)
    for name, entry in now.items():
        if same(entry, before.get(name)):
            entry["sha256"] = before[name].get("sha256")
    wrong = {name: "is missing" for name in wanted if name not in now}
    for name, file in wanted.items():
        if name in now and file.size >= 0 and now[name]["size"] != file.size:
            wrong[name] = f"has {now[name]['size']} bytes, the source says {file.size}"
    to_read = [name for name, file in wanted.items() if name not in wrong and file.sha256 and not now[name]["sha256"]]
    for name, digest in _hashes(folder, {name: now[name]["size"] for name in to_read}, say).items():
        now[name]["sha256"] = digest
    for name, file in wanted.items():
        if name not in wrong and file.sha256 and now[name]["sha256"] != file.sha256.lower():
            wrong[name] = f"has the SHA-256 {now[name]['sha256']}, wanted is {file.sha256.lower()}"
    if wrong:
        raise Unproven(folder, wrong)
    return now


class Unproven(InferopsError):
    """Names the files, so that whoever may fetch again can take them away."""

    def __init__(self, folder: Path, wrong: Mapping[str, str]) -> None:
        first = min(wrong)
        rest = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        super().__init__(
            f"the weights are not what was promised: {first}{rest}",
            where=str(folder / first),
            why=f"{first} {wrong[first]}",
            do="remove it where it lies in a finished folder, then run again; the same again means that source or list is wrong",
        )
        self.names = tuple(sorted(wrong))


def wanted_hashes(given: Mapping[str, Any] | str | None) -> dict[str, File]:
    """Read ``sglang_model_sha256``: a mapping, or the path of a list as sha256sum writes it."""
    if isinstance(given, str) and given:
        try:
            lines = Path(given).read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as exc:
            raise InferopsError(
                f"the list of checksums {given} cannot be read", where="sglang_model_sha256", why=str(exc), do="correct the path"
            ) from exc
        pairs = ((line.partition(" ")[2].strip().lstrip("*"), line.partition(" ")[0]) for line in lines)
        given = {name.removeprefix("./"): digest for name, digest in pairs if name}
    wanted = {str(name): str(digest).lower() for name, digest in (given or {}).items()}
    for name, digest in wanted.items():
        if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
            raise InferopsError(
                f"the checksum of {name} is no SHA-256",
                where="sglang_model_sha256",
                why=f"it is {digest}",
                do="give 64 hex digits",
            )
    return {name: File(-1, digest) for name, digest in wanted.items()}


def _hashes(folder: Path, sizes: Mapping[str, int], say: Callable[[str], None]) -> dict[str, str]:
    total, done, begun = sum(sizes.values()), 0, time.monotonic()
    spoke = begun

    def digest(name: str) -> str:
        nonlocal done, spoke
        hashed = hashlib.sha256()
        with (folder / name).open("rb", buffering=0) as file:
            while piece := file.read(PIECE):
                hashed.update(piece)
                done += len(piece)
                if time.monotonic() - spoke > SAY_S:
                    spoke = time.monotonic()
                    say(f"SHA-256: {done / GIB:.1f} of {total / GIB:.1f} GiB, {100 * done / total:.0f} %")
        return hashed.hexdigest()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(sizes, pool.map(digest, sizes), strict=True))
