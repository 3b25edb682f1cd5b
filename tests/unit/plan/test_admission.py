# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Admission: what a host has left for one more hold, and what it says when that is too little."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import NotKnownYet
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.unknown import later
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.admission import Ledger, machines
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.assignment import (
    HOLD,
    KUBERNETES,
    Instance,
    Limits,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.devices_seen import (
    Domain,
    Held,
    Memory,
    Pool,
    Slice,
)

MIB, GIB = 1024**2, 1024**3


def _memory(total: int = 9 * GIB, hugetlb: int = 0, m2: Pool | None = None, g1: Pool | None = None) -> Memory:
    return Memory(total, hugetlb, (m2 or Pool(2048, 0), g1 or Pool(1048576, 0)))


def _ledger(memory: Memory | None, **given: Any) -> Ledger:
    """A ledger of holds by their limits."""
    held = {name: Held(name, limits=limits) for name, limits in given.get("held", {}).items()}
    return Ledger(memory, held, given.get("slices", {}), given.get("domains", ()), given.get("instances", ()))


def _gib(count: float) -> Limits:
    return Limits(memory_bytes=int(count * GIB))


# -- memory


def test_the_message_when_memory_does_not_fit() -> None:
    """2 GiB, less 1 GiB for the host."""
    said = _ledger(_memory(2 * GIB)).admit(_gib(4))
    assert said == "ResourcesExhausted: 4096 MiB of memory needed, 1024 MiB left on this host"


def test_all_of_it_fits_and_a_byte_more_does_not() -> None:
    assert _ledger(_memory()).admit(_gib(8)) == ""
    said = _ledger(_memory()).admit(Limits(memory_bytes=8 * GIB + 1))
    assert said == "ResourcesExhausted: 8193 MiB of memory needed, 8192 MiB left on this host"


def test_what_is_left_is_rounded_down_and_never_below_nothing() -> None:
    said = _ledger(_memory(total=2 * GIB - 1)).admit(_gib(1))
    assert said == "ResourcesExhausted: 1024 MiB of memory needed, 1023 MiB left on this host"
    said = _ledger(_memory(total=GIB // 2)).admit(_gib(1))
    assert said == "ResourcesExhausted: 1024 MiB of memory needed, 0 MiB left on this host"


def test_the_whole_pool_of_huge_pages_is_no_normal_memory() -> None:
    assert "4096 MiB left" in _ledger(_memory(hugetlb=4 * GIB)).admit(_gib(5))


@pytest.mark.parametrize("binding", [HOLD, KUBERNETES])
def test_what_a_hold_booked_counts_whatever_its_binding(binding: str) -> None:
    ledger = Ledger(_memory(), {"a1": Held("a1", binding=binding, limits=_gib(6))}, {}, (), ())
    assert "2048 MiB left" in ledger.admit(_gib(3))
    assert ledger.admit(_gib(2)) == ""


@pytest.mark.parametrize("limits", [None, Limits()])
def test_of_a_hold_without_its_record_the_slice_tells(limits: Limits | None) -> None:
    """Of one that its specification tells of, no more is known than that it has limits."""
    held = {"a1": Held("a1", limits=limits)}
    shown = {"a1": Slice(active=True, files={"memory.max": f"{6 * GIB}\n"})}
    assert "2048 MiB left" in Ledger(_memory(), held, shown, (), ()).admit(_gib(3))
    shown = {"a1": Slice(active=True, files={"memory.max": "max\n"})}
    assert Ledger(_memory(), held, shown, (), ()).admit(_gib(3)) == ""


def test_each_that_is_admitted_counts_for_those_after_it_and_one_that_is_not_does_not() -> None:
    ledger = _ledger(_memory())
    assert ledger.admit(_gib(5)) == ""
    assert "3072 MiB left" in ledger.admit(_gib(4))
    assert ledger.admit(_gib(3)) == ""
    assert ledger.admit(Limits(memory_bytes=1)) == (
        "ResourcesExhausted: 1 MiB of memory needed, 0 MiB left on this host"
    )


@pytest.mark.parametrize("limits", [None, Limits(), Limits(cpus="0-3", mems="0", cpu_millis=4000)])
def test_cpus_alone_are_not_admitted(limits: Limits | None) -> None:
    assert _ledger(_memory(total=0)).admit(limits) == ""


def test_a_host_whose_memory_cannot_be_read_binds_without_the_check() -> None:
    assert _ledger(None).admit(_gib(100_000)) == ""
    assert _ledger(None).admit(Limits(hugepages_1gi=100_000)) == ""


def test_memory_that_is_known_later_is_asked_of_only_by_those_who_need_it() -> None:
    def unknown() -> Memory:
        raise NotKnownYet("it is seen as root")

    ledger = _ledger(later(unknown))
    assert ledger.admit(Limits(cpus="0")) == ""
    with pytest.raises(NotKnownYet):
        ledger.admit(_gib(1))


# -- virtual machines


def test_a_machine_counts_with_its_process() -> None:
    """memory/32 and 256 MiB: for 4 GiB 384 MiB in all."""
    assert machines((Domain(("vm1",), 5, 4 * GIB),), ()) == 4 * GIB + 384 * MIB
    assert "3712 MiB left" in _ledger(_memory(), domains=(Domain(("vm1",), 5, 4 * GIB),)).admit(_gib(4))


def test_of_a_machine_on_huge_pages_its_process_counts() -> None:
    assert machines((Domain(("vm1",), 5, 4 * GIB, hugepages=True),), ()) == 384 * MIB
    assert machines((), (Instance("vm1", 4 * GIB, hugepages=True),)) == 384 * MIB


@pytest.mark.parametrize("known", ["vm1", "VM1", "3F2504E0-4F89-41D3-9A0C-0305E82C3301"])
def test_an_instance_that_runs_counts_once(known: str) -> None:
    runs = Domain(("vm1", "3f2504e0-4f89-41d3-9a0c-0305e82c3301"), 5, 4 * GIB)
    assert machines((runs,), (Instance(known, 2 * GIB),)) == 4 * GIB + 384 * MIB
    assert machines((runs,), (Instance("vm2", 4 * GIB),)) == 2 * (4 * GIB + 384 * MIB)


# -- huge pages


def test_the_message_when_huge_pages_do_not_fit() -> None:
    said = _ledger(_memory(g1=Pool(1048576, 2))).admit(Limits(hugepages_1gi=8))
    assert said == "ResourcesExhausted: 8 hugepages of 1048576 KiB needed, 2 free"
    said = _ledger(_memory(m2=Pool(2048, 7))).admit(Limits(hugepages_2mi=8))
    assert said == "ResourcesExhausted: 8 hugepages of 2048 KiB needed, 7 free"


def test_memory_is_checked_before_pages_and_nothing_is_booked_of_what_fails() -> None:
    ledger = _ledger(_memory(g1=Pool(1048576, 2)))
    assert "memory needed" in ledger.admit(Limits(memory_bytes=9 * GIB, hugepages_1gi=3))
    assert "hugepages" in ledger.admit(Limits(memory_bytes=8 * GIB, hugepages_1gi=3))
    assert ledger.admit(Limits(memory_bytes=8 * GIB, hugepages_1gi=2)) == ""


def test_what_a_hold_may_still_take_is_not_free() -> None:
    """8 booked, 3 faulted in: of 10 that are free 5 are promised."""
    shown = {"a1": Slice(active=True, files={"hugetlb.1GB.current": f"{3 * GIB}\n"})}
    ledger = _ledger(_memory(g1=Pool(1048576, 10)), held={"a1": Limits(hugepages_1gi=8)}, slices=shown)
    assert ledger.admit(Limits(hugepages_1gi=6)) == ("ResourcesExhausted: 6 hugepages of 1048576 KiB needed, 5 free")
    assert ledger.admit(Limits(hugepages_1gi=5)) == ""


def test_so_does_the_slice_of_pages() -> None:
    """Six of 2 MiB on node 1, of which two are taken: four of the ten that are free may still go there."""
    files = {"cpuset.mems": "1\n", "hugetlb.2MB.max": f"{6 * 2 * MIB}\n", "hugetlb.2MB.current": f"{2 * 2 * MIB}\n"}
    files["hugetlb.1GB.max"] = "max\n"
    memory = _memory(m2=Pool(2048, 20, {0: 10, 1: 10}), g1=Pool(1048576, 1, {0: 0, 1: 1}))
    ledger = Ledger(memory, {"a1": Held("a1", limits=Limits())}, {"a1": Slice(files=files)}, (), ())
    said = ledger.admit(Limits(mems="1", hugepages_2mi=7))
    assert said == "ResourcesExhausted: 7 hugepages of 2048 KiB needed, 6 free"
    assert ledger.admit(Limits(mems="0", hugepages_2mi=10, hugepages_1gi=0)) == ""
    assert ledger.admit(Limits(mems="1", hugepages_1gi=1)) == ""


def test_a_hold_that_took_more_than_it_booked_gives_nothing_back() -> None:
    shown = {"a1": Slice(active=True, files={"hugetlb.2MB.current": f"{9 * 2 * MIB}\n"})}
    ledger = _ledger(_memory(m2=Pool(2048, 4)), held={"a1": Limits(hugepages_2mi=8)}, slices=shown)
    assert "4 free" in ledger.admit(Limits(hugepages_2mi=5))


NODES = Pool(1048576, 12, {0: 4, 1: 8})


@pytest.mark.parametrize(
    ("mems", "fits"), [(None, 12), ("", 12), ("0", 4), ("1", 8), ("0-1", 12), ("0,1", 12), ("2", 0)]
)
def test_pages_come_from_the_nodes_of_the_hold(mems: str | None, fits: int) -> None:
    assert _ledger(_memory(g1=NODES)).admit(Limits(mems=mems, hugepages_1gi=fits or None)) == ""
    said = _ledger(_memory(g1=NODES)).admit(Limits(mems=mems, hugepages_1gi=fits + 1))
    assert said == f"ResourcesExhausted: {fits + 1} hugepages of 1048576 KiB needed, {fits} free"


def test_never_more_than_the_host_has() -> None:
    """Reserved pages are free on their nodes, and not on the host."""
    said = _ledger(_memory(g1=Pool(1048576, 3, {0: 4, 1: 4}))).admit(Limits(mems="0", hugepages_1gi=4))
    assert said == "ResourcesExhausted: 4 hugepages of 1048576 KiB needed, 3 free"


@pytest.mark.parametrize(
    ("held", "mems", "free"),
    [
        ("0", "0", 1),
        ("0", "1", 8),
        ("0", None, 9),
        ("0", "0-1", 9),
        (None, "0", 4),  # of no node in particular: the count of the host is 9
        (None, None, 9),
        ("0-1", "0", 1),  # it may take all three from either
        ("0-1", "1", 5),
    ],
)
def test_what_holds_may_take_counts_on_their_nodes(held: str | None, mems: str | None, free: int) -> None:
    limits = {"a1": Limits(mems=held, hugepages_1gi=3)}
    said = _ledger(_memory(g1=NODES), held=limits).admit(Limits(mems=mems, hugepages_1gi=100))
    assert said == f"ResourcesExhausted: 100 hugepages of 1048576 KiB needed, {free} free"


def test_pages_that_were_admitted_count_too() -> None:
    ledger = _ledger(_memory(g1=NODES))
    assert ledger.admit(Limits(mems="0", hugepages_1gi=3)) == ""
    assert "1 free" in ledger.admit(Limits(mems="0", hugepages_1gi=2))
    assert ledger.admit(Limits(hugepages_1gi=9)) == ""
    assert "0 free" in ledger.admit(Limits(mems="1", hugepages_1gi=1))


def test_a_thousand_holds_on_as_many_sets_of_nodes_are_counted_by_their_sets() -> None:
    """Holds that share their nodes are one claim, so that one more hold does not go over all before it."""
    ledger = _ledger(_memory(g1=Pool(1048576, 5000, dict.fromkeys(range(2), 2500))))
    for at in range(1000):
        assert ledger.admit(Limits(mems=str(at % 2), hugepages_1gi=1)) == ""
    claims = ledger._pages[1048576]._claims
    assert claims == {frozenset((0,)): 500, frozenset((1,)): 500}
