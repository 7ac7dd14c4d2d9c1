# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Bring one revision of a model to a host: fetched aside, proven whole, made read-only, then named.

``<root>/<name>/<revision>`` exists only as a whole; ``<revision>.partial`` is what a later run goes on with.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..engine.host import look_at
from ..errors import InferopsError
from ..topology.checkpoint import model_facts
from . import proven
from .carry import GIB, NotStarted, carry, on_disk
from .keep import Pruned, prune, read_only
from .listing import File, listing, no_program, refusal
from .source import NAME, Source, source_from
from .warm import available, warm

SECRET_LENGTH = 6
"""Shorter values of the environment are switches; taking them out of a text would spoil it."""
FRUITLESS = 2
"""So many runs in a row that bring nothing end it."""
RECORDS = Path("/var/cache/inferops/models")
HOME = ".cache"
"""Where the hub's client keeps what it goes on with; goes when the folder is whole."""


@dataclass(frozen=True)
class Wish:
    """What is wanted on this host."""

    root: Path
    name: str
    revision: str
    source: Source
    peer: Source | None = None
    """Tried first: a host of the fleet that has the same folder."""
    token: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    sha256: Mapping[str, File] = field(default_factory=dict)
    accepted_code: Mapping[str, str] = field(default_factory=dict)
    weights_required: bool = True
    mib_per_s: float = 0
    reserve_mib: float = 1024
    keep: int = -1
    offline: bool = False
    state_dir: Path = Path("/var/lib/inferops")
    records: Path = RECORDS

    @property
    def in_place(self) -> bool:
        return self.source.kind == "folder"

    @property
    def folder(self) -> Path:
        return Path(self.source.place) if self.in_place else self.root / self.name / self.revision

    def beside(self, ending: str) -> Path:
        return beside(self.folder, ending, self.records if self.in_place else None)


def beside(folder: Path, ending: str, records: Path | None = None) -> Path:
    """Return where a file about a folder lies; among the records for one that is not ours, which may be read-only."""
    if records:
        return records / f"{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}.{ending}"
    return folder.with_name(f".{folder.name}.{ending}")


def wish(options: Mapping[str, Any]) -> Wish:
    """Read the options of the module; raises InferopsError for a name, source or revision that cannot be meant."""
    name, revision = str(options["name"]), str(options["revision"])
    if options["source"].get("kind") != "folder" and not NAME.fullmatch(name):
        raise InferopsError(
            f"the model's name {name or '(none)'} cannot name a folder",
            where="sglang_model_name",
            why="its revisions lie in a folder of that name",
            do="use letters, digits, dot, dash and underscore, not a dot or a dash first",
        )
    source = source_from(options["source"], revision, options["programs"])
    peer = str(options["peer"] or "")
    near = {"kind": "rsync", "from": f"{peer.rstrip('/')}/{name}/{revision}", "rsh": options["peer_rsh"]}
    return Wish(
        root=Path(options["root"]),
        name=name,
        revision=revision,
        source=source,
        peer=source_from(near, revision, options["programs"]) if peer else None,
        token=str(options["token"] or ""),
        environment={str(key): str(value) for key, value in options["environment"].items()},
        sha256=proven.wanted_hashes(options["sha256"]),
        accepted_code=options["accepted_code"],
        weights_required=options["weights_required"],
        mib_per_s=options["mib_per_s"],
        reserve_mib=options["reserve_mib"],
        keep=options["keep"],
        offline=options["offline"],
        state_dir=Path(options["state_dir"]),
        records=Path(options["records"]),
    )


def fetch(wanted: Wish, *, check_mode: bool = False, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Bring it, or raise InferopsError; without a difference to make nothing is touched and the network is not asked."""
    fetcher = _Fetcher(wanted, dict(os.environ if environ is None else environ))
    if wanted.folder.is_dir():
        return fetcher.there(check_mode=check_mode)
    if wanted.in_place:
        raise refusal(wanted.source, "there is no such folder")
    if wanted.offline:
        raise InferopsError(
            f"{wanted.folder} is not there and nothing may be fetched",
            where=str(wanted.folder),
            why="sglang_model_offline is true",
            do=f"bring the folder there, for example with rsync, or allow the fetch from {wanted.source.text}",
        )
    source, files = fetcher.listed()
    size = sum(file.size for file in files.values())
    fetcher.check_place(size)
    if check_mode:
        return fetcher.result(changed=True, fetched_bytes=size, origin=source.text, message=f"would fetch {size / GIB:.1f} GiB")
    with fetcher.locked() as descriptor:
        if wanted.folder.is_dir():
            return fetcher.there(check_mode=False)
        return fetcher.bring(source, files, size, descriptor)


class _Fetcher:
    def __init__(self, wanted: Wish, environ: dict[str, str]) -> None:
        self.wanted = wanted
        self.partial = wanted.folder.with_name(wanted.revision + ".partial")
        # A token of whoever runs this is not the one that was given.
        own = {key: value for key, value in environ.items() if not key.startswith(("HF_", "HUGGING_FACE_"))}
        self.environ = {**own, **wanted.environment}
        self.warnings: list[str] = []

    def say(self, text: str) -> None:
        """Add a line to the progress file; on a full disk the carrier itself says so, better than this could."""
        path = self.wanted.beside("progress")
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError), path.open("a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%H:%M:%S')} {text}\n")

    def listed(self) -> tuple[Source, dict[str, File]]:
        """Return the first source that holds it and its files; the peer's own refusal is a warning."""
        wanted = self.wanted
        if wanted.peer:
            try:
                return wanted.peer, self._list(wanted.peer)
            except InferopsError as exc:
                self.warnings.append(f"not from the peer: {exc.what}: {exc.why}")
        return wanted.source, self._list(wanted.source)

    def _list(self, source: Source) -> dict[str, File]:
        return listing(source, self.wanted.revision, token=self.wanted.token, environment=self.environ)

    def check_place(self, size: int) -> None:
        wanted = self.wanted
        place = look_at(wanted.root)
        if place.read_only or not place.writable:
            why = "its file system is mounted read-only" if place.read_only else "it is no folder that this user may write to"
            what = f"{wanted.name} {wanted.revision} cannot be fetched: {place.existing} cannot be written"
            raise InferopsError(what, where=str(wanted.root), why=why, do="make it writable or choose another sglang_model_root")
        free = place.free_bytes
        missing = max(0, size - on_disk(self.partial)) + int(wanted.reserve_mib * 2**20)
        if missing <= free:
            return
        others = prune(wanted.root / wanted.name, wanted.folder, 0, wanted.state_dir, dry=True)
        could = f"; revisions that nothing uses take {others.freed_bytes / GIB:.1f} GiB: " + ", ".join(others.names)
        raise InferopsError(
            f"there is no space for {wanted.name} {wanted.revision}: {missing / GIB:.1f} GiB needed, {free / GIB:.1f} free",
            where=str(wanted.root),
            why=f"it takes {size / GIB:.1f} GiB, and {wanted.reserve_mib / 1024:.1f} GiB stay free (sglang_model_reserve_mib)",
            do="make space or choose another sglang_model_root" + (could if others.names else ""),
        )

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Hold the revision; what carries the weights holds it too, so that an orphan is not joined by a second one."""
        path = self.wanted.beside("lock")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as exc:
                raise InferopsError(
                    f"{self.wanted.name} {self.wanted.revision} is being fetched by another run",
                    where=str(path),
                    why="two at once would write the same files",
                    do=f"follow it in {self.wanted.beside('progress')}, then run again",
                ) from exc
            yield file.fileno()

    def bring(self, source: Source, files: dict[str, File], size: int, descriptor: int) -> dict[str, Any]:
        wanted, begun = self.wanted, time.monotonic()
        wanted.beside("progress").write_text("", encoding="utf-8")
        self.partial.mkdir(exist_ok=True)
        self.say(f"fetch {size / GIB:.1f} GiB from {source.text}, {on_disk(self.partial) / GIB:.1f} GiB are there")
        failed = self._carried(source, size, descriptor)
        if failed:
            raise refusal(source, f"{self._without_secrets(failed)}; what came is kept, the next run goes on with it")
        before = proven.read(wanted.beside("json"))
        found = self._proven(self.partial, before, {**files, **_hashes_on(files, wanted.sha256)})
        model_facts(str(self.partial), weights_required=wanted.weights_required, accepted_code=wanted.accepted_code)
        shutil.rmtree(self.partial / HOME, ignore_errors=True)
        read_only(self.partial)
        os.sync()
        proven.write(wanted.beside("json"), found, revision=wanted.revision, source=source.text, proven_at=int(time.time()))
        self.partial.rename(wanted.folder)
        self.say("whole")
        pruned = self._prune(dry=False)
        return self.result(
            changed=True,
            fetched_bytes=size,
            origin=source.text,
            message=f"fetched {size / GIB:.1f} GiB from {source.text} in {time.monotonic() - begun:.0f} s",
            files=found,
            pruned=pruned.names,
        )

    def _carried(self, source: Source, size: int, descriptor: int) -> str | None:
        """Run what carries the weights, again while each run brings something; return why it failed, None if it did not."""
        wanted, fruitless = self.wanted, 0
        environment = {**self.environ, **source.environment(wanted.token, str(self.partial / HOME / "home"))}
        command = source.copy_command(wanted.revision, str(self.partial), mib_per_s=wanted.mib_per_s)
        hold = wanted.mib_per_s if source.kind == "hub" else 0
        while True:
            before = on_disk(self.partial)
            try:
                failed = carry(
                    command, environment, self.partial, total=size, say=self.say, hold_mib_per_s=hold, keep_open=[descriptor]
                )
            except NotStarted as exc:
                raise no_program(source, exc) from exc
            fruitless = 0 if on_disk(self.partial) > before else fruitless + 1
            if failed is None or fruitless == FRUITLESS:
                return failed
            self.say(f"again: {self._without_secrets(failed)}")
            time.sleep(1 + fruitless)

    def there(self, *, check_mode: bool) -> dict[str, Any]:
        """Compare with what was proven; a folder that somebody else put there is proven now."""
        wanted = self.wanted
        before = proven.read(wanted.beside("json"))
        promised = {name: File(entry["size"], entry.get("sha256")) for name, entry in before.items()}
        # What somebody else keeps may change; only what is wanted of it counts.
        promised = {} if wanted.in_place else promised
        found = proven.prove(wanted.folder, before, {**promised, **_hashes_on(promised, wanted.sha256)}, self.say)
        if found != before and not check_mode:
            proven.write(wanted.beside("json"), found, revision=wanted.revision, source="there", proven_at=int(time.time()))
        pruned = self._prune(dry=check_mode)
        message = f"removed {', '.join(pruned.names)}" if pruned.names else "nothing to do"
        return self.result(changed=bool(pruned.names), message=message, files=found, pruned=pruned.names)

    def result(self, *, changed: bool, message: str, files: proven.Files | None = None, **more: Any) -> dict[str, Any]:
        known = {name: entry["sha256"] for name, entry in (files or {}).items() if entry["sha256"]}
        about = {"fetched_bytes": 0, "origin": None, "pruned": [], **more}
        path, progress = str(self.wanted.folder), str(self.wanted.beside("progress"))
        out = {"changed": changed, "path": path, "message": message, "sha256": known, "progress_file": progress, **about}
        return {**out, "present": files is not None, "warnings": self.warnings}

    def _proven(self, folder: Path, before: proven.Files, files: Mapping[str, File]) -> proven.Files:
        try:
            return proven.prove(folder, before, files, self.say)
        except proven.Unproven as exc:
            for name in exc.names:
                (folder / name).unlink(missing_ok=True)
                for kept in (folder / HOME).rglob(Path(name).name + ".*"):
                    kept.unlink(missing_ok=True)
            raise

    def _prune(self, *, dry: bool) -> Pruned:
        wanted = self.wanted
        if wanted.in_place:
            return Pruned([], 0)
        return prune(wanted.root / wanted.name, wanted.folder, wanted.keep, wanted.state_dir, dry=dry)

    def _without_secrets(self, text: str) -> str:
        for secret in (self.wanted.token, *self.wanted.environment.values()):
            text = text.replace(secret, "***") if len(secret) >= SECRET_LENGTH else text
        return text


def _hashes_on(files: Mapping[str, File], wanted: Mapping[str, File]) -> dict[str, File]:
    """Return the wanted hashes with the sizes that are known beside them."""
    return {name: File(files[name].size if name in files else -1, file.sha256) for name, file in wanted.items()}


def warm_up(wanted: Wish) -> str:
    """Read the weights of a folder that is there into the page cache; return one sentence about it."""
    fetcher = _Fetcher(wanted, {})
    return warm(sorted(wanted.folder.glob("*.safetensors")), fetcher.say, memory=available())
