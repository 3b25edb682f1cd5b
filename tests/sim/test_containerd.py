# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker's containerd that does not start with what was configured for it, by the real playbook."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.control_plane import Cluster
from tests.sim.kube_site import HOST, Site
from tests.sim.marks import in_namespace

pytestmark = [
    in_namespace,
    pytest.mark.newest_core,
]
CONFIG, OURS = "/etc/containerd/config.toml", "/etc/containerd/conf.d/99-zz-bcd.toml"
REFUSES = "/etc/sim/containerd-refuses"
FOREIGN = """version = 2
imports = ["/etc/containerd/conf.d/*.toml"]

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "mirror.example/pause:3.8"
"""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as served:
        yield served


def test_its_former_files_come_back_and_nothing_is_joined(tmp_path: Path, cluster: Cluster) -> None:
    site = Site(tmp_path, cluster, "worker")
    site.host.write(CONFIG, FOREIGN)
    site.host.run("systemctl", "restart", "containerd")
    site.host.write(REFUSES, "k8s-join")
    units = {"k8s-join": site.settings()}

    first = site.converge(units)
    assert "containerd did not answer with the configuration that k8s-join made for it" in str(first.unit), first.unit
    assert (first.unit["state"], site.host.read(CONFIG), site.host.read(OURS)) == ("failed", FOREIGN, None)
    assert site.host.run("systemctl", "is-active", "containerd").stdout == "active\n"
    assert HOST not in cluster.nodes

    site.host.forget_calls()
    again = site.converge(units)
    assert (again.unit["state"], again.recap.get("changed"), site.host.changes()) == ("failed", None, [])

    site.host.remove(REFUSES)
    site.host.reboot()
    done = site.converge(units)
    assert (done.rc, done.unit["state"]) == (0, "converged"), done.text
    assert "SystemdCgroup = true" in (site.host.read(OURS) or "")
    assert 'sandbox_image = "mirror.example/pause:3.8"' in site.host.run("containerd", "config", "dump").stdout
    assert HOST in cluster.nodes
