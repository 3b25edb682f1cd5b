# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a reboot does to a simulated host."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.sim import boot
from tests.sim.host import SimulatedHost
from tests.sim.machine import Node
from tests.sim.tree import PROFILES

from .conftest import Maker

NODE = "/sys/devices/system/node/node{}/hugepages/hugepages-{}/nr_hugepages"


def with_arguments(make: Maker, arguments: str, **changes: Any) -> SimulatedHost:
    host = make("debian", **changes)
    host.write("/etc/default/grub.d/90-test.cfg", f'GRUB_CMDLINE_LINUX="{arguments}"\n')
    host.run("update-grub")
    host.reboot()
    return host


def test_a_reboot_starts_over(make: Maker) -> None:
    host = make()
    before = (host.read("/proc/sys/kernel/random/boot_id") or "").strip()
    host.run("modprobe", "tun")
    host.run("touch", "/run/gone", "/var/kept")
    host.set("/proc/sys/vm/swappiness", "7")
    host.set("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "9")
    after = host.reboot()
    assert after not in ("", before)
    assert host.read("/sys/module/tun/refcnt") is None
    assert (host.read("/run/gone"), host.read("/var/kept")) == (None, "")
    assert host.read("/proc/sys/vm/swappiness") == "60\n"
    assert host.read("/proc/sys/vm/nr_hugepages") == "0\n"


def test_sysctl_d_applies_by_name_once_modules_are_loaded(make: Maker) -> None:
    host = make()
    host.write("/etc/modules-load.d/x.conf", "# comment\nbr_netfilter\n")
    host.write("/etc/sysctl.d/90-x.conf", "net.bridge.bridge-nf-call-iptables = 0\nvm.swappiness=1\n; no\n")
    host.write(
        "/usr/lib/sysctl.d/95-y.conf", "-vm.swappiness = 2\nnet.ipv4.conf.eth0/100.forwarding = 1\nno.such = 1\n"
    )
    host.write("/usr/lib/sysctl.d/99-z.conf", "vm.swappiness = 3\n")
    host.write("/etc/sysctl.d/99-z.conf", "# hides it\n")
    host.reboot()
    assert host.read("/proc/sys/net/bridge/bridge-nf-call-iptables") == "0\n"
    assert host.read("/proc/sys/vm/swappiness") == "2\n"
    assert host.read("/proc/sys/net/ipv4/conf/eth0.100/forwarding") == "1\n"


def test_modules_load_d_honours_options_and_the_blacklist(make: Maker) -> None:
    host = make()
    host.write("/etc/modules-load.d/x.conf", "loop\npcspkr\nno_such\n")
    host.write("/etc/modprobe.d/x.conf", "options loop max_loop=4\nblacklist pcspkr\n")
    host.reboot()
    assert host.read("/sys/module/loop/parameters/max_loop") == "4\n"
    assert host.read("/sys/module/pcspkr/refcnt") is None


@pytest.mark.parametrize(
    ("arguments", "pages"),
    [
        ("hugepagesz=1G hugepages=5", {"1048576kB": (3, 2), "2048kB": (0, 0)}),
        ("hugepagesz=1G hugepages=0:1,1:2", {"1048576kB": (1, 2), "2048kB": (0, 0)}),
        ("hugepages=10 hugepagesz=1G hugepages=2", {"1048576kB": (1, 1), "2048kB": (5, 5)}),
        ("default_hugepagesz=1G hugepages=4", {"1048576kB": (2, 2), "2048kB": (0, 0)}),
        ("hugepagesz=1G hugepages=20", {"1048576kB": (4, 4), "2048kB": (0, 0)}),
    ],
)
def test_pages_of_the_command_line(make: Maker, arguments: str, pages: dict[str, tuple[int, int]]) -> None:
    host = with_arguments(make, arguments)
    for size, counts in pages.items():
        assert tuple(int(host.read(NODE.format(node, size)) or "") for node in (0, 1)) == counts


def test_a_short_node_leaves_the_rest_to_the_others(make: Maker) -> None:
    nodes = (Node((0, 1, 2, 3), 8192, 1, 1), Node((4, 5, 6, 7), 8192, 1, 6))
    host = with_arguments(make, "hugepagesz=1G hugepages=4", nodes=nodes)
    assert [host.read(NODE.format(node, "1048576kB")) for node in (0, 1)] == ["1\n", "3\n"]


@pytest.mark.parametrize(
    ("arguments", "isolated"),
    [
        ("isolcpus=managed_irq,domain,2-3,6", "2-3,6"),
        ("isolcpus=1,2", "1-2"),
        ("isolcpus=managed_irq,4", ""),  # without domain the scheduler keeps them
        ("isolcpus=4-99", "4-7"),
        ("nohz_full=1", ""),
    ],
)
def test_isolated_cpus(make: Maker, arguments: str, isolated: str) -> None:
    assert with_arguments(make, arguments).read("/sys/devices/system/cpu/isolated") == isolated + "\n"


@pytest.mark.parametrize(
    ("vendor", "iommu", "arguments", "units"),
    [
        ("intel", "argument", "", 0),
        ("intel", "argument", "intel_iommu=on iommu=pt", 1),
        ("intel", "argument", "amd_iommu=on", 0),
        ("amd", "on", "", 1),
        ("amd", "on", "iommu=off", 0),
        ("amd", "off", "amd_iommu=on", 0),
        ("arm", "argument", "iommu=pt", 1),
    ],
)
def test_the_iommu(make: Maker, vendor: str, iommu: str, arguments: str, units: int) -> None:
    host = with_arguments(make, arguments, vendor=vendor, iommu=iommu)
    assert len(host.run("ls", "/sys/class/iommu").stdout.split()) == units
    assert bool(host.run("ls", "/sys/kernel/iommu_groups").stdout) == bool(units)


def test_transparent_huge_pages_of_the_command_line(make: Maker) -> None:
    host = with_arguments(make, "transparent_hugepage=never")
    assert host.read("/sys/kernel/mm/transparent_hugepage/enabled") == "always madvise [never]\n"


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_every_profile_boots_again_as_it_was(make: Maker, profile: str) -> None:
    host = make(profile)
    before = host.read("/proc/cmdline")
    first = (host.read("/proc/sys/kernel/random/boot_id") or "").strip()
    assert host.reboot() != first
    assert host.read("/proc/cmdline") == before
    assert len((before or "").split()) >= 3
    assert sum(len(files) for _folder, _folders, files in os.walk(host.tree)) < 300


def test_reboots_that_go_wrong(make: Maker) -> None:
    host = make(misboot="same-boot-id")
    first = (host.read("/proc/sys/kernel/random/boot_id") or "").strip()
    assert host.reboot() == first
    host.change(misboot="other-loader")
    host.write("/etc/default/grub.d/90-x.cfg", 'GRUB_CMDLINE_LINUX="iommu=pt"\n')
    host.run("update-grub")
    assert host.reboot() != first
    assert "iommu=pt" not in (host.read("/proc/cmdline") or "")
    host.change(misboot="never-back")
    second = (host.read("/proc/sys/kernel/random/boot_id") or "").strip()
    assert host.reboot() == second
    assert host.read(boot.DOWN) is not None
    host.up()
    assert host.read(boot.DOWN) is None


@pytest.mark.parametrize("name", ["vm.swappiness", "vm/swappiness", "net.ipv4.conf.eth0/100.forwarding"])
def test_sysctl_names(name: str) -> None:
    expected = {"n": "net/ipv4/conf/eth0.100/forwarding", "v": "vm/swappiness"}[name[0]]
    assert boot.sysctl_path(name) == expected
