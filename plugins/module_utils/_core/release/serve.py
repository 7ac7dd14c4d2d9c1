# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The service wrapper: starts the engine, and tells systemd READY only when the engine really generates.

Ready means: /v1/models lists the served name, /health is green and one generation brought a token (R65, R59).
A rank above 0 of a server over several hosts answers no request but /health, and only once it is loaded: that is its ready
(0.5.23: srt/entrypoints/engine.py:1234).
While the engine loads and shows signs of life the start time-out is extended, up to a deadline of its own.
Output is passed on with secrets cut out.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from ..units import human_seconds
from . import kernels, proof
from .engine_log import EngineLog
from .host import Answer
from .host_real import RealHost
from .notify import Notifier
from .process_tree import Work, work_of
from .redact import read_secrets, scrub, secret_values
from .services import EXIT_LATE, EXIT_REFUSED, EXIT_SILENT

ARGPARSE_REFUSAL = 2
POLL_S = 0.5
EXTEND_EVERY_S = 10.0
EXTEND_BY_S = 60.0
GENERATE_DEADLINE_S = 300.0
ONE_GENERATION_S = 60.0
STOP_S = 30.0


@dataclass
class Life:
    """When the engine last showed a sign of life: a line of output, bytes read, or processor time."""

    now: float
    lines: int = 0
    seen_lines: int = 0
    work: Work = field(default_factory=lambda: Work(0.0, 0, 0))

    def look(self, now: float, work: Work) -> None:
        """Take note of what has moved since the last look."""
        moved = self.lines != self.seen_lines or work.read_bytes - self.work.read_bytes > 1 << 16
        if moved or work.cpu_s - self.work.cpu_s > 0.05 or work.processes != self.work.processes:
            self.now = now
        self.seen_lines, self.work = self.lines, work


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the wrapper's own options; everything behind ``--`` is the engine's."""
    parser.add_argument("--instance", required=True)
    parser.add_argument("--release-dir", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--served-name", help="wait until /v1/models lists it (default: from argv)")
    parser.add_argument("--config-credential", metavar="NAME", help="file in $CREDENTIALS_DIRECTORY, handed over by --config")
    parser.add_argument("--start-s", type=float, default=7200.0, help="deadline until ready [s]")
    parser.add_argument("--generate-s", type=float, default=ONE_GENERATION_S, help="deadline of one probing generation [s]")
    parser.add_argument("--stall-s", type=float, default=900.0, help="longest time without a sign of life while loading [s]")
    parser.add_argument("engine", nargs=argparse.REMAINDER, metavar="-- WORD")
    parser.set_defaults(run=run)


def run(namespace: argparse.Namespace) -> int:
    """Run the wrapper with the real edges."""
    return Wrapper(namespace, os.environ).run()


class Wrapper:
    """One engine process from start to end."""

    def __init__(self, options: argparse.Namespace, environ: Mapping[str, str]) -> None:
        self.options = options
        self.notifier = Notifier(environ)
        words = options.engine[1:] if options.engine[:1] == ["--"] else options.engine
        self.words = list(words)
        self.config: dict[str, str] = {}
        if options.config_credential:
            path = Path(environ.get("CREDENTIALS_DIRECTORY", "")) / options.config_credential
            self.config = read_secrets(path.read_text(encoding="utf-8"))
            self.words += ["--config", str(path)]
        self.key = self.config.get("api_key")
        self.secrets = secret_values(self.config)
        self.served_name = (
            options.served_name or word_after(self.words, "--served-model-name") or word_after(self.words, "--model-path")
        )
        self.rank = int(word_after(self.words, "--node-rank") or 0)
        self.base_url = f"http://127.0.0.1:{options.port}"
        self.stopping = False
        self.said = EngineLog()
        self.http = RealHost().http
        self.life = Life(time.monotonic())
        self.environ = environ
        self.kernels: kernels.Kernels | None = None
        self.process: subprocess.Popen[bytes]

    def run(self) -> int:
        """Start the engine, report, wait for its end; return the exit status systemd is to see."""
        if not self.words:
            print("no engine words behind --", file=sys.stderr)
            return EXIT_REFUSED
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._forward)
        try:
            env, self.kernels = kernels.prepared(self.environ, kernels.cards_here)
            self.process = subprocess.Popen(self.words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except OSError as exc:
            self.notifier.status(f"the engine cannot be started: {exc}")
            print(f"the engine cannot be started: {exc}", file=sys.stderr)
            return EXIT_REFUSED
        pump = threading.Thread(target=self._pass_on, daemon=True)
        pump.start()
        failed = self._wait_until_ready()
        if failed is not None:
            code, text = failed
            hang = self.said.verdict(hung=True) if code in (EXIT_LATE, EXIT_SILENT) else None
            text += f"; {hang}" if hang else ""
            self.notifier.status(text)
            print(f"inferops: {text}", file=sys.stderr, flush=True)
            self._end_engine()
            pump.join(2)
            return code
        code = self.process.wait()
        pump.join(5)
        if self.stopping and code in (0, -signal.SIGTERM, -signal.SIGINT):
            return 0
        # Otherwise the status line would go on telling how ready it was.
        self.notifier.status(f"the engine ended ({how(code)}): {self.said.cause}")
        return 128 - code if code < 0 else code

    def _ready(self, text: str) -> None:
        """Write down which kernels are in use, then tell systemd; a server that generates is not stopped for want of a note."""
        try:
            if self.kernels is not None:
                self.kernels.mark_ready(self.options.instance)
        except OSError as exc:
            print(f"inferops: which kernels are in use is not written down: {exc}", file=sys.stderr, flush=True)
        self.notifier.ready(text)

    def _wait_until_ready(self) -> tuple[int, str] | None:
        """Return None once the engine generates or a stop was asked for, else exit status and reason."""
        begun = extended = time.monotonic()
        listening: float | None = None
        trouble = "starting"
        one_s = self.options.generate_s
        self.notifier.status("starting the engine")
        while not self.stopping:
            now = time.monotonic()
            ended = self.process.poll()
            if ended is not None:
                return self._ended_early(ended)
            self.life.look(now, work_of(self.process.pid))
            quiet = now - self.life.now
            if now - begun > self.options.start_s:
                code = EXIT_LATE if listening is None else EXIT_SILENT
                return code, f"not ready after {human_seconds(now - begun)}: {trouble}"
            if quiet > self.options.stall_s:
                return EXIT_LATE, f"no sign of life for {human_seconds(quiet)} while loading: {trouble}"
            if now - extended >= EXTEND_EVERY_S or extended == begun:
                extended = now
                self.notifier.extend(EXTEND_BY_S)
            warming = False
            found = None
            if not self.rank:
                found = proof.models_trouble(self.http, self.base_url, self.served_name, self.key, timeout_s=2)
            if found is None:
                # 503 until SGLang's own warm-up request is through: a balancer in front would see this server as down.
                found = proof.health_trouble(self._probe, self.base_url, self.key)
                warming = found is not None
            if found is None and self.rank:
                self._ready(f"rank {self.rank} is loaded after {human_seconds(now - begun)}; rank 0 answers requests")
                return None
            if found is None:
                listening = listening or now
                self.notifier.extend(EXTEND_BY_S + one_s)
                # Said before the wait: a line from loading would be a lie for as long as no token comes (R59).
                waited = human_seconds(now - listening)
                self.notifier.status(f"{human_seconds(now - begun)}: accepts requests, no token for {waited}")
                silent = proof.generation_trouble(self._probe, self.base_url, self.served_name, self.key, one_s)
                if silent is None:
                    self._ready(f"generates; ready after {human_seconds(time.monotonic() - begun)}")
                    return None
                trouble = silent
                if time.monotonic() - listening > GENERATE_DEADLINE_S:
                    return EXIT_SILENT, silent
            else:
                trouble = found
                told = f"listens, warming up: {found}" if warming else self.said.line or "loading"
                self.notifier.status(f"{human_seconds(now - begun)}: {told}")
            time.sleep(POLL_S)
        self.process.wait()
        return None

    def _probe(self, url: str, *, key: str | None, body: Mapping[str, Any] | None, timeout_s: float) -> Answer:
        """Ask in a thread, so that a stop or a crash of the engine is seen while it does not answer."""
        box: list[Answer] = []

        def ask() -> None:
            box.append(self.http(url, key=key, body=body, timeout_s=timeout_s))

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        while thread.is_alive() and not self.stopping and self.process.poll() is None:
            thread.join(0.1)
        return box[0] if box else Answer(None, "the engine ended")

    def _ended_early(self, code: int) -> tuple[int, str]:
        if code == ARGPARSE_REFUSAL:
            return EXIT_REFUSED, f"the engine refuses its arguments: {self.said.cause}"
        return (128 - code if code < 0 else code or 1), f"the engine ended before it was ready ({how(code)}): {self.said.cause}"

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        self.stopping = True
        self.notifier.stopping("stopping; open answers may end")
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM if number == signal.SIGTERM else signal.SIGINT)

    def _end_engine(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def _pass_on(self) -> None:
        """Pass the engine's output on line by line, secrets cut out."""
        stream = self.process.stdout
        if stream is None:
            return
        for raw in stream:
            line = scrub(raw.decode(errors="replace").rstrip("\r\n"), self.secrets)
            self.life.lines += self.said.hear(line)
            print(line, flush=True)


def how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit status {code}"


def word_after(words: list[str], flag: str) -> str | None:
    """Return the value of a flag in a command line, in either spelling.

    >>> word_after(["--a=1", "--b", "2"], "--a"), word_after(["--b", "2"], "--b"), word_after([], "--b")
    ('1', '2', None)
    """
    for index, word in enumerate(words):
        if word == flag and index + 1 < len(words):
            return words[index + 1]
        if word.startswith(flag + "="):
            return word[len(flag) + 1 :]
    return None
