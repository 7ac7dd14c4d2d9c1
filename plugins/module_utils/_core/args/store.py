# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where the files of SGLang's package lie: a folder or a wheel, each file bounded and never executed."""

from __future__ import annotations

import lzma
import os
import zipfile
import zlib
from pathlib import Path
from typing import Protocol

from ..errors import InferopsError

PACKAGE = "sglang"
LARGEST_FILE = 16 << 20
# Of a member of an archive, before its name [bytes].
LOCAL_HEADER = 30


class Store(Protocol):
    """Where the files of the package lie."""

    def read(self, rel: str) -> str | None: ...

    def read_bytes(self, rel: str) -> bytes | None: ...

    def glob(self, prefix: str) -> list[str]: ...

    def metadata(self) -> str | None: ...


class FolderStore:
    """A ``sglang`` package folder."""

    def __init__(self, package: Path) -> None:
        self.package = package

    def read(self, rel: str) -> str | None:
        return decoded(self.read_bytes(rel))

    def read_bytes(self, rel: str) -> bytes | None:
        path = self.package / rel
        try:
            if not path.is_file():  # a pipe or a device would never end
                return None
            _small_enough(path.stat().st_size, str(path))
            return path.read_bytes()
        except OSError:
            return None

    def looks(self, rel: str) -> tuple[int, int] | None:
        """Return size and time of change of a file."""
        try:
            about = (self.package / rel).stat()
        except OSError:
            return None
        return about.st_size, about.st_mtime_ns

    def glob(self, prefix: str) -> list[str]:
        top, part = str(self.package), prefix.rpartition("/")[0]
        found = []
        for folder, dummy, files in os.walk(f"{top}/{part}" if part else top):
            found += [f"{folder}/{name}"[len(top) + 1 :] for name in files if name.endswith(".py")]
        return sorted(name for name in found if name.startswith(prefix))

    def metadata(self) -> str | None:
        for path in sorted(self.package.parent.glob(f"{PACKAGE}-*.dist-info/METADATA")):
            return path.read_text(encoding="utf-8", errors="replace")
        return None


class WheelStore:
    """A ``sglang`` wheel; files are read straight out of the archive."""

    def __init__(self, wheel: Path) -> None:
        try:
            self.archive = zipfile.ZipFile(wheel)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as exc:
            raise _damaged(wheel, None, exc) from exc
        self.wheel = wheel
        self.names = set(self.archive.namelist())

    def read(self, rel: str) -> str | None:
        return decoded(self.read_bytes(rel))

    def read_bytes(self, rel: str) -> bytes | None:
        name = f"{PACKAGE}/{rel}"
        return self._bytes(name) if name in self.names else None

    def glob(self, prefix: str) -> list[str]:
        full = f"{PACKAGE}/{prefix}"
        cut = len(PACKAGE) + 1
        return sorted(name[cut:] for name in self.names if name.startswith(full) and name.endswith(".py"))

    def metadata(self) -> str | None:
        for name in sorted(self.names):
            if name.startswith(f"{PACKAGE}-") and name.endswith(".dist-info/METADATA"):
                return self._bytes(name).decode("utf-8", "replace")
        return None

    def _bytes(self, name: str) -> bytes:
        info = self.archive.getinfo(name)
        _small_enough(info.file_size, f"{self.wheel}, {name}")
        try:
            whole = self._at_once(info)
            return self.archive.read(name) if whole is None else whole
        except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError, ValueError) as exc:
            raise _damaged(self.wheel, name, exc) from exc

    def _at_once(self, info: zipfile.ZipInfo) -> bytes | None:
        """Return a plain member: a search reads thousands, and ZipFile.read takes pieces. None where it is not as told."""
        file = self.archive.fp
        if file is None or info.compress_type != zipfile.ZIP_DEFLATED or info.flag_bits & 1 or info.compress_size > LARGEST_FILE:
            return None
        file.seek(info.header_offset)
        head = file.read(LOCAL_HEADER)
        if len(head) < LOCAL_HEADER or not head.startswith(b"PK\x03\x04"):
            return None
        file.seek(sum(int.from_bytes(head[at : at + 2], "little") for at in (26, 28)), os.SEEK_CUR)
        data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(file.read(info.compress_size), info.file_size + 1)
        return data if len(data) == info.file_size and zlib.crc32(data) == info.CRC else None


def decoded(data: bytes | None) -> str | None:
    """Return the text of a file, its lines ended by a newline alone, None where it is not UTF-8."""
    try:
        text = None if data is None else data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n") if text and "\r" in text else text


def _damaged(wheel: Path, name: str | None, exc: Exception) -> InferopsError:
    return InferopsError(
        f"{wheel.name} is damaged",
        where=f"{wheel}, {name}" if name else str(wheel),
        why=str(exc),
        do="download the wheel again and compare its SHA-256",
    )


def _small_enough(size: int, where: str) -> None:
    if size > LARGEST_FILE:
        raise InferopsError(
            f"a file of {size >> 20} MiB is no source of SGLang",
            where=where,
            why=f"the largest source file of any release is below {LARGEST_FILE >> 20} MiB",
            do="give the wheel or folder as published",
        )
