# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTPS as the Go programs do it, with their words for what goes wrong; and kubeconfig files."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import tempfile
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from . import der, yaml_text
from .worker import Worker

Object = dict[str, Any]
PATIENCE = 2.0  # seconds for one answer; what the programs wait for longer is waited for on the worker's clock


class Unreached(Exception):
    """No answer came; the text is Go's."""


class Reply(NamedTuple):
    """An answer: the status, and its object."""

    code: int
    body: Any

    @property
    def message(self) -> str:
        """What a failure says."""
        return str(self.body.get("message", "")) if isinstance(self.body, dict) else str(self.body)

    @property
    def reason(self) -> str:
        """The one word of a failure."""
        return str(self.body.get("reason", "")) if isinstance(self.body, dict) else ""


class Client(NamedTuple):
    """How a server is spoken to. `ca` "" trusts anybody; `pair` is our certificate with its key (PEM)."""

    server: str
    ca: str = ""
    pair: str = ""
    token: str = ""
    timeout: float = PATIENCE

    def call(self, method: str, path: str, body: Object | None = None, kind: str = "application/json") -> Reply:
        """One request; raises Unreached."""
        split = urlsplit(self.server)
        port = split.port or 443
        host = split.hostname or ""
        headers = {"Content-Type": kind, "Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            connection = http.client.HTTPSConnection(host, port, timeout=self.timeout, context=self._context())
            try:
                connection.request(method, path, None if body is None else json.dumps(body), headers)
                answer = connection.getresponse()
                text = answer.read().decode()
                is_json = (answer.getheader("Content-Type") or "").startswith("application/json")
                return Reply(answer.status, json.loads(text) if is_json else text)
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as fault:
            raise Unreached(said(fault, f"{host}:{port}")) from None

    def _context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self.ca:
            context.load_verify_locations(cadata=self.ca)
        else:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.pair:
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as pair:
                pair.write(self.pair)
                pair.flush()
                context.load_cert_chain(pair.name)
        return context


def said(fault: BaseException, address: str) -> str:
    """Go's words for a fault of the network."""
    if isinstance(fault, ssl.SSLCertVerificationError):
        if fault.verify_code == 62 or "doesn't match" in fault.verify_message or "mismatch" in fault.verify_message:
            return f"tls: failed to verify certificate: x509: certificate is not valid for {address.rpartition(':')[0]}"
        return "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    if isinstance(fault, (socket.timeout, TimeoutError)):
        return "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    if isinstance(fault, ConnectionRefusedError):
        return f"dial tcp {address}: connect: connection refused"
    if isinstance(fault, socket.gaierror):
        return f"dial tcp: lookup {address.rpartition(':')[0]}: no such host"
    return f"read tcp {address}: connection reset by peer" if isinstance(fault, OSError) else "EOF"


class Access(NamedTuple):
    """What a kubeconfig says of its current context."""

    server: str
    ca: str
    token: str = ""
    certificate: str = ""  # a file

    def client(self, worker: Worker, timeout: float = PATIENCE) -> Client:
        """How the server is spoken to with it."""
        pair = worker.read(self.certificate) or "" if self.certificate else ""
        return Client(self.server, self.ca, pair, self.token, timeout)


def access(worker: Worker, path: str) -> Access | None:
    """A kubeconfig file, None when it is absent."""
    text = worker.read(path)
    if text is None:
        return None
    config = yaml_text.load(text)
    context = next(one["context"] for one in config["contexts"] if one["name"] == config["current-context"])
    cluster = next(one["cluster"] for one in config["clusters"] if one["name"] == context["cluster"])
    user = next(one["user"] for one in config["users"] if one["name"] == context["user"])
    return Access(
        cluster["server"],
        der.decoded(cluster["certificate-authority-data"]),
        user.get("token") or "",
        user.get("client-certificate") or "",
    )


def bootstrap_conf(server: str, ca: str, token: str) -> str:
    """bootstrap-kubelet.conf, as kubeadm writes it: the token is in it."""
    return _kubeconfig(server, ca, "kubernetes", "tls-bootstrap-token-user", f"    token: {token}\n", namespace=False)


def kubelet_conf(server: str, ca: str, certificate: str) -> str:
    """kubelet.conf, as the kubelet writes it."""
    user = f"    client-certificate: {certificate}\n    client-key: {certificate}\n"
    return _kubeconfig(server, ca, "default-cluster", "default-auth", user, namespace=True)


def _kubeconfig(server: str, ca: str, cluster: str, user: str, credentials: str, namespace: bool) -> str:
    context = "default-context" if namespace else f"{user}@{cluster}"
    return (
        "apiVersion: v1\nclusters:\n- cluster:\n"
        f"    certificate-authority-data: {der.encoded(ca)}\n    server: {server}\n  name: {cluster}\n"
        f"contexts:\n- context:\n    cluster: {cluster}\n{'    namespace: default' + chr(10) if namespace else ''}"
        f"    user: {user}\n  name: {context}\ncurrent-context: {context}\nkind: Config\n"
        f"{'' if namespace else 'preferences: {}' + chr(10)}users:\n- name: {user}\n  user:\n{credentials}"
    )
