# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a kubeadm join came to nothing: by what it said, since its exit status tells nothing."""

from __future__ import annotations

import re
from typing import NamedTuple

from .kube_seen import Settings

NOT_PUBLIC = re.compile(r'"cluster-info" (?:is forbidden|not found)|cluster-info ConfigMap: Unauthorized')
PINS = re.compile(r"sha256:[0-9a-fA-F]{64}")
VERSIONS = re.compile(r'(?:control plane version >= *|version: *)"?v?([0-9]+\.[0-9]+(?:\.[0-9]+)?)', re.IGNORECASE)
CHECK = re.compile(r"\[ERROR ([\w.-]+)\]: *(.*?)(?= *\[(?:ERROR|WARNING|preflight)\b|$)")
REQUEST = re.compile(r'\b(?:Get|Post|Put|Patch) "?(https://[^/"\s]+)')
NOISE = re.compile(
    r"(?:error: )?error execution phase [\w-]+: |To see the stack trace of this error execute with --v=5 or higher"
    r"|preflight checks failed|\[preflight\] Some fatal errors occurred:|\[preflight\] If you know .*?`\S*`"
)
TOKEN = "have an admin of the cluster make a new one (kubeadm token create) and run again with it"
LONGEST = 500  # characters of what kubeadm said


class Reason(NamedTuple):
    """Why: a sentence with the next move. `retryable`: it may pass by itself; `token`: no join can succeed with this
    token while it is what it is."""

    message: str
    retryable: bool = True
    token: bool = False


def reason(said: str, want: Settings, node: str, kubelet: str = "") -> Reason:
    """Why the join came to nothing; `said` is what was recorded of it, `kubelet` the end of the kubelet's log."""
    words = said_by_kubeadm(said)
    if not words:
        return Reason("kubeadm join succeeded, and this machine is no member: see journalctl -u kubelet", False)
    for judge in (_discovery, _checks, _cluster, _kubelet):
        found = judge(words, want, node, kubelet)
        if found is not None:
            return found
    return Reason(f"{words}: mend what it names and run again")


def said_by_kubeadm(said: str) -> str:
    """Its own words on one line, of the message of the failed step."""
    if " did not end within " in said:
        return said[said.index(" did not end within ") :].strip()
    if " exited with " in said:
        said = said.partition(" exited with ")[2].partition(": ")[2] or "kubeadm join failed and said nothing"
    words = " ".join(said.split())
    return " ".join(NOISE.sub("", words).split())[-LONGEST:]


# -- by what it failed on


def _discovery(words: str, want: Settings, _node: str, _kubelet: str) -> Reason | None:
    """What is wrong with the token, the pin, or the way to the API server."""
    if "could not find a JWS signature" in words or "it has expired" in words:
        return Reason(f"{want.api_server} does not know the bootstrap token, or it has expired: {TOKEN}")
    if "failed to verify JWS signature" in words:
        why = f"{want.api_server} knows the bootstrap token by its id, and its secret is another: {TOKEN}"
        return Reason(why, retryable=False, token=True)
    if "are pinned" in words:
        theirs = [found.lower() for found in PINS.findall(words) if found.lower() != f"sha256:{want.pin}"]
        has = f", which has {' and '.join(dict.fromkeys(theirs))}" if theirs else ""
        return Reason(
            f"caCertSha256, sha256:{want.pin}, is not the pin of the CA at {want.api_server}{has}: correct apiServer "
            "or caCertSha256, unless somebody else answers there",
            retryable=False,
        )
    if NOT_PUBLIC.search(words):
        return Reason(
            f"{want.api_server} answers, and does not show its cluster-info to machines that have only a token "
            f"({words}): have an admin of the cluster make it public (kubeadm init phase bootstrap-token), and "
            "let the API server take anonymous requests for it"
        )
    if "cluster-info" in words or "couldn't validate the identity of the API Server" in words:
        return Reason(f"{want.api_server} gives no answer to this machine ({words}): see the address and the network")
    if "did not end within" in words:
        return Reason(f"kubeadm join {words}: see that {want.api_server} answers, and run again")
    return None


def _cluster(words: str, want: Settings, node: str, _kubelet: str) -> Reason | None:
    """What the cluster has against it."""
    if "a Node with name" in words and "already exists" in words:
        return Reason(
            f"{want.api_server} has a Node {node} that is Ready: another machine has this name, or this one had it "
            f"until now: give it another host name, or have an admin delete that Node (kubectl delete node {node})",
            retryable=False,
        )
    if "only supports deploying clusters with the control plane version" in words:
        versions = VERSIONS.findall(words)
        seen = f" (it is {versions[-1]})" if versions else ""
        return Reason(
            f"this kubeadm is too new for the cluster at {want.api_server}{seen}: remove kubeadm, kubelet "
            "and kubectl and set kubernetesVersion to the cluster's minor release, or have the cluster upgraded first",
            retryable=False,
        )
    if "Unauthorized" in words or "forbidden" in words:
        return Reason(f"{want.api_server} does not let the bootstrap token join ({words}): {TOKEN}")
    asked = REQUEST.search(words)
    if asked:
        named = "" if asked.group(1) == want.api_server else f", which the cluster-info of {want.api_server} names,"
        return Reason(
            f"{asked.group(1)} gives no answer to this machine ({words}): see that address{named} and the network"
        )
    if "Invalid value" in words or "Required value" in words or "strict decoding" in words or "unmarshal" in words:
        return Reason(f"kubeadm does not take the configuration of the join ({words}): correct the settings", False)
    return None


def _kubelet(words: str, want: Settings, node: str, kubelet: str) -> Reason | None:
    """What kept the kubelet from running, or from its certificate."""
    log = f", and its log ends with: {kubelet}" if kubelet else ""
    if "not healthy" in words or "healthz" in words or "kubelet to start" in words:
        return Reason(f"the kubelet does not start{log or ' (see journalctl -u kubelet)'}: mend that and run again")
    if "TLS" in words or "timed out" in words or "deadline exceeded" in words or "kubelet-wait-bootstrap" in words:
        return Reason(
            f"the kubelet got no certificate from {want.api_server} for the Node {node} in time{log}: have an admin of "
            "the cluster see its requests (kubectl get csr), and run again"
        )
    return None


# -- kubeadm's own checks before it begins

ADVICE = {
    "CRI": "containerd does not answer as a container runtime: see journalctl -u containerd, and that cri is not among "
    "disabled_plugins in /etc/containerd/config.toml",
    "ContainerRuntimeVersion": "this containerd is too old for this kubelet: install containerd 2.0 or later",
    "SystemVerification": "mend the kernel or its cgroups (kubeadm from 1.35 on wants cgroup v2)",
    "KubeletVersion": "install a kubelet of kubeadm's own minor release",  # a join does not hold it to the cluster's
    "Swap": "turn swap off (swapoff -a)",
    "NumCPU": "give the machine more CPUs",
    "Mem": "give the machine more memory",
    "IsPrivilegedUser": "run as root",
}
PASSING = ("Swap", "CRI")  # what another pass of this unit mends


def _checks(words: str, _want: Settings, _node: str, _kubelet: str) -> Reason | None:
    found = CHECK.findall(words)
    if not found:
        if "unknown service runtime.v1.RuntimeService" in words:
            return Reason(f"{ADVICE['CRI']} ({words})")
        return None
    sentences: dict[str, None] = {}
    for name, what in found:
        sentences[f"{name} ({what.strip()}): {_advice(name)}"] = None
    retryable = all(name in PASSING or name.startswith("FileContent") for name, _what in found)
    return Reason(f"kubeadm's checks found {'; '.join(sentences)}", retryable)


def _advice(name: str) -> str:
    if name.startswith(("FileAvailable", "DirAvailable")):
        return "it is of a join that we did not make: kubeadm reset by hand, if nothing here is needed"
    if name.startswith("Port-"):
        return f"stop what listens on port {name[5:]}, which is the kubelet's"
    if name.startswith("FileContent"):
        return "find what sets this kernel parameter back (sysctl --system, /etc/sysctl.d)"
    if name.startswith("FileExisting-"):
        return f"install {name[13:]}"
    if name.startswith("Service-"):
        return f"see systemctl status {name[8:]}"
    return ADVICE.get(name, "mend it")
