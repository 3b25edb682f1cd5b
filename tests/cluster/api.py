# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTPS server of a stand-in control plane: who asks, what they may do, and what is answered."""

from __future__ import annotations

import base64
import copy
import json
import re
import ssl
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from . import admission, der, discovery

if TYPE_CHECKING:
    from .control_plane import Cluster

Object = dict[str, Any]
NO_CHECK_TIME = 0x200000  # of OpenSSL: the server itself looks at the end of a client's certificate, as Go's does
REASONS = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "AlreadyExists"}
REASONS.update({405: "MethodNotAllowed", 415: "UnsupportedMediaType", 422: "Invalid", 500: "InternalError"})
CLUSTER_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
CONFIGS = "/api/v1/namespaces/kube-system/configmaps/"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
NODE = re.compile(r"/api/v1/nodes/([^/]+)(/status)?")
OWNER = re.compile(r"/apis/apps/v1/namespaces/([^/]+)/(\w+)/([^/]+)")
POD = re.compile(r"/api/v1/namespaces/([^/]+)/pods(?:/([^/]+)(/eviction)?)?")


class Asked(NamedTuple):
    """One request. `user` is the name that it is made by, `groups` what that belongs to."""

    method: str
    path: str
    query: dict[str, list[str]]
    body: Any
    kind: str
    user: str
    groups: tuple[str, ...]

    @property
    def node(self) -> str:
        """The node whose kubelet asks; "" for anybody else."""
        return self.user[len("system:node:") :] if "system:nodes" in self.groups else ""

    @property
    def is_bootstrap(self) -> bool:
        """Whether it is made with a bootstrap token."""
        return "system:bootstrappers" in self.groups


class Failed(Exception):
    """The answer is a failure."""

    def __init__(self, code: int, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason or REASONS.get(code, "")


class Server:
    """Serves a cluster until it is closed."""

    def __init__(self, cluster: Cluster, port: int) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as pair:
            pair.write(cluster.authority.serving())
            pair.flush()
            context.load_cert_chain(pair.name)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=cluster.ca)
        context.verify_flags |= NO_CHECK_TIME
        self._http = _Http(("127.0.0.1", port), _handler(cluster))
        self._http.context = context
        self.port = int(self._http.server_address[1])
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Refuse from now on."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    context: ssl.SSLContext

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.settimeout(60)
        try:
            secured = self.context.wrap_socket(request, server_side=True)
        except OSError:
            return  # a client that does not trust us, or went away
        try:
            super().finish_request(secured, client_address)
        except OSError:
            return
        finally:
            secured.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """What fails here fails the test by its answer, not by words in the terminal."""


def _handler(cluster: Cluster) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body are two writes
        wbufsize = -1  # an answer goes in one piece: in two, the second waits for an acknowledgement

        def log_message(self, *_words: Any) -> None:
            """Requests are kept with the cluster."""

        def answer(self) -> None:
            split = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            cluster.requests.append(f"{self.command} {self.path}")
            time.sleep(cluster.faults.slow)
            while cluster.faults.hang:
                time.sleep(0.02)
            try:
                if cluster.faults.status:
                    raise Failed(cluster.faults.status, "an error on the server has prevented the request")
                user, groups = self.asker()
                asked = Asked(
                    self.command,
                    split.path,
                    parse_qs(split.query),
                    json.loads(body) if body else None,
                    self.headers.get("Content-Type") or "",
                    user,
                    groups,
                )
                with cluster.lock:
                    code, found = answered(cluster, asked)
            except Failed as fault:
                code, found = fault.code, failure(fault, split.path)
            except Exception as fault:  # noqa: BLE001 - what is wrong with the stand-in itself must show
                code, found = 500, failure(Failed(500, f"the stand-in failed: {fault!r}"), split.path)
            self.say(code, found)

        def say(self, code: int, found: Any) -> None:
            text = found if isinstance(found, str) else json.dumps(found)
            data = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", "text/plain" if isinstance(found, str) else "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def asker(self) -> tuple[str, tuple[str, ...]]:
            raw = self.connection.getpeercert(binary_form=True)
            if raw:
                if der.not_after(raw) < cluster.clock():
                    raise Failed(401, "Unauthorized")
                return der.common_name(raw), ("system:nodes", "system:authenticated")
            scheme, _blank, token = (self.headers.get("Authorization") or "").partition(" ")
            if scheme == "Bearer":
                name, _point, secret = token.partition(".")
                if cluster.tokens.get(name) != secret:
                    raise Failed(401, "Unauthorized")
                return f"system:bootstrap:{name}", ("system:bootstrappers", "system:authenticated")
            return "system:anonymous", ("system:unauthenticated",)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer  # noqa: N815

    return Handler


def failure(fault: Failed, path: str) -> Object:
    """A failure as an object."""
    match = NODE.fullmatch(path)
    details = {"name": match.group(1), "kind": "nodes"} if match else {}
    found = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": fault.message}
    return {**found, "reason": fault.reason, "details": details, "code": fault.code}


def answered(cluster: Cluster, asked: Asked) -> tuple[int, Any]:
    """The status and the object of an answer; raises Failed."""
    if asked.path in ("/healthz", "/livez", "/readyz"):
        return 200, "ok"
    found = discovery.answer(asked.path, cluster.version)
    if found is not None:
        return 200, found
    if asked.path == CLUSTER_INFO and asked.method == "GET":
        return 200, cluster.cluster_info()
    if asked.user == "system:anonymous":
        raise denied(asked, "get", "nodes" if NODE.fullmatch(asked.path) else asked.path.rpartition("/")[2])
    if asked.path.startswith(CONFIGS):
        return 200, _config(cluster, asked)
    if asked.path.startswith(REQUESTS):
        return _signing(cluster, asked)
    if asked.path == "/api/v1/nodes":
        return _nodes(cluster, asked)
    node = NODE.fullmatch(asked.path)
    if node:
        return _node(cluster, asked, node.group(1))
    owner = OWNER.fullmatch(asked.path)
    if owner:
        namespace, kind, name = owner.groups()
        said = (
            f'{kind}.apps "{name}" is forbidden: User "{asked.user}" cannot get resource "{kind}" in API group "apps"'
        )
        raise Failed(403, f'{said} in the namespace "{namespace}"')
    pod = POD.fullmatch(asked.path)
    if asked.path == "/api/v1/pods" or pod:
        return _pods(cluster, asked, pod)
    raise Failed(404, "the server could not find the requested resource")


def denied(asked: Asked, verb: str, resource: str, name: str = "", why: str = "", group: str = "") -> Failed:
    """403, as the authorizer says it."""
    quoted = f' "{name}"' if name else ""
    said = f'{resource}{quoted} is forbidden: User "{asked.user}" cannot {verb} resource "{resource}" in API group'
    return Failed(403, f'{said} "{group}" at the cluster scope{": " + why if why else ""}')


def _config(cluster: Cluster, asked: Asked) -> Object:
    name = asked.path[len(CONFIGS) :]
    if name in ("kubeadm-config", "kubelet-config"):
        return cluster.configuration(name)
    said = f'configmaps "{name}" is forbidden: User "{asked.user}" cannot get resource "configmaps" in API group ""'
    raise Failed(403, f'{said} in the namespace "kube-system"')


def _signing(cluster: Cluster, asked: Asked) -> tuple[int, Object]:
    """Requests for client certificates: approved at once, as for bootstrap tokens."""
    name = asked.path[len(REQUESTS) + 1 :]
    if asked.method == "POST":
        if not asked.is_bootstrap and not asked.node:
            raise denied(asked, "create", "certificatesigningrequests", group="certificates.k8s.io")
        subject = asked.body["spec"]["subject"]
        cluster.serial += 1
        name = f"node-csr-{cluster.serial}"
        if not cluster.faults.no_approval:
            try:
                cluster.signed[name] = cluster.issue(subject.partition("system:node:")[2])
            except FileNotFoundError:  # no certificate was prepared for this name: it waits for ever
                cluster.signed[name] = ""
    pair = "" if cluster.faults.no_approval else cluster.signed.get(name, "")
    status = {"certificate": base64.b64encode(pair.encode()).decode()} if pair else {}
    return 200, {"kind": "CertificateSigningRequest", "metadata": {"name": name}, "status": status}


def _nodes(cluster: Cluster, asked: Asked) -> tuple[int, Object]:
    if asked.method == "GET":
        fields = asked.query.get("fieldSelector", [""])[0]
        if asked.node and fields == f"metadata.name={asked.node}":
            items = [cluster.nodes[asked.node]] if asked.node in cluster.nodes else []
            return 200, {"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": items}
        why = f"node '{asked.node}' cannot read all nodes, only its own Node object" if asked.node else ""
        raise denied(asked, "list", "nodes", why=why)
    name = asked.body["metadata"]["name"]
    if not asked.node:
        raise denied(asked, "create", "nodes")
    if cluster.faults.no_registration:
        raise Failed(500, f'Internal error occurred: failed calling webhook for nodes "{name}"')
    if name in cluster.nodes:
        raise Failed(409, f'nodes "{name}" already exists')
    _admit(asked, name, None, asked.body)
    return 201, cluster.put(asked.body)


def _node(cluster: Cluster, asked: Asked, name: str) -> tuple[int, Object]:
    verb = {"GET": "get", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}.get(asked.method, "post")
    if asked.node and verb == "get" and name != asked.node:
        why = f"node '{asked.node}' cannot read '{name}', only its own Node object"
        raise denied(asked, verb, "nodes", name, why)
    if verb == "delete" or (asked.is_bootstrap and verb != "get"):
        raise denied(asked, verb, "nodes", name)
    if name not in cluster.nodes:
        raise Failed(404, f'nodes "{name}" not found')
    old = cluster.nodes[name]
    if verb == "get":
        return 200, old
    new = asked.body if verb == "update" else merged(old, asked.body, asked.kind)
    _admit(asked, name, old, new)
    return 200, cluster.put(new)


def _admit(asked: Asked, name: str, old: Object | None, new: Object) -> None:
    if name != asked.node:
        raise Failed(403, f'nodes "{name}" is forbidden: node "{asked.node}" is not allowed to modify node "{name}"')
    why = admission.refusal(asked.node, old, new)
    if why:
        raise Failed(403, f'nodes "{name}" is forbidden: {why}')
    wrong = admission.invalid(new)
    if wrong:
        raise Failed(422, f'Node "{name}" is invalid: {wrong}')


def merged(old: Object, patch: Object, kind: str) -> Object:
    """A merge patch, of either kind, over an object: null removes."""
    if "merge-patch+json" not in kind:
        raise Failed(415, f"the body of the request was in an unknown format - accepted media types include: {kind}")
    found = copy.deepcopy(old)
    _merge(found, patch)
    return found


def _merge(found: Object, patch: Object) -> None:
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, dict) and isinstance(found.get(key), dict):
            _merge(found[key], value)
        else:
            found[key] = copy.deepcopy(value)


def _selected(labels: dict[str, str], selector: str) -> bool:
    """Whether a selector takes these labels: `key`, `!key` and `key=value`, with commas between."""
    for part in filter(None, selector.split(",")):
        key, equals, value = part.lstrip("!").partition("=")
        if part.startswith("!") is (key in labels) or (equals and labels[key] != value):
            return False
    return True


def _pods(cluster: Cluster, asked: Asked, pod: re.Match[str] | None) -> tuple[int, Object]:
    if pod is None or pod.group(2) is None:
        fields = asked.query.get("fieldSelector", [""])[0]
        if not asked.node or f"spec.nodeName={asked.node}" not in fields.split(","):
            why = f"can only list/watch pods with spec.nodeName field selector on node '{asked.node}'"
            raise denied(asked, "list", "pods", why=why)
        selector = asked.query.get("labelSelector", [""])[0]
        mine = [one for one in cluster.pods.values() if one["spec"]["nodeName"] == asked.node]
        if pod is not None:
            mine = [one for one in mine if one["metadata"]["namespace"] == pod.group(1)]
        items = [one for one in mine if _selected(one["metadata"].get("labels", {}), selector)]
        return 200, {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}
    key = (pod.group(1), pod.group(2))
    found = cluster.pods.get(key)
    if found is None or found["spec"]["nodeName"] != asked.node:
        why = f"no relationship found between node '{asked.node}' and this object"
        raise denied(asked, "get", "pods", key[1], why)
    if pod.group(3) or asked.method == "DELETE":
        del cluster.pods[key]
        return 201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return 200, found
