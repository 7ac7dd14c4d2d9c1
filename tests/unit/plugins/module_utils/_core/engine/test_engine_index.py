# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A private package index that is really asked: its account stays unseen, and what it serves is held to the lock."""

from __future__ import annotations

import base64
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.install import install
from ansible_collections.inferops.sglang.plugins.module_utils._core.engine.installers import Sources
from ansible_collections.inferops.sglang.plugins.module_utils._core.errors import InferopsError
from engines import by_pip, lock_of, make_wheel, wanted

USER, SECRET = "me", "canary p@ss/1"
SPELLINGS = (SECRET.encode(), b"canary%20p%40ss%2F1", base64.b64encode(f"{USER}:{SECRET}".encode()))


class Index(ThreadingHTTPServer):
    """A simple index (PEP 503) of a folder of wheels that wants an account; ``cut`` ends every file after so many bytes."""

    daemon_threads = True

    def __init__(self, house: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.house, self.cut, self.pause_s = house, None, 0.0
        self.served: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/simple"


class Handler(BaseHTTPRequestHandler):
    server: Index

    def log_message(self, *words: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        told = self.headers.get("Authorization", "").removeprefix("Basic ").encode()
        if told != SPELLINGS[-1]:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="index"')
            self.end_headers()
            return
        name = self.path.strip("/").rpartition("/")[2]
        if self.path.startswith("/simple/"):
            wheels = [path.name for path in self.server.house.glob(f"{name}-*.whl")]
            data, kind = "".join(f'<a href="/files/{wheel}">{wheel}</a>' for wheel in wheels).encode(), "text/html"
        else:
            data, kind = (self.server.house / name).read_bytes(), "application/octet-stream"
            self.server.served.append(name)
            time.sleep(self.server.pause_s)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data if kind == "text/html" else data[: self.server.cut])


@pytest.fixture
def index(tmp_path):
    make_wheel(tmp_path / "mirror")
    server = Index(tmp_path / "mirror")
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(params=["pip", "uv"])
def ask(request, index, tmp_path):
    """Install from the index, with an account, by each installer."""
    kind = {"installer": request.param, "uv": request.getfixturevalue("uv") if request.param == "uv" else ""}
    lock = lock_of(*index.house.glob("*.whl"))

    def install_from(password=SECRET, **more):
        sources = Sources("", index.url, USER, password)
        wish = wanted(tmp_path, lock, wheelhouse="", space_mib=1, **more)
        return install(wish, by_pip(tmp_path, sources=sources, pip_python=sys.executable, **kind))

    return install_from


@pytest.fixture(autouse=True)
def few_retries(monkeypatch):
    for name in ("PIP_RETRIES", "UV_HTTP_RETRIES"):
        monkeypatch.setenv(name, "0")


def seen_while(done):
    """Return the command lines of all processes until then."""
    lines = set()
    while not done.is_set():
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                lines.add(path.read_bytes())
            except OSError:
                continue
        time.sleep(0.02)
    return lines


def test_the_account_of_an_index_is_in_no_command_line_and_no_file(ask, index, tmp_path):
    done, index.pause_s, lines = threading.Event(), 0.3, set()
    watch = threading.Thread(target=lambda: lines.update(seen_while(done)))
    watch.start()
    plan, made, _dummy = ask()
    done.set()
    watch.join()
    assert made and index.served == ["sglang-9.9.9-py3-none-any.whl"]
    assert any(b"--require-hashes" in line for line in lines)
    assert not [line for line in lines for secret in SPELLINGS if secret in line]
    files = [path for path in (tmp_path / "engines").rglob("*") if path.is_file()]
    assert plan.complete and files and not [path for path in files for secret in SPELLINGS if secret in path.read_bytes()]


def test_an_account_that_the_index_does_not_know_is_refused_without_a_word_of_it(ask, tmp_path):
    with pytest.raises(InferopsError) as refused:
        ask(password="canary-wrong")
    assert "the package index refuses the account" in str(refused.value) and "canary-wrong" not in str(refused.value)
    assert not list((tmp_path / "engines").glob("9*"))


def test_a_mirror_that_serves_another_file_is_refused_and_the_wheel_named(ask, index, tmp_path):
    make_wheel(index.house, files={"sglang/launch_server.py": "print('not what was locked')"})
    with pytest.raises(InferopsError) as refused:
        ask()
    assert "sglang==9.9.9 from the package index is not the file that the lock names (hash mismatch)" in str(refused.value)
    assert not list((tmp_path / "engines").glob("*9.9.9*"))


def test_a_download_that_was_cut_short_is_no_environment_and_the_next_run_heals_it(ask, index, tmp_path):
    index.cut = 100
    with pytest.raises(InferopsError, match="was not installed"):
        ask()
    assert not list((tmp_path / "engines").glob("*9.9.9*"))
    index.cut = None
    assert ask()[1]


def test_two_runs_at_once_ask_the_index_once(ask, index):
    index.pause_s, made = 0.3, []
    runs = [threading.Thread(target=lambda: made.append(ask()[1])) for dummy in range(2)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert sorted(made) == [False, True] and len(index.served) == 1
