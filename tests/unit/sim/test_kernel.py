# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes to the simulated kernel's files: outcomes, shapes and refusals of the real one."""

from __future__ import annotations

import errno
import os

import pytest

from tests.sim.machine import Node, as_cpulist, cpulist
from tests.sim.tree import machine

from .conftest import Maker

HOST_2M = "/sys/kernel/mm/hugepages/hugepages-2048kB"
HOST_1G = "/sys/kernel/mm/hugepages/hugepages-1048576kB"
NODE = "/sys/devices/system/node/node{}/hugepages/hugepages-{}/{}_hugepages"


def test_the_hosts_file_spreads_pages_over_the_nodes(make: Maker) -> None:
    host = make()
    host.set(f"{HOST_2M}/nr_hugepages", "101")
    assert [host.read(NODE.format(node, "2048kB", "nr")) for node in (0, 1)] == ["51\n", "50\n"]
    assert host.read(f"{HOST_2M}/free_hugepages") == "101\n"
    assert host.read("/proc/sys/vm/nr_hugepages") == "101\n"
    assert "HugePages_Total:        101" in (host.read("/proc/meminfo") or "")
    host.set("/proc/sys/vm/nr_hugepages", "10")
    assert host.read(f"{HOST_2M}/nr_hugepages") == "10\n"


def test_a_node_gives_what_its_memory_has(make: Maker) -> None:
    nodes = (Node((0, 1), 8192, 1, 4), Node((2, 3), 1024, 3, 3))
    host = make(nodes=nodes)
    host.set(NODE.format(0, "1048576kB", "nr"), "4")  # one contiguous GiB found: the write succeeds all the same
    assert host.read(NODE.format(0, "1048576kB", "nr")) == "1\n"
    host.set(NODE.format(1, "1048576kB", "nr"), "2")  # 512 MiB free
    assert host.read(NODE.format(1, "1048576kB", "nr")) == "0\n"
    host.set(NODE.format(1, "2048kB", "nr"), "1000")
    assert host.read(NODE.format(1, "2048kB", "nr")) == "256\n"
    assert host.read(f"{HOST_1G}/nr_hugepages") == "1\n"


def test_pages_in_use_become_surplus(make: Maker) -> None:
    from tests.sim import pages

    host = make()
    host.set(NODE.format(0, "2048kB", "nr"), "8")
    pages.use(host.tree, 0, "2048kB", 5)
    host.set(NODE.format(0, "2048kB", "nr"), "2")
    shown = [host.read(NODE.format(0, "2048kB", what)) for what in ("nr", "free", "surplus")]
    assert shown == ["5\n", "0\n", "3\n"]  # the count that a pool shows has its surplus in it


def test_a_kernel_without_numa_has_the_hosts_pool_only(make: Maker) -> None:
    host = make(**machine(nodes=1, cpus=4)._replace(numa=False)._asdict())
    assert host.run("ls", "/sys/devices/system/node").returncode != 0
    host.set(f"{HOST_2M}/nr_hugepages", "12")
    assert host.read(f"{HOST_2M}/nr_hugepages") == "12\n"


def test_a_kernel_without_1g_pages(make: Maker) -> None:
    host = make(pages_1g=False)
    with pytest.raises(FileNotFoundError) as fault:
        host.set(f"{HOST_1G}/nr_hugepages", "1")
    assert fault.value.errno == errno.ENOENT


@pytest.mark.parametrize(
    ("path", "value", "shown"),
    [
        ("/proc/sys/net/ipv4/tcp_rmem", "4096  65536 16777216", "4096\t65536\t16777216\n"),
        ("/proc/sys/net/ipv4/tcp_rmem", "8192", "8192\t131072\t6291456\n"),
        ("/proc/sys/fs/pipe-max-size", "1000000", "1048576\n"),
        ("/proc/sys/vm/swappiness", "0x10", "16\n"),
        ("/proc/sys/net/core/default_qdisc", "fq", "fq\n"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "never", "always madvise [never]\n"),
        ("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "performance", "performance\n"),
    ],
)
def test_what_a_value_is_shown_as(make: Maker, path: str, value: str, shown: str) -> None:
    host = make()
    host.set(path, value)
    assert host.read(path) == shown


@pytest.mark.parametrize(
    ("path", "value", "number"),
    [
        ("/proc/sys/vm/mmap_rnd_bits", "1024", errno.EINVAL),
        ("/proc/sys/vm/swappiness", "lots", errno.EINVAL),
        ("/proc/sys/vm/swappiness", "1 2", errno.EINVAL),
        ("/proc/sys/kernel/osrelease", "7.0", errno.EACCES),
        ("/proc/sys/kernel/panic", "9", errno.EINVAL),
        ("/proc/sys/kernel/sysrq", "1", errno.EACCES),
        ("/proc/sys/no/such", "1", errno.ENOENT),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "sometimes", errno.EINVAL),
        ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "schedutil", errno.EINVAL),
        ("/sys/devices/system/cpu/isolated", "1", errno.EACCES),
        (f"{HOST_2M}/nr_hugepages", "-1", errno.EINVAL),
    ],
)
def test_what_the_kernel_refuses(make: Maker, path: str, value: str, number: int) -> None:
    host = make(einval_sysctl=(("kernel/panic", "9"),), readonly_sysctl=("kernel/sysrq",))
    before = host.read(path)
    with pytest.raises(OSError, match=os.strerror(number)) as fault:
        host.set(path, value)
    assert fault.value.errno == number
    assert host.read(path) == before


def test_turning_forwarding_on_turns_it_on_everywhere(make: Maker) -> None:
    host = make()
    host.set("/proc/sys/net/ipv4/ip_forward", "1")
    assert host.read("/proc/sys/net/ipv4/conf/eth0/forwarding") == "1\n"


@pytest.mark.parametrize(("text", "cpus"), [("0-3,8", (0, 1, 2, 3, 8)), ("", ()), ("5", (5,)), ("7,6", (6, 7))])
def test_cpulists(text: str, cpus: tuple[int, ...]) -> None:
    assert cpulist(text) == cpus
    assert cpulist(as_cpulist(cpus)) == cpus


def test_a_reversed_range_is_no_cpulist() -> None:
    with pytest.raises(ValueError, match="4-3"):
        cpulist("4-3")
