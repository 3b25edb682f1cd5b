# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory, its nodes and its pools, as a look reads them."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.look.memory import (
    memory,
    node_ids,
    pages,
    pool,
    transparent,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.memory_shown import parse_total
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.hugepages import Memory
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.pages import G1, M2, Pages, Pool
from tests.unit.fake_host import FakeHost

NODES = "/sys/devices/system/node"
HOST = "/sys/kernel/mm/hugepages"


@pytest.mark.parametrize(
    ("text", "kib"),
    [
        ("MemTotal:       263856084 kB\nMemFree:        1000 kB\n", 263856084),
        ("Node 1 MemTotal:       131923456 kB\nNode 1 MemFree: 7 kB\n", 131923456),
        ("MemFree: 7 kB\n", 0),
        ("", 0),
    ],
)
def test_the_total(text: str, kib: int) -> None:
    assert parse_total(text) == kib


def test_nodes_are_in_the_order_of_their_numbers() -> None:
    names = ("node10", "node2", "node0", "has_cpu", "possible", "nodex")
    assert node_ids(FakeHost({f"{NODES}/{name}/cpulist": "" for name in names})) == (0, 2, 10)


def test_nodes_without_memory_or_cpus_are_no_place_for_virtual_machines() -> None:
    host = FakeHost({"/proc/meminfo": "MemTotal: 3000 kB\n"})
    for node, cpus, kib in ((0, "0-3", 1000), (1, "4-7", 0), (2, "", 1500), (3, "8-11", 500)):
        host.put(f"{NODES}/node{node}/cpulist", f"{cpus}\n")
        host.put(f"{NODES}/node{node}/meminfo", f"Node {node} MemTotal:  {kib} kB\n")
    assert memory(host) == Memory(3000, (0, 3), (0, 2, 3), {0: 1000, 2: 1500, 3: 500})


def test_a_kernel_without_numa_has_no_nodes() -> None:
    assert memory(FakeHost({"/proc/meminfo": "MemTotal: 3000 kB\n"})) == Memory(3000)


def test_pools() -> None:
    host = FakeHost()
    for name, number in (("nr", 10), ("free", 3), ("surplus", 2), ("nr_overcommit", 4)):
        host.put(f"{HOST}/hugepages-2048kB/{name}_hugepages", f"{number}\n")
        host.put(f"{NODES}/node1/hugepages/hugepages-2048kB/{name}_hugepages", f"{number // 2}\n")
    assert pool(host, M2, {0: 7, 1: 7}) == Pool(Pages(10, 3, 2), {1: Pages(5, 1, 1)}, 4)
    assert pool(host, G1, {0: 7, 1: 7}) == Pool()
    seen = pages(host, M2, None)
    assert seen is not None
    assert (seen.persistent, seen.used) == (8, 7)


def test_the_policy_of_transparent_pages() -> None:
    path = "/sys/kernel/mm/transparent_hugepage/enabled"
    assert transparent(FakeHost({path: "[always] madvise never\n"})) == "always"
    assert transparent(FakeHost()) is None
