# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slices of holds: their names and limits, what is read back of them, and when they go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused, StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Past, Plan, Todo, Unit
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.slices import controllers, slices
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.assignment import Limits
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.devices_seen import Slice
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.slices import fault, folder, name, settle, stop
from tests.unit.fake_host import FakeHost
from tests.unit.promises import a_kill_loses_nothing, check_is_truthful, go, lines, second_pass_is_quiet
from tests.unit.slice_host import CONTROL, ROOT, TREE, add_slices, reboot_slices, run_in, slice_folder

GIB = 1024**3
WHOLE = Limits(cpus="0-3,8", mems="1", cpu_millis=2505, memory_bytes=4 * GIB, hugepages_2mi=512, hugepages_1gi=2)


class Seen(NamedTuple):
    slices: Mapping[str, Slice]
    controllers: Mapping[str, str]


def _look(host: Host, _settings: object, _past: Past) -> Seen:
    return Seen(slices(host), controllers(host))


def _plan(wanted: Mapping[str, Limits], seen: Seen, _past: Past) -> Plan:
    todo = Todo()
    for allocation in seen.slices.keys() - wanted.keys():
        with todo.lane(allocation):
            stop(todo, allocation, seen.slices[allocation])
    for allocation, limits in wanted.items():
        with todo.lane(allocation):
            settle(todo, allocation, limits, seen.slices.get(allocation), seen.controllers)
    return todo.plan()


def _absent(_seen: Seen, _past: Past) -> Plan:
    return Plan()


SLICES = Unit("devices", (), lambda given: given, _look, _plan, _absent, recorded=False)


def _machine(**given: Any) -> FakeHost:
    host = FakeHost()
    add_slices(host, **given)
    return host


def _shows(host: FakeHost, allocation: str = "a1") -> dict[str, str]:
    place = slice_folder(allocation)
    return {file: (host.text(f"{place}/{file}") or "").strip() for file in host.names(place)}


# -- what is made


def test_the_name_and_its_place_in_the_tree() -> None:
    assert name("alloc_01jz8k2v") == "bcd-alloc-alloc_01jz8k2v.slice"
    assert folder("alloc_01jz8k2v") == "/sys/fs/cgroup/bcd.slice/bcd-alloc.slice/bcd-alloc-alloc_01jz8k2v.slice"
    assert name("x" * 80)


@pytest.mark.parametrize("given", ["", "x" * 81, "a-b", "a/b", "../a", "a.slice", "ä", "a\n"])
def test_what_has_no_slice(given: str) -> None:
    with pytest.raises(Refused):
        name(given)


def test_a_slice_gets_all_its_limits() -> None:
    host = _machine()
    done = check_is_truthful(SLICES, _machine, {"a1": WHOLE})
    assert done.state == "converged"
    assert go(SLICES, host, {"a1": WHOLE}).changed
    assert host.calls == [
        "systemctl start bcd-alloc-a1.slice",
        (
            "systemctl set-property --runtime bcd-alloc-a1.slice AllowedCPUs=0-3,8 AllowedMemoryNodes=1 CPUQuota=251% "
            "MemoryMax=4294967296 MemoryHigh=3865470566"
        ),
        *(f"set {place}/cgroup.subtree_control +hugetlb" for place in TREE),
        f"set {slice_folder('a1')}/hugetlb.2MB.max 1073741824",
        f"set {slice_folder('a1')}/hugetlb.1GB.max 2147483648",
    ]
    shown = _shows(host)
    assert shown["cpuset.cpus"] == "0-3,8"
    assert shown["memory.high"] == "3865468928"  # 90 %, rounded down to a page of 4 KiB
    assert shown["hugetlb.1GB.max"] == "2147483648"
    second_pass_is_quiet(SLICES, host, {"a1": WHOLE})


def test_what_the_limits_do_not_say_is_left_alone() -> None:
    host = _machine(controllers="memory pids")
    assert go(SLICES, host, {"a1": Limits(memory_bytes=GIB)}).state == "converged"
    assert host.calls[1:] == [
        "systemctl set-property --runtime bcd-alloc-a1.slice MemoryMax=1073741824 MemoryHigh=966367641"
    ]
    host = _machine()
    assert go(SLICES, host, {"a1": Limits(cpus="", cpu_millis=0, memory_bytes=0, hugepages_2mi=0)}).changed
    assert host.calls == ["systemctl start bcd-alloc-a1.slice"]
    second_pass_is_quiet(SLICES, host, {"a1": Limits()})


@pytest.mark.parametrize("page", [4096, 16384, 65536])
def test_memory_is_compared_as_the_kernel_rounds_it(page: int) -> None:
    host = _machine(page=page)
    limits = {"a1": Limits(memory_bytes=GIB + 1)}
    assert go(SLICES, host, limits).state == "converged"
    second_pass_is_quiet(SLICES, host, limits)
    host.put(f"{slice_folder('a1')}/memory.max", f"{GIB - 65536}\n")
    assert go(SLICES, host, limits).changed


@pytest.mark.parametrize(
    ("given", "kernel", "same"),
    [
        ("0,1,2,3", "0-3", True),
        ("3,0-1,2", "0-3", True),
        ("0-3", "0-2", False),
        ("0-3", "", False),
        ("0-3", None, False),
    ],
)
def test_cpu_lists_are_compared_as_lists(given: str, kernel: str | None, same: bool) -> None:
    seen = Slice(active=True, files={"cpuset.cpus": kernel and f"{kernel}\n", "cpuset.cpus.effective": "0-3\n"})
    todo = Todo()
    settle(todo, "a1", Limits(cpus=given), seen, {f"{ROOT}/cgroup.controllers": "cpuset\n"})
    assert (todo.plan().steps == ()) is same


@pytest.mark.parametrize(
    ("millis", "shown", "same"),
    [
        (1500, "150000 100000", True),
        (1500, "75000 50000", True),
        (1501, "151000 100000", True),  # whole percents, rounded up
        (1, "1000 100000", True),
        (1500, "max 100000", False),
        (1500, "151000 100000", False),
        (1500, "", False),
    ],
)
def test_the_quota_is_compared_as_a_share(millis: int, shown: str, same: bool) -> None:
    todo = Todo()
    seen = Slice(active=True, files={"cpu.max": f"{shown}\n"})
    settle(todo, "a1", Limits(cpu_millis=millis), seen, {f"{ROOT}/cgroup.controllers": "cpu\n"})
    assert (todo.plan().steps == ()) is same


def test_the_last_step_is_a_barrier() -> None:
    """What stands behind it in the lane, the CDI spec, waits until the kernel has shown the limits."""
    todo = Todo()
    settle(todo, "a1", WHOLE, None, controllers(_machine()))
    assert [step.barrier for step in todo.plan().steps] == [False] * 6 + [True]


# -- what is read back


def test_cpus_that_the_host_lacks_fail_the_lane_although_systemd_says_nothing() -> None:
    host = _machine(cpus="0-3")
    done = go(SLICES, host, {"a1": Limits(cpus="9-12"), "a2": Limits(cpus="0-3")})
    assert done.failure is not None
    assert done.failure.retryable
    assert "done without effect: give bcd-alloc-a1.slice AllowedCPUs=9-12 (cpuset.cpus reads nothing now)" in (
        done.failure.message
    )
    assert _shows(host, "a2")["cpuset.cpus"] == "0-3"


def test_cpus_that_are_not_effective_fail_the_lane() -> None:
    """A cpuset without a CPU of its parent's uses the parent's."""
    host = _machine()
    go(SLICES, host, {"a1": Limits(cpus="4-7")})
    host.put(f"{slice_folder('a1')}/cpuset.cpus.effective", "0-3\n")
    done = go(SLICES, host, {"a1": Limits(cpus="4-7")})
    assert done.failure is not None
    assert "bcd-alloc-a1.slice may use the CPUs 0-3 although its cpuset.cpus is 4-7" in done.failure.message
    host.put(f"{slice_folder('a1')}/cpuset.cpus.effective", "4-5\n")  # the others are offline
    assert go(SLICES, host, {"a1": Limits(cpus="4-7")}).failure is None


@pytest.mark.parametrize(
    ("file", "shows", "why"),
    [
        ("memory.max", "max", "set-property"),
        ("memory.high", "max", "set-property"),
        ("cpu.max", "max 100000", "set-property"),
        ("cpuset.mems", "", "set-property"),
        ("hugetlb.1GB.max", "max", "hugetlb.1GB.max 2147483648"),
    ],
)
def test_a_limit_that_somebody_lifted_is_set_again(file: str, shows: str, why: str) -> None:
    host = _machine()
    go(SLICES, host, {"a1": WHOLE})
    before = _shows(host)
    host.put(f"{slice_folder('a1')}/{file}", f"{shows}\n")
    host.calls.clear()
    assert go(SLICES, host, {"a1": WHOLE}).changed
    assert len(host.calls) == 1
    assert why in host.calls[0]
    assert _shows(host) == before


def test_a_controller_that_was_dropped_is_enabled_again() -> None:
    host = _machine()
    go(SLICES, host, {"a1": WHOLE})
    host.calls.clear()
    host.put(f"{TREE[1]}/cgroup.subtree_control", "cpuset cpu memory pids\n")
    assert go(SLICES, host, {"a1": WHOLE}).changed
    assert host.calls == [f"set {TREE[1]}/cgroup.subtree_control +hugetlb"]
    assert host.text(f"{TREE[1]}/cgroup.subtree_control") == "cpuset cpu memory pids hugetlb\n"


def test_a_boot_takes_all_of_it_away_and_a_pass_brings_it_back() -> None:
    host = _machine()
    go(SLICES, host, {"a1": WHOLE})
    before = _shows(host)
    reboot_slices(host)
    assert not _shows(host)
    assert go(SLICES, host, {"a1": WHOLE}).changed
    assert _shows(host) == before


def test_a_kill_at_any_step_loses_nothing() -> None:
    assert a_kill_loses_nothing(SLICES, _machine, {"a1": WHOLE}, _shows) == 7


def test_a_slice_that_systemd_does_not_run_is_started_although_its_cgroup_is_there() -> None:
    todo = Todo()
    seen = Slice(active=False, files={"memory.max": f"{GIB}\n", "memory.high": "966365184\n"})
    settle(todo, "a1", Limits(memory_bytes=GIB), seen, {f"{ROOT}/cgroup.controllers": "memory\n"})
    assert [step.argv[1] for step in todo.plan().steps] == ["start"]


# -- what this host lacks


def test_no_slice_without_cgroup_v2() -> None:
    host = FakeHost({f"{ROOT}/memory/cgroup.procs": ""})
    done = go(SLICES, host, {"a1": Limits(memory_bytes=GIB)})
    assert done.failure is not None
    assert done.failure.message == (
        "bcd-alloc-a1.slice needs cgroup v2, and /sys/fs/cgroup/cgroup.controllers is not there: boot this host with "
        "systemd.unified_cgroup_hierarchy=1, or assign no limits"
    )
    assert host.calls == []


def test_a_controller_that_is_missing_is_named() -> None:
    host = _machine(controllers="cpu memory pids")
    done = go(SLICES, host, {"a1": WHOLE, "a2": Limits(memory_bytes=GIB)})
    assert done.failure is not None
    assert done.failure.message.startswith("bcd-alloc-a1.slice needs the cgroup controller cpuset and hugetlb, which")
    assert "bcd-alloc-a1.slice" not in " ".join(host.calls)
    assert _shows(host, "a2")["memory.max"] == str(GIB)


def test_pages_of_a_size_that_the_kernel_lacks() -> None:
    host = _machine()
    go(SLICES, host, {"a1": Limits(hugepages_2mi=1)})
    del host.files[f"{slice_folder('a1')}/hugetlb.1GB.max"]
    done = go(SLICES, host, {"a1": Limits(hugepages_2mi=1, hugepages_1gi=1)})
    assert done.failure is not None
    assert "bcd-alloc-a1.slice has no hugetlb.1GB.max" in done.failure.message


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (None, ""),
        (Limits(), ""),
        (Limits(cpus="0-3,8", mems="0"), ""),
        (Limits(cpus="", mems=""), ""),
        (Limits(cpus=",".join(["11", *["1"] * 511])), ""),  # 1,024 characters
        (Limits(cpus=",".join(["11"] * 342)), "cpus has 1025 characters"),
        (Limits(mems="0," * 600), "mems has 1200 characters"),
        (Limits(cpus="all"), "cpus is no list"),
        (Limits(cpus="3-1"), "runs backwards"),
        (Limits(cpus="0-N"), "cpus is no list"),
        (Limits(mems="0;rm"), "mems is no list"),
        (Limits(mems=" "), "names nothing"),
    ],
)
def test_lists_that_are_none(limits: Limits | None, said: str) -> None:
    assert said in fault(limits) if said else fault(limits) == ""
    if said:
        with pytest.raises(StepFailed, match=said) as raised:
            settle(Todo(), "a1", limits or Limits(), None, controllers(_machine()))
        assert raised.value.retryable


# -- the end


def test_a_slice_is_stopped_when_it_is_empty_and_leaves_nothing() -> None:
    host = _machine()
    go(SLICES, host, {"a1": WHOLE, "a2": Limits(memory_bytes=GIB)})
    host.calls.clear()
    assert go(SLICES, host, {"a2": Limits(memory_bytes=GIB)}).changed
    assert host.calls == ["systemctl stop bcd-alloc-a1.slice", "systemctl --no-reload revert bcd-alloc-a1.slice"]
    assert host.names(slice_folder("a1")) == ()
    assert host.names(CONTROL) == ("bcd-alloc-a2.slice.d",)
    second_pass_is_quiet(SLICES, host, {"a2": Limits(memory_bytes=GIB)})


def test_a_workload_keeps_its_slice_and_its_limits() -> None:
    host = _machine()
    go(SLICES, host, {"a1": WHOLE})
    run_in(host, "a1")
    before = _shows(host)
    host.calls.clear()
    assert not go(SLICES, host, {}).changed
    assert (host.calls, _shows(host)) == ([], before)
    run_in(host, "a1", False)
    assert go(SLICES, host, {}).changed
    assert not _shows(host)


def test_stopping_disturbs_nothing_that_runs() -> None:
    host = _machine()
    go(SLICES, host, {"a1": WHOLE})
    done = go(SLICES, host, {}, max_disruption="none")
    assert done.pending == ()
    assert not _shows(host)


def test_a_stop_in_check_mode_is_truthful_and_a_kill_in_it_is_made_good() -> None:
    def machine() -> FakeHost:
        host = _machine()
        go(SLICES, host, {"a1": WHOLE})
        host.calls.clear()
        return host

    assert lines(check_is_truthful(SLICES, machine, {})) == [
        "stop bcd-alloc-a1.slice, which nothing runs in",
        "have systemd forget the limits of bcd-alloc-a1.slice",
    ]
    assert a_kill_loses_nothing(SLICES, machine, {}, lambda host: (_shows(host), host.names(CONTROL))) == 2


def test_a_new_slice_does_not_inherit_the_limits_of_an_old_one_of_its_name() -> None:
    host = _machine()
    go(SLICES, host, {"a1": Limits(memory_bytes=GIB)})
    host.kill_at = len(host.calls) + 2  # between the stop and the revert
    with pytest.raises(BaseException, match="revert"):
        go(SLICES, host, {})
    host.kill_at = 0
    go(SLICES, host, {"a1": Limits(cpus="0")})
    assert "memory.max" not in _shows(host)
    assert host.names(f"{CONTROL}/bcd-alloc-a1.slice.d") == ("50-AllowedCPUs.conf",)


def test_nothing_is_planned_for_a_slice_that_is_not_there() -> None:
    todo = Todo()
    stop(todo, "a1", None)
    stop(todo, "a1", Slice(active=True, populated=True, drop_ins=True))
    assert todo.plan().steps == ()
