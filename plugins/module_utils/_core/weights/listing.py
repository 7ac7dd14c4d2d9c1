# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a source holds before anything is fetched: every file with its size, from the hub with its SHA-256."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch

from ..errors import InferopsError
from .source import Source

ANSWER_S = 60
LISTED = re.compile(r"-\S+\s+([\d,.]+)\s+\S+\s+\S+\s(.+)")
"""A file in the list of rsync: rights, size, date, time, name."""
HTTP_WHY = {
    401: "the hub wants a token, or does not know this one: sglang_model_token",
    403: "the token's owner has not been given this model: ask for access on its page",
    404: "the hub has no such model or commit, or hides it without a token",
}


@dataclass(frozen=True)
class File:
    size: int
    sha256: str | None = None


def listing(source: Source, revision: str, *, token: str, environment: Mapping[str, str]) -> dict[str, File]:
    """Return what there is by path, or raise InferopsError with what the source answered."""
    if source.kind == "hub":
        files = _hub(source, revision, token)
        files = {name: file for name, file in files.items() if not any(fnmatch(name, left) for left in source.excluded)}
    else:
        text = _answer(source, environment)
        files = _rclone(text) if source.kind == "rclone" else _rsync(text)
    if not files:
        raise refusal(source, "it holds no file")
    if odd := sorted(name for name in files if name.startswith("/") or ".." in name.split("/")):
        raise refusal(source, f"it lists a file outside its folder: {odd[0]}")
    return files


def refusal(source: Source, why: str) -> InferopsError:
    return InferopsError(
        f"the weights cannot be had from {source.text}",
        where=source.endpoint if source.kind == "hub" else source.place,
        why=why,
        do="correct sglang_model_source, or what stands between it and this host",
    )


def _hub(source: Source, revision: str, token: str) -> dict[str, File]:
    url = f"{source.endpoint}/api/models/{urllib.parse.quote(source.place)}/revision/{revision}?blobs=true"
    request = urllib.request.Request(url)
    if token:
        # Not carried on to where a redirect leads.
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
            said = json.load(answer)
        return {
            entry["rfilename"]: File(int(entry["size"]), (entry.get("lfs") or {}).get("sha256")) for entry in said["siblings"]
        }
    except urllib.error.HTTPError as exc:
        raise refusal(source, f"HTTP {exc.code}: {HTTP_WHY.get(exc.code, exc.reason)}") from exc
    except OSError as exc:
        raise refusal(source, str(getattr(exc, "reason", exc))) from exc
    except (ValueError, KeyError, TypeError) as exc:
        raise refusal(source, "its answer is not what a hub answers") from exc


def _answer(source: Source, environment: Mapping[str, str]) -> str:
    command = source.list_command()
    try:
        done = subprocess.run(
            command, env=dict(environment), capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        )
    except OSError as exc:
        raise no_program(source, exc) from exc
    if done.returncode:
        raise refusal(source, f"{source.program} ended with {done.returncode}: {last_lines(done.stderr)}")
    return done.stdout


def no_program(source: Source, exc: OSError) -> InferopsError:
    package = {"hub": "huggingface_hub"}.get(source.kind, source.kind)
    return InferopsError(
        f"{source.program} cannot be run: {exc.strerror or exc}",
        where="sglang_model_programs",
        why=f"weights from {source.kind} are carried by {package}",
        do=f"install {package} on the host, or give the path of the program",
    )


def last_lines(text: str, count: int = 3) -> str:
    return " / ".join([line.strip() for line in text.splitlines() if line.strip()][-count:]) or "it said nothing"


def _rclone(text: str) -> dict[str, File]:
    return {entry["Path"]: File(int(entry["Size"])) for entry in json.loads(text or "[]")}


def _rsync(text: str) -> dict[str, File]:
    """
    >>> _rsync("drwxr-xr-x 4096 2026/01/01 10:00:00 .\\n-rw-r--r--         12 2026/01/01 10:00:00 a b.json")
    {'a b.json': File(size=12, sha256=None)}
    """
    found = (LISTED.fullmatch(line) for line in text.splitlines())
    return {match[2]: File(int(re.sub(r"\D", "", match[1]))) for match in found if match}
