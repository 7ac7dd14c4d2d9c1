"""Debian packages and a signed flat repository of them, written by hand: needs neither dpkg nor gpg where it is built."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from openpgp import Key

SCRIPTS = ("preinst", "postinst", "prerm", "postrm")


@dataclass(frozen=True)
class Deb:
    """One package: relations such as Depends, maintainer scripts by name, files by path."""

    name: str
    version: str
    relations: Mapping[str, str] = field(default_factory=dict)
    scripts: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def file(self) -> str:
        return f"{self.name}_{self.version}_all.deb"

    @property
    def control(self) -> str:
        known = {
            "Package": self.name,
            "Version": self.version,
            "Architecture": "all",
            "Maintainer": "Stand-in <driver@example.invalid>",
            **self.relations,
            "Description": f"stand-in for {self.name}, without any of its content",
        }
        return "".join(f"{key}: {value}\n" for key, value in known.items())

    def build(self) -> bytes:
        scripts = {f"./{name}": (text, 0o755) for name, text in self.scripts.items()}
        control = _tar({"./control": (self.control, 0o644), **scripts})
        data = _tar({f"./{path}": (text, 0o755 if "/bin/" in path else 0o644) for path, text in self.files.items()})
        members = (("debian-binary", b"2.0\n"), ("control.tar.gz", control), ("data.tar.gz", data))
        return b"!<arch>\n" + b"".join(_member(name, body) for name, body in members)


def _tar(files: Mapping[str, tuple[str, int]]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.GNU_FORMAT, compresslevel=1) as tar:
        folders = sorted({str(parent) for path in files for parent in Path(path).parents if str(parent) != "."})
        for folder in folders:
            entry = tarfile.TarInfo(f"./{folder}")
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for path, (text, mode) in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(text.encode()), mode
            tar.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def _member(name: str, body: bytes) -> bytes:
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(body):<10}`\n".encode()
    return head + body + (b"\n" if len(body) % 2 else b"")


def repository(folder: Path, debs: Iterable[Deb], key: Key, *, origin: str) -> None:
    """Write a flat repository, as NVIDIA's is: packages, Packages, Release and its signature, and the key beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for deb in debs:
        body = deb.build()
        (folder / deb.file).write_bytes(body)
        sums = f"Filename: ./{deb.file}\nSize: {len(body)}\nSHA256: {hashlib.sha256(body).hexdigest()}\n"
        entries.append(deb.control + sums)
    packages = "\n".join(entries).encode()
    indexes = {"Packages": packages, "Packages.gz": gzip.compress(packages, 1, mtime=0)}
    lines = [f"Origin: {origin}", f"Label: {origin}", "Suite: stable", "Architectures: amd64 all"]
    lines += [f"Date: {time.strftime('%a, %d %b %Y %H:%M:%S UTC', time.gmtime())}", "SHA256:"]
    for name, body in indexes.items():
        (folder / name).write_bytes(body)
        lines.append(f" {hashlib.sha256(body).hexdigest()} {len(body)} {name}")
    release = ("\n".join(lines) + "\n").encode()
    (folder / "Release").write_bytes(release)
    (folder / "Release.gpg").write_bytes(key.sign(release))
    (folder / "key.asc").write_bytes(key.public())
