# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A control plane: its state, what its controllers do, and what its admin does.

with Cluster() as cluster:
    token = cluster.token()
    ... a machine joins cluster.endpoint, with cluster.pin ...
    assert cluster.taints("gpu-01") == ["dedicated=ml:NoSchedule"]
    cluster.admin("kubectl taint node gpu-01 dedicated=ml:NoSchedule --overwrite")
"""

from __future__ import annotations

import copy
import hashlib
import hmac
import json
import shlex
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from . import admission, der
from .api import Server
from .authority import Authority, Kept, Made

Object = dict[str, Any]
TOKEN = "abcdef.0123456789abcdef"
UNREADY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
STAMP = "2026-11-30T00:00:00Z"


class Faults:
    """What the control plane does wrong; all of it can be set and taken back while it runs.

    `status` is answered to everything (500); `slow` seconds are waited before each answer; `hang`: no answer comes for
    as long as it is set. `no_registration`: Nodes cannot be created; `no_approval`: certificates are asked for and
    never signed; `no_signature`: cluster-info has no signatures yet; `not_ready`: Nodes do not get ready (no CNI).
    """

    def __init__(self) -> None:
        self.status = 0
        self.slow = 0.0
        self.hang = False
        self.no_registration = False
        self.no_approval = False
        self.no_signature = False
        self.not_ready = False


class Cluster:
    """A control plane of a version. A context manager: it serves from the beginning to the end.

    `host` is the name under which cluster-info has it; a machine may join by another of its names. `nodes` maps a name
    to a Node object, `pods` a namespace and a name to a Pod object; `requests` lists method and path of every request.
    `folder` is one that `export` left: no library for keys is needed then.
    """

    def __init__(
        self, version: str = "1.36.2", host: str = "127.0.0.1", folder: Path | None = None, port: int = 0
    ) -> None:
        self.version = version
        self.host = host
        self.authority: Authority = Kept(folder) if folder else Made()
        self.nodes: dict[str, Object] = {}
        self.pods: dict[tuple[str, str], Object] = {}
        self.tokens: dict[str, str] = {}  # the secret of an id
        self.signed: dict[str, str] = {}  # the certificate, with its key, of a request that was approved
        self.requests: list[str] = []
        self.faults = Faults()
        self.kubelet_config: Object = {"cgroupDriver": "systemd", "failSwapOn": True}
        self.bundle = self.authority.pem  # what cluster-info has: a rotation puts a second one beside
        self.certificates_until: int | None = None  # unix time at which client certificates end that are issued now
        self.clock: Callable[[], float] = time.time
        self.lock = threading.RLock()
        self.serial = 0
        self.port = port
        self._server: Server | None = None
        self.start()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _fault: object, _trace: TracebackType | None) -> None:
        self.stop()

    # -- the server

    def start(self) -> None:
        """Serve, on the port that it had."""
        if self._server is None:
            self._server = Server(self, self.port)
            self.port = self._server.port

    def stop(self) -> None:
        """Refuse connections."""
        if self._server is not None:
            self._server.close()
            self._server = None

    @property
    def endpoint(self) -> str:
        """host:port, as kubeadm takes it."""
        return f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Where it is, by cluster-info."""
        return f"https://{self.endpoint}"

    @property
    def ca(self) -> str:
        """Its authority (PEM)."""
        return self.authority.pem

    @property
    def pin(self) -> str:
        """The SHA-256 of its authority's public key, in hex."""
        return self.authority.pin

    def export(self, folder: Path, nodes: Iterable[str]) -> None:
        """Leave in a folder what a server of this cluster needs where there is no library for keys."""
        assert isinstance(self.authority, Made)
        self.authority.export(folder, nodes)

    # -- tokens and certificates

    def token(self, text: str = TOKEN) -> str:
        """Have a bootstrap token."""
        name, _point, secret = text.partition(".")
        self.tokens[name] = secret
        return text

    def expire(self, text: str = TOKEN) -> None:
        """A token's time is over: its signature goes from cluster-info."""
        self.tokens.pop(text.partition(".")[0], None)

    def issue(self, node: str, not_after: int | None = None) -> str:
        """A client certificate with its key for a kubelet, as it keeps it in kubelet-client-current.pem."""
        return self.authority.client(node, self.certificates_until if not_after is None else not_after)

    def cluster_info(self) -> Object:
        """The public ConfigMap with the kubeconfig that everybody may read, signed with every token."""
        cluster = {"certificate-authority-data": der.encoded(self.bundle), "server": self.url}
        kubeconfig = {"apiVersion": "v1", "clusters": [{"cluster": cluster, "name": ""}], "contexts": None}
        text = json.dumps({**kubeconfig, "current-context": "", "kind": "Config", "users": None})
        data = {"kubeconfig": text}
        if not self.faults.no_signature:
            for name, secret in self.tokens.items():
                data[f"jws-kubeconfig-{name}"] = signature(text, name, secret)
        return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": named("cluster-info", "kube-public"), "data": data}

    def configuration(self, name: str) -> Object:
        """kubeadm-config or kubelet-config."""
        cluster = {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration"}
        kubelet = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", **self.kubelet_config}
        data = {"kubelet": json.dumps(kubelet)}
        if name == "kubeadm-config":
            data = {"ClusterConfiguration": json.dumps({**cluster, "kubernetesVersion": f"v{self.version}"})}
        return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": named(name, "kube-system"), "data": data}

    # -- Nodes and Pods

    def node(self, name: str, labels: dict[str, str] | None = None, ready: bool = True) -> Object:
        """Have a Node, as if a machine of that name had joined before."""
        spec: Object = {"taints": []}
        found = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "labels": labels or {}}, "spec": spec}
        self.put({**found, "status": status(ready)})
        return self.nodes[name]

    def put(self, node: Object) -> Object:
        """Store a Node; the controllers do their part: taints for what is not ready or cordoned."""
        with self.lock:
            self.serial += 1
            stored = copy.deepcopy(node)
            meta, spec = stored["metadata"], stored["spec"]
            old = self.nodes.get(meta["name"])
            meta["uid"] = old["metadata"]["uid"] if old else f"00000000-0000-4000-8000-{self.serial:012d}"
            meta.update(resourceVersion=str(self.serial), creationTimestamp=STAMP)
            meta["labels"] = {key: str(value) for key, value in meta.get("labels", {}).items()}
            taints = [taint for taint in spec.get("taints") or [] if taint not in (UNREADY, CORDONED)]
            ready = is_ready(stored) and not self.faults.not_ready
            if not ready:
                stored.setdefault("status", {})["conditions"] = status(False)["conditions"]
            spec["taints"] = taints + [UNREADY] * (not ready) + [CORDONED] * bool(spec.get("unschedulable"))
            self.nodes[meta["name"]] = stored
            return stored

    def labels(self, name: str) -> dict[str, str]:
        """A Node's labels without those that every kubelet sets."""
        with self.lock:
            found = self.nodes[name]["metadata"]["labels"]
            return {key: value for key, value in sorted(found.items()) if not admission.is_kubernetes(key)}

    def taints(self, name: str) -> list[str]:
        """A Node's taints without those of the controllers, sorted, as kubectl spells them."""
        with self.lock:
            found = self.nodes[name]["spec"].get("taints") or []
            return sorted(spelled(taint) for taint in found if taint not in (UNREADY, CORDONED))

    def pod(self, name: str, node: str, namespace: str = "default", owner: str = "ReplicaSet") -> None:
        """Have a pod on a node; `owner` "" is one that nobody would start again."""
        owners = [{"kind": owner, "name": name, "apiVersion": "apps/v1", "uid": "1", "controller": True}]
        meta = {**named(name, namespace), "uid": f"pod-{name}", "ownerReferences": owners if owner else []}
        if owner == "DaemonSet":
            meta["labels"] = {"pod-template-generation": "1"}
        spec = {"nodeName": node, "containers": [{"name": "main", "image": "example.com/main"}]}
        pod = {"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": spec, "status": {"phase": "Running"}}
        self.pods[(namespace, name)] = pod

    # -- the admin

    def admin(self, line: str) -> str:
        """Run an admin's command, `kubectl taint node ...`, `kubectl delete node ...`, word for word as it was printed.

        Returns what kubectl says; raises ValueError for what kubectl refuses.
        """
        from .admin import run

        with self.lock:
            return run(self, shlex.split(line))

    def delete_node(self, name: str) -> None:
        """As the admin does."""
        self.admin(f"kubectl delete node {name}")


def named(name: str, namespace: str) -> Object:
    """The metadata of an object."""
    return {"name": name, "namespace": namespace, "creationTimestamp": STAMP, "resourceVersion": "1"}


def status(ready: bool) -> Object:
    """A Node's status."""
    condition = {"type": "Ready", "status": "True" if ready else "False", "reason": "KubeletReady"}
    if not ready:
        condition["reason"] = "KubeletNotReady"
    return {"conditions": [condition], "nodeInfo": {"kubeletVersion": "v1.36.2"}}


def is_ready(node: Object) -> bool:
    """Whether its condition says so."""
    conditions = node.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def spelled(taint: Object) -> str:
    """key=value:Effect."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def signature(text: str, name: str, secret: str) -> str:
    """The detached JSON Web Signature (HS256) of cluster-info's kubeconfig by a token."""
    head = _segment(json.dumps({"alg": "HS256", "kid": name}).encode())
    body = f"{head}.{_segment(text.encode())}".encode()
    return f"{head}..{_segment(hmac.new(secret.encode(), body, hashlib.sha256).digest())}"


def _segment(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
