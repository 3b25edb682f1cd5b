# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's memory, as admission reads it."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed, Unreadable
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.host_memory import memory
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.devices_seen import Memory, Pool
from tests.unit.fake_host import FakeHost

MEMINFO = "MemTotal:       16384 kB\nMemFree:        1000 kB\nHugePages_Total:       2\nHugetlb:         {} kB\n"
POOLS = "/sys/kernel/mm/hugepages"
NODES = "/sys/devices/system/node"


def _host(meminfo: str = MEMINFO.format(8192)) -> FakeHost:
    host = FakeHost({"/proc/meminfo": meminfo})
    for place, free in (
        (POOLS, 7),
        (f"{NODES}/node0/hugepages", 2),
        (f"{NODES}/node1/hugepages", 5),
    ):
        host.put(f"{place}/hugepages-2048kB/nr_hugepages", "9\n")
        host.put(f"{place}/hugepages-2048kB/free_hugepages", f"{free}\n")
    host.put(f"{POOLS}/hugepages-2048kB/resv_hugepages", "3\n")
    return host


def test_bytes_and_pages() -> None:
    """Host-wide, what is reserved is not free; the nodes do not tell what of theirs is."""
    assert memory(_host()) == Memory(
        16384 * 1024, 8192 * 1024, (Pool(2048, 4, {0: 2, 1: 5}), Pool(1048576, 0, {0: 0, 1: 0}))
    )


def test_a_kernel_that_does_not_sum_its_pools_up() -> None:
    host = _host("MemTotal:       16384 kB\n")
    host.put(f"{POOLS}/hugepages-1048576kB/nr_hugepages", "1\n")
    assert memory(host).hugetlb == (9 * 2048 + 1048576) * 1024


def test_a_host_without_huge_pages() -> None:
    host = FakeHost({"/proc/meminfo": "MemTotal:       16384 kB\n"})
    assert memory(host) == Memory(16384 * 1024, 0, (Pool(2048, 0), Pool(1048576, 0)))


@pytest.mark.parametrize("meminfo", ["", "MemFree: 5 kB\n"])
def test_a_host_that_does_not_say(meminfo: str) -> None:
    with pytest.raises(StepFailed, match="/proc/meminfo shows no MemTotal"):
        memory(_host(meminfo))


def test_what_cannot_be_read_is_no_number() -> None:
    host = _host()
    host.put(f"{POOLS}/hugepages-2048kB/free_hugepages", "many\n")
    with pytest.raises(StepFailed, match="free_hugepages shows 'many'"):
        memory(host)
    host.unreadable.add("/proc/meminfo")
    with pytest.raises(Unreadable):
        memory(host)
