# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a join came to nothing: what kubeadm of several versions says, and the answer to it."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.join_faults import Reason, reason, said_by_kubeadm
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import Settings

PIN, THEIRS = "ab" * 32, "cd" * 32
SERVER = "https://10.0.0.1:6443"
WANT = Settings(SERVER, "10.0.0.1:6443", PIN)
IDENTITY = "error execution phase preflight: couldn't validate the identity of the API Server: "
STACK = "\nTo see the stack trace of this error execute with --v=5 or higher\n"
HINT = "[preflight] If you know what you are doing, you can make a check non-fatal with `--ignore-preflight-errors=...`"
REFUSED = 'Get "http://127.0.0.1:10248/healthz": dial tcp 127.0.0.1:10248: connect: connection refused'
CGROUP = 'failed to get unified mountpoint: cannot get a cgroupfs mount point from "/proc/mounts"'


def step_failed(said: str) -> str:
    """What a failed step says: the command line has several lines."""
    return f"cannot join {SERVER} as gpu-01: sh -c umask 077\ncat kubeadm-join /x.yaml exited with 1: {said}"


def judged(said: str, kubelet: str = "") -> Reason:
    return reason(step_failed(said), WANT, "gpu-01", kubelet)


def checks(*errors: str, newest: bool = True) -> str:
    lines = "\n".join(f"\t[ERROR {error}" for error in errors)
    if newest:
        return f"{lines}\nerror: error execution phase preflight: preflight checks failed"
    return f"error execution phase preflight: [preflight] Some fatal errors occurred:\n{lines}\n{HINT}{STACK}"


NO_JWS = IDENTITY + 'could not find a JWS signature in the cluster-info ConfigMap for token ID "abcdef"'
OLD_JWS = IDENTITY + 'token id "abcdef" is invalid for this cluster or it has expired. Use "kubeadm token create"'
SECRET = IDENTITY + "failed to verify JWS signature of received cluster info object, can't trust this API Server"
UNPINNED = IDENTITY + (
    f'cluster CA found in cluster-info ConfigMap is invalid: none of the public keys "sha256:{THEIRS}" are pinned'
)
UNREACHED = IDENTITY + (
    'failed to request the cluster-info ConfigMap: Get "https://10.0.0.1:6443/api/v1/namespaces/kube-public/configmaps/'
    'cluster-info?timeout=10s": dial tcp 10.0.0.1:6443: connect: connection refused'
)
READY = (
    'error execution phase kubelet-start: a Node with name "gpu-01" and status "Ready" already exists in the cluster. '
    "You must delete the existing Node or change the name of this new joining Node"
)
SKEW = (
    "error execution phase preflight: unable to fetch the kubeadm-config ConfigMap: this version of kubeadm only "
    "supports deploying clusters with the control plane version >= 1.35.0. Current version: v1.30.2"
)
# cluster-info names another address than the one that the machine joins by.
UNROUTED = (
    "error execution phase preflight: unable to fetch the kubeadm-config ConfigMap: failed to get config map: Get "
    '"https://10.77.0.1:6443/api/v1/namespaces/kube-system/configmaps/kubeadm-config?timeout=10s": context deadline '
    "exceeded (Client.Timeout exceeded while awaiting headers)"
)
NO_NODE = (
    'error execution phase kubelet-start: cannot get Node "gpu-01": Get "https://10.77.0.1:6443/api/v1/nodes/gpu-01?'
    'timeout=10s": dial tcp 10.77.0.1:6443: i/o timeout'
)
UNHEALTHY_36 = (
    "[kubelet-check] The kubelet is not healthy after 1m0.000451179s\nerror: error execution phase kubelet-wait-"
    f"bootstrap: failed while waiting for the kubelet to start: The HTTP call equal to 'curl' returned error: {REFUSED}"
)
UNHEALTHY_28 = (
    "[kubelet-check] The HTTP call equal to 'curl -sSL http://localhost:10248/healthz' failed with error: Get "
    "http://localhost:10248/healthz: connection refused.\nerror execution phase kubelet-start: timed out waiting for "
    "the condition"
)
CRI = (
    "CRI]: could not connect to the container runtime: failed to create new CRI runtime service: validate service "
    'connection: validate CRI v1 runtime API for endpoint "unix:///run/containerd/containerd.sock": rpc error: code = '
    "Unimplemented desc = unknown service runtime.v1.RuntimeService"
)


@pytest.mark.parametrize(
    ("said", "retryable", "words"),
    [
        (NO_JWS, True, ("does not know the bootstrap token", "kubeadm token create")),
        (OLD_JWS, True, ("it has expired", "kubeadm token create")),
        (SECRET, False, ("its secret is another", "kubeadm token create")),
        (UNPINNED, False, (f"sha256:{PIN}", f"sha256:{THEIRS}", "caCertSha256")),
        (UNREACHED, True, (SERVER, "connection refused", "network")),
        (UNREACHED.replace("connect: connection refused", "i/o timeout"), True, ("i/o timeout",)),
        *(
            (f"{IDENTITY}failed to request the cluster-info ConfigMap: {why}", True, ("does not show", "anonymous"))
            for why in (
                'configmaps "cluster-info" is forbidden: User "system:anonymous" cannot get resource "configmaps"',
                'configmaps "cluster-info" not found',
                "Unauthorized",
            )
        ),
        (
            IDENTITY + "failed to request the cluster-info ConfigMap: x509: certificate is valid for 10.96.0.1",
            True,
            ("x509: certificate is valid for 10.96.0.1",),
        ),
        (READY, False, ("a Node gpu-01 that is Ready", "kubectl delete node gpu-01", "host name")),
        (SKEW, False, ("too new for the cluster", "v1.30.2"[1:], "remove kubeadm", "kubernetesVersion")),
        (
            checks(
                'KubeletVersion]: Kubelet version "1.27.9" is lower than kubeadm can support. Please upgrade kubelet'
            ),
            False,
            ('Kubelet version "1.27.9" is lower', "kubelet of kubeadm's own minor release"),
        ),
        (
            checks("KubeletVersion]: couldn't get kubelet version: exit status 1"),
            False,
            ("couldn't get kubelet version",),
        ),
        (
            checks("DirAvailable--etc-kubernetes-manifests]: /etc/kubernetes/manifests is not empty", newest=False),
            False,
            ("/etc/kubernetes/manifests is not empty", "a join that we did not make", "kubeadm reset"),
        ),
        (
            UNROUTED,
            True,
            ("https://10.77.0.1:6443 gives no answer", "Client.Timeout exceeded", f"{SERVER} names", "network"),
        ),
        (NO_NODE, True, ("https://10.77.0.1:6443 gives no answer", "i/o timeout")),
        (UNHEALTHY_36, True, ("the kubelet does not start", "journalctl -u kubelet")),
        (UNHEALTHY_28, True, ("the kubelet does not start",)),
        (
            "error execution phase kubelet-wait-bootstrap: context deadline exceeded",
            True,
            ("got no certificate", "kubectl get csr"),
        ),
        ("error execution phase kubelet-start: timed out waiting for the condition", True, ("kubectl get csr",)),
        (checks(CRI), True, ("CRI", "unknown service runtime.v1.RuntimeService", "disabled_plugins")),
        (checks("ContainerRuntimeVersion]: you must update"), False, ("install containerd 2.0",)),
        (checks(f"SystemVerification]: {CGROUP}"), False, ("SystemVerification", CGROUP, "cgroup v2")),
        (
            checks(
                "FileAvailable--etc-kubernetes-pki-ca.crt]: /etc/kubernetes/pki/ca.crt already exists", newest=False
            ),
            False,
            ("/etc/kubernetes/pki/ca.crt already exists", "kubeadm reset"),
        ),
        (checks("Port-10250]: Port 10250 is in use", newest=False), False, ("stop what listens on port 10250",)),
        (
            checks(
                "FileContent--proc-sys-net-ipv4-ip_forward]: /proc/sys/net/ipv4/ip_forward contents are not set to 1"
            ),
            True,
            ("ip_forward contents are not set to 1", "sets this kernel parameter back"),
        ),
        (checks("FileExisting-conntrack]: conntrack not found in system path"), False, ("install conntrack",)),
        (checks("Swap]: running with swap on is not supported. Please disable swap"), True, ("swapoff",)),
        (
            'discovery.bootstrapToken.token: Invalid value: "***": the bootstrap token is invalid',
            False,
            ("does not take the configuration",),
        ),
        (
            (
                "error execution phase preflight: unable to fetch the kubeadm-config ConfigMap: failed to "
                "get config map: Unauthorized"
            ),
            True,
            ("Unauthorized", "kubeadm token create"),
        ),
        ("error execution phase x: the moon is in the way", True, ("the moon is in the way", "run again")),
    ],
)
def test_each_has_its_answer(said: str, retryable: bool, words: tuple[str, ...]) -> None:
    found = judged(said + STACK)
    assert found.retryable is retryable
    assert [word for word in words if word not in found.message] == []
    assert "\n" not in found.message
    assert "stack trace" not in found.message
    assert "sh -c" not in found.message
    assert found.token is (said == SECRET)


def test_every_check_that_failed_is_told() -> None:
    found = judged(checks("Port-10250]: Port 10250 is in use", f"SystemVerification]: {CGROUP}", newest=False))
    assert "Port 10250 is in use" in found.message
    assert CGROUP in found.message
    assert HINT not in found.message
    assert not found.retryable


def test_what_the_kubelet_said_is_in_it() -> None:
    found = judged(UNHEALTHY_36, 'unknown "kubernetes.io" or "k8s.io" labels specified with --node-labels')
    assert "and its log ends with: unknown" in found.message
    assert "see journalctl" not in found.message


def test_a_join_that_hangs_is_told_with_its_time() -> None:
    found = reason("sh -c x kubeadm-join /x did not end within 540 seconds: see what it waits for", WANT, "gpu-01")
    assert found.retryable
    assert f"did not end within 540 seconds: see what it waits for: see that {SERVER}" in found.message


def test_a_success_without_a_membership_is_one_too() -> None:
    assert not reason("", WANT, "gpu-01").retryable


def test_a_message_may_hold_several_colons() -> None:
    assert said_by_kubeadm(step_failed("error: error execution phase preflight: a: b: c")) == "a: b: c"
