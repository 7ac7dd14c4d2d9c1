# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A folder that brings a release to a machine without a network: wheels, lock, collection, checksums, bill of materials."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from .brought import SUMS, listed, sha256
from .plan import Plan
from .wheels import in_folder

BILL, LOCK, WHEELS = "sbom.cdx.json", "engine.lock", "wheels"
_SHOWN = 5


def seal(folder: Path, version: str) -> bool:
    """Write the bill of materials and the checksums of everything else; return whether either changed."""
    bill = json.dumps(bill_of_materials(folder, version), indent=1, sort_keys=True) + "\n"
    changed = _write(folder / BILL, bill)
    lines = [f"{sha256(folder / name)}  {name}\n" for name in _files(folder)]
    return _write(folder / SUMS, "".join(lines)) or changed


def bill_of_materials(folder: Path, version: str) -> dict[str, Any]:
    """Return what the bundle holds as CycloneDX 1.5; the same files give the same text."""
    parts: list[dict[str, Any]] = []
    for wheel in in_folder(folder / WHEELS):
        purl = f"pkg:pypi/{wheel.name}@{wheel.version}"
        named = {"type": "library", "bom-ref": purl, "purl": purl, "name": wheel.name, "version": wheel.version}
        parts.append({**named, "hashes": _digest(wheel.path)})
    for path in sorted((folder / "interpreter").glob("*")):
        parts.append({"type": "platform", "bom-ref": f"interpreter/{path.name}", "name": path.name, "hashes": _digest(path)})
    for path in sorted((folder / "collection").glob("*.tar.gz")):
        name, dummy, its_version = path.name.removesuffix(".tar.gz").rpartition("-")
        named = {"type": "application", "bom-ref": f"collection/{path.name}", "name": name.replace("-", ".")}
        parts.append({**named, "version": its_version, "hashes": _digest(path)})
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": "engine", "name": "sglang-engine", "version": version}},
        "components": parts,
    }


def _digest(path: Path) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": sha256(path)}]


def verify(folder: Path) -> None:
    """Raise InferopsError unless every file is listed and is what the list says, and every listed file is there."""
    try:
        named = listed(folder)
    except OSError as exc:
        raise InferopsError(
            "the bundle has no list of checksums, so nothing of it is used",
            where=str(folder / SUMS),
            why=exc.strerror,
            do="copy the bundle again",
        ) from exc
    there = set(_files(folder))
    wrong = [f"{name} is missing" for name in named if name not in there]
    wrong += [f"{name} is not in the list" for name in sorted(there) if name not in named]
    wrong += [
        f"{name} is another file than was bundled"
        for name in sorted(there)
        if name in named and sha256(folder / name) != named[name]
    ]
    if wrong:
        more = f"\n         and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise InferopsError(
            "the bundle is not what was made, so nothing of it is used",
            where=str(folder),
            why="\n         ".join(wrong[:_SHOWN]) + more,
            do="copy it again, and compare SHA256SUMS with that of the machine that made it",
        )


def verify_for(plan: Plan) -> None:
    """Verify the bundle that a plan installs from, and that it was made for the plan's lock; nothing to do without one."""
    if plan.complete or not plan.wanted.bundle:
        return
    folder = Path(plan.wanted.bundle)
    verify(folder)
    lock = (folder / LOCK).read_text(encoding="utf-8") if (folder / LOCK).is_file() else ""
    if lock.strip() != plan.wanted.lock.strip():
        raise InferopsError(
            "the bundle was made for another lock",
            where=str(folder / LOCK),
            why=f"the play installs {plan.wanted.lock_path}, SHA-256 {plan.lock.sha256[:12]}",
            do=f"set sglang_engine_lock to a copy of {LOCK} of the bundle, or make a bundle for this lock",
        )


def _files(folder: Path) -> list[str]:
    paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file() or path.is_symlink())
    return sorted(path for path in paths if path != SUMS)


def _write(path: Path, text: str) -> bool:
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    path.write_text(text, encoding="utf-8")
    return True
