# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A folder that brings a release to a machine without a network: wheels, lock, collection, checksums, bill of materials."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from .plan import Plan
from .wheels import in_folder

SUMS, BILL, LOCK, WHEELS = "SHA256SUMS", "sbom.cdx.json", "engine.lock", "wheels"
_SHOWN = 5


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def seal(folder: Path, version: str) -> bool:
    """Write the bill of materials and the checksums of everything else; return whether either changed."""
    bill = json.dumps(bill_of_materials(folder, version), indent=1, sort_keys=True) + "\n"
    changed = _write(folder / BILL, bill)
    lines = [f"{sha256(folder / name)}  {name}\n" for name in _files(folder)]
    return _write(folder / SUMS, "".join(lines)) or changed


def bill_of_materials(folder: Path, version: str) -> dict[str, Any]:
    """Return what the bundle holds as CycloneDX 1.5; the same files give the same text."""
    parts = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{wheel.name}@{wheel.version}",
            "purl": f"pkg:pypi/{wheel.name}@{wheel.version}",
            "name": wheel.name,
            "version": wheel.version,
            "hashes": [{"alg": "SHA-256", "content": sha256(wheel.path)}],
        }
        for wheel in in_folder(folder / WHEELS)
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": "engine", "name": "sglang-engine", "version": version}},
        "components": parts,
    }


def verify(folder: Path) -> None:
    """Raise InferopsError unless every file is listed and is what the list says, and every listed file is there."""
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    except OSError as exc:
        raise InferopsError(
            "the bundle has no list of checksums, so nothing of it is used",
            where=str(folder / SUMS),
            why=exc.strerror,
            do="copy the bundle again",
        ) from exc
    listed = {name: digest for digest, dummy, name in (line.partition("  ") for line in lines)}
    there = set(_files(folder))
    wrong = [f"{name} is missing" for name in listed if name not in there]
    wrong += [f"{name} is not in the list" for name in sorted(there) if name not in listed]
    wrong += [
        f"{name} is another file than was bundled"
        for name in sorted(there)
        if name in listed and sha256(folder / name) != listed[name]
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
