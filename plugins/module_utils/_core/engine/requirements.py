# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Versions, markers and requirements of Python packages, as far as locks and wheels use them; what is not understood is None."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_VERSION = re.compile(
    r"v?(?:(\d+)!)?(\d+(?:\.\d+)*)[._-]?(?:(a|b|rc|alpha|beta|c|pre|preview)[._-]?(\d*))?(?:[._-]?(post|rev|r)[._-]?(\d*))?"
    r"(?:[._-]?(dev)[._-]?(\d*))?(?:\+([a-z0-9._-]+))?$",
    re.IGNORECASE,
)
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[([^\]]*)\])?\s*\(?([^;()]*)\)?\s*(?:;(.*))?$", re.DOTALL)
_CLAUSE = re.compile(r"(===|==|!=|~=|<=|>=|<|>)\s*([^\s,]+)")
_PRE = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}
_ORDERED: dict[str, Callable[[object, object], bool]] = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}  # type: ignore[dict-item]
Key = tuple[int, tuple[int, ...], tuple[str, int], int, int]


def normal_name(name: str) -> str:
    """Return the name by which an index knows a package.

    >>> normal_name("flashinfer_python")
    'flashinfer-python'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def version_key(version: str) -> Key | None:
    """Return what sorts versions by age, without the local part; None for what is no version.

    >>> version_key("0.5.12.post1") > version_key("0.5.12") > version_key("0.5.12rc1")
    True
    """
    match = _VERSION.match(version.strip())
    if match is None:
        return None
    release = [int(part) for part in match[2].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    post = int(match[6] or 0) if match[5] else -1
    dev = int(match[8] or 0) if match[7] else 10**9
    if match[3]:
        pre = (_PRE.get(match[3].lower(), match[3].lower()), int(match[4] or 0))
    else:
        # A development version without anything else comes before the pre-releases.
        pre = ("", 0) if match[7] and not match[5] else ("z", 0)
    return (int(match[1] or 0), tuple(release), pre, post, dev)


def _epoch(version: str) -> tuple[str, str]:
    before, mark, after = version.partition("!")
    return (before, after) if mark else ("0", before)


def _holds(sign: str, wanted: str, version: str) -> bool | None:
    if sign == "===":
        return version == wanted
    if wanted.endswith(".*"):
        if sign not in ("==", "!="):
            return None
        (epoch, prefix), (own_epoch, own) = _epoch(wanted[:-2]), _epoch(version)
        parts, have = prefix.split("."), re.split(r"[^0-9]", own + ".")
        have += ["0"] * (len(parts) - len(have))
        same = epoch == own_epoch and [int(p or 0) for p in have[: len(parts)]] == [int(p) for p in parts]
        return same if sign == "==" else not same
    need, found = version_key(wanted), version_key(version)
    if need is None or found is None:
        return None
    if sign in ("==", "!="):
        same = need == found and ("+" not in wanted or version.lower() == wanted.lower())
        return same if sign == "==" else not same
    if sign == "~=":
        beginning = re.match(r"(?:\d+!)?\d+(?:\.\d+)*", wanted)
        parts = beginning[0].split(".")[:-1] if beginning else []
        return bool(parts) and found >= need and bool(_holds("==", ".".join(parts) + ".*", version))
    if sign == ">" and found[:3] == need[:3] and found[3] >= 0 and need[3] < 0:
        return False  # 1.0.post1 is not newer than 1.0 in this sense.
    return _ORDERED[sign](found, need)


def satisfies(version: str, specifier: str) -> bool | None:
    """Return whether a version is one that a specifier allows; None where the specifier is not understood.

    >>> satisfies("2.11.0+cu130", "==2.11.0"), satisfies("3.10", ">=3.11"), satisfies("0.14.9", "<0.15,>=0.14.1")
    (True, False, True)
    """
    text = specifier.strip()
    if not text:
        return True
    results = []
    for part in text.split(","):
        clause = _CLAUSE.fullmatch(part.strip())
        results.append(_holds(clause[1], clause[2], version) if clause else None)
    if False in results:
        return False
    return None if None in results else True


def marker_holds(marker: str, values: Mapping[str, str]) -> bool | None:
    """Return whether an environment marker holds; None where it is not understood or asks for what is not known.

    >>> marker_holds("sys_platform == 'linux' and python_version < '3.12'", {"sys_platform": "linux", "python_version": "3.11"})
    True
    """
    try:
        tree = ast.parse(marker.strip(), mode="eval").body
    except SyntaxError:
        return None
    return _judge(tree, values)


def _judge(node: ast.expr, values: Mapping[str, str]) -> bool | None:
    if isinstance(node, ast.BoolOp):
        parts = [_judge(part, values) for part in node.values]
        decisive = isinstance(node.op, ast.Or)
        if decisive in parts:
            return decisive
        return None if None in parts else not decisive
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    left, right = (_word(side, values) for side in (node.left, node.comparators[0]))
    if left is None or right is None:
        return None
    sign = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">="}.get(type(node.ops[0]))
    if isinstance(node.ops[0], (ast.In, ast.NotIn)):
        return (left in right) == isinstance(node.ops[0], ast.In)
    if sign is None:
        return None
    if isinstance(node.left, ast.Name) and "version" in node.left.id:
        return _holds(sign, right, left)
    return left == right if sign == "==" else left != right if sign == "!=" else None


def _word(node: ast.expr, values: Mapping[str, str]) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return values.get(node.id) if isinstance(node, ast.Name) else None


@dataclass(frozen=True)
class Requirement:
    """One line of ``Requires-Dist``: ``name`` as an index knows it."""

    name: str
    specifier: str
    marker: str

    def wanted(self, values: Mapping[str, str]) -> bool | None:
        """Return whether it counts on that interpreter; what an extra asks for does not."""
        return marker_holds(self.marker, {**values, "extra": ""}) if self.marker else True


def parse_requirement(line: str) -> Requirement | None:
    """Return a requirement; None for one that is not understood (an address, say)."""
    match = _REQUIREMENT.match(line)
    if match is None or "@" in match[3]:
        return None
    return Requirement(normal_name(match[1]), match[3].strip(), (match[4] or "").strip())
