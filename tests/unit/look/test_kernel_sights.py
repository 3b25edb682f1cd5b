# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sights of the kernel's files: what moves on a live machine without mattering changes none, and what matters does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.look import (
    builtin_modules,
    cpu_governors,
    iommu,
    memory_shown,
    nvidia_kernel,
    pci_bus,
    read_only_root,
)
from tests.unit.fake_host import FakeHost

Change = Callable[[FakeHost], None]
PAGES = "/sys/kernel/mm/hugepages/hugepages-2048kB"
CPUS = "/sys/devices/system/cpu"
BUS = "/sys/bus/pci/devices"
HUGETLBFS = "hugetlbfs /dev/hugepages1G hugetlbfs rw,relatime,pagesize=1024M 0 0\n"
MOUNTS = f"proc /proc proc rw 0 0\n/dev/sda1 / ext4 rw,relatime 0 0\n{HUGETLBFS}"


def put(path: str, text: str) -> Change:
    return lambda host: host.put(path, text)


def pages(**counts: int) -> Change:
    def change(host: FakeHost) -> None:
        for name, count in counts.items():
            host.put(f"{PAGES}/{name}_hugepages", f"{count}\n")

    return change


def device(address: str, vendor: str, kind: str, vpd: str = "") -> Change:
    def change(host: FakeHost) -> None:
        for name, text in (("vendor", vendor), ("class", kind), ("device", "0x2330"), ("vpd", vpd)):
            host.put(f"{BUS}/{address}/{name}", f"{text}\n")

    return change


def gone(folder: str) -> Change:
    def change(host: FakeHost) -> None:
        for path in [path for path in host.files if path.startswith(f"{folder}/")]:
            del host.files[path]

    return change


def driver(address: str, name: str) -> Change:
    return lambda host: host.links.update({f"{BUS}/{address}/driver": f"../../../bus/pci/drivers/{name}"})


def machine() -> FakeHost:
    """A machine of two CPUs with one frequency, 512 huge pages of which some are used, a GPU and an NVSwitch."""
    host = FakeHost(
        {
            "/proc/meminfo": "MemTotal:       263856084 kB\nMemFree:        1000 kB\n",
            "/proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu MHz\t\t: 800.000\n",
            "/proc/mounts": MOUNTS,
            "/proc/self/mounts": MOUNTS,
            "/proc/sys/kernel/osrelease": "6.8.0-88-generic\n",
            "/lib/modules/6.8.0-88-generic/modules.builtin": "kernel/drivers/net/tun.ko\nkernel/fs/fuse.ko\n",
            "/proc/devices": "Character devices:\n  1 mem\n195 nvidia\n511 nvidia-uvm\n\nBlock devices:\n  8 sd\n",
            "/sys/module/nvidia/refcnt": "12\n",
            "/sys/module/nvidia_current_uvm/refcnt": "2\n",
            "/sys/module/tun/refcnt": "1\n",
            "/sys/kernel/iommu_groups/0/type": "DMA\n",
            **{f"{CPUS}/cpu{n}/cpufreq/scaling_governor": "performance\n" for n in (0, 1)},
        },
        links={f"{CPUS}/cpu{n}/cpufreq": "../cpufreq/policy0" for n in (0, 1)},
    )
    pages(nr=512, free=100, surplus=0)(host)
    device("0000:17:00.0", "0x10de", "0x030200")(host)
    device("0000:05:00.0", "0x10de", "0x068000")(host)
    return host


def test_what_the_sights_of_this_machine_are() -> None:
    host = machine()
    assert host.sight(memory_shown.total, "/proc/meminfo") == 263856084
    assert host.sight(memory_shown.pool, PAGES, 512, False) == [512, 512, 0]
    assert host.sight(memory_shown.mounted, "/proc/mounts", "/dev/hugepages1G") == HUGETLBFS.rstrip("\n")
    assert host.sight(cpu_governors.governors, [0, 1], "performance") == [([0, 1], "performance", None)]
    assert host.sight(iommu.vendor) == "GenuineIntel"
    assert host.sight(iommu.has_groups) is True
    assert host.sight(builtin_modules.is_builtin, "tun") is True
    assert host.sight(nvidia_kernel.modules, ["tun"]) == ["nvidia", "nvidia_uvm", "tun"]
    assert host.sight(nvidia_kernel.majors) == {"nvidia": 195, "nvidia-uvm": 511}
    assert host.sight(pci_bus.gpus) == [("0000:17:00.0", "0x2330\n", "")]
    assert host.sight(pci_bus.switches) == ["0000:05:00.0"]
    assert host.sight(pci_bus.managers) == []
    assert host.sight(read_only_root.root_is_read_only) is False


MEMORY = "MemTotal:       {} kB\nMemFree:        {} kB\n"
CPUINFO = "processor\t: 0\nvendor_id\t: {}\ncpu MHz\t\t: {}\n"
DEVICES = "Character devices:\n  1 mem\n{}\nBlock devices:\n  8 sd\n"


@pytest.mark.parametrize(
    ("sight", "given", "idle", "matters"),
    [
        (
            memory_shown.total,
            ("/proc/meminfo",),
            put("/proc/meminfo", MEMORY.format(263856084, 7)),
            put("/proc/meminfo", MEMORY.format(131928042, 1000)),
        ),
        (memory_shown.pool, (PAGES, 512, False), pages(free=3), pages(nr=511)),
        (memory_shown.pool, (PAGES, 512, False), pages(free=512), pages(nr=520, surplus=8)),
        (memory_shown.pool, (PAGES, 512, True), pages(nr=520, surplus=8, free=0), pages(nr=520, surplus=7)),
        (
            memory_shown.mounted,
            ("/proc/mounts", "/dev/hugepages1G"),
            put("/proc/mounts", f"{MOUNTS}overlay /run/containerd/x overlay rw 0 0\n"),
            put("/proc/mounts", f"{MOUNTS}tmpfs /dev/hugepages1G tmpfs rw 0 0\n"),
        ),
        (
            cpu_governors.governors,
            ([0, 1], "performance"),
            put(f"{CPUS}/cpu0/cpufreq/scaling_cur_freq", "3500000\n"),
            put(f"{CPUS}/cpu0/cpufreq/scaling_governor", "powersave\n"),
        ),
        (
            iommu.vendor,
            (),
            put("/proc/cpuinfo", CPUINFO.format("GenuineIntel", "3500.000")),
            put("/proc/cpuinfo", CPUINFO.format("AuthenticAMD", "800.000")),
        ),
        (
            iommu.has_groups,
            (),
            put("/sys/kernel/iommu_groups/1/type", "DMA\n"),
            gone("/sys/kernel/iommu_groups"),
        ),
        (
            builtin_modules.is_builtin,
            ("tun",),
            put("/lib/modules/6.8.0-88-generic/modules.builtin", "kernel/drivers/net/tun.ko\n"),
            put("/lib/modules/6.8.0-88-generic/modules.builtin", "kernel/fs/fuse.ko\n"),
        ),
        (
            nvidia_kernel.modules,
            ([],),
            put("/sys/module/nfsv4/refcnt", "3\n"),
            put("/sys/module/nvidia_modeset/refcnt", "0\n"),
        ),
        (
            nvidia_kernel.modules,
            ([],),
            put("/sys/module/gdrdrv/refcnt", "0\n"),
            put("/sys/module/nvidia_fs/refcnt", ""),
        ),
        (
            nvidia_kernel.modules,
            (["gdrdrv"],),
            put("/sys/module/nvidia/refcnt", "90\n"),
            put("/sys/module/gdrdrv/refcnt", ""),
        ),
        (
            nvidia_kernel.majors,
            (),
            put("/proc/devices", DEVICES.format("195 nvidia\n240 hidraw\n511 nvidia-uvm\n")),
            put("/proc/devices", DEVICES.format("195 nvidia\n510 nvidia-uvm\n")),
        ),
        (pci_bus.gpus, (), device("0000:01:00.0", "0x8086", "0x020000"), driver("0000:17:00.0", "nvidia")),
        (pci_bus.gpus, (), device("0000:06:00.0", "0x10de", "0x068000"), device("0000:18:00.0", "0x10de", "0x030200")),
        (pci_bus.switches, (), driver("0000:17:00.0", "nvidia"), device("0000:06:00.0", "0x10de", "0x068000")),
        (
            pci_bus.managers,
            (),
            device("0000:07:00.0", "0x15b3", "0x020700", "ConnectX-7"),
            device("0000:07:00.0", "0x15b3", "0x020700", "V0 SW_MNG"),
        ),
        (
            read_only_root.root_is_read_only,
            (),
            put("/proc/self/mounts", f"{MOUNTS}tmpfs /run/user/0 tmpfs ro 0 0\n"),
            put("/proc/self/mounts", "/dev/sda1 / btrfs ro,relatime 0 0\n"),
        ),
    ],
)
def test_what_moves_by_itself_changes_no_sight_and_what_matters_does(
    sight: Callable[..., Any], given: tuple[Any, ...], idle: Change, matters: Change
) -> None:
    host = machine()
    before = host.sight(sight, *given)
    idle(host)
    assert host.sight(sight, *given) == before
    matters(host)
    assert host.sight(sight, *given) != before


@pytest.mark.parametrize("wanted", [-1, 0, 511])
def test_who_uses_a_pool_is_told_where_it_may_have_to_shrink(wanted: int) -> None:
    host = machine()
    assert host.sight(memory_shown.pool, PAGES, wanted, False) == [512, 100, 0]


def test_a_surplus_that_is_not_allowed_is_told() -> None:
    host = machine()
    pages(nr=520, surplus=8)(host)
    assert host.sight(memory_shown.pool, PAGES, 512, False) == [520, 100, 8]
    assert host.sight(memory_shown.pool, PAGES, 512, True) == [512, 512, 0]


def test_who_uses_a_surplus_is_told_where_no_pages_are_wanted() -> None:
    host = FakeHost()
    pages(nr=3, free=1, surplus=3)(host)
    assert host.sight(memory_shown.pool, PAGES, 0, True) == [3, 1, 3]


def test_a_kernel_that_shows_no_surplus_has_none() -> None:
    host = FakeHost()
    pages(nr=512, free=100)(host)
    assert host.sight(memory_shown.pool, PAGES, 512, False) == [512, 512, 0]
    assert host.sight(memory_shown.pool, PAGES, -1, False) == [512, 100, 0]


def test_a_pool_that_is_not_there_and_one_that_shows_no_number() -> None:
    assert FakeHost().sight(memory_shown.pool, PAGES, 512, False) is None
    with pytest.raises(StepFailed, match="which is no number of pages"):
        FakeHost({f"{PAGES}/nr_hugepages": "many\n"}).sight(memory_shown.pool, PAGES, 512, False)


def test_what_a_driver_offers_is_read_only_where_the_governor_is_another() -> None:
    host = machine()
    host.put(f"{CPUS}/cpu0/cpufreq/scaling_available_governors", "performance powersave\n")
    assert host.sight(cpu_governors.governors, [], "performance") == [([0, 1], "performance", None)]
    assert host.sight(cpu_governors.governors, [1], "powersave") == [([1], "performance", None)]
    assert host.sight(cpu_governors.governors, [0], "powersave") == [([0], "performance", ["performance", "powersave"])]
