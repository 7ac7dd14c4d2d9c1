# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Resolve one command line as the launcher would, up to where it would start processes. Runs under the engine's interpreter.

The request is the first line on standard input, which stays open: when it ends, whoever asked is gone, and so are we.
The answer goes to a file descriptor of its own; whatever SGLang prints goes to standard error.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import re
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from .recorder import Open, Recorder, leaves, nested, plain

RECORD = "ServerArgs"
PREPARE = "prepare_server_args"
# In this order: releases that resolve on demand, releases that resolve while the record is built.
ENTRIES = ("resolve_once", "__post_init__")
# The machine or the network, not the arguments.
OUTSIDE = ("OfflineModeIsEnabled", "LocalEntryNotFoundError", "OutOfMemoryError", "MemoryError", "ConnectionError")


class Run:
    """One command line on its way: how far it came, what was said."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self.argv = [str(word) for word in request["argv"]]
        self.noise = frozenset(request["noise"])
        self.secret = re.compile(request["secret"])
        self.stage = "import"
        self.said: str | None = None
        self.version: str | None = None
        self.module: Any = None
        self.recorder: Recorder | None = None

    def wanted(self, name: str) -> bool:
        return not (name.startswith("_") or name in self.noise or self.secret.search(name))

    def answer(self) -> dict[str, Any]:
        try:
            self._load()
            record = self._resolved()
            return {"outcome": "ok", **self._tables(record)}
        except BaseException as exc:
            return self._stopped(exc)
        finally:
            sys.settrace(None)

    def _load(self) -> None:
        package = importlib.import_module("sglang")
        self.module = importlib.import_module("sglang.srt.server_args")
        self.version = getattr(package, "__version__", None) or _version()
        self.recorder = Recorder(f"{Path(package.__file__ or '').parent}{os.sep}", self.wanted)
        # The launcher loads plugins first (0.5.11 on); they may replace what resolves.
        if importlib.util.find_spec("sglang.srt.plugins") is not None:
            load = getattr(importlib.import_module("sglang.srt.plugins"), "load_plugins", None)
            if load is not None:
                load()

    def _resolved(self) -> Any:
        cls = getattr(self.module, RECORD)
        if self.recorder is None:
            raise RuntimeError("asked before the recorder was made")
        self.stage = "parse"
        self._watch_parser()
        self.recorder.watch(cls)
        on_demand = hasattr(cls, ENTRIES[0])
        if not on_demand and hasattr(cls, ENTRIES[1]):
            self._start_inside(cls)
        sys.argv = ["sglang.launch_server", *self.argv]
        record = getattr(self.module, PREPARE)(list(self.argv))
        if on_demand:
            self.recorder.start(record, _fields(cls))
            self.stage = "resolve"
            record.resolve_once()
        self.stage = "check"
        if hasattr(record, "check_server_args"):
            record.check_server_args()
        self.recorder.stop()
        return record

    def _start_inside(self, cls: Any) -> None:
        original = cls.__post_init__

        def __post_init__(record: Any, *args: Any) -> None:
            if self.recorder is not None and self.recorder.record is None:
                self.stage = "resolve"
                self.recorder.start(record, _fields(cls))
            original(record, *args)

        cls.__post_init__ = __post_init__

    def _watch_parser(self) -> None:
        error, parse = argparse.ArgumentParser.error, argparse.ArgumentParser.parse_args

        def said(parser: Any, message: str) -> Any:
            self.said = message
            return error(parser, message)

        def parse_args(parser: Any, *args: Any, **kwargs: Any) -> Any:
            space = parse(parser, *args, **kwargs)
            self.stage = "construct"
            return space

        argparse.ArgumentParser.error = said  # type: ignore[method-assign, assignment]
        argparse.ArgumentParser.parse_args = parse_args  # type: ignore[method-assign, assignment]

    def _tables(self, record: Any) -> dict[str, Any]:
        recorder = self.recorder
        if recorder is None:
            raise RuntimeError("asked before the recorder was made")
        after = {name: value for name, value in _results(self.module, record).items() if name in recorder.fields}
        effective: dict[str, Any] = {}
        asked: dict[str, Any] = {}
        unseen: list[str] = []
        for name, value in after.items():
            before = recorder.before.get(name)
            settings = _asked_settings(name, before, value, recorder.before)
            for path, one in leaves(name, value):
                if isinstance(one, Open):
                    unseen.append(path)
                    continue
                effective[path] = one
                wanted = settings.get(path) if path != name else plain(before)
                asked[path] = None if isinstance(wanted, Open) else wanted
        writes = {path: _telling(recorder.writes[path], asked[path]) for path in effective if path in recorder.writes}
        return {"effective": effective, "asked": asked, "unseen": unseen, "writes": writes}

    def _stopped(self, exc: BaseException) -> dict[str, Any]:
        """Say what ended the run: a refusal of the release, or something that is not about the arguments."""
        text = self._clean(self.said or _words(exc))
        found: dict[str, Any] = {"stage": self.stage, "exception": type(exc).__name__, "message": text}
        if self.stage == "import" or _missing(exc) or _outside(exc):
            return {"outcome": "unavailable", **found, "message": f"{type(exc).__name__}: {text}"}
        if self.stage == "parse":
            return {"outcome": "parse_error", **found}
        return {"outcome": "fatal", **found, "source": _raised_at(exc.__traceback__, self.recorder)}

    def _clean(self, text: str) -> str:
        record = self.recorder.record if self.recorder is not None else None
        for name in _fields(type(record)) if record is not None else ():
            value = getattr(record, name, None)
            if self.secret.search(name) and isinstance(value, str) and value:
                text = text.replace(value, "…")
        return text


def _version() -> str | None:
    try:
        return str(importlib.import_module("sglang.version").__version__)
    except (ImportError, AttributeError):
        return None


def _fields(cls: Any) -> list[str]:
    return list(getattr(cls, "__struct_fields__", ()) or getattr(cls, "__dataclass_fields__", ()))


def _results(module: Any, record: Any) -> dict[str, Any]:
    """Return the values in effect. Releases that only declare have a function that looks them up."""
    names = _fields(type(record))
    declared = sys.modules.get("sglang.srt.arg_groups.overrides")
    lookup = getattr(declared, "resolution_result", None)
    if lookup is None:
        return {name: getattr(record, name) for name in names if hasattr(record, name)}
    found = {name: lookup(record, name) for name in names}
    whole = getattr(record, "resolved_dict", None)
    # It reports some fields otherwise than they stand (0.5.22 on); nested ones it writes as plain dicts, so those stay.
    told = whole() if callable(whole) else {}
    return {name: told[name] if name in told and nested(value) is None else value for name, value in found.items()}


def _asked_settings(name: str, before: Any, after: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was asked of nested settings: the setting itself, else the flag of its part, else the release's own default."""
    if nested(after) is None:
        return {}
    maker = getattr(sys.modules.get(type(after).__module__), f"default_{name}", None)
    out = dict(leaves(name, maker())) if callable(maker) else {}
    stem = name.removesuffix("_config")
    for path, _value in leaves(name, after):
        part, _dot, key = path[len(name) + 1 :].rpartition(".")
        flag = asked.get(f"{stem}_{key}_{part}")
        if flag is not None:
            out[path] = plain(flag)
    given = plain(before)
    for part, settings in given.items() if isinstance(given, dict) else ():
        for key, value in settings.items() if isinstance(settings, dict) else ():
            out[f"{name}.{part}.{key}"] = value
    return out


def _telling(writes: list[dict[str, Any]], asked: Any) -> list[dict[str, Any]]:
    """Leave out the first write where it only puts down what was asked."""
    return writes[1:] if writes and writes[0]["to"] == asked else writes


def _words(exc: BaseException) -> str:
    if isinstance(exc, SystemExit):
        return f"it exits with status {exc.code}"
    return str(exc) or type(exc).__name__


def _outside(exc: BaseException | None) -> bool:
    """Whether the machine or the network is at the bottom of it; what SGLang makes of another error is its own statement."""
    while exc is not None:
        kinds = {one.__name__ for one in type(exc).__mro__}
        if kinds & set(OUTSIDE) or "out of memory" in str(exc):
            return True
        exc = exc.__cause__
    return False


def _missing(exc: BaseException) -> bool:
    """Whether a package is not installed, as opposed to an ImportError the release states as a refusal."""
    return isinstance(exc, ModuleNotFoundError) and exc.name is not None


def _raised_at(trace: TracebackType | None, recorder: Recorder | None) -> str | None:
    if recorder is None:
        return None
    frames = [one for one in traceback.extract_tb(trace) if one.filename.startswith(recorder.root)]
    return recorder.lines.of_statement(frames[-1].filename, frames[-1].lineno or 0) if frames else None


def _die_with_the_asker() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    out = int(sys.argv[1])
    os.set_inheritable(out, False)
    request = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_die_with_the_asker, daemon=True).start()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    run = Run(request)
    answer = run.answer()
    if answer["outcome"] in ("fatal", "unavailable"):
        sys.stderr.write(f"{answer['message']}\n")
    with os.fdopen(out, "w", encoding="utf-8") as file:
        json.dump({**answer, "version": run.version, "python": sys.version.split()[0]}, file)
    sys.stderr.flush()
    os._exit(0)  # no exit handlers: what SGLang registered may wait for servers that were never started
