# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which objects of an AWX are handed to its modules, in which order, and which a check can only announce."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .errors import InferopsError

# Kind: the endpoint of AWX's API. In the order in which they can be made; removed the other way round.
KINDS = {
    "organizations": "organizations",
    "labels": "labels",
    "credential_types": "credential_types",
    "execution_environments": "execution_environments",
    "credentials": "credentials",
    "projects": "projects",
    "inventories": "inventories",
    "inventory_sources": "inventory_sources",
    "notifications": "notification_templates",
    "templates": "job_templates",
    "workflows": "workflow_job_templates",
    "schedules": "schedules",
}
# Key of an object: the kinds it may name.
_NAMES = {
    "organization": ("organizations",),
    "labels": ("labels",),
    "credential_type": ("credential_types",),
    "execution_environment": ("execution_environments",),
    "credentials": ("credentials",),
    "project": ("projects",),
    "source_project": ("projects",),
    "inventory": ("inventories",),
    "unified_job_template": ("templates", "workflows"),
    "notification_templates_success": ("notifications",),
    "notification_templates_error": ("notifications",),
}

Objects = Mapping[str, Sequence[Mapping[str, Any]]]


def plan(objects: Objects, existing: Mapping[str, Sequence[str]] | None, *, remove: bool = False) -> dict[str, Any]:
    """Return per kind what its module gets, ``order`` of the kinds, and ``announced``: what a check cannot ask AWX about.

    existing: names that are there, per kind; None when whatever is missing will be made on the way. With remove only what
    is there is handed on. Without, an object that is missing, or that names a missing one, is announced as "KIND NAME".
    """
    unknown = sorted(set(objects) - set(KINDS))
    if unknown:
        raise InferopsError(f"kinds that AWX does not have: {', '.join(unknown)}", do=f"known are {', '.join(KINDS)}")
    out: dict[str, Any] = {"order": list(KINDS), "announced": []}
    for kind in KINDS:
        handed = []
        for entry in objects.get(kind) or ():
            there = existing is None or entry["name"] in existing.get(kind, ())
            if there and (remove or existing is None or _whole(entry, existing, objects)):
                handed.append(dict(entry))
            elif not remove:
                out["announced"].append(f"{kind.removesuffix('s').replace('_', ' ')} {entry['name']}")
        out[kind] = handed
    out["nodes"] = [node for workflow in out["workflows"] for node in _nodes(workflow)]
    if remove:
        out["order"].reverse()
    else:
        out["order"].insert(out["order"].index("workflows") + 1, "nodes")
    return out


def _whole(entry: Mapping[str, Any], existing: Mapping[str, Sequence[str]], objects: Objects) -> bool:
    """Whether every one of ours that it names is there."""
    for key, kinds in _NAMES.items():
        named = entry.get(key) or ()
        for name in [named] if isinstance(named, str) else named:
            ours = [other for other in kinds if any(one["name"] == name for one in objects.get(other) or ())]
            if ours and not any(name in existing.get(other, ()) for other in ours):
                return False
    return True


def _nodes(workflow: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the nodes of one workflow, each with the names of what it belongs to."""
    nodes = workflow.get("simplified_workflow_nodes") or ()
    return [{**node, "workflow": workflow["name"], "organization": workflow["organization"]} for node in nodes]
