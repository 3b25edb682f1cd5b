# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubeadm join of a worker: preflight, discovery, the kubelet's files and start, its bootstrap."""

from __future__ import annotations

import json
from typing import Any

from . import der, preflight, yaml_text
from .control_plane import signature
from .join_configuration import Join, Wrong, read
from .kubeadm import Said, Stopped, configuration, status
from .wire import Client, Unreached, bootstrap_conf
from .worker import BOOTSTRAP_CONF, CA, CERTIFICATE, CONFIG, FLAGS, INSTANCE_CONFIG, KUBELET_CONF, Worker

Object = dict[str, Any]
CLUSTER_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
CONFIGS = "/api/v1/namespaces/kube-system/configmaps"
REQUEST = 10.0  # seconds that one request waits for its answer
RETRY = 5.0  # seconds between two looks at cluster-info
JOINED = """
This node has joined the cluster:
* Certificate signing request was sent to apiserver and a response was received.
* The Kubelet was informed of the new secure connection details.

Run 'kubectl get nodes' on the control-plane to see this node join the cluster.
"""
CAUSES = """
Unfortunately, an error has occurred{error}{likely}
\t- The kubelet is not running
\t- The kubelet is unhealthy due to a misconfiguration of the node in some way (required cgroups disabled)

If you are on a systemd-powered system, you can try to troubleshoot the error with the following commands:
\t- 'systemctl status kubelet'
\t- 'journalctl -xeu kubelet'
"""
HEALTHZ = "http://127.0.0.1:10248/healthz"


class Found:
    """What discovery found of the cluster."""

    def __init__(self, server: str, ca: str) -> None:
        self.server = server
        self.ca = ca


def join(worker: Worker, given: dict[str, str], said: Said) -> None:
    """`given` are the options; raises Stopped."""
    try:
        asked = read(configuration(worker, given), worker.minor, worker.hostname, strict=False)
    except Wrong as fault:
        raise Stopped(str(fault), status(worker, fault)) from None
    for line in asked.warnings:
        said.warn("common.go:101", line)
    ignored = tuple(filter(None, given.get("ignore-preflight-errors", "").split(",")))
    asked = asked._replace(ignored=(*asked.ignored, *ignored))
    worker.stage("preflight")
    preflight.check(worker, asked, said)
    worker.stage("discovery")
    found = _discover(worker, asked)
    kubelet_config = _configs(worker, asked, found, said)
    worker.stage("kubelet-start")
    _start_kubelet(worker, asked, found, kubelet_config, said)
    worker.stage("kubelet-wait-bootstrap")
    try:
        _wait(worker, asked, said)
    finally:
        worker.remove(BOOTSTRAP_CONF)
    said.out(JOINED.rstrip("\n") + "\n")
    worker.stage("done")


# -- discovery


def _discover(worker: Worker, asked: Join) -> Found:
    phase = "error execution phase preflight: couldn't validate the identity of the API Server"
    server = f"https://{asked.endpoint}"
    timeout = asked.timeouts["discovery"]
    first = _cluster_info(worker, Client(server), asked, timeout)
    name, _point, secret = asked.token.partition(".")
    text = first["kubeconfig"]
    if first[f"jws-kubeconfig-{name}"] != signature(text, name, secret):
        raise Stopped(
            f"{phase}: failed to verify JWS signature of received cluster info object, can't trust this API Server"
        )
    cluster = yaml_text.load(text)["clusters"][0]["cluster"]
    ca = der.decoded(cluster["certificate-authority-data"])
    _check_pins(der.certificates(ca), asked.hashes, phase)
    second = _cluster_info(worker, Client(server, ca), asked, timeout)
    if second["kubeconfig"] != text:
        raise Stopped(
            f"{phase}: the second kubeconfig from the cluster-info ConfigMap (using validated TLS) was different from "
            "the first"
        )
    return Found(cluster["server"], ca)


def _check_pins(certificates: list[bytes], hashes: tuple[str, ...], phase: str) -> None:
    wanted = set()
    for text in hashes:
        kind, _colon, digits = text.partition(":")
        if kind != "sha256":
            raise Stopped(f'{phase}: invalid discovery token CA certificate hash: unknown hash format "{kind}"')
        if len(digits) != 64:
            why = f"expected a 32 byte SHA-256 hash, found {len(digits) // 2} bytes"
            raise Stopped(f'{phase}: invalid discovery token CA certificate hash: invalid hash "{text}", {why}')
        wanted.add(digits.lower())
    pins = [der.pin(one) for one in certificates]
    if wanted and not wanted.intersection(pins):
        named = ", ".join(f'"sha256:{pin}"' for pin in pins)
        raise Stopped(
            f"{phase}: cluster CA found in cluster-info ConfigMap is invalid: none of the public keys {named} are "
            "pinned"
        )


def _cluster_info(worker: Worker, client: Client, asked: Join, timeout: float) -> dict[str, str]:
    """Its data, as soon as it is signed with the token; raises Stopped when the time is over."""
    phase = "error execution phase preflight: couldn't validate the identity of the API Server"
    name = asked.token.partition(".")[0]
    end = worker.clock() + timeout
    while True:
        fault, data = _look(worker, client, name)
        if not fault:
            return data
        if worker.clock() >= end:
            raise Stopped(f"{phase}: {fault}")
        worker.sleep(max(0.0, min(RETRY, end - worker.clock())))


def _look(worker: Worker, client: Client, name: str) -> tuple[str, dict[str, str]]:
    """What is missing ("" when nothing is), and the data."""
    try:
        reply = client.call("GET", CLUSTER_INFO)
    except Unreached as fault:
        if "deadline exceeded" in str(fault):
            worker.sleep(REQUEST - client.timeout)
        url = f"{client.server}{CLUSTER_INFO}?timeout=10s"
        return f'failed to request the cluster-info ConfigMap: Get "{url}": {fault}', {}
    if reply.code != 200:
        return f"failed to request the cluster-info ConfigMap: {reply.message}", {}
    data: dict[str, str] = reply.body["data"]
    missing = f'could not find a JWS signature in the cluster-info ConfigMap for token ID "{name}"'
    return "" if f"jws-kubeconfig-{name}" in data else missing, data


# -- the cluster's configuration


def _configs(worker: Worker, asked: Join, found: Found, said: Said) -> Object:
    """The kubelet's configuration of this cluster; raises Stopped."""
    phase = "error execution phase preflight: unable to fetch the kubeadm-config ConfigMap"
    client = Client(found.server, found.ca, token=asked.token)
    head = '[preflight] Reading configuration from the "kubeadm-config" ConfigMap in namespace "kube-system"...'
    said.out(head)
    said.out("[preflight] Use 'kubeadm init phase upload-config kubeadm --config your-config-file' to re-upload it.")
    cluster = json.loads(_config(client, "kubeadm-config", phase)["ClusterConfiguration"])
    version = str(cluster["kubernetesVersion"])
    least = worker.minor - 1
    if int(version.split(".")[1]) < least:
        raise Stopped(
            f"{phase}: this version of kubeadm only supports deploying clusters with the control plane version >= "
            f"1.{least}.0. Current version: {version}"
        )
    kubelet: Object = json.loads(_config(client, "kubelet-config", phase)["kubelet"])
    proxy = client.call("GET", f"{CONFIGS}/kube-proxy")
    said.warn(
        "configset.go:77",
        f"Warning: No kubeproxy.config.k8s.io/v1alpha1 config is loaded. Continuing without it: {proxy.message}",
    )
    return kubelet


def _config(client: Client, name: str, phase: str) -> Object:
    try:
        reply = client.call("GET", f"{CONFIGS}/{name}")
    except Unreached as fault:
        url = f"{client.server}{CONFIGS}/{name}?timeout=10s"
        raise Stopped(f'{phase}: failed to get config map: Get "{url}": {fault}') from None
    if reply.code != 200:
        raise Stopped(f"{phase}: failed to get config map: {reply.message}")
    data: Object = reply.body["data"]
    return data


# -- the kubelet


def _start_kubelet(worker: Worker, asked: Join, found: Found, config: Object, said: Said) -> None:
    if not worker.exists(BOOTSTRAP_CONF):
        worker.write(BOOTSTRAP_CONF, bootstrap_conf(found.server, found.ca, asked.token), 0o600)
    if not worker.exists(CA):
        worker.write(CA, found.ca)
    try:
        _refuse_ready_node(asked, Client(found.server, found.ca, token=asked.token))
    except Stopped:
        if worker.minor < 33:  # later kubeadm leaves it to the phase that waits, which is not reached
            worker.remove(BOOTSTRAP_CONF)
        raise
    worker.stop_kubelet()
    is_local = worker.minor >= 36
    if is_local:
        said.out(f'[kubelet-start] Writing kubelet configuration to file "{INSTANCE_CONFIG}"')
        worker.write(INSTANCE_CONFIG, yaml_text.dump({**KUBELET, "containerRuntimeEndpoint": asked.socket}), 0o600)
        said.out(
            '[patches] Applied patch of type "application/strategic-merge-patch+json" to target "kubeletconfiguration"'
        )
    said.out(f'[kubelet-start] Writing kubelet configuration to file "{CONFIG}"')
    worker.write(CONFIG, yaml_text.dump({**KUBELET, **config}), 0o644)
    said.out(f'[kubelet-start] Writing kubelet environment file with flags to file "{FLAGS}"')
    worker.write(FLAGS, f'KUBELET_KUBEADM_ARGS="{" ".join(_arguments(worker, asked, is_local))}"\n')
    said.out("[kubelet-start] Starting the kubelet")
    worker.start_kubelet()


KUBELET = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}


def _refuse_ready_node(asked: Join, client: Client) -> None:
    try:
        reply = client.call("GET", f"/api/v1/nodes/{asked.name}")
    except Unreached as fault:
        raise Stopped(f'error execution phase kubelet-start: cannot get Node "{asked.name}": {fault}') from None
    if reply.code not in (200, 404):
        raise Stopped(f'error execution phase kubelet-start: cannot get Node "{asked.name}": {reply.message}')
    conditions = reply.body.get("status", {}).get("conditions", []) if reply.code == 200 else []
    if any(one["type"] == "Ready" and one["status"] == "True" for one in conditions):
        raise Stopped(
            f'error execution phase kubelet-start: a Node with name "{asked.name}" and status "Ready" already exists '
            "in the cluster. You must delete the existing Node or change the name of this new joining Node"
        )


def _arguments(worker: Worker, asked: Join, is_local: bool) -> list[str]:
    found: dict[str, list[str]] = {}
    if not is_local:
        found["container-runtime-endpoint"] = [asked.socket]
    if worker.minor < 34:
        found["pod-infra-container-image"] = ["registry.k8s.io/pause:3.9"]
    if asked.name != worker.hostname.strip().lower():
        found["hostname-override"] = [asked.name]
    if asked.taints:
        found["register-with-taints"] = [",".join(_spelled(taint) for taint in asked.taints)]
    for name, _value in asked.arguments:
        found[name] = []
    for name, value in asked.arguments:
        found[name].append(value)
    return [f"--{name}={value}" for name in sorted(found) for value in found[name]]


def _spelled(taint: Object) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    effect = f":{taint['effect']}" if taint.get("effect") else ""
    return f"{taint['key']}{value}{effect}"


# -- waiting for it


def _wait(worker: Worker, asked: Join, said: Said) -> None:
    phase = f"error execution phase {'kubelet-wait-bootstrap' if worker.minor >= 32 else 'kubelet-start'}"
    limit = asked.timeouts["kubeletHealthCheck"] if asked.api == "v1beta4" else 240.0
    if worker.minor >= 30:
        where = f" at {HEALTHZ}" if worker.minor >= 31 else ""
        said.out(f"[kubelet-check] Waiting for a healthy kubelet{where}. This can take up to {_minutes(limit)}")
    took = _until(worker, limit, worker.is_healthy)
    if took is None:
        _unhealthy(worker, limit, phase, said)
    if worker.minor >= 30:
        said.out("[kubelet-check] The kubelet is healthy after 501.747262ms")
    dots = "" if worker.minor >= 30 else "..."
    said.out(f"[kubelet-start] Waiting for the kubelet to perform the TLS Bootstrap{dots}")
    limit = asked.timeouts["tlsBootstrap"] if asked.api == "v1beta4" else 300.0
    if _until(worker, limit, lambda: worker.exists(KUBELET_CONF) and worker.exists(CERTIFICATE)) is None:
        why = "context deadline exceeded" if worker.minor >= 30 else "timed out waiting for the condition"
        said.out(_causes(worker, why))
        raise Stopped(f"{phase}: {why}")


def _until(worker: Worker, limit: float, is_so: Any) -> float | None:
    """How long it took, None when the time was over."""
    start = worker.clock()
    while not is_so():
        left = start + limit - worker.clock()
        if left <= 0:
            return None
        worker.sleep(min(worker.pace, left))
    return worker.clock() - start


def _unhealthy(worker: Worker, limit: float, phase: str, said: Said) -> None:
    refused = "dial tcp 127.0.0.1:10248: connect: connection refused"
    local = HEALTHZ.replace("127.0.0.1", "localhost")
    if worker.minor < 30:
        said.out("[kubelet-check] Initial timeout of 40s passed.")
        said.out("[kubelet-check] It seems like the kubelet isn't running or healthy.")
        said.out(
            f"[kubelet-check] The HTTP call equal to 'curl -sSL {local}' failed with error: Get \"{local}\": {refused}."
        )
        said.out(_causes(worker, "timed out waiting for the condition"))
        raise Stopped(f"{phase}: timed out waiting for the condition")
    said.out(f"[kubelet-check] The kubelet is not healthy after {_minutes(limit, '.000451179')}")
    call = f"The HTTP call equal to 'curl -sSL {HEALTHZ}' returned error: Get \"{HEALTHZ}\": {refused}"
    said.out(_causes(worker, call))
    waited = "failed while waiting for the kubelet to start: " if worker.minor >= 33 else ""
    raise Stopped(f"{phase}: {waited}{call}\n" if worker.minor >= 33 else f"{phase}: {call}")


def _causes(worker: Worker, why: str) -> str:
    if worker.minor >= 33:
        return CAUSES.format(error=", likely caused by:", likely="")
    return CAUSES.format(error=f":\n\t{why}\n", likely="\nThis error is likely caused by:")


def _minutes(seconds: float, fraction: str = "") -> str:
    """A duration as Go prints it: 1m0s."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}{fraction}s" if minutes else f"{rest}{fraction}s"
