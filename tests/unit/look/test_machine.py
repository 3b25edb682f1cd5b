# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine is made of, read from files as kernels show them."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.look import machine
from tests.unit.fake_host import FakeHost

CPU, NODES, PAGES = "/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/kernel/mm/hugepages"


def pool(folder: str, total: int, free: int, surplus: int) -> dict[str, str]:
    return {
        f"{folder}/nr_hugepages": f"{total}\n",
        f"{folder}/free_hugepages": f"{free}\n",
        f"{folder}/surplus_hugepages": f"{surplus}\n",
    }


@pytest.mark.parametrize(("online", "count"), [("0\n", 1), ("0-3,8\n", 5), ("0,2,4-5\n", 4), ("0-127,256-383\n", 256)])
def test_cpus_online_are_counted_as_the_kernel_lists_them(online: str, count: int) -> None:
    assert machine.cpu(FakeHost({f"{CPU}/online": online}))["count"] == count


def test_cpus_with_an_offline_one_and_two_governors() -> None:
    host = FakeHost(
        {
            f"{CPU}/online": "0-2\n",
            f"{CPU}/isolated": "2\n",
            f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave\n",
            f"{CPU}/cpu1/cpufreq/scaling_governor": "performance\n",
            f"{CPU}/cpu2/cpufreq/scaling_governor": "performance\n",
            f"{CPU}/cpu3/online": "0\n",
            f"{CPU}/cpufreq/policy0/scaling_governor": "powersave\n",
            f"{CPU}/cpuidle/current_governor": "menu\n",
        }
    )
    assert machine.cpu(host) == {"count": 3, "isolated": "2", "governors": {"performance": 2, "powersave": 1}}


def test_a_virtual_machine_without_frequency_scaling_has_no_governors() -> None:
    host = FakeHost({f"{CPU}/online": "0-1\n", f"{CPU}/isolated": "\n", f"{CPU}/cpu0/topology/core_id": "0\n"})
    assert machine.cpu(host) == {"count": 2, "isolated": "", "governors": {}}


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("hugepages-2048kB", "2Mi"),
        ("hugepages-1048576kB", "1Gi"),
        ("hugepages-64kB", "64Ki"),
        ("hugepages-524288kB", "512Mi"),
        ("hugepages-16777216kB", "16Gi"),
    ],
)
def test_page_sizes_are_named_as_people_write_them(folder: str, name: str) -> None:
    size = machine.page_size(folder)
    assert size is not None
    assert size.words == name


def test_another_directory_is_no_page_size() -> None:
    assert machine.page_size("transparent") is None


def test_nodes_have_their_cpus_memory_and_pools() -> None:
    two, one = "hugepages-2048kB", "hugepages-1048576kB"
    host = FakeHost(
        {
            **pool(f"{PAGES}/{two}", 640, 600, 64),
            **pool(f"{PAGES}/{one}", 3, 1, 0),
            f"{NODES}/online": "0-1\n",
            f"{NODES}/node0/cpulist": "0-3\n",
            f"{NODES}/node0/meminfo": "Node 0 MemTotal:        2031616 kB\nNode 0 MemFree:  1024 kB\n",
            **pool(f"{NODES}/node0/hugepages/{two}", 576, 536, 64),
            **pool(f"{NODES}/node0/hugepages/{one}", 1, 1, 0),
            f"{NODES}/node1/cpulist": "\n",
            f"{NODES}/node1/meminfo": "Node 1 MemTotal:        1048576 kB\n",
            **pool(f"{NODES}/node1/hugepages/{two}", 64, 64, 0),
            **pool(f"{NODES}/node1/hugepages/{one}", 2, 0, 0),
        }
    )
    assert machine.numa(host) == [
        {
            "id": 0,
            "cpus": "0-3",
            "memory": 2031616 * 1024,
            "hugepages": {
                "2Mi": {"total": 576, "free": 536, "surplus": 64},
                "1Gi": {"total": 1, "free": 1, "surplus": 0},
            },
        },
        {
            "id": 1,
            "cpus": "",
            "memory": 1048576 * 1024,
            "hugepages": {"2Mi": {"total": 64, "free": 64, "surplus": 0}, "1Gi": {"total": 2, "free": 0, "surplus": 0}},
        },
    ]
    assert machine.hugepages(host) == {
        "2Mi": {"total": 640, "free": 600, "surplus": 64},
        "1Gi": {"total": 3, "free": 1, "surplus": 0},
    }


def test_a_kernel_without_nodes_shows_none() -> None:
    assert machine.numa(FakeHost()) == []
    assert machine.hugepages(FakeHost()) == {}


@pytest.mark.parametrize(
    ("files", "enabled", "groups", "names"),
    [
        ({}, False, 0, []),
        # Listed without a group of devices: it translates for nobody.
        ({"/sys/class/iommu/dmar0/uevent": ""}, False, 0, ["dmar0"]),
        ({"/sys/kernel/iommu_groups/0/type": "DMA\n"}, False, 1, []),
        (
            {
                "/sys/class/iommu/dmar0/uevent": "",
                "/sys/class/iommu/dmar1/uevent": "",
                "/sys/kernel/iommu_groups/0/type": "DMA\n",
                "/sys/kernel/iommu_groups/1/type": "identity\n",
                "/sys/kernel/iommu_groups/10/type": "identity\n",
            },
            True,
            3,
            ["dmar0", "dmar1"],
        ),
    ],
)
def test_an_iommu_is_in_use_when_devices_are_in_groups(
    files: dict[str, str], enabled: bool, groups: int, names: list[str]
) -> None:
    assert machine.iommu(FakeHost(files)) == {"enabled": enabled, "groups": groups, "names": names}
