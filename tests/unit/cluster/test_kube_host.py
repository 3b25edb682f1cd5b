# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The worker in memory: what runs kubeadm on it, what a loss of power leaves, and its way to the cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from tests.cluster import worker as at
from tests.cluster.control_plane import TOKEN, Cluster
from tests.unit.fake_host import Killed
from tests.unit.kube_host import KubeHost

PATH = "/var/lib/bcd-hostconfig/k8s-join.yaml"
SCRIPT = 'umask 077\ntrap \'rm -f -- "$1"\' EXIT\ncat >"$1"\nkubeadm join --config "$1"'
PROGRAM = ("sh", "-c", SCRIPT, "kubeadm-join", PATH)
READY = {"/proc/sys/net/ipv4/ip_forward": "1\n"}


@pytest.fixture
def host() -> Iterator[KubeHost]:
    with Cluster("1.31.14") as cluster:
        cluster.token()
        yield KubeHost(cluster, files=READY)


def config(host: KubeHost) -> str:
    bootstrap = {
        "apiServerEndpoint": host.cluster.endpoint,
        "token": TOKEN,
        "caCertHashes": [f"sha256:{host.cluster.pin}"],
    }
    head = {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "JoinConfiguration"}
    return json.dumps({**head, "discovery": {"bootstrapToken": bootstrap}})


def run(host: KubeHost, program: tuple[str, ...] = PROGRAM) -> Answer:
    return host.ask(program, stdin=config(host))


def test_a_real_shell_runs_the_program_of_a_join(host: KubeHost) -> None:
    said = run(host)
    assert (said.rc, "This node has joined the cluster" in said.out, {*host.cluster.nodes}) == (0, True, {"gpu-01"})
    assert host.holds(TOKEN) == []


def test_what_kubeadm_exits_with_is_what_the_program_exits_with(host: KubeHost) -> None:
    host.cluster.expire()
    said = run(host)
    assert (said.rc, "could not find a JWS signature" in said.err) == (1, True)


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        (SCRIPT.replace("umask 077", "umask 022"), "91"),  # the file is for everybody to read
        (SCRIPT.replace("trap 'rm -f -- \"$1\"' EXIT\n", ""), "left the file"),
        (SCRIPT.replace('cat >"$1"', 'echo other >"$1"'), "92"),
    ],
)
def test_a_program_that_is_careless_with_the_token_is_found(host: KubeHost, script: str, fault: str) -> None:
    with pytest.raises(AssertionError, match=fault):
        run(host, ("sh", "-c", script, *PROGRAM[3:]))


def test_a_loss_of_power_leaves_the_token_in_both_its_files(host: KubeHost) -> None:
    host.dies_at = "kubelet-wait-bootstrap"
    with pytest.raises(Killed):
        run(host)
    assert host.holds(TOKEN) == [at.BOOTSTRAP_CONF, PATH]
    assert (host.files[PATH].mode, host.kubelet) == (0o600, "inactive")


def test_it_asks_the_cluster_with_the_kubelets_own_certificate(host: KubeHost) -> None:
    run(host)
    url = f"{host.cluster.url}/api/v1/nodes/gpu-01"
    answer = host.get(url, ca=host.cluster.ca, certificate=at.CERTIFICATE)
    assert (answer.rc, json.loads(answer.out)["metadata"]["name"]) == (200, "gpu-01")
    assert host.get(url, ca=host.cluster.ca).rc == 403
    with Cluster() as other, pytest.raises(StepFailed, match="certificate"):
        host.get(url, ca=other.ca, certificate=at.CERTIFICATE)
    host.cluster.stop()
    with pytest.raises(StepFailed, match="Connection refused"):
        host.get(url, ca=host.cluster.ca, certificate=at.CERTIFICATE)


def test_root_allows_its_cluster_and_no_other(host: KubeHost) -> None:
    text = host.text("/etc/bcd/config.toml") or ""
    assert text == f'[kubernetes]\nallowed_clusters = "{host.cluster.url}#sha256:{host.cluster.pin}"\n'


def test_its_packages_come_from_the_repository_that_its_files_name(host: KubeHost) -> None:
    bare = KubeHost(host.cluster, installed=False)
    assert bare.which("kubeadm") is None
    bare.put("/etc/apt/keyrings/k.asc", bare.sites["https://pkgs.k8s.io/core:/stable:/v1.31/deb/Release.key"].out)
    source = "deb [signed-by=/etc/apt/keyrings/k.asc] https://pkgs.k8s.io/core:/stable:/v1.31/deb/ /\n"
    assert bare.ask(("apt-get", "install", "kubeadm")).rc == 100
    bare.put("/etc/apt/sources.list.d/k.list", source)
    bare.ask(("apt-get", "update"))
    assert bare.ask(("apt-get", "install", "kubeadm", "kubelet", "kubectl")).rc == 0
    assert bare.ask(("kubeadm", "version", "-o", "short")).out == "v1.31.14\n"
    assert bare.ask(("kubelet", "--version")).out == "Kubernetes v1.31.14\n"
    assert "gitVersion: v1.31.14" in bare.ask(("kubectl", "version", "--client", "-o", "yaml")).out


def test_what_the_program_takes_away_of_kubeadms_files_is_what_is_gone(host: KubeHost) -> None:
    """A Node of the name makes kubeadm 1.36 leave the kubelet's bootstrap credentials, which have the token."""
    careful = SCRIPT.replace('"$1"\' EXIT', '"$1" "$2"\' EXIT')
    host.cluster.version = host.version = "1.36.2"
    host.cluster.node("gpu-01")
    assert run(host, ("sh", "-c", SCRIPT, *PROGRAM[3:], at.BOOTSTRAP_CONF)).rc == 1
    assert host.holds(TOKEN) == [at.BOOTSTRAP_CONF]
    host.worker.remove(at.BOOTSTRAP_CONF)
    host.worker.remove(at.CA)
    assert run(host, ("sh", "-c", careful, *PROGRAM[3:], at.BOOTSTRAP_CONF)).rc == 1
    assert host.holds(TOKEN) == []
