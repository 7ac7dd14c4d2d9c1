# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where a release lies on this machine: a path as it stands, or a version looked for in folders of wheels and trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import InferopsError
from .source import LANDMARK
from .store import PACKAGE


def find_release(wanted: str, folders: Sequence[str | Path]) -> Path:
    """Return the path of a release: ``wanted`` itself where it exists, else the wheel or tree of that version.

    Looked for in each folder, in order: ``sglang-VERSION-*.whl``, ``VERSION/`` and an environment ``VERSION-*/`` that hold the
    package. Raises InferopsError that says where it looked.
    """
    given = Path(wanted).expanduser()
    if given.exists():
        return given
    places = [Path(folder).expanduser() for folder in folders]
    if "/" not in wanted and not wanted.endswith(".whl"):
        for place in places:
            for found in _candidates(place, wanted):
                return found
    looked = ", ".join(str(place) for place in places) or "no folder was given"
    raise InferopsError(
        f"no source of SGLang {wanted} on this machine",
        where=looked,
        why="neither a wheel nor an unpacked tree of that version is there",
        do=f"pip download --no-deps --dest {places[0] if places else 'FOLDER'} sglang=={wanted}, or give a path",
    )


def _candidates(place: Path, version: str) -> Iterator[Path]:
    yield from sorted(place.glob(f"{PACKAGE}-{version}-*.whl"))
    for folder in (place / version, *sorted(place.glob(f"{version}-*/lib/python*/site-packages"))):
        if (folder / PACKAGE / LANDMARK).is_file():
            yield folder
