# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPU part of host_info, over simulated machines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.info import inventory
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.files import HEADER
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.smi import FABRIC, query
from tests.gpu.fake import GpuHost, gpu_host
from tests.gpu.model import Fault, Machine
from tests.unit.fake_host import FakeHost, Program


def facts(host: FakeHost) -> dict[str, Any]:
    return inventory(host, Records(host))


def of_gpus(host: FakeHost) -> list[str]:
    """What could not be told of the GPUs."""
    return [line for line in facts(host)["unreadable"] if line.startswith("gpus")]


def machine(*products: str, driver: str = "550.163.01", **more: Any) -> GpuHost:
    return gpu_host(Machine.from_products(list(products), driver=driver, **more))


def smi(host: GpuHost, line: str) -> None:
    answer = host.ask(("nvidia-smi", *line.split()))
    assert answer.rc == 0, answer.out


# -- GPUs


def test_a_gpu_that_is_whole_and_one_that_has_no_mig() -> None:
    host = machine("H100-80GB", "L40S", clients=["nvidia-persistenced"])
    h100, l40s = facts(host)["gpus"]
    card = host.machine.cards[0]
    persistenced = {"pid": 900, "program": "nvidia-persistenced"}
    assert h100 == {
        "index": 0,
        "uuid": card.uuid,
        "pci": card.pci,
        "name": "NVIDIA H100 80GB HBM3",
        "mig_mode": "disabled",
        "layout": "off",
        "mig_devices": [],
        "slices": None,
        "sharing": None,
        "atoms": [{"id": card.uuid, "device_class": "gpu"}],
        "allocations": [],
        "holders": [persistenced],
        "processes": [],
    }
    assert (l40s["name"], l40s["mig_mode"], l40s["layout"], l40s["mig_devices"]) == ("NVIDIA L40S", None, None, [])
    assert l40s["atoms"] == [{"id": host.machine.cards[1].uuid, "device_class": "gpu"}]
    assert of_gpus(host) == []


@pytest.mark.parametrize("driver", ["450.248.02", "470.256.02", "535.261.03", "550.163.01", "555.58.02"])
def test_mig_devices_are_atoms_by_their_instances(driver: str) -> None:
    host = machine("A100-40GB", driver=driver)
    smi(host, "-i 0 -mig 1")
    smi(host, "mig -i 0 -cgi 9,14,19 -C")
    (gpu,) = facts(host)["gpus"]
    uuid = host.machine.cards[0].uuid
    assert (gpu["mig_mode"], gpu["layout"]) == ("enabled", "3g.20gb,2g.10gb,1g.5gb")
    listed = [
        line.rpartition("UUID: ")[2].rstrip(")") for line in host.machine.smi(["nvidia-smi", "-L"])[1].splitlines()
    ]
    assert [device["uuid"] for device in gpu["mig_devices"]] == listed[1:]
    places = [(one["profile"], one["gi"], one["ci"], one["start"], one["size"]) for one in gpu["mig_devices"]]
    assert places == [("3g.20gb", 2, 0, 4, 4), ("2g.10gb", 3, 0, 0, 2), ("1g.5gb", 9, 0, 2, 1)]
    assert gpu["atoms"] == [{"id": f"{uuid}/gi{gi}/ci0", "device_class": "gpu.mig"} for gi in (2, 3, 9)]
    assert of_gpus(host) == []


def test_compute_instances_that_share_a_gpu_instance_and_one_gpu_of_several() -> None:
    host = machine("H100-80GB", "H100-80GB")
    smi(host, "-i 1 -mig 1")
    smi(host, "mig -i 1 -cgi 7g.80gb")
    smi(host, "mig -i 1 -cci 0,0,1 -gi 0")
    whole, shared = facts(host)["gpus"]
    assert (whole["layout"], shared["layout"]) == ("off", "2c.7g.80gb,1c.7g.80gb:2")
    assert [(one["profile"], one["ci"]) for one in shared["mig_devices"]] == [
        ("1c.7g.80gb", 0),
        ("1c.7g.80gb", 1),
        ("2c.7g.80gb", 2),
    ]
    assert len({one["uuid"] for one in shared["mig_devices"]}) == 3


@pytest.mark.parametrize(("product", "slices"), [("A100-40GB", 8), ("H100-80GB", 8), ("A30-24GB", 4)])
def test_the_units_of_memory_of_a_whole_gpu_are_those_of_its_largest_instance(product: str, slices: int) -> None:
    """As `mig -lgipp` documents them: the whole of an A100 and an H100 is placed at {0}:8, that of an A30 at {0}:4."""
    host = machine(product, product)
    smi(host, "-i 0 -mig 1")
    assert [gpu["slices"] for gpu in facts(host)["gpus"]] == [slices, None]
    host.machine.faults.append(Fault("mig -lgipp", do="say", rc=4, text="Insufficient Permissions\n"))
    seen = facts(host)
    assert (seen["gpus"][0]["slices"], seen["gpus"][0]["layout"]) == (None, "empty")
    assert [line.partition(":")[0] for line in of_gpus(host)] == ["gpus[0].slices"]


def test_how_gpus_are_shared_is_told_by_the_service_and_the_record() -> None:
    host = machine("L40S", "L40S")
    first = host.machine.cards[0].uuid
    unit = f"{HEADER}\n[Service]\nEnvironment=CUDA_VISIBLE_DEVICES={first}\n"
    host.put("/etc/systemd/system/bcd-mps.service", unit)
    record = {"version": 1, "units": {"gpu-sharing": {"mode": "mps", "replicas": 5}}}
    host.put("/var/lib/bcd-hostconfig/applied.json", json.dumps(record))
    assert [gpu["sharing"] for gpu in facts(host)["gpus"]] == [{"mode": "mps", "replicas": 5}, None]
    host.put("/var/lib/bcd-hostconfig/applied.json", "{")
    seen = facts(host)
    assert [gpu["sharing"] for gpu in seen["gpus"]] == [None, None]
    assert [line.partition(":")[0] for line in of_gpus(host)] == ["gpus[].sharing"]


def test_mig_mode_without_instances_has_no_atom() -> None:
    host = machine("H100-80GB")
    smi(host, "-i 0 -mig 1")
    (gpu,) = facts(host)["gpus"]
    assert (gpu["mig_mode"], gpu["layout"], gpu["mig_devices"], gpu["atoms"]) == ("enabled", "empty", [], [])


def test_who_computes_on_which_gpu() -> None:
    host = machine("H100-80GB", "L40S")
    host.machine.occupy(1, 4242, "python3")
    first, second = facts(host)["gpus"]
    assert (first["processes"], second["processes"]) == ([], [{"pid": 4242, "name": "python3"}])
    assert [holder["pid"] for holder in second["holders"]] == [4242]
    host.machine.free(1)
    assert [(gpu["holders"], gpu["processes"]) for gpu in facts(host)["gpus"]] == [([], []), ([], [])]


def test_a_dead_gpu_costs_its_own_facts_only() -> None:
    host = machine("H100-80GB", "H100-80GB")
    host.machine.cards[1].dead = "fields"
    first, second = facts(host)["gpus"]
    assert (first["mig_mode"], first["layout"]) == ("disabled", "off")
    assert (second["uuid"], second["mig_mode"], second["layout"]) == (host.machine.cards[1].uuid, None, None)
    assert (second["atoms"], second["mig_devices"]) == (None, None)
    (said,) = [line for line in of_gpus(host) if line.startswith("gpus[1].mig_mode")]
    assert "[GPU is lost]" in said


def test_a_gpu_that_fell_off_its_bus_is_listed_as_far_as_it_is_known() -> None:
    host = machine("H100-80GB", "H100-80GB")
    lost = host.machine.cards[1]
    lost.dead = "handle"
    first, second = facts(host)["gpus"]
    assert (first["layout"], first["holders"], first["processes"]) == ("off", [], [])
    assert (second["pci"], second["mig_mode"], second["layout"], second["atoms"]) == (lost.pci, None, None, None)
    assert (second["holders"], second["processes"]) == (None, None)
    named = {line.partition(": ")[0].rpartition(".")[2] for line in of_gpus(host)}
    assert named == {"mig_mode", "holders", "processes"}


def test_a_listing_that_does_not_answer_costs_the_layout_only() -> None:
    host = machine("H100-80GB")
    smi(host, "-i 0 -mig 1")
    smi(host, "mig -i 0 -cgi 3g.40gb -C")
    host.machine.faults.append(Fault("mig -lci", do="say", rc=4, text="Failed to display: Insufficient Permissions\n"))
    (gpu,) = facts(host)["gpus"]
    assert (gpu["mig_mode"], gpu["layout"], gpu["atoms"]) == ("enabled", None, None)
    host.machine.faults[:] = [Fault("-L", do="say", rc=255, text="Failed to initialize NVML: Unknown Error\n")]
    seen = facts(host)
    (gpu,) = seen["gpus"]
    assert (gpu["layout"], [one["uuid"] for one in gpu["mig_devices"]]) == ("3g.40gb", [None])
    assert [line.partition(":")[0] for line in seen["unreadable"]] == ["gpus[].mig_devices[].uuid"]


def test_a_listing_of_another_moment_is_no_listing() -> None:
    host = machine("H100-80GB")
    smi(host, "-i 0 -mig 1")
    smi(host, "mig -i 0 -cgi 3g.40gb,1g.10gb -C")
    lines = host.machine.smi(["nvidia-smi", "-L"])[1].splitlines(keepends=True)
    host.machine.faults.append(Fault("-L", do="say", rc=0, text="".join(lines[:2])))
    seen = facts(host)
    assert seen["gpus"][0]["layout"] is None
    assert "lists 1 MIG devices on GPU 0, and mig -lci 2 others" in seen["unreadable"][0]


# -- what an account without root sees


def test_an_account_without_root_is_told_what_it_cannot_see() -> None:
    host = machine("H100-80GB", clients=["nvidia-persistenced"])
    host.user = 1000
    host.unreadable |= {"/proc/900/fd", "/var/lib/bcd-hostconfig/releasing.json"}
    host.put("/var/lib/bcd-hostconfig/releasing.json", '{"version": 1, "releases": {}}')
    seen = facts(host)
    assert (seen["gpus"][0]["layout"], seen["gpus"][0]["holders"], seen["holds"]) == ("off", None, None)
    assert seen["capabilities"] == ["nvml"]
    assert [line.partition(":")[0] for line in seen["unreadable"]] == [
        "gpus[].holders",
        "gpus[].allocations",
        "holds",
    ]


def test_capabilities_need_a_gpu_and_root() -> None:
    assert facts(machine("H100-80GB"))["capabilities"] == ["binding.kubernetes", "cdi", "devices.limits", "nvml"]
    host = machine("H100-80GB")
    host.machine.nvml["nogpu"] = 1
    assert facts(host)["gpus"] == []
    assert facts(host)["capabilities"] == ["nvml"]


# -- no driver


def test_a_host_without_gpus_starts_no_program() -> None:
    def refuse(_host: FakeHost, argv: tuple[str, ...]) -> Answer:
        raise AssertionError(f"a look ran {' '.join(argv)}")

    host = FakeHost(programs=dict.fromkeys(("containerd", "dockerd", "podman", "crio"), refuse))
    seen = facts(host)
    assert seen["driver"] == {"loaded": None, "library": None, "flavour": None}
    assert (seen["fabric"], seen["gpus"], seen["holds"], seen["capabilities"]) == ({}, [], [], [])
    assert seen["runtimes"] == dict.fromkeys(("containerd", "docker", "podman", "crio"))
    assert (host.asked, seen["unreadable"]) == ([], [])


def test_gpus_that_wait_for_a_driver_are_not_none() -> None:
    slot = "/sys/bus/pci/devices/0000:17:00.0"
    files = {f"{slot}/vendor": "0x10de\n", f"{slot}/class": "0x030200\n", f"{slot}/device": "0x2330\n"}
    seen = facts(FakeHost(files))
    assert (seen["gpus"], seen["capabilities"]) == (None, [])
    assert any(
        "1 NVIDIA GPUs are on the PCI bus, and no driver is installed yet" in line for line in seen["unreadable"]
    )
    passed = FakeHost(files, links={f"{slot}/driver": "../../../bus/pci/drivers/vfio-pci"})
    assert facts(passed)["gpus"] == []


def test_a_driver_that_does_not_run_is_said_and_asked_once() -> None:
    host = machine("H100-80GB")
    host.machine.unload()
    seen = facts(host)
    assert (seen["gpus"], seen["capabilities"]) == (None, [])
    assert seen["driver"]["loaded"] is None
    assert any("gpus: the NVIDIA driver does not run" in line for line in seen["unreadable"])
    assert sum(argv[0] == "nvidia-smi" for argv in host.asked) == 1


def test_the_driver_that_is_loaded_and_the_library_on_disk() -> None:
    host = machine("H100-80GB")
    flavour = host.machine.flavour
    assert facts(host)["driver"] == {"loaded": "550.163.01", "library": "550.163.01", "flavour": flavour}
    host.machine.library = "550.199.02"
    seen = facts(host)
    assert seen["driver"] == {"loaded": "550.163.01", "library": "550.199.02", "flavour": flavour}
    (said,) = [line for line in seen["unreadable"] if line.startswith("gpus:")]
    assert "550.163.01" in said
    assert "550.199.02: reboot the node" in said


# -- fabric, holds, runtimes


def test_the_fabric() -> None:
    host = machine("H100-80GB", "H100-80GB")
    assert facts(host)["fabric"] == {}
    first, second = host.machine.cards
    first.fabric, second.fabric = "Completed", "In Progress"
    for at in (5, 6):
        host.put(f"/proc/driver/nvidia-nvswitch/devices/0000:0{at}:00.0/information", "BIOS Version: 96.10\n")
    assert facts(host)["fabric"] == {
        "switches": 2,
        "gpus": {
            first.uuid: {"state": "Completed", "status": "Success"},
            second.uuid: {"state": "In Progress", "status": None},
        },
    }


def test_an_older_board_has_switches_and_gpus_that_say_nothing() -> None:
    host = machine("A100-40GB")
    assert facts(host)["fabric"] == {}
    assert query(FABRIC) not in host.asked
    host.put("/proc/driver/nvidia-nvswitch/devices/0000:05:00.0/information", "BIOS Version: 92.10\n")
    assert facts(host)["fabric"] == {"switches": 1, "gpus": {}}


def test_switches_that_are_on_the_bus_alone_are_told_too() -> None:
    """As the unit fabric-manager sees them, whose packages bring the rest."""
    host = machine("A100-40GB")
    for at in (5, 6):
        host.put(f"/sys/bus/pci/devices/0000:0{at}:00.0/vendor", "0x10de\n")
        host.put(f"/sys/bus/pci/devices/0000:0{at}:00.0/class", "0x068000\n")
    assert facts(host)["fabric"] == {"switches": 2, "gpus": {}}


def test_holds_and_releases() -> None:
    host = machine("H100-80GB")
    uuid = host.machine.cards[0].uuid
    devices = [{"name": uuid, "annotations": {"bcd.dev/device-id": uuid}}]
    edits = {"env": [f"NVIDIA_VISIBLE_DEVICES={uuid}"]}
    spec = {"kind": "bcd.dev/gpu", "devices": devices, "containerEdits": edits}
    host.put("/etc/cdi/bcd-alloc_1.json", json.dumps(spec))
    host.put("/etc/cdi/bcd-alloc_2.json", "{")
    mig = "MIG-0f1b7064-c96d-5f72-b79f-b5d83f478054"
    record = {"version": 1, "releases": {"alloc_9": {"devices": [mig], "generation": 41}}}
    host.put("/var/lib/bcd-hostconfig/releasing.json", json.dumps(record))
    first, second, third = facts(host)["holds"]
    assert third == {
        "allocation_id": "alloc_9",
        "binding": "BINDING_KUBERNETES",
        "devices": [mig],
        "generation": 41,
        "releasing": True,
        "fault": None,
    }
    assert first == {
        "allocation_id": "alloc_1",
        "binding": "BINDING_HOLD",
        "devices": [uuid],
        "generation": 0,
        "releasing": False,
        "fault": None,
    }
    assert (second["allocation_id"], second["binding"], second["devices"]) == ("alloc_2", None, [])
    assert "every GPU counts as held" in second["fault"]


def test_each_gpu_says_which_allocations_have_it() -> None:
    host = machine("H100-80GB", "H100-80GB", "L40S")
    first, second, third = (card.uuid for card in host.machine.cards)

    def has(allocation: str, *devices: str) -> None:
        named = [{"name": "x", "annotations": {"bcd.dev/device-id": device}} for device in devices]
        spec = {"kind": "bcd.dev/gpu", "annotations": {"bcd.dev/allocation-id": allocation}, "devices": named}
        host.put(f"/etc/cdi/bcd-{allocation}.json", json.dumps(spec))

    has("alloc_1", f"{first}/s0", f"{first}/s1", second)
    has("alloc_2", f"{first}/s7")
    releases = {"version": 1, "releases": {"alloc_0": {"devices": [f"{first}/gi1/ci0"], "generation": 1}}}
    host.put("/var/lib/bcd-hostconfig/releasing.json", json.dumps(releases))
    assert {gpu["uuid"]: gpu["allocations"] for gpu in facts(host)["gpus"]} == {
        first: ["alloc_1", "alloc_2", "alloc_0"],
        second: ["alloc_1"],
        third: [],
    }
    host.put("/etc/cdi/bcd-alloc_3.json", "{")
    assert all("alloc_3" in gpu["allocations"] for gpu in facts(host)["gpus"])


VERSIONS = {
    "containerd": (
        "containerd github.com/containerd/containerd v1.7.27 05044ec0a9a75232cad458027ca83437aae3f4da\n",
        "1.7.27",
    ),
    "dockerd": ("Docker version 28.2.2, build 45873be\n", "28.2.2"),
    "crio": ("crio version 1.33.0\n   GitCommit:      abcdef\n   GoVersion:      go1.24.2\n", "1.33.0"),
    "podman": ("podman version 4.9.3\n", "4.9.3"),
    "nvidia-ctk": (
        "NVIDIA Container Toolkit CLI version 1.18.0\ncommit: f8daa5e26de9fd7eb79259040b6dd5a52060048c\n",
        "1.18.0",
    ),
}


def printing(text: str) -> Program:
    """A program that prints its version when it is asked for it alone."""
    return lambda _host, argv: Answer(0 if argv[1:] == ("--version",) else 64, text)


def test_runtimes_and_their_versions() -> None:
    host = machine("H100-80GB")
    host.programs.update({name: printing(text) for name, (text, _version) in VERSIONS.items()})
    seen = facts(host)["runtimes"]
    assert seen == {name.replace("dockerd", "docker"): version for name, (_text, version) in VERSIONS.items()}
    host.programs["podman"] = lambda _host, _argv: Answer(125, "cannot\n")
    del host.programs["crio"]
    assert facts(host)["runtimes"] == {**{name: seen[name] for name in seen if name != "crio"}, "podman": None}


@pytest.mark.parametrize("said", ["containerd github.com/containerd/containerd 1.7.24~ds1 1.7.24~ds1-6+b4\n"])
def test_a_distributions_own_version(said: str) -> None:
    host = machine("H100-80GB")
    host.programs["containerd"] = lambda _host, _argv: Answer(0, said)
    assert facts(host)["runtimes"]["containerd"] == "1.7.24~ds1"
