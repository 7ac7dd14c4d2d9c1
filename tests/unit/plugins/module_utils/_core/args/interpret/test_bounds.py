# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Source that means harm, or none of ours at all: the resolution ends soon, within memory, and says what it could not follow."""

from __future__ import annotations

import ast
import functools
import os
import random
import resource
import signal
import sysconfig
import textwrap
import time
from pathlib import Path

import pytest
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.facts import Facts
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.flags import UNKNOWN, FlagTable
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.interpret import resolve
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.interpret.limits import MAX_WORK, heavy, searchable
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.parser import Parsed
from ansible_collections.inferops.sglang.plugins.module_utils._core.args.source import SourceTree

FIELDS = {"a": UNKNOWN, "b": UNKNOWN, "c": "text", "d": 3, "e": None}
BUDGET_S = 2.0
DEADLINE_S = 20
MEMORY = 512 << 20
LIBRARY = Path(sysconfig.get_path("stdlib"))


class Memory:
    """A package of one file."""

    def __init__(self, text):
        self.files = {"srt/server_args.py": text}

    def read(self, rel):
        return self.files.get(rel)

    def glob(self, prefix):
        return [name for name in self.files if name.startswith(prefix)]

    def metadata(self):
        return None


def resolved(text, budget_s=BUDGET_S, **more):
    return resolve(
        SourceTree(Memory(text), "memory"),
        FlagTable("0", "memory", (), FIELDS),
        Parsed(dict(FIELDS), {}),
        Facts(),
        None,
        {},
        budget_s,
        **more,
    )


def handler(body, head=""):
    inner = textwrap.indent('self.c = "set"\n' + body, " " * 8)
    return f"{head}\n\nclass ServerArgs:\n    a: int\n\n    def __post_init__(self):\n{inner}\n"


def doubled(start, step):
    return f"x = {start}\nfor i in range(60):\n    {step}\nself.a = x"


BOMBS = {
    "while": "while True:\n    self.d = self.d + 1",
    "recursion": "def f(n):\n    return f(n + 1)\nself.a = f(0)",
    "two calls each": "def f(n):\n    return f(n - 1) + f(n - 2)\nself.a = f(90)",
    "lambda of itself": "f = lambda g: g(g)\nself.a = f(f)",
    "power": doubled("10", "x = x ** 200"),
    "square": doubled("2 ** 150", "x = x * x"),
    "shift": "self.a = 1 << (1 << 40)",
    "pow": "self.a = pow(7, 10 ** 9)",
    "text": doubled('"x"', "x = x + x"),
    "replaced text": doubled('"aa"', 'x = x.replace("a", "aaaaaaaaaa")'),
    "joined text": doubled('"aaaa"', "x = x.join(list(x))"),
    "wide": 'self.a = f"{1:>9999999999}"\nself.b = "x".ljust(10 ** 11)\nself.e = "%99999999999d" % 1',
    "list": doubled("[1]", "x = x + x"),
    "list in place": doubled("[1]", "x += x"),
    "list extended": doubled("[1]", "x.extend(x)"),
    "list grown": "x = []\nfor i in range(19000):\n    x.append(i)\nself.a = x",
    "tuple grown": "x = ()\nfor i in range(19000):\n    x = x + (i,)\nself.a = x",
    "long range": "self.a = list(range(10 ** 12))",
    "loops in loops": "n = 0\nfor i in range(5000):\n    for j in range(5000):\n        n = n + 1\nself.a = n",
    "comprehension": "self.a = [i for i in range(9999) for j in range(9999) for k in range(9999)]",
    "lists in a dict": "self.a = {i: list(range(10000)) for i in range(100000)}",
    "sorted by a function": "self.a = sorted(range(199999), key=lambda x: -x)",
    "list of itself": "x = []\nx.append(x)\nself.a = x\nself.e = str(x)",
    "dict of itself": 'x = {}\nx["x"] = x\nself.a = x\nself.e = str(x)',
    "lists in lists": "x = []\nfor i in range(19000):\n    x = [x]\nself.a = x",
    "shared tuples": doubled("1", "x = (x, x)"),
    "shared tuples compared": "x = 1\ny = 1\nfor i in range(60):\n    x = (x, x)\n    y = (y, y)\nself.a = x == y",
    "shared tuples as a key": "x = 1\nfor i in range(60):\n    x = (x, x)\nself.a = {x: 1}",
    "shared tuples as text": 'x = "a"\nfor i in range(60):\n    x = (x, x)\nself.a = str(x)',
    "shared lists": doubled('["lol"]', "x = [x, x, x]"),
    "pattern": 'import re\nself.a = re.match("(a+)+$", "a" * 40 + "b")',
    "pattern replaced": 'import re\nself.a = re.sub("(a|a)*c", "", "a" * 40 + "b")',
    "generator": "def g():\n    while True:\n        yield 1\nfor x in g():\n    self.a = x",
    "getattr of itself": 'class A:\n    def __getattr__(self, n):\n        return getattr(self, n + "x")\nself.a = A().q',
    "property of itself": "class A:\n    @property\n    def q(self):\n        return self.q\nself.a = A().q",
    "class of itself": "class A:\n    def __init__(self):\n        self.x = A()\nself.a = A()",
    "3000 open conditions": "\n".join(f"if self.b == {i}:\n    self.d = {i}" for i in range(3000)),
    "open returns": "def f(n):\n    if self.b == n:\n        return 1\n    return 2\n"
    + "\n".join(f"self.d = f({i}) + self.d" for i in range(800)),
    "90 levels": "".join("    " * i + f"if self.b == {i}:\n" for i in range(90)) + "    " * 90 + "self.d = 1",
    "deep parentheses": "self.a = " + "(" * 300 + "1" + ")" * 300,
    "deep attributes": "self.a = self" + ".b" * 20000,
    "long sum": "self.a = " + "1 + " * 20000 + "1",
    "long literal": f'self.a = "{"x" * 5_000_000}"',
    "long list": f"self.a = [{'1, ' * 100000}]",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_bounded_in_time_and_memory(name):
    child = os.fork()
    if child == 0:  # a limit on memory cannot be taken back, and a hang inside C can only be killed
        code = 3
        try:
            # Counted from what is mapped now: after a thousand other tests that is far more than what is resident.
            limit = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + MEMORY
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            signal.alarm(DEADLINE_S)
            result = resolved(handler(BOMBS[name]))
            code = 2 if "MemoryError" in str(result.message) else 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


ENDLESS = handler(BOMBS["loops in loops"])


def test_work_is_bounded_by_steps_whatever_the_clock_says():
    result = resolved(ENDLESS, clock=lambda: 0.0)
    assert (result.outcome, result.message) == ("unknown", f"not decided within {MAX_WORK:,} steps")


def test_a_second_bound_is_the_time_of_the_processor():
    ticks = iter(range(10**6))
    result = resolved(ENDLESS, clock=lambda: float(next(ticks)))
    assert (result.outcome, result.message) == ("unknown", "not decided within the processor time a check may take")
    assert result.steps < MAX_WORK


class Slow(Memory):
    """A package on a disk that waits."""

    def read(self, rel):
        time.sleep(0.3)
        return super().read(rel)


def test_waiting_changes_no_answer():
    slow = SourceTree(Slow(handler("while self.d < 2000:\n    self.d = self.d + 1")), "slow")
    result = resolve(slow, FlagTable("0", "memory", (), FIELDS), Parsed(dict(FIELDS), {}), Facts(), None, {}, 0.29)
    assert (result.outcome, result.effective["d"]) == ("ok", 2000)


@functools.cache
def functions():
    """Return every function and method of the standard library: file, name, number of parameters."""
    found = []
    for path in sorted(LIBRARY.rglob("*.py")):
        if {"site-packages", "test", "tests"} & set(path.parts):
            continue
        try:
            body = ast.parse(path.read_text(encoding="utf-8")).body
        except (SyntaxError, UnicodeDecodeError):
            continue
        for one in body:
            inner = one.body if isinstance(one, ast.ClassDef) else [one]
            prefix = f"{one.name}." if isinstance(one, ast.ClassDef) else ""
            found += [(path, prefix + node.name, len(node.args.args)) for node in inner if isinstance(node, ast.FunctionDef)]
    return found


@pytest.mark.parametrize("seed", range(4))
def test_the_standard_library_as_handlers_never_breaks_the_interpreter(seed):
    for path, name, count in random.Random(seed).sample(functions(), 60):
        values = ", ".join("self." + "abcde"[index % 5] for index in range(count))
        result = resolved(handler(f"self.b = {name}({values})\nself.a = 1", path.read_text(encoding="utf-8")), 1.0)

        assert result.outcome in ("ok", "fatal", "unknown"), (path, name)
        # An exception of our own would be told by its Python form.
        assert "Error(" not in str(result.message), (path, name, result.message)


def test_a_value_that_holds_itself_is_heavy_and_one_of_many_parts_too():
    shared = (1,)
    for dummy in range(40):
        shared = (shared, shared)
    assert heavy(shared)
    assert not heavy(tuple(range(5000)))


@pytest.mark.parametrize(
    ("pattern", "text", "possible"),
    [(r"v?(\d+)\.(\d+)", "0.5.23", True), ("(a+)+$", "a" * 40, False), (".*.*.*x", "a" * 4000, False), ("a*", "a" * 4000, True)],
)
def test_a_search_that_may_not_end_is_not_begun(pattern, text, possible):
    assert searchable(pattern, text) is possible
