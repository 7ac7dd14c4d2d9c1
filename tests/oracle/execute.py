# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Run a release's own argument code on command lines, on a machine without a GPU. Needs the environment of environment.py.

Each case runs in a fork of one warmed process, so that nothing a case sets reaches the next one.
Usage: python execute.py --source FOLDER --models FOLDER --hardware NAME (--cases IN.json | --table) --out OUT.json
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import fake_gpu
import record_view
import stand_ins
from cards import HARDWARE

MODELS = "@models"
LIMIT_S = 90
# What an incomplete environment raises, as against SGLang's own refusals. Such a case tells nothing and is not kept.
_OURS = (ImportError, NotImplementedError)
_OURS_TEXT = ("Transformers does not recognize", "stand_ins", "Anything", "partially initialized module", "has no attribute")


def observe(argv: Sequence[str]) -> dict[str, Any]:
    """Take a command line through the release's launcher code up to its own final check; report what became of it."""
    import sglang.srt.server_args as module

    stage = ["parse"]
    before: dict[str, Any] = {}
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            _watch(module.ServerArgs, stage, before)
            record = module.prepare_server_args(list(argv))
            if hasattr(module.ServerArgs, "resolve_once"):
                stage[0] = "resolve"
                record.resolve_once()
            stage[0] = "check"
            if hasattr(record, "check_server_args"):
                record.check_server_args()
            after = record_view.resolved(record)
        except SystemExit:
            lines = [line for line in said.getvalue().splitlines() if ": error: " in line] or said.getvalue().splitlines()
            return {**_refused(stage[0]), "message": (lines or [""])[-1].partition(": error: ")[2] or (lines or [""])[-1]}
        except Exception as exc:
            return _failed(stage[0], exc)
    return {"outcome": "ok", "changed": record_view.changes(before, after), "effective": after}


def _watch(kind: Any, stage: list[str], before: dict[str, Any]) -> None:
    """Note when the parser is done, and what the record holds before anything resolves it."""
    build, finish = kind.from_cli_args.__func__, getattr(kind, "__post_init__", None)

    def from_cli_args(cls: Any, *args: Any, **kwargs: Any) -> Any:
        stage[0] = "resolve"
        record = build(cls, *args, **kwargs)
        if not before:
            before.update(record_view.requested(record))
        return record

    def post_init(record: Any, *args: Any, **kwargs: Any) -> Any:
        if not before:
            before.update(record_view.requested(record))
        return finish(record, *args, **kwargs)

    kind.from_cli_args = classmethod(from_cli_args)
    if finish is not None:
        kind.__post_init__ = post_init


def _refused(stage: str) -> dict[str, Any]:
    return {"outcome": "parse_error" if stage == "parse" else "fatal", "stage": stage, "changed": {}}


def _failed(stage: str, exc: Exception) -> dict[str, Any]:
    frames = traceback.extract_tb(exc.__traceback__)
    root = str(Path(sys.modules["sglang"].__file__ or "").parent) + os.sep
    inside = [frame for frame in frames if frame.filename.startswith(root)]
    argument_code = [frame for frame in inside if "server_args" in frame.filename or "arg_groups" in frame.filename]
    place = (argument_code or inside or frames)[-1]
    found = {
        **_refused(stage),
        "exception": type(exc).__name__,
        "message": str(exc)[:500],
        "raised_at": f"{place.filename.removeprefix(root)}:{place.lineno}",
    }
    if isinstance(exc, _OURS) or any(text in str(exc) for text in _OURS_TEXT):
        found.update(outcome="not_executed", message=f"{type(exc).__name__}: {exc}"[:300], at=str(frames[-1])[-200:])
    return found


def forked(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what ``work`` returns in a child process, which ends after LIMIT_S at the latest."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        signal.alarm(LIMIT_S)
        try:
            result = work()
        except BaseException:
            result = {"outcome": "not_executed", "message": traceback.format_exc()[-800:], "changed": {}}
        with os.fdopen(writer, "w") as pipe:
            json.dump(result, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"outcome": "not_executed", "message": f"no answer in {LIMIT_S} s", "changed": {}}


class Runner:
    """One warmed process for one release on one host."""

    def __init__(self, models: Path) -> None:
        self.models = str(models)
        self.broken: set[str] = set()

    def run(self, case: dict[str, Any]) -> dict[str, Any]:
        known = set(sys.modules)
        since = time.monotonic()

        def work() -> dict[str, Any]:
            os.environ.update(case.get("env", {}))
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                for name, text in case.get("files", {}).items():
                    Path(name).write_text(text.replace(MODELS, self.models), encoding="utf-8")
                found = observe([word.replace(MODELS, self.models) for word in case["argv"]])
                os.chdir("/")
            return {**found, "imported": sorted(set(sys.modules) - known)}

        found = forked(work)
        self._catch_up(found.pop("imported", []))
        text = json.dumps(found).replace(json.dumps(self.models)[1:-1], MODELS)
        return {**case, **json.loads(text), "seconds": round(time.monotonic() - since, 2)}

    def _catch_up(self, names: Sequence[str]) -> None:
        """Import here what that child had to import: the next one starts with it (10 s a case otherwise)."""
        environment = dict(os.environ)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            for name in names:
                # Before SGLang itself may be imported here (see main), at least what it needs is.
                mine = "sglang.srt.server_args" in sys.modules or name.partition(".")[0] != "sglang"
                if mine and name not in self.broken:
                    try:
                        importlib.import_module(name)
                    except BaseException:
                        self.broken.add(name)
        os.environ.clear()
        os.environ.update(environment)


def flag_table(version: str) -> dict[str, Any]:
    """Return the release's own parser as plain values."""
    import sglang.srt.server_args as module

    parser = argparse.ArgumentParser(prog="oracle")
    module.ServerArgs.add_cli_args(parser)
    actions = [
        {
            "flags": list(one.option_strings),
            "dest": one.dest,
            "action": type(one).__name__,
            "nargs": one.nargs,
            "default": record_view.plain(one.default),
            "choices": None if one.choices is None else [str(choice) for choice in one.choices],
            "required": one.required,
            "type": getattr(one.type, "__name__", None),
        }
        for one in parser._actions
        if one.dest != "help"
    ]
    return {"version": version, "fields": record_view._names(module.ServerArgs), "actions": actions}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True, help="folder that holds sglang/ and its dist-info")
    parser.add_argument("--models", type=Path, required=True, help="folder of model configurations, @models in the cases")
    parser.add_argument("--hardware", choices=HARDWARE, default=next(iter(HARDWARE)))
    parser.add_argument("--cases", type=Path)
    parser.add_argument("--table", metavar="VERSION", help="write the release's parser instead")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    sys.path.insert(0, str(options.source))
    with tempfile.TemporaryDirectory(prefix="oracle-") as folder:
        fake_gpu.pretend(HARDWARE[options.hardware], Path(folder))
        stand_ins.install(options.source)
        if options.table:
            found: Any = flag_table(options.table)
        else:
            cases = json.loads(options.cases.read_text(encoding="utf-8"))
            runner = Runner(options.models)
            # A variable may be read while SGLang is imported: those cases run before this process has imported it.
            early = [runner.run(case) for case in cases if case.get("env")]
            with contextlib.redirect_stdout(io.StringIO()):
                importlib.import_module("sglang.srt.server_args")
            found = early + [runner.run(case) for case in cases if not case.get("env")]
        options.out.write_text(json.dumps(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
