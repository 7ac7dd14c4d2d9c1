# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Ask the release's own interpreter: one process of its own, limited in time and memory, gone when we are."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import pwd
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..context import SECRET, hide_secrets
from ..interpret.outcome import NOISE
from . import lines, probe, recorder

TIMEOUT_S = 120.0
# SGLang with torch holds 0.6 to 3 GiB; a limit of address space would not do, since CUDA reserves far more than it uses.
MEMORY_MIB = 8192
PACKAGE = "inferops_live"
TAIL = 4
# What of our own environment the process needs to find programs, libraries and cards; everything else is the server's.
KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "HF_HOME", "HF_HUB_CACHE")
# Argument resolution needs no network; a model that is not on this machine is not fetched for a check.
FIXED = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


@dataclass(frozen=True)
class Answer:
    """What SGLang itself made of a command line; outcome ``unavailable`` with a message where it could not be asked."""

    outcome: str
    message: str | None = None
    source: str | None = None
    version: str | None = None
    effective: Mapping[str, Any] = field(default_factory=dict)
    asked: Mapping[str, Any] = field(default_factory=dict)
    writes: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    unseen: Sequence[str] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Container:
    """An image to ask in; args are what the server gets of the host, volumes the folders that it reads."""

    image: str
    args: Sequence[str] = ()
    volumes: Sequence[str] = ()
    podman: str = "podman"

    def command(self, folder: Path, user: str, env: Mapping[str, str], timeout_s: float) -> list[str]:
        """Return the words that run a program of the image where only the folder can be written, without a network."""
        fixed = ["run", "--rm", "--interactive", "--pull=never", "--network=none", "--log-driver=none", "--read-only"]
        words = [self.podman, *fixed, f"--name={folder.name}", f"--user={user}", f"--timeout={int(timeout_s)}"]
        words += [f"--workdir={folder}", f"--volume={folder}:{folder}", "--security-opt=label=disable"]
        words += [f"--volume={path}:{path}:ro" for path in self.volumes if path]
        return [*words, *(f"--env={name}={value}" for name, value in env.items()), *self.args]

    def remove(self, folder: Path) -> None:
        """See that nothing of it is left; the program that was started is only its client."""
        subprocess.run(
            [self.podman, "rm", "--force", "--ignore", "--time=0", folder.name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )


@dataclass(frozen=True)
class Interpreter:
    """Whom to ask and how. user: the name of the account to ask as, only root can change it; env: the server's."""

    python: str
    env: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    timeout_s: float = TIMEOUT_S
    memory_mib: int = MEMORY_MIB
    container: Container | None = None

    def ask(self, argv: Sequence[str]) -> Answer:
        """Return what SGLang makes of argv; never raises for what happens in the other process."""
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="inferops-live-", ignore_cleanup_errors=True) as folder:
            try:
                answer = self._ask([str(word) for word in argv], Path(folder), start)
            except _Unavailable as stop:
                answer = Answer("unavailable", hide_secrets(str(stop), argv))
        message = hide_secrets(answer.message, argv) if answer.message else answer.message
        return _with(answer, message=message, seconds=round(time.monotonic() - start, 1))

    def _ask(self, argv: list[str], folder: Path, start: float) -> Answer:
        package = folder / PACKAGE
        package.mkdir()
        (package / "__init__.py").touch()
        for module in (probe, recorder, lines):
            (package / f"{module.__name__.rpartition('.')[2]}.py").write_text(inspect.getsource(module), encoding="utf-8")
        account = self._account()
        if account is not None:
            for path in (folder, package, *package.iterdir()):
                os.chown(path, account.pw_uid, account.pw_gid)
        request = json.dumps({"argv": argv, "noise": sorted(NOISE), "secret": SECRET.pattern})
        with (folder / "answer").open("w+b") as answer, (folder / "said").open("w+b") as said:
            if account is not None:
                os.fchown(answer.fileno(), account.pw_uid, account.pw_gid)
            process = self._start(folder, account, answer.fileno(), said.fileno())
            try:
                if process.stdin is not None:
                    with contextlib.suppress(BrokenPipeError):
                        process.stdin.write(request.encode() + b"\n")
                        process.stdin.flush()
                ended = self._wait(process, start)
            finally:
                _end(process)
                if self.container is not None:
                    self.container.remove(folder)
            answer.seek(0)
            said.seek(0)
            return self._read(answer.read(), said.read().decode("utf-8", "replace"), ended, process.returncode)

    def _account(self) -> pwd.struct_passwd | None:
        if self.user is None or os.geteuid() != 0:
            return None
        try:
            return pwd.getpwnam(self.user)
        except KeyError:
            raise _Unavailable(f"there is no user {self.user} on this host yet") from None

    def _start(self, folder: Path, account: pwd.struct_passwd | None, answer: int, said: int) -> subprocess.Popen[bytes]:
        code = f"from {PACKAGE}.probe import main; main()"
        if self.container is not None:
            return self._start_in(self.container, code, folder, account, said)
        groups = os.getgrouplist(account.pw_name, account.pw_gid) if account is not None else None
        try:
            return subprocess.Popen(
                [self.python, "-c", code, str(answer)],
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=said,
                cwd=folder,
                env=self._environment(folder),
                pass_fds=(answer,),
                start_new_session=True,
                user=account.pw_uid if account is not None else None,
                group=account.pw_gid if account is not None else None,
                extra_groups=groups,
            )
        except OSError as exc:
            raise _Unavailable(f"{self.python} does not start: {exc.strerror}") from exc

    def _start_in(
        self, container: Container, code: str, folder: Path, account: pwd.struct_passwd | None, said: int
    ) -> subprocess.Popen[bytes]:
        user = f"{account.pw_uid}:{account.pw_gid}" if account is not None else f"{os.getuid()}:{os.getgid()}"
        env = {"HOME": str(folder), "TMPDIR": str(folder)} | dict(self.env) | FIXED
        # A descriptor does not reach into a container, a file of the folder does.
        code = f"import os, sys; sys.argv[1] = str(os.open('answer', os.O_WRONLY)); {code}"
        words = container.command(folder, user, env, self.timeout_s)
        words += [f"--entrypoint={self.python}", container.image, "-c", code, "answer"]
        try:
            return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=said, stderr=said, start_new_session=True)
        except OSError as exc:
            raise _Unavailable(f"{container.podman} does not start: {exc.strerror}") from exc

    def _environment(self, folder: Path) -> dict[str, str]:
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        home = {"HOME": str(folder), "TMPDIR": str(folder)}
        if self.user is None:
            home["HF_HOME"] = str(Path("~/.cache/huggingface").expanduser())
        return home | kept | dict(self.env) | FIXED

    def _wait(self, process: subprocess.Popen[bytes], start: float) -> str | None:
        """Return why the process had to be ended, None where it ended by itself."""
        while True:
            try:
                process.wait(timeout=0.1)
                return None
            except subprocess.TimeoutExpired:
                pass
            if time.monotonic() - start > self.timeout_s:
                return f"no answer within {self.timeout_s:g} s"
            used = _resident_mib(process.pid)
            if used > self.memory_mib:
                return f"it used more than {self.memory_mib} MiB of memory"

    def _read(self, answer: bytes, said: str, ended: str | None, status: int) -> Answer:
        tail = [line.strip() for line in said.splitlines() if line.strip()][-TAIL:]
        last = f"; it said last: {' | '.join(tail)}" if tail else ""
        if ended is not None:
            raise _Unavailable(f"{ended} from {self.python}, which was loading SGLang and resolving the arguments{last}")
        try:
            found = json.loads(answer)
        except ValueError:
            how = f"signal {-status}" if status < 0 else f"status {status}"
            raise _Unavailable(f"{self.python} ended with {how} and no answer{last}") from None
        names = ("outcome", "message", "source", "version", "effective", "asked", "writes", "unseen")
        return Answer(**{name: found[name] for name in names if name in found})


class _Unavailable(Exception):
    """The other side could not be asked, and why."""


def _with(answer: Answer, **changes: Any) -> Answer:
    return Answer(**{**answer.__dict__, **changes})


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and whatever it started: all are of one group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()


def _resident_mib(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20
