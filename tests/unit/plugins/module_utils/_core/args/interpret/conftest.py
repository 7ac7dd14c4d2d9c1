# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""A source of a few lines in place of a release, and a way to resolve a command line on it."""

from __future__ import annotations

import textwrap

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.facts import Facts
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.interpret import resolve
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.parser import parse
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.readers import add_argument
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import open_source

HEAD = """
import argparse
import dataclasses
import importlib
import os
import pkgutil
from typing import Optional

from sglang.srt.utils import get_device_sm


@dataclasses.dataclass
class ServerArgs:
    model_path: str
    pp_size: int = 1
    page_size: Optional[int] = None

    def __post_init__(self):
        self.model_path = self.model_path
"""
TAIL = """
    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser):
        parser.add_argument("--model-path", type=str, required=True)
        parser.add_argument("--pp-size", type=int, default=ServerArgs.pp_size)
        parser.add_argument("--page-size", type=int, default=ServerArgs.page_size)

    @classmethod
    def from_cli_args(cls, args: argparse.Namespace):
        return cls(**{attr.name: getattr(args, attr.name) for attr in dataclasses.fields(cls)})
"""


@pytest.fixture
def run(tmp_path):
    """Resolve argv on a source whose ``__post_init__`` has the given body; more files by their place in the package."""

    def resolve_it(body, *argv, facts=None, model=None, env=None, **files):
        package = tmp_path / "sglang"
        texts = {
            "version.py": '__version__ = "0.5.99"\n',
            "srt/server_args.py": HEAD + textwrap.indent(textwrap.dedent(body), " " * 8) + TAIL,
            "srt/utils.py": "def get_device_sm():\n    return 0\n",
            **{name.replace("__", "/") + ".py": textwrap.dedent(text) for name, text in files.items()},
        }
        for rel, text in texts.items():
            path = package / rel
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            for folder in (path.parent, *path.parent.parents):
                if package in (folder, *folder.parents):
                    (folder / "__init__.py").touch()
        tree = open_source(tmp_path)
        table = add_argument.read(tree)  # read_flags would miss the hundred flags a release has
        parsed = parse(table, ["--model-path", "/m", *argv])
        return resolve(tree, table, parsed, Facts.from_dict(facts or {}), model, env or {})

    return resolve_it
