# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a reset must not take along: mounts that hold data, and devices that pods have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.look.kube_clean import mounts, users
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.service_seen import Service
from tests.kubelet.kubelet import Kubelet
from tests.kubelet.pods import Container, Pod
from tests.unit.fake_host import FakeHost
from tests.unit.kubelet_host import KubeletHost

# As proc_pid_mountinfo(5) has it.
MOUNTINFO = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 8:2 / /var/lib/kubelet rw,relatime shared:2 - xfs /dev/sda2 rw
40 22 0:50 / /var/lib/kubelet/pods/1f/volumes/kubernetes.io~projected/token rw,relatime shared:3 - tmpfs tmpfs rw
41 22 0:51 / /var/lib/kubelet/pods/1f/volumes/kubernetes.io~nfs/my\\040data rw,relatime shared:4 - nfs4 10.0.0.2:/x rw
42 22 8:1 /srv/x /var/lib/kubelet/pods/1f/volume-subpaths/x/main/0 rw,relatime - ext4 /dev/sda1 rw
43 22 0:52 / /var/lib/kubelet/plugins/kubernetes.io/csi/pv/a/globalmount rw shared:5 master:2 - fuse.s3fs s3fs rw
44 21 0:53 / /var/lib/kubelet-old/data rw,relatime - nfs4 10.0.0.2:/y rw
45 21 0:54 / /data/kubelet/pods/2f/volumes/data rw,relatime - ext4 /dev/sdb1 rw
46 21 0:55 / /run/containerd/x/rootfs rw,relatime - overlay overlay rw
"""
A = "GPU-5f1c2a90-0000-4000-8000-000000000001"
RUNS = Service("loaded", "active", "enabled")
DEAD = Service("loaded", "failed", "enabled")
POD = Pod("1b4e28ba-2fa1-11d2-883f-0016d3cca427", "train", (Container("main", (A,)),))


def test_what_is_mounted_below_the_kubelets_folder_and_holds_data() -> None:
    host = FakeHost({"/proc/self/mountinfo": MOUNTINFO})
    assert mounts(host) == (
        "/var/lib/kubelet/pods/1f/volumes/kubernetes.io~nfs/my data (nfs4)",
        "/var/lib/kubelet/pods/1f/volume-subpaths/x/main/0 (ext4)",  # a folder of the host's, that a pod has
        "/var/lib/kubelet/plugins/kubernetes.io/csi/pv/a/globalmount (fuse.s3fs)",
    )
    assert mounts(FakeHost()) == ()


def test_a_kubelets_folder_that_is_a_link_is_followed() -> None:
    host = FakeHost({"/proc/self/mountinfo": MOUNTINFO}, links={"/var/lib/kubelet": "/data/kubelet"})
    assert "/data/kubelet/pods/2f/volumes/data (ext4)" in mounts(host)


# -- devices


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[Kubelet]:
    with Kubelet(tmp_path) as made:
        yield made


def with_gpu(kubelet: Kubelet) -> KubeletHost:
    host = KubeletHost(kubelet)
    host.gpu(0, A)
    return host


def test_a_machine_without_a_driver_has_no_device_that_a_pod_could_have(kubelet: Kubelet) -> None:
    kubelet.run(POD)
    host = KubeletHost(kubelet)
    assert users(host, RUNS) == ""
    assert kubelet.server.calls == []


def test_a_pod_with_a_gpu_is_told(kubelet: Kubelet) -> None:
    host = with_gpu(kubelet)
    assert users(host, RUNS) == ""
    kubelet.run(POD)
    assert users(host, RUNS) == f"pod team-a/train has {A}"


def test_a_kubelet_that_is_dead_leaves_its_checkpoints_to_tell(kubelet: Kubelet) -> None:
    host = with_gpu(kubelet)
    kubelet.run(POD)
    kubelet.stop()
    assert A in users(host, DEAD)
    kubelet.end(POD.uid)
    assert users(host, DEAD) == ""
    assert "pod-resources/kubelet.sock" in users(host, RUNS)  # one that should answer, and does not


def test_a_process_of_a_pod_that_has_a_gpu_open_is_told_though_the_kubelet_is_dead(kubelet: Kubelet) -> None:
    host = with_gpu(kubelet)
    kubelet.stop()
    host.process(77, "python3", "/kubepods/burstable/pod1b4e28ba-2fa1-11d2-883f-0016d3cca427/4f2c", "/dev/nvidia0")
    assert "process 77 (python3)" in users(host, DEAD)


def test_a_checkpoint_that_cannot_be_made_out_keeps_the_machine(kubelet: Kubelet) -> None:
    host = with_gpu(kubelet)
    kubelet.stop()
    (kubelet.folder / "device-plugins/kubelet_internal_checkpoint").write_text("{", encoding="utf-8")
    assert "kubelet_internal_checkpoint cannot be made out" in users(host, DEAD)
