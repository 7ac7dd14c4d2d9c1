# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""An environment is made under another name than it gets; its scripts must name the one that it gets.

Only scripts and the activation files hold the path: the interpreter is a link, ``pyvenv.cfg`` names where that comes from,
and Python corrects the path in byte code when it loads it.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
from pathlib import Path


def point_scripts_to(aside: Path, final: Path, site: Path) -> int:
    """Rewrite the folder's name in each text file of bin/ and correct the records of packages; return how many were rewritten."""
    changed: dict[str, bytes] = {}
    old, new = aside.name.encode(), final.name.encode()
    for path in sorted((aside / "bin").iterdir()):
        if path.is_symlink() or not path.is_file():
            continue
        content = path.read_bytes()
        if old in content and b"\0" not in content:
            changed[path.name] = content.replace(old, new)
            path.write_bytes(changed[path.name])
    config = aside / "pyvenv.cfg"
    config.write_bytes(config.read_bytes().replace(old, new))
    for record in site.glob("*.dist-info/RECORD"):
        _correct(record, changed)
    return len(changed)


def _correct(record: Path, changed: dict[str, bytes]) -> None:
    rows = list(csv.reader(io.StringIO(record.read_text(encoding="utf-8"))))
    touched = False
    for row in rows:
        name = row[0].rpartition("/")[2] if row and row[0].endswith(tuple("/bin/" + name for name in changed)) else ""
        if name and len(row) == 3 and row[1]:
            digest = base64.urlsafe_b64encode(hashlib.sha256(changed[name]).digest()).rstrip(b"=").decode()
            row[1:] = [f"sha256={digest}", str(len(changed[name]))]
            touched = True
    if touched:
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(rows)
        record.write_text(out.getvalue(), encoding="utf-8")
