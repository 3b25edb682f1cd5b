# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host becomes a worker, stays one and is handed back, by the real playbook on simulated machines.

The cluster is served over HTTPS by the test; kubeadm, kubelet and kubectl are the stand-ins of tests/cluster. The token
is looked for in everything that a run prints and leaves, and in what any process shows while it runs.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.control_plane import Cluster
from tests.sim.kube_profiles import KUBERNETES
from tests.sim.kube_site import HOST, Pass, Site, Watch
from tests.sim.marks import in_namespace
from tests.sim.paths import inside
from tests.sim.test_gpus import digest

pytestmark = in_namespace
newest_core = pytest.mark.newest_core  # what the unit does is not Ansible's doing
FAILED = (2, 8)  # the latter of core 2.16, where a play is ended after a host has failed
ZONE = "topology.kubernetes.io/zone"
TAINT, OTHER = "nvidia.com/gpu=present:NoSchedule", "dedicated=ml:NoSchedule"
FSTAB = "/etc/fstab"
SWAP = "/swap.img none swap sw 0 0\n"
KUBELET_CONF = "/etc/kubernetes/kubelet.conf"
CERTIFICATE = "/var/lib/kubelet/pki/kubelet-client-current.pem"
RECORD = "/var/lib/bcd-hostconfig/k8s-join.json"
OWN = (
    "/etc/apt/sources.list.d/bcd-kubernetes.list",
    "/etc/apt/keyrings/bcd-kubernetes.asc",
    "/etc/modules-load.d/90-bcd-k8s.conf",
    "/etc/sysctl.d/90-bcd-k8s.conf",
    "/etc/containerd/conf.d/99-zz-bcd.toml",
)
Opener = Callable[..., Site]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(version="1.32.3") as served:
        yield served


@pytest.fixture
def site(tmp_path: Path, cluster: Cluster) -> Opener:
    return lambda profile, **machine: Site(tmp_path, cluster, profile, **machine)


def state(site: Site, unit: str) -> list[str]:
    """Whether a service runs and is enabled."""
    return [site.host.run("systemctl", verb, unit).stdout.strip() for verb in ("is-active", "is-enabled")]


def is_quiet(site: Site, units: dict[str, Any], **variables: Any) -> Pass:
    """A pass that costs one task, looks nothing up and changes nothing."""
    looked = site.lookups()
    site.host.forget_calls()
    again = site.converge(units, **variables)
    assert (again.rc, again.recap, site.host.changes(), site.lookups()) == (0, {"ok": 1}, [], looked), again.text
    return again


@newest_core
def test_a_bare_host_becomes_a_worker_stays_one_and_is_handed_back(site: Opener, cluster: Cluster) -> None:
    one = site("worker-bare")
    one.host.write(FSTAB, (one.host.read(FSTAB) or "") + SWAP)
    one.host.write("/swap.img", "", 0o600)
    one.host.run("swapon", "/swap.img")
    fstab, swaps = one.host.read(FSTAB), one.host.read("/proc/swaps")
    assert "/swap.img" in (swaps or "")
    more = {"bcd_converge_node_id": "node_7", "bcd_converge_site": "berlin"}
    asked = one.settings(kubernetesVersion="1.32", labels={ZONE: "b1"}, taints=[TAINT])
    units: dict[str, Any] = {"k8s-join": asked}

    # On paper, without a token: all of it up to the join, and what is known only behind it.
    before = digest(one.host)
    planned = one.converge(units, "--check", "--diff", **more)
    assert (planned.rc, planned.recap, one.lookups()) == (0, {"ok": 1, "changed": 1}, 0), planned.text
    assert digest(one.host) == before
    assert f"join {cluster.url} as {HOST}" in planned.steps
    assert "/swap.img" in " ".join(planned.steps)
    assert planned.whole["secrets_needed"] == ["kubernetes/join-token"]
    assert cluster.requests == []

    # The pass. The token is looked up once.
    first = one.converge(units, **more)
    assert (first.rc, first.unit["state"], one.lookups()) == (0, "converged", 1), first.text
    assert cluster.labels(HOST) == {"bcd.dev/node-id": "node_7", "bcd.dev/site": "berlin"}
    assert cluster.nodes[HOST]["metadata"]["labels"][ZONE] == "b1"
    assert cluster.taints(HOST) == [TAINT]
    assert state(one, "kubelet") == state(one, "containerd") == ["active", "enabled"]
    assert one.host.run("apt-mark", "showhold").stdout.split() == sorted(KUBERNETES)
    assert "SystemdCgroup = true" in one.host.run("containerd", "config", "dump").stdout
    assert len((one.host.read("/proc/swaps") or "").splitlines()) == 1
    for name in ("bridge/bridge-nf-call-iptables", "ipv4/ip_forward"):
        assert one.host.read(f"/proc/sys/net/{name}") == "1\n"
    is_quiet(one, units, **more)

    # A boot: all is there again, with nothing to do.
    one.host.reboot()
    assert len((one.host.read("/proc/swaps") or "").splitlines()) == 1
    assert one.host.read("/proc/sys/net/bridge/bridge-nf-call-ip6tables") == "1\n"
    assert state(one, "kubelet") == ["active", "enabled"]
    is_quiet(one, units, **more)

    _is_kept(one, cluster, units, more)
    _taints_drift(one, cluster, units, more)
    _is_handed_back(one, fstab, swaps)


def _is_kept(one: Site, cluster: Cluster, units: dict[str, Any], more: dict[str, str]) -> None:
    """Labels that somebody changed and a kubelet that somebody stopped come back; a label of others stays."""
    labels = cluster.nodes[HOST]["metadata"]["labels"]
    labels.update({ZONE: "elsewhere", "bcd.dev/site": "nowhere", "example.com/mine": "yes"})
    one.host.run("systemctl", "disable", "--now", "kubelet")
    repaired = one.converge(units, **more)
    assert (repaired.rc, repaired.unit["state"], one.lookups()) == (0, "converged", 1), repaired.text
    labels = cluster.nodes[HOST]["metadata"]["labels"]
    assert (labels[ZONE], labels["bcd.dev/site"], labels["example.com/mine"]) == ("b1", "berlin", "yes")
    assert state(one, "kubelet") == ["active", "enabled"]

    # Another value of a label that a kubelet sets on the Node whenever it starts.
    moved = {"k8s-join": {**units["k8s-join"], "labels": {ZONE: "b2"}}}
    assert one.converge(moved, **more).unit["state"] == "converged"
    assert cluster.nodes[HOST]["metadata"]["labels"][ZONE] == "b2"
    assert one.converge(units, **more).unit["state"] == "converged"
    assert cluster.nodes[HOST]["metadata"]["labels"][ZONE] == "b1"

    # A certificate that has ended is reported, with what an administrator does; nothing joins anew.
    current = inside(one.host.tree, CERTIFICATE)[len(one.host.tree) :]  # where the link leads
    alive, before = one.host.read(current), len(one.host.calls("kubeadm"))
    one.host.write(current, cluster.issue(HOST, int(time.time()) - 3600), 0o600)
    ended = one.converge(units, **more)
    assert (ended.rc, one.lookups()) == (2, 1), ended.text
    assert "certificate" in ended.unit["msg"]
    assert not [call for call in one.host.calls("kubeadm")[before:] if "join" in call]
    one.host.write(current, alive or "", 0o600)
    is_quiet(one, units, **more)


def _taints_drift(one: Site, cluster: Cluster, units: dict[str, Any], more: dict[str, str]) -> None:
    """Other taints than the Node was registered with: the command that the condition has makes them so."""
    changed = {"k8s-join": {**units["k8s-join"], "taints": [OTHER]}}
    drifted = one.converge(changed, **more)
    [condition] = drifted.unit["conditions"]
    assert (drifted.rc, drifted.unit["state"], condition["type"]) == (0, "converged", "KubernetesTaintsDrift")
    assert (condition["reason"], cluster.taints(HOST)) == ("NodeRestriction", [TAINT])
    [command] = re.findall(r"kubectl taint node .* --overwrite", condition["message"])
    cluster.admin(command)
    assert cluster.taints(HOST) == [OTHER]
    after = one.converge(changed, **more)
    assert (after.rc, after.unit["conditions"]) == (0, []), after.text
    is_quiet(one, changed, **more)


def _is_handed_back(one: Site, fstab: str | None, swaps: str | None) -> None:
    """The unit leaves the section: what was there before is there again, and what stays is said."""
    handed = one.converge({})
    assert (handed.rc, one.lookups()) == (0, 1), handed.text
    assert f"kubectl delete node {HOST}" in " ".join(handed.unit["notes"])
    for path in (KUBELET_CONF, RECORD, *OWN):
        assert one.host.read(path) is None, path
    assert (one.host.read(FSTAB), one.host.read("/proc/swaps")) == (fstab, swaps)
    assert state(one, "kubelet") == ["inactive", "disabled"]
    assert one.host.run("apt-mark", "showhold").stdout == ""
    assert one.host.run("kubeadm", "version", "-o", "short").stdout == "v1.32.3\n"
    one.host.forget_calls()
    again = one.converge({})
    assert (again.rc, again.recap, one.host.changes()) == (0, {"ok": 1}, []), again.text


@newest_core  # what the oldest would print of it is looked at in test_role_secrets.py
def test_a_token_is_shown_by_nothing_whatever_becomes_of_the_join(site: Opener, cluster: Cluster) -> None:
    one = site("worker", packages=("containerd", *(f"{name}=1.32.3-1.1" for name in KUBERNETES)))
    units = {"k8s-join": one.settings()}
    parts = (one.token, one.token.rpartition(".")[2])

    def shown(ran: Pass) -> list[str]:
        one.host.fault()  # the order for a fault has the token where kubeadm is to say it
        return one.traces() + ["the output" for part in parts if part in ran.text]

    # kubeadm says it, in the words in which it finds a token invalid.
    said = f'discovery.bootstrapToken.token: Invalid value: "{one.token}": the bootstrap token is invalid'
    fault = {"program": "kubeadm", "arguments": "join --config", "do": "fail", "rc": 3, "err": f"error: {said}\n"}
    one.host.fault(fault)
    echoed = one.converge(units, "-vvvv", "--diff")
    assert (echoed.rc in FAILED, shown(echoed)) == (True, []), echoed.text
    assert "the bootstrap token is invalid" in echoed.text

    # Nobody has it any more: bounded in time, and a new one helps.
    cluster.expire(one.token)
    expired = one.converge(units, "-vvvv", "--diff")
    assert (expired.rc in FAILED, shown(expired)) == (True, []), expired.text
    assert "kubeadm token create" in expired.unit["msg"]
    assert cluster.nodes == {}

    # The pass is killed before kubeadm and behind it, before anything is recorded.
    cluster.token(one.token)
    for when in ("before", "after"):
        one.host.fault({"path": "sh -c *kubeadm*", "do": "kill", "when": when})
        killed = one.converge(units, "-vvvv", "--diff")
        assert (killed.rc in FAILED, shown(killed)) == (True, []), killed.text
    assert list(cluster.nodes) == [HOST]

    # It joins, before the eyes of whoever looks at processes.
    one.host.run("systemctl", "stop", "kubelet")
    with Watch(one) as watch:
        joined = one.converge(units, "-vvvv", "--diff")
    assert (joined.rc, joined.unit["state"], shown(joined)) == (0, "converged", []), joined.text
    assert watch.told == set()


@newest_core
def test_a_worker_with_gpus_says_which_and_waits_to_be_handed_back_while_one_is_held(
    site: Opener, cluster: Cluster
) -> None:
    one = site("worker-h100")
    cluster.version = "1.36.2"
    with one.host.gpus() as gpus:
        uuid = gpus.cards[0].uuid
    units = {"k8s-join": one.settings()}
    first = one.converge(units)
    assert (first.rc, first.unit["state"]) == (0, "converged"), first.text
    assert cluster.labels(HOST) == {
        "bcd.dev/gpu.count": "2",
        "bcd.dev/gpu.driver": "580.105.08",
        "bcd.dev/gpu.product": "NVIDIA-H100-80GB-HBM3",
    }
    devices = [{"id": uuid, "device_class": "gpu"}]
    held = {"bcd_devices_assignments": [{"allocation_id": "a1", "binding": "BINDING_HOLD", "devices": devices}]}
    assert one.converge(units, **held).rc == 0
    waits = one.converge({}, **held)
    assert (waits.rc, [wait["reason"] for wait in waits.unit["pending"]]) == (0, ["Busy"]), waits.text
    assert "a1" in waits.unit["pending"][0]["message"]
    assert one.host.read(KUBELET_CONF)
    # It is released behind the host's configuration, so the pass after that hands the host back.
    assert one.converge({}, bcd_devices_assignments=[]).rc == 0
    handed = one.converge({}, bcd_devices_assignments=[])
    assert (handed.rc, one.host.read(KUBELET_CONF), one.lookups()) == (0, None, 1), handed.text


@newest_core
def test_a_bare_host_of_the_red_hat_family_becomes_a_worker(site: Opener, cluster: Cluster) -> None:
    one = site("worker-el9")
    units = {"k8s-join": one.settings(kubernetesVersion="1.32.2", taints=[TAINT])}
    first = one.converge(units)
    assert (first.rc, first.unit["state"], cluster.taints(HOST)) == (0, "converged", [TAINT]), first.text
    assert one.host.run("kubelet", "--version").stdout == "Kubernetes v1.32.2\n"
    is_quiet(one, units)
