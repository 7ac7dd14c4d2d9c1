# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The source of one SGLang release as text: an installed tree, a source folder or a wheel. Nothing is imported or run."""

from __future__ import annotations

import ast
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from .outline import UNPARSABLE, Outline, outline_at_once, outline_of, whole
from .store import PACKAGE, FolderStore, Store, WheelStore, decoded

# Every release since 0.4.3 has this file; a folder without it is not the server's package.
LANDMARK = "srt/server_args.py"
# The server within the package; beside it stand client, tests, the program for images.
SERVER = "srt/"
# The largest programs beside it, which the server does not import.
NOT_SERVER = ("multimodal_gen/", "test/")
# Where arguments are resolved: seen in 0.4.6 … 0.5.23.
ARGUMENT_CODE = ("srt/arg_groups/", "srt/server_args", "srt/model_executor/cuda_graph_config.py")
_VERSION = re.compile(r"^__version__\s*=\s*(?:version\s*=\s*)?['\"]([^'\"]+)['\"]", re.MULTILINE)
_METADATA_VERSION = re.compile(r"^Version:\s*(\S+)", re.MULTILINE)
_WHEEL_NAME = re.compile(r"^sglang-([^-]+)-")


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
                text = decoded(data) if data is not None and wanted in data else None
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
