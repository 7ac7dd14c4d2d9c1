# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where weights come from: the hub, object storage, another host. Each kind brings the command that carries them.

The kind ``folder`` is a folder that is there, local or NFS: it is proven in its place and nothing is carried.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import InferopsError

HUB = "https://huggingface.co"
COMMIT = re.compile(r"[0-9a-f]{40}")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
PLACE = {"hub": "repo", "rclone": "remote", "rsync": "from", "folder": "path"}
"""Key that says where, by kind."""
OPTIONS: dict[str, set[str]] = {"hub": {"endpoint"}, "rclone": {"config"}, "rsync": {"rsh"}, "folder": set()}
NEVER = (".cache/*", ".git/*")
"""What download tools and git keep for themselves."""
SILENCE_S = 300


@dataclass(frozen=True)
class Source:
    """One source. ``words`` are the programs to call by kind, so that a path can be given."""

    kind: str
    place: str
    option: str = ""
    """Endpoint of the hub, configuration file of rclone, remote shell of rsync."""
    exclude: tuple[str, ...] = ()
    programs: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return f"{self.kind} {self.place}"

    @property
    def program(self) -> str:
        return self.programs.get(self.kind) or {"hub": "hf"}.get(self.kind, self.kind)

    @property
    def endpoint(self) -> str:
        return (self.option or HUB).rstrip("/")

    @property
    def excluded(self) -> tuple[str, ...]:
        return (*NEVER, *self.exclude)

    def copy_command(self, revision: str, folder: str, *, mib_per_s: float = 0) -> list[str]:
        """Return the command that brings what is missing in ``folder``, and goes on where an earlier one stopped.

        The hub's client knows no limit of its own: whoever runs it holds it back (see ``carry``).
        """
        left_out = [word for pattern in self.excluded for word in ("--exclude", pattern)]
        if self.kind == "hub":
            return [self.program, "download", self.place, "--revision", revision, "--local-dir", folder, *left_out]
        if self.kind == "rclone":
            limit = ["--bwlimit", f"{mib_per_s:g}M"] if mib_per_s else []
            return [self.program, "copy", *self._config(), *left_out, *limit, self.place, folder]
        limit = [f"--bwlimit={max(1, round(mib_per_s * 1024))}"] if mib_per_s else []
        words = ["-rtL", "--chmod=D755,F644", "--partial", "--inplace", *self._remote(), *left_out, *limit]
        return [self.program, *words, self._from, folder + "/"]

    def list_command(self) -> list[str]:
        """Return the command that lists names and sizes; the hub is asked over HTTP instead."""
        left_out = [word for pattern in self.excluded for word in ("--exclude", pattern)]
        if self.kind == "rclone":
            return [self.program, "lsjson", "-R", "--files-only", "--no-modtime", *self._config(), *left_out, self.place]
        return [self.program, "-rL", "--list-only", "--no-human-readable", *self._remote(), *left_out, self._from]

    def environment(self, token: str, home: str) -> dict[str, str]:
        """Return what the hub's client takes from its environment; the secret is nowhere else."""
        if self.kind != "hub":
            return {}
        said = {"HF_TOKEN": token} if token else {"HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}
        quiet = {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_UPDATE_CHECK": "1"}
        return {**said, **quiet, "HF_ENDPOINT": self.endpoint, "HF_HOME": home, "HF_HUB_OFFLINE": "0"}

    def _config(self) -> list[str]:
        return ["--config", self.option] if self.option else []

    @property
    def _from(self) -> str:
        return self.place.rstrip("/") + "/"

    def _remote(self) -> list[str]:
        """A daemon needs no shell; ssh must not ask anybody."""
        local = self.place.startswith(("/", "rsync://")) or "::" in self.place
        return [f"--timeout={SILENCE_S}"] + ([] if local else ["-e", self.option or "ssh -o BatchMode=yes"])


def source_from(given: Mapping[str, Any], revision: str, programs: Mapping[str, str] | None = None) -> Source:
    """Read ``sglang_model_source``; a key, kind or revision that cannot be meant is refused by name."""
    kind = str(given.get("kind", ""))
    if kind not in PLACE:
        raise _wrong(f"is of the kind {kind!r}" if kind else "has no kind", "kind", f"take one of {', '.join(PLACE)}")
    known = {"kind", PLACE[kind], "exclude", *OPTIONS[kind]}
    if unknown := sorted(set(given) - known):
        raise _wrong(f"has the unknown key {unknown[0]}", unknown[0], f"for {kind} there are {', '.join(sorted(known))}")
    place = str(given.get(PLACE[kind]) or "")
    exclude = given.get("exclude") or []
    words = [place, *(str(given.get(key) or "") for key in OPTIONS[kind] or [""])]
    if not place or any(word.startswith("-") for word in words):
        raise _wrong("does not say where the weights are" if not place else "begins with a dash", PLACE[kind], "correct it")
    if not isinstance(exclude, list) or not all(isinstance(pattern, str) and pattern for pattern in exclude):
        raise _wrong("has an exclude that is no list of patterns", "exclude", 'give a list such as ["*.bin"]')
    if kind == "hub" and not COMMIT.fullmatch(revision):
        raise InferopsError(
            f"the revision {revision or '(none)'} is no commit of the hub",
            where="sglang_model_revision",
            why="a branch or tag can be moved, so that two hosts would serve two models under one name",
            do="give the 40 hex digits of the commit, as the hub shows them under Files, History",
        )
    if kind != "folder" and not NAME.fullmatch(revision):
        raise InferopsError(
            f"the revision {revision or '(none)'} cannot name a folder",
            where="sglang_model_revision",
            why="weights of each revision lie in a folder of its name",
            do="use letters, digits, dot, dash and underscore, not a dot or a dash first",
        )
    return Source(kind, place, words[1], tuple(exclude), programs or {})


def _wrong(what: str, key: str, do: str) -> InferopsError:
    return InferopsError(
        f"the source of the weights {what}",
        where=f"sglang_model_source: {key}",
        why="nothing can be fetched from it",
        do=do,
    )
