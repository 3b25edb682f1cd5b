# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who uses a GPU: holds, compute processes, and what has its device nodes open."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import (
    NotKnownYet,
    NotReady,
    StepFailed,
    Unreadable,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.clients import (
    busy,
    device_holders,
    gpu_nodes,
    users,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.gpu import Gpu
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.gpu_users import Holder
from tests.unit.fake_host import FakeHost

A, B = (f"GPU-5f1c2a90-0000-4000-8000-00000000000{at}" for at in (1, 2))
GPUS = (Gpu(0, A, "00000000:17:00.0", "NVIDIA A30"), Gpu(1, B, "00000000:65:00.0", "NVIDIA A30"))
MIG = "MIG-0f1b7064-c96d-5f72-b79f-b5d83f478054"
LISTING = f"GPU 0: NVIDIA A30 (UUID: {A})\nGPU 1: NVIDIA A30 (UUID: {B})\n  MIG 1g.6gb      Device  0: (UUID: {MIG})\n"
IDLE, LISTED = Answer(0, ""), Answer(0, LISTING)
DRIVER = "/proc/driver/nvidia"
# The node's number is not the index: the first GPU has the second node.
NODES = {
    f"{DRIVER}/gpus/0000:17:00.0/information": "Model: \t\t NVIDIA A30\nDevice Minor: \t 1\nGPU Excluded:\t No\n",
    f"{DRIVER}/gpus/0000:65:00.0/information": "Model: \t\t NVIDIA A30\nDevice Minor: \t 0\nGPU Excluded:\t No\n",
    f"{DRIVER}/capabilities/gpu0/mig/gi3/access": "DeviceFileMinor: 30\nDeviceFileMode: 256\nDeviceFileModify: 1\n",
    f"{DRIVER}/capabilities/gpu0/mig/gi3/ci0/access": "DeviceFileMinor: 31\nDeviceFileMode: 256\n",
    f"{DRIVER}/capabilities/mig/config": "DeviceFileMinor: 1\nDeviceFileMode: 256\n",
}


def machine(
    processes: Mapping[str, tuple[str, ...]] | None = None,
    apps: Answer = IDLE,
    files: Mapping[str, str] | None = None,
    listing: Answer = LISTED,
    one: Mapping[str, Answer] | None = None,
) -> FakeHost:
    """`processes`: by "<pid> <program>", the files that it has open; `apps`, `one`: the compute processes."""

    def smi(_host: FakeHost, argv: tuple[str, ...]) -> Answer:
        if argv[1] == "-L":
            return listing
        assert argv[1].startswith("--query-compute-apps=")
        return (one or {}).get(argv[-1], apps)

    links = {}
    for process, opened in (processes or {}).items():
        pid, _space, program = process.partition(" ")
        links[f"/proc/{pid}/exe"] = program
        links.update({f"/proc/{pid}/fd/{at}": path for at, path in enumerate(opened)})
    return FakeHost({**NODES, "/proc/meminfo": "", **(files or {})}, programs={"nvidia-smi": smi}, links=links)


def spec(device: str) -> str:
    devices = [{"name": device.replace("/", "_"), "annotations": {"bcd.dev/device-id": device}}]
    return json.dumps({"cdiVersion": "0.6.0", "kind": "bcd.dev/gpu", "devices": devices})


# -- device nodes


def test_who_has_which_node_open() -> None:
    host = machine(
        {
            "77 /usr/lib/xorg/Xorg": ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia0", "socket:[1234]"),
            "100 /usr/bin/nvidia-persistenced": ("/dev/null", "/dev/nvidia0", "/dev/nvidia1"),
            "9 /usr/bin/python3.12 (deleted)": ("/dev/nvidia-caps/nvidia-cap31", "/dev/nvidia0 (deleted)"),
            "5 /bin/cat": ("/dev/null", "/tmp/dev/nvidia0"),
        }
    )
    assert device_holders(host) == {
        "/dev/nvidia-caps/nvidia-cap31": (Holder(9, "python3.12"),),
        "/dev/nvidia0": (Holder(9, "python3.12"), Holder(77, "Xorg"), Holder(100, "nvidia-persistenced")),
        "/dev/nvidia1": (Holder(100, "nvidia-persistenced"),),
        "/dev/nvidiactl": (Holder(77, "Xorg"),),
    }


def test_a_program_that_cannot_be_seen_goes_by_the_kernels_name() -> None:
    host = machine({"100 x": ("/dev/nvidia0",)}, files={"/proc/100/comm": "nvidia-persiste\n"})
    del host.links["/proc/100/exe"]
    assert device_holders(host) == {"/dev/nvidia0": (Holder(100, "nvidia-persiste"),)}
    assert busy(host, GPUS) == {A: (), B: ()}


def test_the_nodes_of_a_gpu_and_of_its_mig_instances() -> None:
    assert gpu_nodes(machine(), GPUS) == {
        A: ("/dev/nvidia1",),
        B: ("/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap30", "/dev/nvidia-caps/nvidia-cap31"),
    }


# -- busy


def test_an_idle_machine() -> None:
    assert busy(machine(), GPUS) == {A: (), B: ()}
    assert busy(machine(), ()) == {}


def test_a_compute_process_makes_its_own_gpu_busy() -> None:
    host = machine({"4242 /usr/bin/python3": ("/dev/nvidia1",)}, apps=Answer(0, f"{A}, 4242, python3 train.py\n"))
    assert busy(host, GPUS) == {A: ("process 4242 (python3 train.py) computes on it",), B: ()}


def test_what_has_a_node_open_makes_its_own_gpu_busy() -> None:
    host = machine({"77 /usr/lib/xorg/Xorg": ("/dev/nvidia0", "/dev/nvidiactl"), "8 /opt/app": ("/dev/nvidia1",)})
    assert busy(host, GPUS) == {
        A: ("process 8 (app) has /dev/nvidia1 open",),
        B: ("process 77 (Xorg) has /dev/nvidia0 open",),
    }


def test_the_node_of_a_mig_instance_is_its_gpus() -> None:
    host = machine({"8 /opt/app": ("/dev/nvidia-caps/nvidia-cap31",)})
    assert busy(host, GPUS) == {A: (), B: ("process 8 (app) has /dev/nvidia-caps/nvidia-cap31 open",)}


def test_nodes_that_are_no_gpus_and_those_who_only_attend_make_none_busy() -> None:
    everything = ("/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl")
    host = machine(
        {
            "1 /usr/bin/nvidia-persistenced": everything,
            "2 /usr/bin/nv-fabricmanager": everything,
            "3 /usr/bin/nv-hostengine": everything,
            "4 /usr/bin/dcgm-exporter": everything,
            "5 /usr/bin/nvidia-smi": everything,
            "6 /opt/monitor": ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-caps/nvidia-cap1"),
        }
    )
    assert busy(host, GPUS) == {A: (), B: ()}


def test_a_gpu_whose_node_is_not_known_may_be_anyones() -> None:
    host = machine({"8 /opt/app": ("/dev/nvidia1",)})
    del host.files[f"{DRIVER}/gpus/0000:65:00.0/information"]
    why = ("process 8 (app) has /dev/nvidia1 open",)
    assert busy(host, GPUS) == {A: why, B: why}


@pytest.mark.parametrize("device", [B, f"{B}/gi3/ci0", f"{B}/s7", MIG, f"MIG-{B}/3/0"])
def test_a_hold_makes_the_gpu_busy_that_its_device_is_or_is_of(device: str) -> None:
    host = machine(files={"/etc/cdi/bcd-alloc_1.json": spec(device)})
    (why,) = busy(host, GPUS)[B]
    assert why == f"the allocation alloc_1 has {B if device == MIG else device}"
    assert busy(host, GPUS)[A] == ()


def test_a_release_that_waits_is_a_hold() -> None:
    record = json.dumps({"version": 1, "releases": {"alloc_9": {"devices": [A]}}})
    host = machine(files={"/var/lib/bcd-hostconfig/releasing.json": record})
    assert busy(host, GPUS) == {A: (f"the allocation alloc_9 has {A}",), B: ()}


@pytest.mark.parametrize("listing", [Answer(0, LISTING.replace(MIG, f"{MIG}0")), Answer(255, "Unknown Error\n")])
def test_a_mig_device_that_nobody_lists_may_be_any_gpus(listing: Answer) -> None:
    host = machine(files={"/etc/cdi/bcd-alloc_1.json": spec(MIG)}, listing=listing)
    why = (f"the allocation alloc_1 has {MIG}",)
    assert busy(host, GPUS) == {A: why, B: why}
    host = machine(apps=Answer(0, f"{MIG}, 4242, python3\n"), listing=listing)
    why = ("process 4242 (python3) computes on it",)
    assert busy(host, GPUS) == {A: why, B: why}


def test_a_process_of_a_mig_device_is_its_gpus() -> None:
    host = machine(apps=Answer(0, f"{MIG}, 4242, python3\n"))
    assert busy(host, GPUS) == {A: (), B: ("process 4242 (python3) computes on it",)}


def test_a_hold_that_cannot_be_made_out_makes_every_gpu_busy() -> None:
    found = busy(machine(files={"/etc/cdi/bcd-alloc_1.json": "{"}), GPUS)
    assert found[A] == found[B]
    assert found[A][0].startswith("/etc/cdi/bcd-alloc_1.json is no JSON")


def test_a_dead_gpu_is_busy_and_hides_no_others_processes() -> None:
    lost = Answer(255, "Unable to determine the device handle for GPU1: 0000:65:00.0: Unknown Error\n")
    host = machine(apps=lost, one={A: Answer(0, f"{A}, 4242, python3\n"), B: lost})
    found = busy(host, GPUS)
    assert found[A] == ("process 4242 (python3) computes on it",)
    (why,) = found[B]
    assert "Unable to determine the device handle for GPU1" in why


def test_without_an_answer_no_gpu_is_taken_for_idle() -> None:
    with pytest.raises(NotReady):
        busy(machine(apps=Answer(9, "NVIDIA-SMI has failed because it couldn't communicate\n")), GPUS)
    text = "an answer that no one knows\n"
    found = busy(machine(apps=Answer(0, text)), GPUS)
    assert all("an answer that no one knows" in why for (why,) in found.values())
    assert set(found) == {A, B}


def test_another_accounts_files_are_seen_as_root() -> None:
    host = machine({"77 /usr/lib/xorg/Xorg": ("/dev/nvidia0",)})
    host.unreadable.add("/proc/77/fd")
    host.user = 1000
    with pytest.raises(Unreadable):
        busy(host, GPUS)
    with pytest.raises(NotKnownYet, match="seen as root"):
        busy(PredictedHost(host), GPUS)
    host.user = 0
    with pytest.raises(
        StepFailed, match="cannot read /proc/77/fd: Permission denied: who uses the GPUs is seen by root on"
    ):
        busy(host, GPUS)
    host.unreadable = {"/proc/77/fd/0"}  # root in a container sees that a file is open, and not which
    with pytest.raises(StepFailed, match="not in a container"):
        busy(host, GPUS)


# -- the whole host


def test_users_of_the_host_are_those_of_any_gpu_each_named_once() -> None:
    host = machine(
        {
            "8 /srv/app": ("/dev/nvidia-caps/nvidia-cap31", "/dev/nvidia0"),
            "9 /srv/client": ("/dev/nvidia-uvm", "/dev/nvidiactl"),
            "10 /usr/bin/nvidia-persistenced": ("/dev/nvidia0",),
            "11 /usr/bin/nvtop": ("/dev/nvidiactl",),
            "4242 /usr/bin/python3": ("/dev/nvidia1", "/dev/nvidia-uvm"),
        },
        Answer(0, f"{A}, 4242, python3 train.py\n"),
        {"/etc/cdi/bcd-alloc_1.json": spec(B)},
    )
    assert users(host) == (
        f"the allocation alloc_1 has {B}",
        f"process 4242 (python3 train.py) computes on {A}",
        "process 8 (app) has /dev/nvidia-caps/nvidia-cap31 open",
        "process 9 (client) has /dev/nvidia-uvm open",
    )
    assert users(machine()) == ()


def test_where_nobody_says_who_computes_that_is_a_user() -> None:
    (why,) = users(machine(apps=Answer(15, "Unable to determine the device handle for GPU 0: GPU is lost.\n")))
    assert why.startswith("nvidia-smi does not say who computes (")
