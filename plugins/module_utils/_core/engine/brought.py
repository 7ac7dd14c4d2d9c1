# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A Python that is brought along, for a host whose own is not what a release needs: an archive of a relocatable folder.

It is unpacked once, beside the environments that are made with it, into a folder named after its SHA-256.
"""

from __future__ import annotations

import contextlib
import hashlib
import lzma
import os
import re
import shutil
import tarfile
import tempfile
import zlib
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath

from ..errors import InferopsError
from .host import Interpreter, ask_interpreter, look_at

FOLDER = ".python"
PROGRAM = "bin/python3"
SUMS = "SHA256SUMS"
# The archive holds the tree itself, or in one folder (an "install only" archive), or in two (a full one).
_WHERE = (PROGRAM, f"*/{PROGRAM}", f"*/*/{PROGRAM}")
_UNREADABLE = (OSError, EOFError, tarfile.TarError, zlib.error, lzma.LZMAError)


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def listed(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file by the list of a bundle; raises OSError where there is none."""
    lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, dummy, name in (line.partition("  ") for line in lines)}


@dataclass(frozen=True)
class Brought:
    """An archive that was looked at: where it is unpacked to, and what the Python in it says of itself."""

    archive: Path
    home: Path
    interpreter: Interpreter | str
    size_bytes: int
    """Room that unpacking takes; 0 where it is unpacked."""

    def unpack(self) -> None:
        """Unpack it unless it is there; to be called by the one that holds the root."""
        if (self.home / PROGRAM).exists():
            return
        aside = self.home.with_name(f".{self.home.name}.partial")
        try:
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(mode=0o755, parents=True)
            tree = _unpack(self.archive, aside)
            os.sync()
            tree.rename(self.home)
        except _UNREADABLE as exc:
            raise InferopsError(
                "the Python that was brought along was not unpacked; what serves was not touched",
                where=str(self.archive),
                why=str(exc),
                do=f"make room on {self.home.parent.parent}, or copy the archive again",
            ) from exc
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def look(archive: Path, wanted_sha256: str, root: Path) -> Brought | str:
    """Return the archive with what its Python says, or why it cannot be used. Changes nothing that stays."""
    try:
        digest = sha256(archive)
    except OSError as exc:
        return f"{archive} cannot be read: {exc.strerror}"
    if digest != wanted_sha256.lower():
        wanted = wanted_sha256 or "one that was not given"
        return f"{archive} is not the file that is meant: its SHA-256 is {digest}, wanted is {wanted}"
    home = root / FOLDER / digest[:12]
    program = home / PROGRAM
    if program.exists():
        return Brought(archive, home, ask_interpreter(str(program)), 0)
    place = look_at(root)
    # It is asked where it will run: other places are often mounted noexec.
    said, size = _ask(archive, digest, place.existing if place.writable and not place.noexec else None)
    if size is None:
        return f"{archive} cannot be unpacked: {said}"
    return Brought(archive, home, said if isinstance(said, str) else replace(said, path=str(program)), size)


@lru_cache(maxsize=4)
def _ask(archive: Path, dummy: str, beside: Path | None) -> tuple[Interpreter | str, int | None]:
    """Unpack it for as long as it takes to ask; return what it says and its size, or why there is none."""
    try:
        with tempfile.TemporaryDirectory(prefix=".inferops-python-", dir=beside) as folder:
            tree = _unpack(archive, Path(folder))
            return ask_interpreter(str(tree / PROGRAM)), sum(path.lstat().st_blocks * 512 for path in tree.rglob("*"))
    except _UNREADABLE as exc:
        return str(exc), None


def drop_unused(root: Path) -> list[Path]:
    """Remove every Python that no environment was made with; to be called by the one that holds the root."""
    there = [path for path in (root / FOLDER).glob("*") if path.is_dir()]
    # Their folders are named before they are renamed, so half an environment counts too.
    said = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in root.glob("*/pyvenv.cfg")) if there else ""
    unused = [path for path in there if f"/{FOLDER}/{path.name}/" not in said]
    for path in unused:
        shutil.rmtree(path)
    if len(unused) == len(there):
        with contextlib.suppress(OSError):
            (root / FOLDER).rmdir()
    return unused


def _unpack(archive: Path, into: Path) -> Path:
    """Unpack into an empty folder and return the tree of Python in it."""
    with tarfile.open(archive) as tar:
        # Python 3.12 and newer want it said; older ones that know no filter ignore it. Links are looked at here in any case.
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        members = tar.getmembers()
        for member in members:
            _check(member)
            runs = member.isdir() or member.mode & 0o100
            # Whoever packed it, root owns it, and the user of the server reads it.
            member.uid, member.gid, member.uname, member.gname, member.mode = 0, 0, "", "", 0o755 if runs else 0o644
        tar.extractall(into, members)
    for pattern in _WHERE:
        for program in sorted(into.glob(pattern)):
            return program.parent.parent
    raise tarfile.TarError(f"no {PROGRAM} is in it")


def _check(member: tarfile.TarInfo) -> None:
    names = [member.name]
    if member.issym():
        names.append(str(PurePosixPath(member.name).parent / member.linkname))
    elif member.islnk():
        names.append(member.linkname)
    elif not (member.isfile() or member.isdir()):
        raise tarfile.TarError(f"{member.name} is neither a file, a folder nor a link")
    for name in names:
        if re.match(r"/|\.\.(?:/|$)", os.path.normpath(name)):
            raise tarfile.TarError(f"{member.name} leads out of the archive")
