# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in of kubeadm says what kubeadm 1.36 was recorded to say, up to times, process ids and the kernel."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tests import captures
from tests.cluster.control_plane import Cluster
from tests.cluster.kubeadm import Answer, kubeadm
from tests.unit.kube_host import KubeHost

NO_CGROUPS = 'cannot get a cgroupfs mount point from "/proc/mounts"'
WRONG = (f"failed to get unified mountpoint: {NO_CGROUPS}", f"cannot get a cgroup mount point: {NO_CGROUPS}")
CHANGING = (
    (r"^([EWI])\d{4} [\d:.]+ +\d+ ", r"\1 "),  # the log's time and process
    (r"after (\d+m)?[\d.]+m?s$", "after a while"),
)


@pytest.fixture
def host() -> Iterator[KubeHost]:
    """A machine with containerd 1.7, whose kubelet is not enabled."""
    with Cluster() as cluster:
        yield KubeHost(cluster, version="1.36.2", files={"/proc/sys/net/ipv4/ip_forward": "1\n"})


def run(host: KubeHost, ignored: tuple[str, ...] = ()) -> Answer:
    """A join as it was recorded: with a minute for the kubelet to get healthy."""
    cluster = host.cluster
    bootstrap = {
        "apiServerEndpoint": cluster.endpoint,
        "token": cluster.token(),
        "caCertHashes": [f"sha256:{cluster.pin}"],
    }
    config = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "JoinConfiguration",
        "discovery": {"bootstrapToken": bootstrap},
        "nodeRegistration": {"ignorePreflightErrors": list(ignored)},
        "timeouts": {"kubeletHealthCheck": "1m0s"},
    }
    host.put("/root/join.yaml", json.dumps(config))
    return kubeadm(host.worker, ("kubeadm", "join", "--config", "/root/join.yaml"))


def bare(text: str) -> list[str]:
    """The lines without what changes from run to run and from machine to machine."""
    found = []
    for line in text.splitlines():
        if re.match(r"[A-Z][A-Z0-9_]+: ", line):
            continue  # what the verification says of the kernel
        same = line
        for pattern, instead in CHANGING:
            same = re.sub(pattern, instead, same)
        found.append(same)
    return found


def recorded(name: str) -> tuple[list[str], int | None]:
    command = captures.session(f"kubernetes/{name}")[0]
    return bare(command.text), command.rc


def test_preflight_fails(host: KubeHost) -> None:
    host.verification = WRONG
    said = run(host)
    assert (bare(said.text), said.rc) == recorded("kubeadm136_preflight_fails")


def test_the_kubelet_never_gets_healthy(host: KubeHost) -> None:
    host.verification = WRONG
    host.kubelet_fault = "failed to get cgroup v1 mounts"
    said = run(host, ("SystemVerification",))
    assert (bare(said.text), said.rc) == recorded("kubeadm136_kubelet_never_healthy")


def test_it_joins(host: KubeHost) -> None:
    host.cgroups = 1
    host.cluster.kubelet_config["failCgroupV1"] = False
    said = run(host, ("SystemVerification",))
    assert (bare(said.text), said.rc) == recorded("kubeadm136_join_ok")
