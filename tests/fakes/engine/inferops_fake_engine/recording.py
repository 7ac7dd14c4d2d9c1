"""What the real engine of one version said: flag table, resolved values, shapes of its answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

FOLDERS = (Path(__file__).parent / "recordings", Path(__file__).parents[2] / "recordings")  # in the wheel, in the checkout


class NoRecording(Exception):
    """The installed SGLang has not been recorded, so nothing can be said in its name."""


@dataclass(frozen=True)
class Recording:
    version: str
    folder: Path

    def _read(self, name: str) -> Any:
        return json.loads((self.folder / f"{name}.json").read_text())

    @cached_property
    def flags(self) -> list[dict[str, Any]]:
        return self._read("flags")

    @cached_property
    def resolved(self) -> dict[str, Any]:
        return self._read("resolved")

    @cached_property
    def server_info(self) -> dict[str, Any]:
        return self._read("server_info")

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        return self._read("metrics")


def recorded_versions() -> list[str]:
    return sorted({p.name for folder in FOLDERS if folder.is_dir() for p in folder.iterdir() if p.is_dir()})


def load(version: str) -> Recording:
    for folder in FOLDERS:
        if (folder / version / "flags.json").is_file():
            return Recording(version, folder / version)
    raise NoRecording(f"no recording of SGLang {version}; recorded: {', '.join(recorded_versions()) or 'none'}")


def installed_version() -> str:
    """The version of the SGLang wheel installed beside us; ``INFEROPS_FAKE_VERSION`` when there is none."""
    import os
    from importlib import metadata

    asked = os.environ.get("INFEROPS_FAKE_VERSION")
    if asked:
        return asked
    try:
        return metadata.version("sglang")
    except metadata.PackageNotFoundError:
        raise NoRecording("no SGLang is installed in this environment; set INFEROPS_FAKE_VERSION to name one") from None
