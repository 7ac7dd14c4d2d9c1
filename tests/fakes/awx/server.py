"""An AWX that keeps objects and holds every request to the fields that AWX 24.6.1 itself publishes (its answers to OPTIONS).

fields.json holds those facts: endpoint, field, type, required, choices and bounds. AWX drops a field it does not know without a
word; this one refuses it, because a setting that is dropped is a fault of ours.
"""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

FIELDS: dict[str, dict[str, dict[str, Any]]] = json.loads((Path(__file__).parent / "fields.json").read_text())
# Fields that AWX fills in itself; the modules of awx.awx send some of them none the less.
READ_ONLY = {"workflow_job_template_nodes": {"type"}, "job_templates": {"organization"}, "credential_types": {"managed"}}
NODE = {
    "identifier": {"type": "string", "required": True},
    "workflow_job_template": {"type": "id", "required": True},
    "unified_job_template": {"type": "id"},
    "all_parents_must_converge": {"type": "boolean"},
}
TABLES = {**FIELDS, "workflow_job_template_nodes": NODE, "instance_groups": {}}
SUBLISTS = (
    *("credentials", "labels", "success_nodes", "failure_nodes", "always_nodes"),
    *(f"notification_templates_{event}" for event in ("started", "success", "error", "approvals")),
)
RULE = re.compile(r"DTSTART(;TZID=\S+)?:\d{8}T\d{6}Z? RRULE:FREQ=")
RULE_LIKE = "DTSTART:20260101T000000Z RRULE:FREQ="
UNIFIED = ["job_templates", "workflow_job_templates", "projects", "inventory_sources"]
TYPES = {"string": str, "boolean": bool, "integer": int, "id": int, "object": dict}
BUILT_IN = (("Machine", "ssh"), ("Vault", "vault"), ("Source Control", "scm"))


class Refused(Exception):
    """What AWX would answer with 400."""


class Awx:
    """The objects, and how often each method was used on what."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.tables: dict[str, dict[int, dict[str, Any]]] = {kind: {} for kind in TABLES}
        self.links: dict[tuple[str, int, str], list[int]] = {}
        self.surveys: dict[int, Any] = {}
        self.approvals: dict[int, dict[str, Any]] = {}
        self.writes: list[str] = []
        self.lock = threading.RLock()
        self.number = 0
        for name, kind in BUILT_IN:
            self.number += 1
            self.tables["credential_types"][self.number] = {"name": name, "kind": kind, "id": self.number}

    def make(self, kind: str, given: dict[str, Any]) -> dict[str, Any]:
        self.hold(kind, given, whole=True)
        self.number += 1
        defaults = {field: facts["default"] for field, facts in TABLES[kind].items() if "default" in facts}
        entry = {**defaults, **given, "id": self.number}
        if kind == "job_templates" and entry.get("project"):
            entry["organization"] = self.tables["projects"][entry["project"]]["organization"]
        self.tables[kind][self.number] = entry
        return entry

    def remove(self, kind: str, number: int) -> None:
        """Remove it, the nodes of a workflow, and labels that nothing bears any more."""
        del self.tables[kind][number]
        self.links = {key: linked for key, linked in self.links.items() if key[:2] != (kind, number)}
        nodes = self.tables["workflow_job_template_nodes"]
        if kind == "workflow_job_templates":
            for node in [one for one, entry in nodes.items() if entry["workflow_job_template"] == number]:
                del nodes[node]
        borne = {one for (_kind, _number, name), linked in self.links.items() if name == "labels" for one in linked}
        self.tables["labels"] = {one: label for one, label in self.tables["labels"].items() if one in borne}

    def hold(self, kind: str, given: dict[str, Any], *, whole: bool) -> None:
        """Raise Refused where the request does not fit the published fields."""
        fields = TABLES[kind]
        for name, value in given.items():
            if name in READ_ONLY.get(kind, ()):
                continue
            if name not in fields:
                raise Refused(f"{kind} has no field {name}")
            facts = fields[name]
            wanted = TYPES.get(facts["type"])
            if value is not None and wanted and (not isinstance(value, wanted) or (wanted is int and isinstance(value, bool))):
                raise Refused(f"{kind}.{name}: {value!r} is no {facts['type']}")
            if "choices" in facts and value not in facts["choices"] and value is not None:
                raise Refused(f"{kind}.{name}: {value!r} is not one of {facts['choices']}")
            if isinstance(value, str) and len(value) > facts.get("max_length", len(value)):
                raise Refused(f"{kind}.{name} is too long")
        missing = [name for name, facts in fields.items() if facts.get("required") and whole and given.get(name) in (None, "")]
        if missing:
            raise Refused(f"{kind} needs {', '.join(missing)}")
        if (
            kind == "schedules"
            and "rrule" in given
            and not re.match(r"DTSTART(;TZID=\S+)?:\d{8}T\d{6}Z? RRULE:FREQ=", given["rrule"])
        ):
            raise Refused(f"schedules.rrule: {given['rrule']!r} is not one rule with its start")

    def shown(self, kind: str, entry: dict[str, Any]) -> dict[str, Any]:
        at = f"/api/v2/{kind}/{entry['id']}/"
        names = [*SUBLISTS, "survey_spec"]
        related = {name: f"{at}{name}/" for name in names}
        if kind == "workflow_job_templates":
            related["workflow_nodes"] = f"{at}workflow_nodes/"
        if entry["id"] in self.approvals:
            related["unified_job_template"] = f"/api/v2/workflow_approval_templates/{entry['id']}/"
        out = {**entry, "url": at, "type": kind.removesuffix("s"), "related": related, "summary_fields": {}}
        if kind == "credentials":
            secret = entry.get("inputs") or {}
            out["inputs"] = {key: "$encrypted$" if value else value for key, value in secret.items()}
        return out


def found(awx: Awx, kind: str, query: dict[str, str]) -> list[dict[str, Any]]:
    tables = (
        ["job_templates", "workflow_job_templates", "projects", "inventory_sources"]
        if kind == "unified_job_templates"
        else [kind]
    )
    entries = [awx.shown(table, entry) for table in tables for entry in awx.tables[table].values()]
    for key, value in query.items():
        if key.endswith("__in"):
            entries = [entry for entry in entries if str(entry.get(key[:-4])) in value.split(",")]
        elif key == "or__id":
            entries = [entry for entry in entries if value == str(entry["id"]) or entry.get("name") == query.get("or__name")]
        elif key not in ("page_size", "order_by", "page", "or__name"):
            entries = [entry for entry in entries if str(entry.get(key)) == value]
    return entries


class Handler(BaseHTTPRequestHandler):
    """AWX's REST API as far as awx.awx uses it here."""

    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def answer(self, code: int, body: Any = None) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-API-Product-Name", "AWX")
        self.send_header("X-API-Product-Version", "24.6.1")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self.handle_one("GET")

    def do_POST(self) -> None:
        self.handle_one("POST")

    def do_PATCH(self) -> None:
        self.handle_one("PATCH")

    def do_DELETE(self) -> None:
        self.handle_one("DELETE")

    def handle_one(self, method: str) -> None:
        awx, parts = self.server.awx, urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        given = json.loads(self.rfile.read(length) or b"{}") if length else {}
        words = [word for word in parts.path.split("/") if word][2:]
        query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        with awx.lock:
            if self.headers.get("Authorization") != f"Bearer {awx.token}":
                self.answer(401, {"detail": "no"})
                return
            if method != "GET":
                awx.writes.append(f"{method} {parts.path}")
            try:
                self.answer(*self.reply(awx, method, words, query, given))
            except Refused as exc:
                self.answer(400, {"detail": str(exc)})
            except KeyError:
                self.answer(404, {"detail": "no such object"})

    def reply(self, awx: Awx, method: str, words: list[str], query: dict[str, str], given: Any) -> tuple[int, Any]:
        kind, rest = words[0], words[1:]
        if kind == "workflow_approval_templates":
            node = awx.approvals[int(rest[0])]
            if method == "PATCH":
                node.update(given)
            return 200, {**node, "url": f"/api/v2/workflow_approval_templates/{rest[0]}/"}
        if not rest:
            if method == "GET":
                results = found(awx, kind, query)
                return 200, {"count": len(results), "next": None, "results": results}
            return 201, awx.shown(kind, awx.make(kind, given))
        entry = awx.tables[kind][int(rest[0])]
        if len(rest) == 1:
            if method == "DELETE":
                awx.remove(kind, entry["id"])
                return 204, None
            if method == "PATCH":
                awx.hold(kind, given, whole=False)
                entry.update(given)
            return 200, awx.shown(kind, entry)
        return self.sub(awx, method, kind, entry, rest[1], given)

    def sub(self, awx: Awx, method: str, kind: str, entry: dict[str, Any], name: str, given: Any) -> tuple[int, Any]:
        if name == "survey_spec":
            if method == "POST":
                unknown = set(given) - {"name", "description", "spec"}
                if unknown or not all({"variable", "question_name", "type"} <= set(one) for one in given["spec"]):
                    raise Refused(f"not a survey: {given}")
                awx.surveys[entry["id"]] = given
            return 200, awx.surveys.get(entry["id"], {})
        if name == "create_approval_template":
            if not given.get("name") or not isinstance(given.get("timeout", 0), int):
                raise Refused(f"not an approval: {given}")
            awx.approvals[entry["id"]] = {**given, "id": entry["id"]}
            return 201, {**awx.approvals[entry["id"]], "url": f"/api/v2/workflow_approval_templates/{entry['id']}/"}
        if name == "workflow_nodes":
            nodes = [
                one for one in awx.tables["workflow_job_template_nodes"].values() if one["workflow_job_template"] == entry["id"]
            ]
            return 200, {
                "count": len(nodes),
                "next": None,
                "results": [awx.shown("workflow_job_template_nodes", one) for one in nodes],
            }
        if name not in SUBLISTS:
            raise KeyError(name)
        table = "notification_templates" if name.startswith("notification") else name
        table = "workflow_job_template_nodes" if name.endswith("_nodes") else table
        linked = awx.links.setdefault((kind, entry["id"], name), [])
        if method == "POST":
            if given.get("disassociate"):
                linked.remove(given["id"])
            else:
                linked.append(awx.tables[table][given["id"]]["id"])
            return 204, None
        return 200, {"count": len(linked), "next": None, "results": [awx.shown(table, awx.tables[table][one]) for one in linked]}


class Server(ThreadingHTTPServer):
    """Serves one Awx on loopback; leave the with block to end it."""

    daemon_threads = True

    def __init__(self, token: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.awx = Awx(token)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Server:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self
