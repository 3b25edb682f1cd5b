# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real machine becomes a worker, through a pass that is killed, stays one, and is handed back.

Real are apt and its signed repository, the kernel, swap, systemd, containerd 1.7 and kubectl; kubeadm, kubelet and the
control plane are those of tests/cluster. One story, in the order of its tests; what a boot does to a worker's swap and
kernel is in test_swap.py.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from typing import Any

import kube
import pytest
from labvm import kubernetes, recipe
from labvm.machine import Machine
from play import Pass, Stage
from seen import Eyes

NODE = recipe.HOSTNAME
ZONE = "topology.kubernetes.io/zone"
TAINT, OTHER = "nvidia.com/gpu=present:NoSchedule", "dedicated=ml:NoSchedule"
KUBELET_CONF = "/etc/kubernetes/kubelet.conf"
RECORD, JOIN_FILE = "/var/lib/bcd-hostconfig/k8s-join.json", "/var/lib/bcd-hostconfig/k8s-join.yaml"
OWN = (
    "/etc/apt/sources.list.d/bcd-kubernetes.list",
    "/etc/apt/keyrings/bcd-kubernetes.asc",
    "/etc/modules-load.d/90-bcd-k8s.conf",
    "/etc/sysctl.d/90-bcd-k8s.conf",
    "/etc/containerd/conf.d/99-zz-bcd.toml",
)
SYSCTLS = ("net.bridge.bridge-nf-call-iptables", "net.bridge.bridge-nf-call-ip6tables", "net.ipv4.ip_forward")
SWAP = "dd if=/dev/zero of=/swap.img bs=1M count=32 status=none; chmod 600 /swap.img; mkswap -q /swap.img"


class Story:
    """What the tests of this module hand on."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.machine = stage, stage.machine
        self.eyes = Eyes(stage.machine)
        self.token = f"{secrets.token_hex(3)}.{secrets.token_hex(8)}"
        self.calls, vault = stage.scratch / "lookups", stage.scratch / "token"
        vault.write_text(self.token, encoding="utf-8")
        self.lookup = f"{{{{ lookup('ansible.builtin.pipe', 'echo $0 >>{self.calls}; cat {vault}') }}}}"
        kube.offer(self.machine)
        kube.raise_cluster(self.machine, NODE)
        url, pin = kube.ask(self.machine, "url"), kube.ask(self.machine, "pin")
        kube.ask(self.machine, "token", self.token)
        kube.allow(self.machine, url, pin)
        kube.watch(self.machine, self.token)
        self.machine.ssh(f"{SWAP} && echo '/swap.img none swap sw 0 0' >>/etc/fstab && swapon /swap.img")
        self.fstab = self.eyes.text("/etc/fstab")
        self.settings: dict[str, Any] = {
            "apiServer": url,
            "caCertSha256": pin,
            "joinTokenRef": "kubernetes/join-token",
            "kubernetesVersion": kubernetes.MINOR,
            "labels": {ZONE: "b1"},
            "taints": [TAINT],
        }

    def converge(self, *arguments: str, **changes: Any) -> Pass:
        """One pass, with some settings changed."""
        section = {"k8s-join": {**self.settings, **changes}}
        more = {"bcd_converge_join_token": self.lookup, "bcd_converge_node_id": "node_7"}
        return self.stage.converge(section, *arguments, **more)

    @property
    def lookups(self) -> int:
        """How often the token was looked up."""
        return len(self.calls.read_text(encoding="utf-8").splitlines()) if self.calls.exists() else 0

    def node(self) -> dict[str, Any]:
        """The Node as the cluster has it."""
        found: dict[str, Any] = kube.ask(self.machine, "nodes")[NODE]
        return found

    def swaps(self) -> list[str]:
        """What is swapped to."""
        return [line.split()[0] for line in self.eyes.text("/proc/swaps").splitlines()[1:]]

    def shown(self) -> list[str]:
        """Who showed the token so far, and where it is."""
        return kube.seen(self.machine)[1] + kube.traces(self.machine, self.token)


@pytest.fixture(scope="module")
def story(lab_story: Machine, tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(Stage(lab_story, tmp_path_factory.mktemp("worker")))


def until(what: str, holds: Any, limit: float = 120.0) -> None:
    """Wait for something."""
    end = time.monotonic() + limit
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(1)


def test_a_pass_that_is_killed_while_kubeadm_runs_leaves_no_token(story: Story) -> None:
    """The cluster does not answer, so kubeadm waits; its pass goes, and it ends by itself, and takes its file along."""
    died: list[Pass] = []
    kube.ask(story.machine, "fault", "hang", True)
    thread = threading.Thread(target=lambda: died.append(story.converge()))
    thread.start()
    story.machine.ssh(f"until [ -s {JOIN_FILE} ]; do sleep 1; done", timeout=900)
    until("kubeadm runs", lambda: kube.joins(story.machine))
    story.machine.ssh("kill -KILL $(ps -o ppid= -p $(pgrep -of '^sh -c umask'))")  # the module that waits for the shell
    thread.join(900)
    assert died
    assert died[0].rc != 0
    kube.ask(story.machine, "fault", "hang", False)
    until("kubeadm is through", lambda: not kube.joins(story.machine))
    assert kube.seen(story.machine)[0] > 0
    assert story.shown() == []


def test_the_next_pass_makes_it_a_worker(story: Story) -> None:
    done = story.converge()
    assert (done.rc, done.state) == (0, "CONVERGED"), done.said
    node = story.node()
    assert node["metadata"]["labels"][ZONE] == "b1"
    assert node["metadata"]["labels"]["bcd.dev/node-id"] == "node_7"
    assert kube.ask(story.machine, "taints", NODE) == [TAINT]
    assert story.shown() == []
    story.machine.ssh("systemctl disable --quiet --now lab-watch")
    assert story.swaps() == []
    assert story.eyes.loaded("br_netfilter", "overlay")
    assert [story.eyes.sysctl(name) for name in SYSCTLS] == [1, 1, 1]
    for name in ("kubelet", "containerd"):
        service = story.eyes.host.service(name)
        assert (service.is_running, service.is_enabled) == (True, True), name
    assert "SystemdCgroup = true" in story.eyes.host.check_output("containerd config dump")
    held = story.eyes.host.check_output("apt-mark showhold").split()
    assert held == ["kubeadm", "kubectl", "kubelet"]


def test_a_second_pass_is_quiet(story: Story) -> None:
    looked = story.lookups
    again = story.converge()
    assert (again.rc, again.recap["changed"], again.all_steps(), story.lookups) == (0, 0, {}, looked), again.said


def test_labels_follow_by_the_real_kubectl_and_taints_by_an_administrator(story: Story) -> None:
    done = story.converge(labels={"example.com/rack": "r4"}, taints=[OTHER])
    assert (done.rc, done.state) == (0, "CONVERGED"), done.said
    assert story.node()["metadata"]["labels"]["example.com/rack"] == "r4"
    [condition] = done.units["k8s-join"]["conditions"]
    [command] = re.findall(r"kubectl taint node .* --overwrite", condition["message"])
    kube.ask(story.machine, "admin", command)
    assert kube.ask(story.machine, "taints", NODE) == [OTHER]
    assert not story.eyes.exists("/root/.kube")


def test_it_is_handed_back(story: Story) -> None:
    handed = story.stage.converge({})
    assert (handed.rc, handed.recap["changed"]) == (0, 1), handed.said
    assert f"kubectl delete node {NODE}" in " ".join(handed.units["k8s-join"]["notes"])
    assert story.node()["spec"]["unschedulable"] is True
    for path in (KUBELET_CONF, RECORD, *OWN):
        assert not story.eyes.exists(path), path
    assert (story.eyes.text("/etc/fstab"), story.swaps()) == (story.fstab, ["/swap.img"])
    kubelet = story.eyes.host.service("kubelet")
    assert (kubelet.is_running, kubelet.is_enabled) == (False, False)
    assert story.eyes.host.check_output("apt-mark showhold") == ""
