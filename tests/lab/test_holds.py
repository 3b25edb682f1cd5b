# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds on a real systemd, a real cgroup v2 and a real podman: bound, used by containers, moved, released, rebooted.

One story, in the order of its tests. What a container sees, it says itself; limits are read from the kernel.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from holds import gpus, podman
from holds.gpus import CONTROL, GID, LIBRARY, MEMORY, NODES, NUMBERS, PARTED, SHARED, WHOLE
from holds.podman import Wanted
from labvm.machine import Machine
from play import LATER
from seen import STATE

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.cdi import faults
from tests.sim import controller

TRAINER, NOTEBOOK, WORKER, NEXT = "alloc_01jz8k2v", "alloc_mig", "alloc_slot", "alloc_next"
INSTANCE, SLOT = f"{PARTED}/gi1/ci0", f"{SHARED}/s3"
CGROUPS = "/sys/fs/cgroup"
PAGE, MIB, GIB = 4096, 1024**2, 1024**3
LIMITS = {
    "cpus": "2-3",
    "mems": "1",
    "cpu_millis": 1501,
    "memory_bytes": GIB,
    "hugepages_2mi": 8,
    "hugepages_1gi": 1,
}
# CPUs in whole percents, rounded up; the soft limit is 90 % of the hard one, in whole pages as the kernel has it.
SHOWN = {
    "cpuset.cpus": "2-3",
    "cpuset.mems": "1",
    "cpu.max": "151000 100000",
    "memory.max": str(GIB),
    "memory.high": str(GIB * 9 // 10 // PAGE * PAGE),
    "hugetlb.2MB.max": str(8 * 2 * MIB),
    "hugetlb.1GB.max": str(GIB),
}
WORKERS_SHOWN = {"memory.max": str(256 * MIB), "memory.high": str(256 * MIB * 9 // 10 // PAGE * PAGE)}


def assignment(name: str, device: str, device_class: str, **more: Any) -> dict[str, Any]:
    """One allocation of one device."""
    devices = [{"id": device, "device_class": device_class}]
    return {"allocation_id": name, "binding": "BINDING_HOLD", "devices": devices, **more}


TRAINERS = assignment(TRAINER, WHOLE, "gpu", reservation_id="rsv_01jz8k1q", limits=LIMITS, env=["JOB=train"])
NOTEBOOKS = assignment(NOTEBOOK, INSTANCE, "gpu.mig", reservation_id="rsv_mig")
WORKERS = assignment(WORKER, SLOT, "gpu.slot", reservation_id="rsv_slot", limits={"memory_bytes": 256 * MIB})
NEXTS = assignment(NEXT, WHOLE, "gpu", reservation_id="rsv_next", limits=LIMITS)
FIRST, SECOND = [TRAINERS, NOTEBOOKS, WORKERS], [NOTEBOOKS, NEXTS, WORKERS]


def spec_of(name: str) -> str:
    return f"/etc/cdi/bcd-{name}.json"


def env_of(name: str) -> str:
    return f"/run/bcd/allocations/{name}.env"


def record_of(name: str) -> str:
    return f"{STATE}/holds/{name}.json"


def slice_of(name: str) -> str:
    return f"bcd-alloc-{name}.slice"


def folder_of(name: str) -> str:
    return f"{CGROUPS}/bcd.slice/bcd-alloc.slice/{slice_of(name)}"


def kept_of(name: str) -> str:
    """Where systemd keeps the slice's properties, whether or not it runs."""
    return f"/run/systemd/system.control/{slice_of(name)}.d"


def cdi(atom: str) -> str:
    """The device of a hold as CDI names it."""
    return f"bcd.dev/gpu={atom.replace('/', '_')}"


class Story:
    """What the tests of this module hand on."""

    def __init__(self, machine: Machine, scratch: Path) -> None:
        self.machine, self.scratch = machine, scratch
        gpus.install(machine)
        node = "/sys/devices/system/node/node1/hugepages"
        machine.ssh(f"echo 16 >{node}/hugepages-2048kB/nr_hugepages; echo 2 >{node}/hugepages-1048576kB/nr_hugepages")
        self.announced: list[str] = []
        self.events: list[str] = []

    def hold(self, assignments: list[dict[str, Any]], generation: int, *arguments: str, **more: Any) -> dict[str, Any]:
        """One pass of the module; its result."""
        options = {"assignments": assignments, "generation": generation, "node_id": "node_lab", **more}
        extra = self.scratch / "variables.json"
        extra.write_text(json.dumps({"holds": options}), encoding="utf-8")
        played = controller.playbook(
            str(self.scratch),
            str(self.machine.ansible_inventory),
            str(Path(gpus.__file__).with_name("pass.yml")),
            "--become",
            "--extra-vars",
            f"@{extra}",
            *arguments,
            as_json=True,
            timeout=900,
            variables={"ANSIBLE_TIMEOUT": "120"},
        )
        assert "{" in played.out, played.out + played.err
        [task] = played.events()["tasks"]
        result: dict[str, Any] = task["result"]
        assert (played.rc, task["status"]) == (0, "ok"), result
        return result

    def cgroup(self, name: str, files: dict[str, str]) -> dict[str, str]:
        """What the kernel shows in these files of the allocation's slice."""
        shown = self.machine.ssh(f"cd {folder_of(name)} && for file in {' '.join(files)}; do cat $file; done").out
        return dict(zip(files, shown.splitlines()))

    def spec(self, name: str) -> dict[str, Any]:
        """The allocation's specification, which the reference library would load."""
        found: dict[str, Any] = json.loads(self.machine.read(spec_of(name)))
        assert faults(found) == []
        return found


@pytest.fixture(scope="module")
def story(lab_story: Machine, tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(lab_story, tmp_path_factory.mktemp("holds"))


def steps(result: dict[str, Any]) -> list[str]:
    """What was done, or would be, a sentence each."""
    return [step["action"] for step in result["steps"]]


def reported(result: dict[str, Any]) -> list[tuple[str, str, int]]:
    """The events: what became of which allocation, at which generation."""
    bodies = [(event["type"], json.loads(event["body"])) for event in result["events"]]
    return sorted((kind, body["allocation_id"], body["generation"]) for kind, body in bodies)


def bound_at(generation: int, *names: str) -> list[tuple[str, str, int]]:
    return [("AllocationBound", name, generation) for name in names]


def there(story: Story, *paths: str) -> list[str]:
    """Those of the paths that are there."""
    return story.machine.ssh(f"ls -d {' '.join(paths)} 2>/dev/null", check=False).out.split()


def test_a_check_says_what_a_pass_does_and_does_nothing(story: Story) -> None:
    checked = story.hold(FIRST, 42, "--check")
    assert checked["changed"]
    story.announced = steps(checked)
    assert story.announced
    made = (STATE, "/run/bcd", *map(spec_of, (TRAINER, NOTEBOOK, WORKER)), f"{CGROUPS}/bcd.slice")
    assert there(story, *made) == []


def test_a_pass_binds_all_three(story: Story) -> None:
    done = story.hold(FIRST, 42)
    assert done["changed"]
    assert (done["bound"], done["kept"], done["released"], done["failures"]) == (
        [TRAINER, NOTEBOOK, WORKER],
        [],
        [],
        [],
    )
    assert done["section"]["state"] == "CONVERGED", done["section"]
    assert reported(done) == bound_at(42, TRAINER, NOTEBOOK, WORKER)
    assert [step for step in story.announced if LATER not in step and step not in steps(done)] == []
    modes = {spec_of: "644", env_of: "644", record_of: "600"}
    wanted = {place(name): f"{mode} root" for name in (TRAINER, NOTEBOOK, WORKER) for place, mode in modes.items()}
    shown = story.machine.ssh(f"stat -c '%a %U' {' '.join(wanted)}").out.splitlines()
    assert dict(zip(wanted, shown)) == wanted
    assert story.machine.read(env_of(TRAINER)).splitlines() == [
        f"BCD_ALLOCATION_ID={TRAINER}",
        f"BCD_CGROUP_PARENT={slice_of(TRAINER)}",
        "BCD_RESERVATION_ID=rsv_01jz8k1q",
        f"NVIDIA_VISIBLE_DEVICES={WHOLE}",
        "JOB=train",
    ]
    spec = story.spec(TRAINER)
    assert spec["cdiVersion"] == "0.7.0"  # additional groups need it
    assert spec["annotations"]["bcd.dev/cgroup-parent"] == slice_of(TRAINER)
    assert "bcd.dev/cgroup-parent" not in story.spec(NOTEBOOK)["annotations"]
    assert there(story, folder_of(NOTEBOOK)) == []


def test_the_kernel_shows_the_limits(story: Story) -> None:
    assert story.cgroup(TRAINER, SHOWN) == SHOWN
    assert story.cgroup(WORKER, WORKERS_SHOWN) == WORKERS_SHOWN


def test_a_container_sees_what_its_hold_has_and_no_other(story: Story) -> None:
    whole, part = podman.start(
        story.machine,
        Wanted("train", cdi(WHOLE), slice_of(TRAINER)),
        Wanted("notebook", cdi(INSTANCE)),
    )
    capability = gpus.CAPABILITIES[1]
    expected = {"train": (NODES[WHOLE],), "notebook": (NODES[PARTED], capability)}
    for name, seen, visible in (("train", whole, WHOLE), ("notebook", part, gpus.mig_uuid(1))):
        nodes = {path.rpartition("/")[2]: NUMBERS[path] for path in (*expected[name], CONTROL, MEMORY)}
        assert seen.nodes == nodes
        assert "ro" in seen.mounts[LIBRARY]
        assert [line for line in seen.environment if line.startswith("NVIDIA_")] == [
            f"NVIDIA_VISIBLE_DEVICES={visible}"
        ]
        # The container may open it, and nothing answers: what it may not open is "Operation not permitted".
        assert seen.opened == f"cat: can't open '{expected[name][0]}': No such device or address"
        assert seen.status["Groups"].split() == [str(GID)]
    ours = [[line for line in seen.environment if line.startswith("BCD_")] for seen in (whole, part)]
    assert sorted(ours[0]) == [f"BCD_ALLOCATION_ID={TRAINER}", f"BCD_CGROUP_PARENT={slice_of(TRAINER)}"]
    assert ours[1] == [f"BCD_ALLOCATION_ID={NOTEBOOK}"]
    assert story.machine.read(gpus.HOOKED).split() == ["update-ldcache"] * 2
    assert (whole.status["Cpus_allowed_list"], whole.status["Mems_allowed_list"]) == ("2-3", "1")
    assert there(story, f"{folder_of(TRAINER)}/libpod-{whole.id}.scope") != []
    assert there(story, f"{folder_of(NOTEBOOK)}", f"{folder_of(TRAINER)}/libpod-{part.id}.scope") == []


def test_what_others_undid_is_done_again_and_is_no_news(story: Story) -> None:
    """Limits that were lifted while the workload runs, and files that are gone."""
    before = {path: story.machine.read(path) for path in (env_of(NOTEBOOK), spec_of(WORKER), record_of(TRAINER))}
    story.machine.ssh(
        f"cd {folder_of(TRAINER)} && echo max >hugetlb.2MB.max"
        f"; systemctl set-property --runtime {slice_of(TRAINER)} MemoryMax=infinity AllowedCPUs="
        f"; systemctl daemon-reload; rm {' '.join(before)}"
    )
    lifted = {"memory.max": "max", "hugetlb.2MB.max": "max"}
    assert story.cgroup(TRAINER, lifted) == lifted
    done = story.hold(FIRST, 42)
    assert done["changed"]
    assert (done["bound"], done["kept"]) == ([], [TRAINER, NOTEBOOK, WORKER])
    assert reported(done) == bound_at(42, TRAINER, NOTEBOOK, WORKER)
    assert story.cgroup(TRAINER, SHOWN) == SHOWN
    after = {path: story.machine.read(path) for path in before}
    assert {path for path in before if path != record_of(TRAINER) and after[path] != before[path]} == set()
    again = story.hold(FIRST, 42)
    assert (again["changed"], steps(again)) == (False, [])


def test_a_gpu_moves_in_one_pass_and_the_workload_that_outlives_its_hold_keeps_its_limits(story: Story) -> None:
    done = story.hold(SECOND, 43)
    assert (done["released"], done["bound"], done["kept"], done["failures"]) == (
        [TRAINER],
        [NEXT],
        [NOTEBOOK, WORKER],
        [],
    )
    assert reported(done) == [
        *bound_at(42, TRAINER, NOTEBOOK),
        *bound_at(43, NEXT),
        *bound_at(42, WORKER),
        ("AllocationReleased", TRAINER, 42),
    ]
    story.events = [event["id"] for event in done["events"]]
    assert there(story, spec_of(TRAINER), env_of(TRAINER), record_of(TRAINER)) == []
    assert story.cgroup(TRAINER, SHOWN) == SHOWN
    assert story.cgroup(TRAINER, {"cgroup.events": ""}) == {"cgroup.events": "populated 1"}
    assert story.cgroup(NEXT, SHOWN) == SHOWN


def test_its_slice_goes_with_the_workload(story: Story) -> None:
    podman.stop(story.machine, "train")
    done = story.hold(SECOND, 43)
    assert done["changed"]
    assert (done["released"], done["bound"]) == ([], [])
    assert there(story, folder_of(TRAINER), kept_of(TRAINER)) == []
    assert story.cgroup(NEXT, SHOWN) == SHOWN


def test_a_boot_takes_no_hold_away(story: Story) -> None:
    names = (NOTEBOOK, NEXT, WORKER)
    kept = [path for name in names for path in (spec_of(name), record_of(name))]
    before = {path: story.machine.read(path) for path in (*kept, *map(env_of, names))}
    gpus.lose_instances(story.machine)
    story.machine.reboot()
    assert there(story, "/run/bcd/allocations", f"{CGROUPS}/bcd.slice") == []
    assert {path: story.machine.read(path) for path in kept} == {path: before[path] for path in kept}
    done = story.hold(SECOND, 43)
    assert done["changed"]
    assert (done["bound"], done["kept"], done["released"], done["failures"]) == ([], list(names), [], [])
    assert [event["id"] for event in done["events"]] == story.events  # those of before, which nobody has acknowledged
    assert {path: story.machine.read(path) for path in before} == before
    assert story.cgroup(NEXT, SHOWN) == SHOWN
    assert story.cgroup(WORKER, WORKERS_SHOWN) == WORKERS_SHOWN
    # Its MIG device is not made again yet: the hold waits for it and is kept.
    assert done["section"]["state"] == "PROGRESSING"
    assert NOTEBOOK in done["section"]["message"]


def test_under_a_ceiling_podman_takes_what_an_old_library_takes(story: Story) -> None:
    names = (NOTEBOOK, NEXT, WORKER)
    story.machine.ssh(f"cat >{gpus.STORE}/machine.json", stdin=gpus.inventory().dump())
    done = story.hold(SECOND, 43, max_cdi_version="0.5.0", acknowledge=story.events)
    assert done["kept"] == list(names)
    assert (done["section"]["state"], done["events"]) == ("CONVERGED", [])
    for name in names:
        spec = story.spec(name)  # sound at the version that it names
        assert spec["cdiVersion"] in ("0.3.0", "0.4.0", "0.5.0")
    devices = (("next", WHOLE, slice_of(NEXT)), ("part", INSTANCE, ""), ("work", SLOT, slice_of(WORKER)))
    shown = podman.start(story.machine, *(Wanted(name, cdi(atom), parent) for name, atom, parent in devices))
    visible = (WHOLE, gpus.mig_uuid(1), SHARED)
    nodes = ({"nvidia0"}, {"nvidia1", "nvidia-cap12"}, {"nvidia2"})
    for seen, uuid, own in zip(shown, visible, nodes):
        assert seen.nodes.keys() == own | {"nvidiactl", "nvidia-uvm"}
        assert f"NVIDIA_VISIBLE_DEVICES={uuid}" in seen.environment
    assert [seen.status["Cpus_allowed_list"] for seen in shown] == ["2-3", "0-3", "0-3"]
    again = story.hold(SECOND, 43, max_cdi_version="0.5.0")
    assert (again["changed"], steps(again), again["events"]) == (False, [], [])
    podman.stop(story.machine, *(name for name, _atom, _parent in devices))
    gone = story.hold([], 44, max_cdi_version="0.5.0")
    assert gone["released"] == list(names)
    files = [place(name) for name in names for place in (spec_of, env_of, record_of)]
    slices = [path for name in (NEXT, WORKER) for path in (folder_of(name), kept_of(name))]
    assert there(story, *files, *slices) == []
