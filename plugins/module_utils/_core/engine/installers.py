# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""uv and pip: which one is there, how each is asked for the same result, and what their failures mean."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

from ..errors import InferopsError
from .host import Interpreter, look_at

MIB = 1024 * 1024


@dataclass(frozen=True)
class Sources:
    """Where packages are from: a folder, or an index with an account if it wants one."""

    wheelhouse: str = ""
    index_url: str = ""
    username: str = ""
    password: str = ""

    def environment(self) -> dict[str, str]:
        """Return what tells both installers; the account is in the environment alone, which root and the owner can read."""
        if self.wheelhouse or not self.index_url:
            return {}
        parts = urlsplit(self.index_url)
        if self.username:
            account = quote(self.username, safe="") + (":" + quote(self.password, safe="") if self.password else "")
            parts = parts._replace(netloc=f"{account}@{parts.netloc.rpartition('@')[2]}")
        url = urlunsplit(parts)
        return {"PIP_INDEX_URL": url, "UV_DEFAULT_INDEX": url, "PIP_EXTRA_INDEX_URL": "", "UV_INDEX": ""}

    def hide(self, text: str) -> str:
        """Return a text without the password, in either spelling, and without an account in an address."""
        for secret in {self.password, quote(self.password, safe="")} - {""}:
            text = text.replace(secret, "********")
        return re.sub(r"(https?://)[^/@\s]+@", r"\1", text)


@dataclass(frozen=True)
class Installer:
    """``kind`` is uv or pip; ``command`` runs it; an empty one means that the environment gets a pip of its own."""

    kind: str
    command: list[str]

    def venv(self, python: str, folder: str) -> list[str]:
        if self.kind == "uv":
            return [*self.command, "venv", "--no-config", "--no-project", "--offline", "--python", python, folder]
        return [python, "-I", "-m", "venv", *(["--without-pip"] if self.command else []), folder]

    def install(self, python: str, lock: str, sources: Sources, cache: str, *, compiled: bool) -> list[str]:
        """Return the command that installs what the lock pins and nothing else; every file is held to its hash."""
        where = ["--no-index", "--find-links", sources.wheelhouse] if sources.wheelhouse else []
        if self.kind == "uv":
            words = [*self.command, "pip", "install", "--no-config", "--python", python, "--cache-dir", cache, "--no-progress"]
            words += ["--compile-bytecode"] if compiled else []
        else:
            own = [*(self.command or [python, "-m", "pip"]), "--python", python, "install"]
            # A wheelhouse is read in place; what an index gave survives an interruption in the cache.
            keep = ["--no-cache-dir"] if sources.wheelhouse else ["--cache-dir", cache]
            words = [*own, "--no-input", "--disable-pip-version-check", "--progress-bar", "off", *keep]
            words += ["--compile" if compiled else "--no-compile"]
            # What an index answered is said at this level only; without it a refused account reads as "no such version".
            words += [] if sources.wheelhouse else ["-vv"]
        return [*words, "--no-deps", "--require-hashes", "--requirement", lock, *where]


def choose(asked: str, uv: str, pip_python: str, python: Interpreter) -> Installer:
    """Return the installer. Raises InferopsError where the one that is asked for is not there, or none is."""
    found = uv or shutil.which("uv") or _beside(pip_python, "uv") or ""
    if asked in ("auto", "uv") and found and os.access(found, os.X_OK):
        return Installer("uv", [found])
    if asked == "uv":
        raise InferopsError(
            "uv is asked for and is not on the host",
            where=uv or "PATH",
            do="install uv, set sglang_engine_uv to it, or sglang_engine_installer to auto",
        )
    if pip_python:
        return Installer("pip", [pip_python, "-m", "pip"])
    if python.has_venv:
        return Installer("pip", [])
    raise InferopsError(
        "nothing on the host can make a virtual environment",
        where=python.path,
        why="this Python has no ensurepip, and there is no uv",
        do="install the package python3-venv of this Python, or uv",
    )


def _beside(python: str, name: str) -> str | None:
    path = Path(python).parent / name
    return str(path) if python and os.access(path, os.X_OK) else None


def explain(kind: str, output: str, folder: Path, sources: Sources) -> tuple[str, str]:
    """Return why an installer failed and what to do, out of what it wrote."""
    text = sources.hide(output).strip()
    tail = "\n         ".join(line for line in text.splitlines()[-12:] if line.strip())
    if re.search(r"No space left on device|os error 28|Errno 28", text):
        free = look_at(folder).free_bytes // MIB
        return (
            f"no space left on device: {folder} has {free} MiB free\n         {tail}",
            f"make room on {folder}, or set sglang_engine_root",
        )
    if re.search(r"DO NOT MATCH THE HASHES|[Hh]ash mismatch", text):
        names = sorted(
            set(
                re.findall(
                    r"^\s+([\w.-]+(?:==\S+)?) from \S+(?: \(from .*\))?:$|[Hh]ash mismatch for `([^`]+)`", text, re.MULTILINE
                )
            )
        )
        which = ", ".join(a or b for a, b in names) or "a package"
        source = sources.wheelhouse or "the package index"
        return (
            f"{which} from {source} is not the file that the lock names (hash mismatch)\n         {tail}",
            "find out who changed that file before anything else; a mirror or a copy may be damaged: fetch it again",
        )
    if re.search(r"Failed to extract archive|BadZipFile|has an invalid wheel|not a zip file", text):
        return f"a wheel from {sources.wheelhouse or 'the package index'} is damaged\n         {tail}", "fetch that file again"
    if re.search(r"\b40[13] (?:Client Error|Error|Unauthorized|Forbidden)", text):
        return (
            f"the package index refuses the account\n         {tail}",
            "see sglang_engine_index_username and sglang_engine_index_password",
        )
    if re.search(r"Name or service not known|name resolution|NewConnectionError|dns error|[Cc]onnection refused|timed out", text):
        return (
            f"the package index cannot be reached\n         {tail}",
            "open the way to it, or give the wheels in sglang_engine_wheelhouse",
        )
    return tail or f"{kind} gave no reason", "put that right and run the same play again; it begins this environment afresh"


def clean_environment(base: Mapping[str, str], sources: Sources, temporary: str) -> dict[str, str]:
    """Return the environment of an installer: temporary files beside the environments, nothing asked of people."""
    drop = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER", "UV_PROJECT_ENVIRONMENT"}
    kept = {key: value for key, value in base.items() if key not in drop}
    settings = {"TMPDIR": temporary, "PIP_NO_INPUT": "1", "UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1", "NO_COLOR": "1"}
    return {**kept, **settings, **sources.environment()}
