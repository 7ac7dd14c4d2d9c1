# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a release is made of: the dict that the roles hand over, checked key by key, and the id drawn from it."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import InferopsError
from .engine_ports import EnginePort, engine_ports

RELEASE_MARK = "@RELEASE@"
INSTANCE_NAME = re.compile(r"[a-z0-9][a-z0-9_.]*(-[a-z0-9_.]+)*\Z")
ADDRESS = re.compile(r"https?://[^/\s@]+:\d+\Z")
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
DIGEST = re.compile(r"[^@]@sha256:[0-9a-f]{64}\Z")
FRONT_KINDS = ("socket_proxy", "router", "none")
DEFAULT_TIMEOUTS = {"drain_s": 300.0, "stop_s": 120.0, "start_s": 3600.0, "proof_s": 120.0, "gate_s": 3600.0}
REQUIRED: dict[str, tuple[type, ...]] = {
    "instance": (str,),
    "engine": (dict,),
    "model": (dict,),
    "argv": (list,),
    "unit": (str,),
    "port": (int,),
    "plan": (dict,),
    "tools": (dict,),
}
OPTIONAL: dict[str, tuple[type, ...]] = {
    "env": (dict,),
    "secrets_file": (str, type(None)),
    "front": (dict,),
    "expect": (dict,),
    "check": (dict,),
    "accepted": (list,),
    "gate_context": (dict,),
    "timeouts": (dict,),
    "user": (str, type(None)),
    "adopted": (dict, type(None)),
}
PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "engine": (("version", "lock_sha256", "python", "site_packages", "launch"), ("container",)),
    "model": (("path", "served_name"), ("revision",)),
    "tools": (("python", "archive"), ()),
    "front": (("kind",), ("listen", "worker", "routers", "key_file", "min_serving_ratio")),
    "adopted": (("unit",), ("text_sha256",)),
}


@dataclass(frozen=True)
class ReleaseSpec:
    """One deployable combination. ``raw`` is the whole dict as handed over, for the record."""

    instance: str
    engine: Mapping[str, Any]
    model: Mapping[str, Any]
    argv: tuple[str, ...]
    unit: str
    port: int
    plan: Mapping[str, Any]
    tools: Mapping[str, str]
    env: Mapping[str, str] = field(default_factory=dict)
    secrets_file: str | None = None
    front: Mapping[str, Any] = field(default_factory=lambda: {"kind": "none"})
    expect: Mapping[str, Any] = field(default_factory=dict)
    check: Mapping[str, Any] = field(default_factory=dict)
    accepted: tuple[Any, ...] = ()
    gate_context: Mapping[str, Any] = field(default_factory=dict)
    timeouts: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_TIMEOUTS))
    user: str | None = None
    adopted: Mapping[str, Any] | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Return the release id: 12 hex digits over everything whose change needs a restart.

        The gate plan is not in it, nor where our own tools lie: a new version of the collection must not restart a server.
        """
        parts = {
            "engine": self.engine["lock_sha256"],
            "model": [self.model["path"], self.model.get("revision")],
            "argv": list(self.argv),
            "env": dict(self.env),
            "unit": self.unit.replace(self.tools["python"], "@PYTHON@").replace(self.tools["archive"], "@ARCHIVE@"),
        }
        return digest(parts)[:12]

    @property
    def in_container(self) -> bool:
        """Return whether the unit text is a quadlet, from which podman makes the unit."""
        return bool(self.engine.get("container"))

    @property
    def run_unit(self) -> str:
        """Return the unit in which this release runs before a boot: its own, or the one it was adopted in."""
        return str(self.adopted["unit"]) if self.adopted else f"sglang-{self.instance}-{self.id}.service"

    @property
    def plan_sha256(self) -> str:
        """Return the fingerprint of the gate plan, by which a later run knows whether to gate again."""
        return digest(self.plan)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def engine_ports(self) -> list[EnginePort]:
        """Return the ports that the server takes besides its own, as far as the check knows its arguments."""
        return engine_ports(self.engine["version"], self.argv, self.check.get("effective") or {}, self.port)

    @property
    def unit_text(self) -> str:
        """Return the unit with the id filled in."""
        return self.unit.replace(RELEASE_MARK, self.id)

    def with_tools(self, tools: Mapping[str, str]) -> ReleaseSpec:
        """Return the same release run by other tools: the id stays, so what was recorded with it stays its own."""
        unit = self.unit.replace(self.tools["python"], tools["python"]).replace(self.tools["archive"], tools["archive"])
        return ReleaseSpec.from_dict({**self.raw, "tools": dict(tools), "unit": unit})

    @classmethod
    def from_dict(cls, data: Any) -> ReleaseSpec:
        """Return the checked spec; raise InferopsError that names the first key that is missing, unknown or of the wrong kind."""
        if not isinstance(data, dict):
            raise InferopsError(
                f"the release spec is a {type(data).__name__}, not a mapping", where="spec", do="hand over a dict"
            )
        _check_keys(data, tuple(REQUIRED), tuple(OPTIONAL), "spec")
        for key, kinds in {**REQUIRED, **OPTIONAL}.items():
            if key in data and (not isinstance(data[key], kinds) or (isinstance(data[key], bool) and bool not in kinds)):
                wanted = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
                raise InferopsError(f"{key} is a {type(data[key]).__name__}, not {wanted}", where=f"spec.{key}")
        for part, (required, optional) in PARTS.items():
            if data.get(part) is not None or (part in data and part != "adopted"):
                _check_keys(data[part], required, optional, f"spec.{part}")
        _check_values(data)
        timeouts = _timeouts(data.get("timeouts", {}))
        values = {key: value for key, value in data.items() if key not in ("argv", "accepted", "timeouts")}
        return cls(argv=tuple(data["argv"]), accepted=tuple(data.get("accepted", ())), timeouts=timeouts, raw=data, **values)


def digest(value: Any) -> str:
    """Return the sha256 of a value written as canonical JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()


def _check_keys(data: Mapping[str, Any], required: tuple[str, ...], optional: tuple[str, ...], where: str) -> None:
    for key in required:
        if key not in data:
            raise InferopsError(f"{key} is missing", where=where, do=f"set {where}.{key}")
    for key in data:
        if key not in required + optional:
            near = difflib.get_close_matches(str(key), required + optional, n=1)
            hint = f"did you mean {near[0]}?" if near else "known: " + ", ".join(sorted(required + optional))
            raise InferopsError(f"{key} is not a key of {where}", where=f"{where}.{key}", do=hint)


def _check_values(data: Mapping[str, Any]) -> None:
    if not INSTANCE_NAME.match(data["instance"]):
        raise InferopsError(
            f"instance {data['instance']!r} is not a name",
            where="spec.instance",
            why="it becomes part of unit and folder names",
            do="use lower-case letters, digits, '.', '_' and single '-'",
        )
    if not 1 <= data["port"] <= 65535:
        raise InferopsError(f"port {data['port']} is not in 1..65535", where="spec.port")
    for index, word in enumerate(data["argv"]):
        if not isinstance(word, str):
            raise InferopsError(f"argv[{index}] is {word!r}, not a string", where=f"spec.argv[{index}]", do="quote it")
    for name, value in data.get("env", {}).items():
        if not ENV_NAME.match(name) or not isinstance(value, str):
            raise InferopsError(
                f"environment {name}={value!r} is not a name and a string", where=f"spec.env.{name}", do="quote it"
            )
    if RELEASE_MARK not in data["unit"]:
        raise InferopsError(
            f"the unit text has no {RELEASE_MARK}",
            where="spec.unit",
            why="the release folder in it depends on the id, which is known only after the text",
            do=f"write {RELEASE_MARK} where the id goes",
        )
    container = data["engine"].get("container")
    if container and not (isinstance(container, dict) and DIGEST.search(str(container.get("image", "")))):
        raise InferopsError(
            "engine.container names no image by its digest",
            where="spec.engine.container.image",
            why="a tag may name another image tomorrow, and then going back would not be going back",
            do="write NAME@sha256:… with 64 hex digits",
        )
    launch = data["engine"]["launch"]
    if not isinstance(launch, list) or not launch or not all(isinstance(word, str) for word in launch):
        raise InferopsError("engine.launch is not a list of words", where="spec.engine.launch", do="list the words before argv")
    front = data.get("front", {"kind": "none"})
    if front["kind"] not in FRONT_KINDS:
        raise InferopsError(f"front.kind {front['kind']!r} is not one of {', '.join(FRONT_KINDS)}", where="spec.front.kind")
    if front["kind"] != "none" and not re.search(r"(^|:)\d+\Z", str(front.get("listen", ""))):
        raise InferopsError("front.listen is not ADDRESS:PORT", where="spec.front.listen", do='for example "0.0.0.0:8000"')
    if front["kind"] == "router":
        _check_router(front)
    secrets = [word for word in data["argv"] if re.match(r"--(admin-)?api-key(=|\Z)", word.replace("_", "-"))]
    if secrets:
        raise InferopsError(
            "an API key stands in argv",
            where="spec.argv",
            why="arguments are readable by every user of the host, and SGLang prints them",
            do="put it into the file named by secrets_file",
        )


def _check_router(front: Mapping[str, Any]) -> None:
    routers = front.get("routers")
    if not isinstance(routers, list) or not routers:
        raise InferopsError(
            "no router is named", where="spec.front.routers", why="it lets the clients in", do="list addresses of routers"
        )
    ratio = front.get("min_serving_ratio", 0.0)
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float)) or not 0 <= ratio <= 1:
        raise InferopsError(f"front.min_serving_ratio {ratio!r} is no share", where="spec.front.min_serving_ratio", do="0 to 1")
    for key, url in [("worker", front.get("worker")), *(("routers", url) for url in routers)]:
        if not isinstance(url, str) or not ADDRESS.match(url):
            raise InferopsError(
                f"front.{key} {url!r} is not http://HOST:PORT", where=f"spec.front.{key}", do='for example "http://10.0.0.5:8000"'
            )


def _timeouts(given: Mapping[str, Any]) -> dict[str, float]:
    for key, value in given.items():
        if key not in DEFAULT_TIMEOUTS:
            raise InferopsError(
                f"{key} is not a timeout", where=f"spec.timeouts.{key}", do=f"known: {', '.join(DEFAULT_TIMEOUTS)}"
            )
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
            raise InferopsError(f"timeout {key} is {value!r}, not seconds above 0", where=f"spec.timeouts.{key}")
    return {**DEFAULT_TIMEOUTS, **{key: float(value) for key, value in given.items()}}
