"""Imported by a .pth file at every start of the interpreter: put our ``sglang`` first when the server is being launched.

Any other process of the same environment, such as one that reads or executes SGLang's own argument code, sees the real
package.  ``INFEROPS_FAKE_ENGINE=off`` switches the hook off.
"""

import os
import sys


def launches_server(words):
    """True for ``python … -m sglang.launch_server …`` and for the console script ``sglang``."""
    for index, word in enumerate(words):
        if word == "-m":
            return words[index + 1 : index + 2] == ["sglang.launch_server"]
        if word.startswith("-m") and len(word) > 2:
            return word[2:] == "sglang.launch_server"
        if word == "-c":
            return False
        if index and not word.startswith("-"):
            return word.rpartition("/")[2] == "sglang"
    return False


class _LaunchFinder:
    def __init__(self, folder):
        self._path = [folder]

    def find_spec(self, name, path=None, target=None):
        if name != "sglang":
            return None
        from importlib.machinery import PathFinder

        return PathFinder.find_spec(name, self._path)


def install():
    if os.environ.get("INFEROPS_FAKE_ENGINE") == "off" or not launches_server(sys.orig_argv):
        return
    sys.meta_path.insert(0, _LaunchFinder(__file__.removesuffix("hook.py") + "launch"))


install()
