#!/usr/bin/env python3
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A hub of one model, as far as the real client of huggingface_hub asks: info, tree, files with ranges, LFS by redirect.

fake_hub.py FOLDER REPO REVISION [--address IP] [--port N] [--token T] [--cut BYTES] [--mib-per-s N]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

LFS = (".safetensors", ".bin")
PIECE = 64 * 1024


class Hub(ThreadingHTTPServer):
    """``cut``: after so many bytes of weights every connection breaks, until it is None again. ``asked`` holds the requests."""

    daemon_threads = True

    def __init__(
        self,
        folder: Path,
        repo: str,
        revision: str,
        *,
        address: str = "127.0.0.1",
        port: int = 0,
        token: str = "",
        mib_per_s: float = 0,
    ) -> None:
        super().__init__((address, port), Handler)
        self.folder, self.repo, self.revision, self.token, self.mib_per_s = folder, repo, revision, token, mib_per_s
        self.cut: int | None = None
        self.asked: list[tuple[str, str]] = []
        self.strange_tokens: list[str] = []
        self.sent = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def files(self) -> dict[str, dict[str, object]]:
        found = {}
        for path in sorted(path for path in self.folder.rglob("*") if path.is_file()):
            name, data = path.relative_to(self.folder).as_posix(), path.read_bytes()
            blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
            found[name] = {"size": len(data), "oid": blob}
            if path.suffix in LFS:
                found[name]["lfs"] = hashlib.sha256(data).hexdigest()
        return found


class Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *words: object) -> None:
        """Say nothing: what was asked is in ``asked``."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        hub, path = self.server, unquote(urlsplit(self.path).path)
        hub.asked.append((self.command, path))
        told = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if path.startswith("/cdn/"):
            if told:
                hub.strange_tokens.append(told)
            return self._file(path.removeprefix("/cdn/"), hub.files())
        if hub.token and told != hub.token:
            return self._error(401, "GatedRepo" if told else "RepoNotFound")
        files = hub.files()
        if path == f"/api/models/{hub.repo}/revision/{hub.revision}":
            return self._json(self._info(files))
        if path.startswith(f"/api/models/{hub.repo}/tree/{hub.revision}"):
            return self._json([self._entry(name, about) for name, about in files.items()])
        if path.startswith(f"/{hub.repo}/resolve/{hub.revision}/"):
            name = path.removeprefix(f"/{hub.repo}/resolve/{hub.revision}/")
            return self._resolve(name, files)
        return self._error(404, "RevisionNotFound" if hub.repo in path else "RepoNotFound")

    def _info(self, files: dict) -> dict:
        siblings = [
            {"rfilename": name, "size": about["size"], "blobId": about["oid"]}
            | ({"lfs": {"sha256": about["lfs"], "size": about["size"], "pointerSize": 134}} if "lfs" in about else {})
            for name, about in files.items()
        ]
        return {
            "_id": "0",
            "id": self.server.repo,
            "modelId": self.server.repo,
            "sha": self.server.revision,
            "siblings": siblings,
        }

    def _entry(self, name: str, about: dict) -> dict:
        entry = {"type": "file", "path": name, "size": about["size"], "oid": about["oid"]}
        if "lfs" in about:
            entry["lfs"] = {"oid": about["lfs"], "size": about["size"], "pointerSize": 134}
        return entry

    def _resolve(self, name: str, files: dict) -> None:
        if name not in files:
            return self._error(404, "EntryNotFound")
        if "lfs" not in files[name]:
            return self._file(name, files)
        about = files[name]
        self.send_response(302)
        self.send_header("X-Repo-Commit", self.server.revision)
        self.send_header("X-Linked-Etag", f'"{about["lfs"]}"')
        self.send_header("X-Linked-Size", str(about["size"]))
        # Another name for the same machine: the client must not carry the token there.
        self.send_header("Location", f"http://localhost:{self.server.server_port}/cdn/{name}")
        self.send_header("Content-Length", "0")
        self.end_headers()
        return None

    def _file(self, name: str, files: dict) -> None:
        about, hub = files[name], self.server
        data = (hub.folder / name).read_bytes()
        begin = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])
        self.send_response(206 if "Range" in self.headers else 200)
        self.send_header("X-Repo-Commit", hub.revision)
        self.send_header("ETag", f'"{about.get("lfs", about["oid"])}"')
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(data) - begin))
        if "Range" in self.headers:
            self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        if self.command == "HEAD":
            return
        for place in range(begin, len(data), PIECE):
            piece = data[place : place + PIECE]
            if "lfs" in about:
                if hub.cut is not None and hub.sent >= hub.cut:
                    self.close_connection = True
                    self.connection.close()
                    return
                hub.sent += len(piece)
            self.wfile.write(piece)
            if hub.mib_per_s:
                time.sleep(len(piece) / (hub.mib_per_s * 2**20))

    def _json(self, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _error(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", code)
        self.send_header("Content-Length", "0")
        self.end_headers()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("folder", "repo", "revision"):
        parser.add_argument(name)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8010)
    parser.add_argument("--token", default=os.environ.get("HUB_TOKEN", ""), help="default: HUB_TOKEN of the environment")
    parser.add_argument("--mib-per-s", type=float, default=0)
    given = parser.parse_args()
    given.folder = Path(given.folder)
    hub = Hub(**vars(given))
    hub.serve_forever()


if __name__ == "__main__":
    main()
