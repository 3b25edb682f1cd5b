# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a kubelet does between its start and its Node's being registered."""

from __future__ import annotations

import base64
from typing import Any

from . import der, yaml_text
from .admission import EFFECTS, is_kubelets, is_kubernetes
from .wire import Access, Client, Reply, Unreached, access, kubelet_conf
from .worker import BOOTSTRAP_CONF, CERTIFICATE, CONFIG, KUBELET, KUBELET_CONF, Worker

Object = dict[str, Any]
CERTIFICATES = f"{KUBELET}/pki"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SYNCED = (  # labels that a kubelet sets on a Node that is there already
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
)
ALLOWED = (
    "beta.kubernetes.io/arch, beta.kubernetes.io/instance-type, beta.kubernetes.io/os, "
    "failure-domain.beta.kubernetes.io/region, failure-domain.beta.kubernetes.io/zone, kubernetes.io/arch, "
    "kubernetes.io/hostname, kubernetes.io/os, node.kubernetes.io/instance-type, topology.kubernetes.io/region, "
    "topology.kubernetes.io/zone"
)


class Died(Exception):
    """The kubelet ended, with this as its last line."""


def start(worker: Worker) -> bool:
    """Start: whether it stays up, with its last words in the log where it does not."""
    worker.is_registered = False
    try:
        _check_flags(worker)
        _check_machine(worker, _config(worker))
        _credentials(worker)
    except Died as fault:
        worker.log(f'"command failed" err="{fault}"')
        return False
    for name in ("kubelet.crt", "kubelet.key"):  # its own serving certificate, signed by itself
        if not worker.exists(f"{CERTIFICATES}/{name}"):
            worker.write(f"{CERTIFICATES}/{name}", "signed by itself\n", 0o600)
    return True


def _check_flags(worker: Worker) -> None:
    flags = worker.flags()
    for taint in filter(None, flags.get("register-with-taints", "").split(",")):
        key, _colon, effect = taint.partition(":")
        if effect not in EFFECTS or not key.partition("=")[0]:
            why = f"invalid taint effect: {effect}, unsupported taint effect"
            raise Died(f'failed to parse kubelet flag: invalid argument "{taint}" for "--register-with-taints": {why}')
    unknown = sorted(key for key in node_labels(flags) if is_kubernetes(key) and not is_kubelets(key))
    if unknown:
        raise Died(
            "failed to validate kubelet flags: unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels:"
            f" [{' '.join(unknown)}]\\n--node-labels in the 'kubernetes.io' namespace must begin with an allowed "
            f"prefix (kubelet.kubernetes.io, node.kubernetes.io) or be in the specifically allowed set ({ALLOWED})"
        )


def _config(worker: Worker) -> Object:
    text = worker.read(CONFIG)
    if text is None:
        why = f'failed to read kubelet config file \\"{CONFIG}\\", error: open {CONFIG}: no such file or directory'
        raise Died(f"failed to load kubelet config file, path: {CONFIG}, error: failed to load Kubelet config: {why}")
    found = yaml_text.load(text)
    return found if isinstance(found, dict) else {}


def _check_machine(worker: Worker, config: Object) -> None:
    if worker.has_swap() and config.get("failSwapOn") is not False:
        raise Died(
            "failed to run Kubelet: running with swap on is not supported, please disable swap or set --fail-swap-on "
            "flag to false"
        )
    if worker.cgroups == 1 and worker.kubelet_minor >= 35 and config.get("failCgroupV1") is not False:
        raise Died("failed to run Kubelet: kubelet is configured to not run on a host using cgroup v1")
    if worker.kubelet_fault:
        raise Died(f"failed to run Kubelet: {worker.kubelet_fault}")
    if worker.cri_fault():
        raise Died(f"failed to run Kubelet: {worker.cri_fault()}")


def _credentials(worker: Worker) -> None:
    """kubelet.conf with a certificate that is alive, else the one that waits for it, by the bootstrap credentials."""
    known = access(worker, KUBELET_CONF)
    if known and _is_alive(worker, known):
        return
    bootstrap = access(worker, BOOTSTRAP_CONF)
    if bootstrap is None:
        raise Died(
            f"failed to run Kubelet: unable to load bootstrap kubeconfig: stat {BOOTSTRAP_CONF}: no such file or "
            "directory"
        )
    worker.write(KUBELET_CONF, kubelet_conf(bootstrap.server, bootstrap.ca, CERTIFICATE), 0o600)


def _is_alive(worker: Worker, known: Access) -> bool:
    found = der.certificates(worker.read(known.certificate) or "")
    return bool(found) and der.not_after(found[0]) > worker.time()


def sync(worker: Worker) -> None:
    """One round of a kubelet that is up: its certificate, its Node, which it registers once after a start."""
    try:
        known = access(worker, KUBELET_CONF)
        if known is None:
            return
        if not _is_alive(worker, known):
            bootstrap = access(worker, BOOTSTRAP_CONF)
            if bootstrap is None or not _request_certificate(worker, bootstrap):
                return
        if worker.is_registered:
            _report(worker, known.client(worker))
        else:
            _register(worker, known.client(worker))
    except Unreached as fault:
        worker.log(f'"Unable to register node with API server" err="{fault}" node="{worker.node_name()}"')


def _request_certificate(worker: Worker, bootstrap: Access) -> bool:
    client = bootstrap.client(worker)
    subject = f"system:node:{worker.node_name()}"
    asked = client.call("POST", REQUESTS, {"kind": "CertificateSigningRequest", "spec": {"subject": subject}})
    pair = asked.body.get("status", {}).get("certificate") if asked.code < 300 else None
    if not pair:
        why = asked.message or "timed out waiting for the condition"
        worker.log(f'"Failed while requesting a signed certificate from the control plane" err="{why}"')
        return False
    dated = f"{CERTIFICATES}/kubelet-client-2026-11-30-00-00-00.pem"
    worker.write(dated, base64.b64decode(pair).decode(), 0o600)
    worker.link(CERTIFICATE, dated)
    return True


def node_labels(flags: dict[str, str]) -> dict[str, str]:
    """What --node-labels says."""
    pairs = (pair.partition("=") for pair in flags.get("node-labels", "").split(",") if pair)
    return {key: value for key, _equals, value in pairs}


def _register(worker: Worker, client: Client) -> None:
    name = worker.node_name()
    node = _node(worker, name)
    asked = client.call("POST", "/api/v1/nodes", node)
    if asked.code == 409:
        seen = client.call("GET", f"/api/v1/nodes/{name}")
        asked = _resync(client, node, seen) if seen.code == 200 else seen
    if asked.code >= 300:
        worker.log(f'"Unable to register node with API server" err="{_quoted(asked.message)}" node="{name}"')
        return
    worker.is_registered = True
    _report(worker, client)


def _report(worker: Worker, client: Client) -> None:
    """Its status; of a Node that is gone it complains, and never makes it again."""
    name = worker.node_name()
    ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    info = {"kubeletVersion": f"v{worker.kubelet_version}", "containerRuntimeVersion": "containerd://1.7.24"}
    body = {"status": {"conditions": ready, "nodeInfo": info}}
    asked = client.call("PATCH", f"/api/v1/nodes/{name}/status", body, "application/strategic-merge-patch+json")
    if asked.code >= 300:
        worker.log(f'"Error updating node status, will retry" err="{_quoted(asked.message)}"')


def _resync(client: Client, node: Object, seen: Reply) -> Reply:
    """A Node that is there keeps its labels and taints, but for the few that are the kubelet's."""
    want = {key: value for key, value in node["metadata"]["labels"].items() if key in SYNCED}
    have = seen.body["metadata"].get("labels", {})
    if all(have.get(key) == value for key, value in want.items()):
        return seen
    body = {"metadata": {"labels": want}}
    return client.call("PATCH", f"/api/v1/nodes/{seen.body['metadata']['name']}", body, "application/merge-patch+json")


def _node(worker: Worker, name: str) -> Object:
    """The Node as a kubelet creates it."""
    flags = worker.flags()
    arch = {
        f"{domain}/{key}": value for domain in ("beta.kubernetes.io", "kubernetes.io") for key, value in OWN.items()
    }
    labels = {**arch, "kubernetes.io/hostname": name, **node_labels(flags)}
    taints = [
        taint for text in filter(None, flags.get("register-with-taints", "").split(",")) for taint in [_taint(text)]
    ]
    spec = {"taints": [*taints, {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}
    return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}, "spec": spec}


OWN = {"arch": "amd64", "os": "linux"}


def _taint(text: str) -> Object:
    rest, _colon, effect = text.partition(":")
    key, _equals, value = rest.partition("=")
    found: dict[str, str | None] = {"key": key, "effect": effect}
    return {**found, "value": value} if value else found


def _quoted(text: str) -> str:
    return text.replace('"', '\\"')
