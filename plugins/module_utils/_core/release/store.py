# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The records of one instance on its host: pointers, attempt, history, one folder per release."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InferopsError
from . import unit_texts
from .host import Host
from .ports import Listener
from .redact import read_secrets, secret_values
from .spec import ReleaseSpec

STATE_DIR = "/var/lib/inferops"
UNIT_DIR = "/etc/systemd/system"
QUADLET_DIR = "/etc/containers/systemd"


@dataclass(frozen=True)
class Store:
    """Reads and writes the records; every write replaces a whole file or appends a whole line."""

    host: Host
    instance: str
    state_dir: str = STATE_DIR
    unit_dir: str = UNIT_DIR
    quadlet_dir: str = QUADLET_DIR

    @property
    def folder(self) -> Path:
        return Path(self.state_dir) / self.instance

    @property
    def lock_path(self) -> Path:
        return self.folder / "lock"

    def release_folder(self, release: str) -> Path:
        return self.folder / "releases" / release

    def unit_path(self, name: str) -> Path:
        return Path(self.unit_dir) / name

    def defined_by(self, unit: str, *, container: bool) -> Path:
        """Return the file that defines a server's unit: the unit itself, or the quadlet that podman makes it from."""
        return Path(self.quadlet_dir) / f"{unit.removesuffix('.service')}.container" if container else self.unit_path(unit)

    def define_promoted(self, spec: ReleaseSpec, text: str) -> None:
        """Make the promoted unit the one of this release.

        A unit outranks a quadlet of the same name, so the one step that counts is the unit's being written or removed.
        """
        unit = unit_texts.promoted_unit(self.instance)
        self.host.write(self.defined_by(unit, container=spec.in_container), text)
        self.drop_shadow(spec)

    def drop_shadow(self, spec: ReleaseSpec) -> None:
        """Remove the promoted unit of the other kind, which an engine of another kind has left."""
        unit = unit_texts.promoted_unit(self.instance)
        other = self.defined_by(unit, container=not spec.in_container)
        if self.host.read(other) is not None:
            if spec.in_container:
                self.host.systemctl("disable", unit)
            self.host.remove(other)

    def promoted_text(self) -> str | None:
        """Return what boot would start; see define_promoted."""
        unit = unit_texts.promoted_unit(self.instance)
        texts = (self.host.read(self.defined_by(unit, container=kind)) for kind in (False, True))
        return next((text for text in texts if text is not None), None)

    def pointer(self, name: str) -> str | None:
        """Return the release id a pointer (promoted, previous) names."""
        text = self.host.read(self.folder / name)
        return text.strip() or None if text else None

    def point(self, name: str, release: str | None) -> None:
        """Make a pointer name a release, or nothing."""
        if release is None:
            self.host.remove(self.folder / name)
        elif self.pointer(name) != release:
            self.host.write(self.folder / name, release + "\n")

    def attempt(self) -> dict[str, Any] | None:
        return self._json(self.folder / "attempt.json")

    def save_attempt(self, attempt: Mapping[str, Any]) -> None:
        self.host.write(self.folder / "attempt.json", json.dumps(attempt, indent=1) + "\n")

    def history(self) -> list[dict[str, Any]]:
        """Return every whole line of the history; a line cut by a power loss is left out."""
        found = []
        for line in (self.host.read(self.folder / "history.jsonl") or "").splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
        return found

    def remember(self, event: Mapping[str, Any]) -> None:
        self.host.append(self.folder / "history.jsonl", json.dumps(event))

    def spec(self, release: str) -> ReleaseSpec:
        """Return the spec a release was made from."""
        data = self._json(self.release_folder(release) / "release.json")
        if data is None:
            raise InferopsError(
                f"release {release} has no record",
                where=str(self.release_folder(release) / "release.json"),
                do="deploy it again from its inventory",
            )
        return ReleaseSpec.from_dict(data["spec"])

    def texts(self, spec: ReleaseSpec) -> dict[Path, str]:
        """Return every file a submission needs, by path: the release folder and the units that are not enabled by it."""
        folder = self.release_folder(spec.id)
        units = {
            unit_texts.runner_unit(spec.instance): unit_texts.runner_text(spec, self.state_dir, self.unit_dir),
            **unit_texts.front_texts(spec),
        }
        place = self.defined_by(spec.run_unit, container=spec.in_container)
        own = {} if spec.adopted else {place: unit_texts.run_unit_text(spec)}
        record = {"id": spec.id, "plan_sha256": spec.plan_sha256, "spec": dict(spec.raw)}
        return {
            folder / "release.json": json.dumps(record, indent=1, sort_keys=True) + "\n",
            folder / "argv.json": json.dumps(list(spec.argv), indent=1) + "\n",
            folder / "env": "".join(f"{name}={value}\n" for name, value in sorted(spec.env.items())),
            folder / "unit": spec.unit_text,
            folder / "check.json": json.dumps(dict(spec.check), indent=1, sort_keys=True) + "\n",
            **own,
            **{self.unit_path(name): text for name, text in units.items()},
        }

    def run_unit(self, release: str) -> str:
        """Return the unit in which a release runs before a boot; one without a readable record has only its id."""
        try:
            return self.spec(release).run_unit
        except InferopsError:
            return f"sglang-{self.instance}-{release}.service"

    def owns(self, holder: Listener) -> bool:
        """Return whether a process that listens is a server or the front of this instance, one that was adopted included."""
        if holder.belongs_to(self.instance):
            return True
        return any(self.run_unit(release) == holder.unit for release in self.host.names(self.folder / "releases"))

    def committed(self, release: str) -> bool:
        """Return whether boot would start this release: the text of the promoted unit is the commit point of a promotion."""
        text = self.promoted_text()
        return text is not None and text == self.host.read(self.release_folder(release) / "unit")

    def gate_record(self, release: str) -> dict[str, Any] | None:
        """Return the summary of the last gate a release passed."""
        return self._json(self.release_folder(release) / "gate.json")

    def save_gate_record(self, release: str, record: Mapping[str, Any]) -> None:
        self.host.write(self.release_folder(release) / "gate.json", json.dumps(record, indent=1) + "\n")

    def before(self, release: str) -> str | None:
        """Return what was promoted before this release became promoted the last time, by the history."""
        for event in reversed(self.history()):
            if event.get("event") == "promoted" and event.get("release") == release:
                found = event.get("previous")
                return found if isinstance(found, str) else None
        return None

    def secrets(self, spec: ReleaseSpec) -> tuple[str | None, tuple[str, ...]]:
        """Return the API key for our own probes and every secret value, from the file the unit hands to the engine."""
        config = read_secrets(self.host.read(Path(spec.secrets_file))) if spec.secrets_file else {}
        return config.get("api_key"), secret_values(config)

    def _json(self, path: Path) -> dict[str, Any] | None:
        text = self.host.read(path)
        if text is None:
            return None
        try:
            data = json.loads(text)
        except ValueError as exc:
            raise InferopsError(f"{path} is not JSON", where=str(path), why=str(exc), do="move the file away") from exc
        return data if isinstance(data, dict) else None
