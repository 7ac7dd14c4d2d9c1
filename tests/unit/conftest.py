# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Makes the collection importable from a clone and gives tests the published SGLang wheels."""

from __future__ import annotations

import importlib.util
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"


# From a clone the collection lies under any folder name; the committed link gives it its own. Under ansible-test units
# the tree already has it and the loader finds it.
def _importable() -> bool:
    try:
        return importlib.util.find_spec("ansible_collections.inferops.sglang") is not None
    except ModuleNotFoundError:
        return False


if (ROOT / ".collections").is_dir() and not _importable():
    sys.path.insert(0, str(ROOT / ".collections"))

# Tests are about the answers, not about those of an earlier run; the tests of the kept answers switch it on.
os.environ["INFEROPS_CHECK_CACHE"] = "off"

sys.path.insert(0, str(Path(__file__).resolve().parent))
import wheels  # noqa: E402


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The folder of committed test inputs."""
    return FIXTURES


@pytest.fixture(scope="session")
def wheel() -> Callable[[str], Path]:
    """Return the wheel of a pinned SGLang version; without one the test is skipped, in CI (INFEROPS_NO_SKIP=1) it fails."""

    def get(version: str) -> Path:
        try:
            return wheels.fetch(version)
        except wheels.NoWheel as exc:
            if os.environ.get("INFEROPS_NO_SKIP") == "1":
                pytest.fail(str(exc))
            pytest.skip(str(exc))

    return get


@pytest.fixture(scope="session")
def unpacked(wheel: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a folder that holds ``sglang/`` of a pinned version, Python files only. Shared: do not write into it."""
    folders: dict[str, Path] = {}

    def get(version: str) -> Path:
        if version not in folders:
            folder = tmp_path_factory.mktemp(f"sglang-{version}")
            with zipfile.ZipFile(wheel(version)) as archive:
                archive.extractall(folder, [name for name in archive.namelist() if name.endswith(".py")])
            folders[version] = folder
        return folders[version]

    return get
