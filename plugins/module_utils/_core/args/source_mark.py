# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a check has read of a release: by it a later one tells from content, not from name or date, that it would read the same.

Of a wheel bytes of the archive: its directory, which has the name and checksum of every file, and the files that were read.
That takes milliseconds where the hash of the whole wheel takes as long as all else of a kept answer. Of a folder the files that
were read or looked for in vain, and the names that were listed. The thousands of files that were only searched for a word are
told by what stands for their content: in a wheel the directory's checksums, in a folder size and time of change.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..errors import InferopsError

if TYPE_CHECKING:
    import zipfile

_LOCAL_HEADER = 30


def label_of(root: str | Path) -> str:
    """Return what answers call a source: the name of a wheel, the path of a folder, as given and in full."""
    path = Path(root)
    return path.name if path.is_file() else f"{path} {Path.cwd() / path}"


def mark_of(tree: Any) -> dict[str, Any]:
    """Return the mark of everything a source tree was asked for."""
    archive = getattr(tree.store, "archive", None)
    if archive is not None:
        return _wheel_mark(archive, [f"sglang/{rel}" for rel in tree.looked_for])
    asked = [tree.looked_for, sorted(tree.listed), tree.searched]
    return {"asked": asked, "sha256": _folder_digest(tree.read, tree.store, *asked)}


def unchanged(root: str | Path, mark: dict[str, Any]) -> bool:
    """Whether what stands at a path now has the same content, as far as the mark goes."""
    path = Path(root)
    try:
        if "spans" in mark:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                return bool(size == mark["size"] and _span_digest(file, mark["spans"]) == mark["sha256"])
        from .source import package_in  # deferred: a wheel needs none of it
        from .store import FolderStore

        package = package_in(path)
        if package is None:
            return False
        store = FolderStore(package)
        return bool(_folder_digest(store.read, store, *mark["asked"]) == mark["sha256"])
    except (OSError, InferopsError):
        return False


def _wheel_mark(archive: zipfile.ZipFile, names: Iterable[str]) -> dict[str, Any]:
    file = archive.fp
    if file is None:
        raise InferopsError("the wheel was closed while it was read")
    size = os.fstat(file.fileno()).st_size
    inside = set(archive.namelist())
    spans = [[archive.start_dir, size - archive.start_dir]]
    for entry in (archive.getinfo(name) for name in names if name in inside):
        file.seek(entry.header_offset)
        header = file.read(_LOCAL_HEADER)
        variable = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        spans.append([entry.header_offset, _LOCAL_HEADER + variable + entry.compress_size])
    spans.sort()
    return {"size": size, "spans": spans, "sha256": _span_digest(file, spans)}


def _span_digest(file: IO[bytes], spans: Iterable[Iterable[int]]) -> str:
    digest = hashlib.sha256()
    for start, length in spans:
        file.seek(start)
        digest.update(file.read(length))
    return digest.hexdigest()


def _folder_digest(
    read: Callable[[str], str | None], store: Any, files: Iterable[str], listed: Iterable[str], searched: Iterable[str]
) -> str:
    digest = hashlib.sha256()
    for rel in files:
        text = read(rel)
        data = b"" if text is None else text.encode("utf-8")
        digest.update(f"{rel} {None if text is None else len(data)}\n".encode())
        digest.update(data)
    for prefix in listed:
        digest.update(f"{prefix}: {store.glob(prefix)}\n".encode())
    digest.update(repr([store.looks(rel) for rel in searched]).encode())
    digest.update(repr(store.metadata()).encode())
    return digest.hexdigest()
