# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""The proof: a server that is up names its model, generates, and resolved its settings to what was asked and expected."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .host import Answer
from .redact import keep_allowed

Http = Callable[..., Answer]
GENERATE_S = 60.0
# Picked at start or rewritten by the launcher: no statement of the check's is about them (design of the check report).
NOT_COMPARED = re.compile(
    r"(^|\.)_|^(random_seed|nccl_port|dist_init_addr|launch_command|host|port|api_key|admin_api_key)$|_port$"
)


@dataclass
class Proof:
    """What was seen. ``failures`` are sentences; none means proven. ``notes`` are differences that fail nothing."""

    failures: list[str] = field(default_factory=list)
    differences: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    resolved: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {"proven": not self.failures, **self.__dict__}


def prove(
    http: Http,
    base_url: str,
    *,
    served_name: str | None,
    key: str | None = None,
    argv: Iterable[str] = (),
    expect: Mapping[str, Any] | None = None,
    check: Mapping[str, Any] | None = None,
    generate: bool = True,
) -> Proof:
    """Return the proof of the server at base_url; ``check`` is the report its arguments were checked with."""
    proof = Proof()
    trouble = models_trouble(http, base_url, served_name, key)
    if trouble:
        proof.failures.append(trouble)
    info = server_info(http, base_url, key)
    if isinstance(info, str):
        proof.failures.append(info)
    else:
        proof.resolved = keep_allowed(info)
        seen = flatten(info)
        compare_expected(proof, seen, expect or {})
        compare_asked(proof, seen, argv, check or {})
    metrics = http(f"{base_url}/metrics", key=key, body=None, timeout_s=10)
    if metrics.status != 200:
        wanted = "--enable-metrics" in argv
        (proof.failures if wanted else proof.notes).append(f"/metrics answers {metrics.status or metrics.body}")
    if generate and not trouble:
        silent = generation_trouble(http, base_url, served_name, key)
        if silent:
            proof.failures.append(silent)
    return proof


def models_trouble(http: Http, base_url: str, served_name: str | None, key: str | None, timeout_s: float = 10) -> str | None:
    """Return why /v1/models does not list the served name, or None (R65: a green /health says nothing about the model)."""
    answer = http(f"{base_url}/v1/models", key=key, body=None, timeout_s=timeout_s)
    if answer.status != 200:
        return f"/v1/models answers {answer.status or answer.body}"
    try:
        names = [entry["id"] for entry in json.loads(answer.body)["data"]]
    except (ValueError, KeyError, TypeError):
        return "/v1/models does not answer with a list of models"
    if served_name is not None and served_name not in names:
        return f"/v1/models lists {', '.join(map(str, names)) or 'nothing'}, not {served_name}"
    return None


def health_trouble(http: Http, base_url: str, key: str | None, timeout_s: float = 30) -> str | None:
    """Return why /health is not green, or None. Some releases generate for it, so it may take a while."""
    answer = http(f"{base_url}/health", key=key, body=None, timeout_s=timeout_s)
    return None if answer.status == 200 else f"/health answers {answer.status or answer.body}"


def generation_trouble(
    http: Http, base_url: str, served_name: str | None, key: str | None, timeout_s: float = GENERATE_S
) -> str | None:
    """Return why one short generation brought no token, or None; a reasoning model's tokens count too."""
    body = {
        "model": served_name or "default",
        "messages": [{"role": "user", "content": "Count from one to five."}],
        "max_tokens": 8,
        "temperature": 0,
    }
    answer = http(f"{base_url}/v1/chat/completions", key=key, body=body, timeout_s=timeout_s)
    if answer.status is None:
        return f"accepts but does not generate: no answer within {timeout_s:g} s ({answer.body})"
    if answer.status != 200:
        return f"a generation is refused with {answer.status}"
    try:
        data = json.loads(answer.body)
        message = data["choices"][0]["message"]
        tokens = data.get("usage", {}).get("completion_tokens")
    except (ValueError, KeyError, IndexError, TypeError):
        return "a generation is answered with something that is no completion"
    if not (message.get("content") or message.get("reasoning_content") or message.get("tool_calls")) or tokens == 0:
        return "accepts but does not generate: the answer is empty"
    return None


def server_info(http: Http, base_url: str, key: str | None) -> dict[str, Any] | str:
    """Return the resolved arguments of the running server, or why there are none; older releases know the older name."""
    reason = ""
    for path in ("/server_info", "/get_server_info"):
        answer = http(f"{base_url}{path}", key=key, body=None, timeout_s=20)
        if answer.status == 200:
            try:
                data = json.loads(answer.body)
            except ValueError:
                return f"{path} does not answer with JSON"
            return data if isinstance(data, dict) else f"{path} does not answer with an object"
        reason = f"{path} answers {answer.status or answer.body}"
        if answer.status != 404:
            break
    return reason


def flatten(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings with dotted names beside the nested ones.

    >>> flatten({"a": {"b": 1}})
    {'a': {'b': 1}, 'a.b': 1}
    """
    out: dict[str, Any] = {}
    for key, value in data.items():
        out[prefix + key] = value
        if isinstance(value, dict):
            out.update(flatten(value, f"{prefix}{key}."))
    return out


def graphs(seen: Mapping[str, Any], phase: str) -> str | None:
    """Return enabled or disabled for the CUDA graphs of a phase, None when this server does not say.

    Source: srt/model_executor/cuda_graph_config.py of 0.5.23 (backend per phase); before the phases there is one switch for
    decode, disable_cuda_graph, read in 0.5.12.
    """
    backend = seen.get(f"cuda_graph_config.{phase}.backend")
    if backend is not None:
        return "disabled" if backend == "disabled" else "enabled"
    if phase == "decode" and isinstance(seen.get("disable_cuda_graph"), bool):
        return "disabled" if seen["disable_cuda_graph"] else "enabled"
    return None


def compare_expected(proof: Proof, seen: Mapping[str, Any], expect: Mapping[str, Any]) -> None:
    """Add every expectation that the running server does not meet."""
    for name, given in expect.items():
        wanted = given
        if name in ("decode_graphs", "prefill_graphs"):
            found: Any = graphs(seen, name.removesuffix("_graphs"))
            if isinstance(given, bool):
                wanted = "enabled" if given else "disabled"
        elif name in seen:
            found = seen[name]
        else:
            found = None
            if wanted is None:
                continue
        if not same(found, wanted):
            proof.differences.append({"field": name, "expected": wanted, "running": found, "explained": None, "kind": "expect"})
            proof.failures.append(f"{name} is {shown(found)} in the running server, expected {shown(wanted)}")


def asked_fields(argv: Iterable[str]) -> set[str]:
    """Return the fields that the flags of a command line name, as far as a flag is spelled like its field."""
    return {match[1].replace("-", "_") for word in argv if (match := re.match(r"--([a-z][a-z0-9_-]*)", word))}


def compare_asked(proof: Proof, seen: Mapping[str, Any], argv: Iterable[str], check: Mapping[str, Any]) -> None:
    """Add every asked or changed field whose running value the check does not explain (R52)."""
    effective = check.get("effective") or {}
    changed = check.get("changed") or {}
    undecided = {entry.get("field") for entry in check.get("undecided") or ()}
    asked = asked_fields(argv)
    for name in sorted(set(effective) & set(seen)):
        if NOT_COMPARED.search(name) or same(seen[name], effective[name]):
            continue
        rule = changed.get(name)
        serious = name in asked or rule is not None
        entry = {"field": name, "expected": effective[name], "running": seen[name], "explained": None, "kind": "asked"}
        proof.differences.append(entry)
        text = f"{name} is {shown(seen[name])} in the running server, the check says {shown(effective[name])}"
        if serious:
            proof.failures.append(text)
        else:
            entry["explained"] = "a default that the check resolves otherwise"
            proof.notes.append(text)
    for name, rule in changed.items():
        if name in seen and same(seen[name], rule.get("to")) and not NOT_COMPARED.search(name):
            proof.differences.append(
                {
                    "field": name,
                    "expected": rule.get("from"),
                    "running": seen[name],
                    "explained": f"{rule.get('source')}: {rule.get('guard')}",
                    "kind": "changed",
                }
            )
    for name in sorted(asked & undecided & set(seen)):
        proof.notes.append(f"{name} is {shown(seen[name])}; the check could not decide it")


def same(left: Any, right: Any) -> bool:
    """Return whether two settings mean the same: numbers by value, tuples as lists, and true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return abs(left - right) <= 1e-9 * max(abs(left), abs(right), 1.0)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    return bool(left == right)


def shown(value: Any) -> str:
    return "not reported" if value is None else json.dumps(value)
