"""The archive of the core: the same sources give the same bytes, and a bare Python runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ansible_collections.inferops.sglang.plugins.lookup import core_archive


def test_bytes_depend_on_the_sources_alone(tmp_path):
    core = tmp_path / "_core"
    core.mkdir()
    for name in ("b.py", "a.py"):
        (core / name).write_text(f"# {name}\n")
    (core / "__pycache__").mkdir()
    (core / "__pycache__" / "a.pyc").write_bytes(b"x")
    first = core_archive.build(core)
    for path in core.glob("*.py"):
        os.utime(path, (0, 0))
        path.chmod(0o600)
    assert core_archive.build(core) == first
    (core / "a.py").write_text("# changed\n")
    assert core_archive.build(core) != first


def test_lookup_writes_it_once_and_it_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("INFEROPS_CACHE", str(tmp_path))
    (found,) = core_archive.LookupModule().run([])
    stamp = Path(found["path"]).stat().st_mtime_ns
    assert core_archive.LookupModule().run([]) == [found]
    assert Path(found["path"]).stat().st_mtime_ns == stamp
    words = [sys.executable, "-I", found["path"], "status", "--instance", "none", "--state-dir", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "promoted   nothing" in done.stdout, done.stderr
