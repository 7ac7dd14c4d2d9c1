# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The source of one SGLang release as text: an installed tree, a source folder or a wheel. Nothing is imported or run."""

from __future__ import annotations

import ast
import lzma
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from ..errors import InferopsError
from .outline import UNPARSABLE, Outline, outline_at_once, outline_of, whole

PACKAGE = "sglang"
# Every release since 0.4.3 has this file; a folder without it is not the server's package.
LANDMARK = "srt/server_args.py"
# The server within the package; beside it stand client, tests, the program for images.
SERVER = "srt/"
# The largest programs beside it, which the server does not import.
NOT_SERVER = ("multimodal_gen/", "test/")
# Where arguments are resolved: seen in 0.4.6 … 0.5.23.
ARGUMENT_CODE = ("srt/arg_groups/", "srt/server_args", "srt/model_executor/cuda_graph_config.py")
LARGEST_FILE = 16 << 20
_VERSION = re.compile(r"^__version__\s*=\s*(?:version\s*=\s*)?['\"]([^'\"]+)['\"]", re.MULTILINE)
_METADATA_VERSION = re.compile(r"^Version:\s*(\S+)", re.MULTILINE)
_WHEEL_NAME = re.compile(r"^sglang-([^-]+)-")


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
        return _decoded(self.read_bytes(rel))

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
        return _decoded(self.read_bytes(rel))

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
        _small_enough(self.archive.getinfo(name).file_size, f"{self.wheel}, {name}")
        try:
            return self.archive.read(name)
        except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError, ValueError) as exc:
            raise _damaged(self.wheel, name, exc) from exc


def _decoded(data: bytes | None) -> str | None:
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


class SourceTree:
    """Read access to one release. Paths are relative to the ``sglang`` package, as in ``srt/server_args.py``."""

    def __init__(self, store: Store, label: str) -> None:
        self.store = store
        self._text: dict[str, str | None] = {}
        self._modules: dict[str, ast.Module | None] = {}
        self._outlines: dict[str, Outline] = {}
        # Prefixes of which the files were listed.
        self.listed: set[str] = set()
        self._searched: set[str] = set()
        # What readers have worked out about this tree, so that it is worked out once.
        self.memo: dict[str, Any] = {}
        self.label = label
        self.version = self._find_version()

    def read(self, rel: str) -> str | None:
        """Return the text of a file, or None where the release has no such file."""
        if rel not in self._text:
            self._text[rel] = self.store.read(rel)
        return self._text[rel]

    @property
    def looked_for(self) -> list[str]:
        """The files that were asked for up to now, also those that are absent."""
        return sorted(self._text)

    @property
    def searched(self) -> list[str]:
        """The files that were searched for a word and not asked for."""
        return sorted(self._searched.difference(self._text))

    def exists(self, rel: str) -> bool:
        return self.read(rel) is not None

    def glob(self, prefix: str) -> list[str]:
        """Return the ``.py`` files whose path starts with the prefix, sorted."""
        self.listed.add(prefix)
        return self.store.glob(prefix)

    def search(self, word: str, prefix: str = "") -> Iterator[tuple[str, str]]:
        """Return (file, text) of each file of the server that holds a word, its own first; what is read for it is not held."""
        wanted = word.encode("utf-8")
        files = (rel for rel in self.glob(prefix) if not rel.startswith(NOT_SERVER))
        for rel in sorted(files, key=lambda rel: not rel.startswith(SERVER)):
            text = self._text.get(rel)
            self._searched.add(rel)
            if rel not in self._text:  # looked through before it is decoded: few files hold the word
                data = self.store.read_bytes(rel)
                text = _decoded(data) if data is not None and wanted in data else None
            if text is not None and word in text:
                yield rel, text

    def module(self, rel: str) -> ast.Module | None:
        """Return the syntax tree of a file, parsed once; None where it is absent or not Python this interpreter can read."""
        if rel not in self._modules:
            self._modules[rel] = _parse(self.read(rel), self.outline(rel))
        return self._modules[rel]

    def outline(self, rel: str) -> Outline:
        """Return the statements of a file by name, each parsed when asked for; none where the file is absent or not Python."""
        if rel not in self._outlines:
            self._outlines[rel] = outline_of(self.read(rel) or "")
        return self._outlines[rel]

    def statements(self, rel: str, name: str) -> list[ast.stmt]:
        """Return the statements that make up a top-level name of a file, in order; none where a part of it is not Python."""
        try:
            return self.outline(rel).get(name, [])
        except UNPARSABLE:
            self._outlines[rel] = outline_at_once(self.read(rel) or "")
            return self._outlines[rel].get(name, [])

    def required(self, rel: str) -> ast.Module:
        """Return the syntax tree of a file the flags are read from. Raises InferopsError that says why there is none."""
        module = self.module(rel)
        if module is not None:
            return module
        raise InferopsError(
            f"{rel} of SGLang {self.version} cannot be read as Python {sys.version_info.major}.{sys.version_info.minor}",
            where=f"{self.label}: {rel}",
            why=_why_not_python(self.read(rel)),
            do="run the check with a newer Python, or check with the live tier on a host that has this release installed",
        )

    def find(self, dotted: str) -> str | None:
        """Return the file of a module name such as ``sglang.srt.environ``, None for one outside the package."""
        if dotted != PACKAGE and not dotted.startswith(PACKAGE + "."):
            return None
        rel = dotted[len(PACKAGE) + 1 :].replace(".", "/")
        for name in (f"{rel}.py", f"{rel}/__init__.py") if rel else ("__init__.py",):
            if self.exists(name):
                return name
        return None

    def _find_version(self) -> str:
        for rel in ("_version.py", "version.py"):
            if match := _VERSION.search(self.read(rel) or ""):
                return match[1]
        if match := _METADATA_VERSION.search(self.store.metadata() or ""):
            return match[1]
        return "unknown"


def open_source(path: str | Path) -> SourceTree:
    """Open a wheel, a site-packages or source folder that holds ``sglang/``, or the package folder itself.

    Raises InferopsError where none of these is found.
    """
    root = Path(path)
    if root.is_file():
        return SourceTree(_open_wheel(root), root.name)
    package = package_in(root)
    if package is not None:
        return SourceTree(FolderStore(package), str(package))
    raise InferopsError(
        f"no SGLang source at {root}",
        where=str(root),
        why=f"expected {PACKAGE}/{LANDMARK} below it, or a sglang wheel" if root.exists() else "the path does not exist",
        do="give the site-packages folder of the release under test, a source checkout, or a sglang-*.whl file",
    )


def package_in(root: Path) -> Path | None:
    """Return the package folder of a site-packages or source folder, or the folder itself where it is one; None for neither."""
    places = (root / PACKAGE, root, root / "python" / PACKAGE)
    return next((place for place in places if (place / LANDMARK).is_file()), None)


def _open_wheel(path: Path) -> WheelStore:
    if not zipfile.is_zipfile(path):
        raise InferopsError(
            f"{path.name} is not a wheel",
            where=str(path),
            why="it is not a zip archive, or its end is missing",
            do="give a complete sglang-*.whl file or a folder",
        )
    store = WheelStore(path)
    if store.read(LANDMARK) is None:
        other = "" if _WHEEL_NAME.match(path.name) else "; its name is not sglang-VERSION-….whl either"
        raise InferopsError(
            f"{path.name} holds no SGLang server",
            where=str(path),
            why=f"{PACKAGE}/{LANDMARK} is not in it{other}",
            do="give the wheel of the sglang package itself",
        )
    return store


def _parse(text: str | None, outline: Outline) -> ast.Module | None:
    try:
        return None if text is None else whole(text, outline.chunks)
    except UNPARSABLE:
        return None


def _why_not_python(text: str | None) -> str:
    if text is None:
        return "the file is missing or not UTF-8 text"
    try:
        whole(text, ())
    except SyntaxError as exc:
        return f"line {exc.lineno}: {exc.msg}"
    except UNPARSABLE as exc:
        return str(exc) or "it is nested too deeply"
    return "it could be read a moment ago"
