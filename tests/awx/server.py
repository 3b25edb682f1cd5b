# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for AWX's API, served over HTTP: strict where AWX is, and where AWX would be silent about a mistake.

Shapes and refusals are those of AWX's API reference. It runs no job.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple

from .fields import KINDS
from .store import EDGES, Answer, Store

TOKEN = "abcdef.0123456789abcdef"
LOGIN = ("admin", "made-up-password")


class Call(NamedTuple):
    """One request, as it came."""

    method: str
    path: str
    body: Any


class Awx:
    """An AWX, at `url` while a block over it lasts."""

    server: ThreadingHTTPServer
    url: str

    def __init__(self, root: str = "/api/v2") -> None:
        self.store = Store()
        self.root = root
        self.calls: list[Call] = []
        self.forbidden = False  # the account may look, and change nothing
        self.broken: tuple[int, dict[str, str], bytes] | None = None  # what another server in its place answers
        self.certificate = ""  # a file with a key and its certificate; none: plain HTTP
        self.failing = ""  # a word of the path of a POST that ends in an error of the server, once

    def __enter__(self) -> Awx:
        handler = type("Handler", (Handler,), {"awx": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http{'s' if self.certificate else ''}://127.0.0.1:{self.server.server_address[1]}"
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.shutdown()
        self.server.server_close()

    def changes(self) -> list[Call]:
        """The requests that were to change something."""
        return [call for call in self.calls if call.method != "GET"]

    def one(self, kind: str, **fields: Any) -> dict[str, Any]:
        """The only object with these values, as it is kept."""
        rows = [
            row
            for row in self.store.rows[kind].values()
            if all(row.get(name) == value for name, value in fields.items())
        ]
        assert len(rows) == 1, (kind, fields, rows)
        return rows[0]

    def answer(self, call: Call) -> tuple[int, Any]:
        """Status and body of the answer."""
        path, _unused, query = call.path.partition("?")
        words = [word for word in path.removeprefix(self.root).split("/") if word]
        if not path.startswith(f"{self.root}/") or not path.endswith("/") or not words or words[0] not in KINDS:
            raise Answer(404, {"detail": "The requested resource could not be found."})
        if self.failing and self.failing in path and call.method == "POST":
            self.failing = ""
            raise Answer(500, {"error": "A server error has occurred."})
        if self.forbidden and call.method != "GET":
            raise Answer(403, {"detail": "You do not have permission to perform this action."})
        kind = words[0]
        if len(words) == 1:
            return self.listed(kind, query, call)
        number = int(words[1])
        if len(words) == 2:
            return self.single(kind, number, call)
        return self.related(kind, number, words[2], call)

    def listed(self, kind: str, query: str, call: Call) -> tuple[int, Any]:
        """A list, or a new object in it."""
        if kind == "workflow_approval_templates":
            raise Answer(404, {"detail": "The requested resource could not be found."})
        if call.method == "POST":
            return 201, self.store.create(kind, call.body)
        numbers = self.store.matching(kind, query)
        asked = dict(word.partition("=")[::2] for word in query.split("&") if word)
        size = min(int(asked.get("page_size", 25)), 200)
        first = (int(asked.get("page", 1)) - 1) * size
        rows = [self.store.shown(kind, one) for one in numbers[first : first + size]]
        following = f"{call.path}&page=2" if len(numbers) > first + size else None
        return 200, {"count": len(numbers), "next": following, "previous": None, "results": rows}

    def single(self, kind: str, number: int, call: Call) -> tuple[int, Any]:
        """One object."""
        if call.method == "PATCH":
            return 200, self.store.change(kind, number, call.body)
        if call.method == "DELETE":
            self.store.delete(kind, number)
            return 204, None
        return 200, self.store.shown(kind, number)

    def related(self, kind: str, number: int, relation: str, call: Call) -> tuple[int, Any]:
        """What belongs to one object."""
        if relation == "survey_spec" and kind in ("job_templates", "workflow_job_templates"):
            if call.method == "GET":
                return 200, self.store.row(kind, number)["survey"]
            self.store.set_survey(kind, number, call.body)
            return 200, None
        if kind == "projects" and relation in ("update", "playbooks"):
            return self.project(number, relation, call)
        nodes = kind == "workflow_job_template_nodes"
        if call.method == "POST" and nodes and relation == "create_approval_template":
            return 201, self.store.approval(number, call.body)
        if call.method == "POST" and (
            (nodes and relation in EDGES) or (kind == "job_templates" and relation == "credentials")
        ):
            self.store.link(kind, number, relation, call.body)
            return 204, None
        raise Answer(404, {"detail": "The requested resource could not be found."})

    def project(self, number: int, relation: str, call: Call) -> tuple[int, Any]:
        """The playbooks of a project, or one more sync of it."""
        row = self.store.row("projects", number)
        if relation == "playbooks" and call.method == "GET":
            return 200, sorted(self.store.playbooks) if row["status"] == "successful" else []
        if relation == "update" and call.method == "POST":
            self.store.fetch(row)
            return 202, {"project_update": 4712}
        raise Answer(405, {"detail": f'Method "{call.method}" not allowed.'})


class Handler(BaseHTTPRequestHandler):
    """HTTP over it."""

    awx: Awx

    def allowed(self) -> bool:
        """True with the token, or with the login."""
        basic = base64.b64encode(":".join(LOGIN).encode()).decode()
        return self.headers.get("Authorization") in (f"Bearer {TOKEN}", f"Basic {basic}")

    def serve(self) -> None:
        """Answer one request."""
        length = int(self.headers.get("Content-Length") or 0)
        text = self.rfile.read(length)
        status, body = 401, {"detail": "Authentication credentials were not provided."}
        if self.allowed():
            call = Call(self.command, self.path, json.loads(text) if text else None)
            self.awx.calls.append(call)
            try:
                status, body = self.awx.answer(call)
            except Answer as answer:
                status, body = answer.status, answer.body
        data, headers = b"", {}
        if body is not None:
            data, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
        if self.awx.broken:
            status, headers, data = self.awx.broken
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        """A look."""
        self.serve()

    def do_POST(self) -> None:
        """A new object, or a link."""
        self.serve()

    def do_PATCH(self) -> None:
        """A change."""
        self.serve()

    def do_DELETE(self) -> None:
        """A removal."""
        self.serve()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name that http.server gives it
        """Nothing: the calls are kept."""
