# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""hugepages on a host in memory whose kernel, systemd and GRUB do with pages what Linux does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.runner import Goal, converge
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import Effect, File, run
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.hugepages import UNIT
from tests.unit.fake_host import Killed
from tests.unit.huge_host import DROP_IN, GRUB, LARGE, MOUNT, NODES, SERVICE, SMALL, SYSTEM, THP, HugeHost, Node

WANTS = f"{SYSTEM}/sysinit.target.wants"
POINT = "/dev/hugepages1G"
STATE = "/var/lib/bcd-hostconfig"
KEPT_BY_THE_RUNNER = tuple(f"write {STATE}/{name}.json" for name in ("applied", "reboot", "tried", "owed"))
RECORD = f"{STATE}/hugepages-1g-boot"
FROM_THE_NEXT_BOOT = "the boot loader reserves them from the next boot: reboot the node"


def go(host: HugeHost, settings: dict[str, Any] | None, *, check: bool = False, ceiling: str = "gpu") -> Outcome:
    seen = PredictedHost(host) if check else host
    return converge(Goal(UNIT, settings), seen, Records(seen), ceiling)


def passes(host: HugeHost, settings: dict[str, Any]) -> Outcome:
    """A pass that works, and one after it that has nothing to do."""
    first = go(host, settings)
    assert (first.failure, first.state) == (None, "converged"), (first.failure, first.pending)
    quiet(host, settings)
    return first


def quiet(host: HugeHost, settings: dict[str, Any]) -> Outcome:
    """A pass that changes nothing, whatever it waits for."""
    before, calls = host_files(host), len(host.calls)
    again = go(host, settings)
    assert not again.changed
    assert again.failure is None
    assert host_files(host) == before
    assert [call for call in host.calls[calls:] if not call.startswith(("set ", *KEPT_BY_THE_RUNNER))] == []
    return again


def host_files(host: HugeHost) -> dict[str, File]:
    """All files, less what the runner keeps for itself."""
    return {path: file for path, file in host.files.items() if f"write {path}" not in KEPT_BY_THE_RUNNER}


def waits(outcome: Outcome) -> list[tuple[str, str]]:
    return [(wait.reason, wait.message) for wait in outcome.pending]


def mounted(host: HugeHost) -> bool:
    return POINT in (host.text("/proc/mounts") or "")


def commands(host: HugeHost) -> list[str]:
    text = host.text(f"{SYSTEM}/{SERVICE}") or ""
    return [line for line in text.splitlines() if line.startswith("ExecStart=")]


# -- what the kernel has at once


def test_pools_of_the_host_are_had_at_runtime_and_restored_at_each_boot() -> None:
    host = HugeHost()
    done = passes(host, {"pages2m": 1024, "pages1g": 6, "transparent": "never"})
    assert done.changed
    assert (host.count(SMALL), host.count(LARGE)) == (1024, 6)
    assert host.text(THP) == "always madvise [never]\n"
    assert mounted(host)
    assert DROP_IN not in host.files
    assert RECORD not in host.files
    assert commands(host) == [
        "ExecStart=-/bin/sh -c 'echo 6 >/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages'",
        "ExecStart=-/bin/sh -c 'echo 1024 >/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages'",
        "ExecStart=-/bin/sh -c 'echo never >/sys/kernel/mm/transparent_hugepage/enabled'",
    ]
    host.boot()
    assert (host.count(SMALL), host.count(LARGE)) == (1024, 6)
    assert host.text(THP) == "always madvise [never]\n"
    assert mounted(host)
    assert quiet(host, {"pages2m": 1024, "pages1g": 6, "transparent": "never"}).state == "converged"


def test_pools_of_each_node() -> None:
    host = HugeHost()
    passes(host, {"pages2m": 512, "pages1g": 3, "perNuma": True})
    assert host.by_node(SMALL) == [512, 512]
    assert host.by_node(LARGE) == [3, 3]
    host.boot()
    assert host.by_node(SMALL) == [512, 512]
    assert host.by_node(LARGE) == [3, 3]


def test_uneven_counts_by_node() -> None:
    host = HugeHost()
    passes(host, {"pages2m": [0, 700], "pages1g": [1, 3]})
    assert host.by_node(SMALL) == [0, 700]
    assert host.by_node(LARGE) == [1, 3]


def test_a_list_of_one_is_the_number() -> None:
    host = HugeHost()
    passes(host, {"pages2m": [64]})
    assert quiet(host, {"pages2m": 64}).state == "converged"


def test_the_mount_unit_is_as_specified() -> None:
    host = HugeHost()
    passes(host, {"pages1g": 1})
    text = host.text(f"{SYSTEM}/{MOUNT}") or ""
    assert text.startswith("# Managed by bettercompute.bcd: local edits are replaced.\n")
    for line in ("What=hugetlbfs", "Where=/dev/hugepages1G", "Type=hugetlbfs", "Options=pagesize=1G",
                 "DefaultDependencies=no", "Before=sysinit.target", "WantedBy=sysinit.target"):  # fmt: skip
        assert f"\n{line}\n" in text
    assert f"{WANTS}/{MOUNT}" in host.files
    assert f"{WANTS}/{SERVICE}" in host.files
    assert host.calls.count("systemctl daemon-reload") == 1  # one for both files


def test_what_is_not_given_is_not_managed() -> None:
    host = HugeHost()
    passes(host, {"transparent": "always"})
    assert f"set {THP} always" in host.calls
    assert not any("nr_hugepages" in call for call in host.calls)
    assert f"{SYSTEM}/{MOUNT}" not in host.files


def test_what_is_no_longer_given_stays_and_is_still_restored() -> None:
    host = HugeHost()
    passes(host, {"pages2m": 100, "pages1g": 2, "transparent": "always"})
    passes(host, {"pages2m": 200})
    host.boot()
    assert (host.count(SMALL), host.count(LARGE)) == (200, 2)
    assert host.text(THP) == "[always] madvise never\n"
    assert mounted(host)


def test_nothing_given_does_nothing() -> None:
    host = HugeHost()
    passes(host, {})
    assert [call for call in host.calls if not call.startswith(KEPT_BY_THE_RUNNER)] == []


# -- 2 MiB pages that come up short


def test_a_shortfall_of_2_mib_pages_is_tried_again_and_changes_nothing_until_it_moves() -> None:
    host = HugeHost((Node(mib=1024), Node(mib=1024)))
    host.pools[1, LARGE] = [0, 0, 0]
    host.nodes[1] = Node(mib=600)  # 300 pages
    settings = {"pages2m": 400, "perNuma": True}
    first = go(host, settings)
    assert first.changed
    assert host.by_node(SMALL) == [400, 300]
    [(reason, message)] = waits(first)
    assert reason == "NotReady"
    assert "300 of 400 on node 1" in message
    assert "node 0" not in message
    calls = len(host.calls)
    again = quiet(host, settings)
    assert host.calls[calls:] == [f"set {NODES}/node1/hugepages/{SMALL}/nr_hugepages 400"]
    assert waits(again) == waits(first)
    checked = go(host, settings, check=True)
    assert not checked.changed
    assert waits(checked) == waits(first)
    host.nodes[1] = Node(mib=700)
    moved = go(host, settings)
    assert moved.changed
    assert "350 of 400 on node 1" in waits(moved)[0][1]
    host.nodes[1] = Node(mib=1024)
    assert go(host, settings).state == "converged"
    quiet(host, settings)


def test_a_missing_2_mib_directory_under_another_default_size_waits() -> None:
    host = HugeHost()
    host.put("/proc/cmdline", "root=/dev/vda1 default_hugepagesz=1G\n")
    for path in [path for path in host.files if path.startswith(f"/sys/kernel/mm/hugepages/{SMALL}/")]:
        del host.files[path]
    [(reason, message)] = waits(go(host, {"pages2m": 8}))
    assert reason == "NotReady"
    assert "hugepages-2048kB" in message
    assert "default_hugepagesz=1G" in message
    assert passes(host, {"pages2m": 0}).pending == ()


# -- 1 GiB pages: the boot loader


def test_a_shortfall_of_1_gib_pages_is_reserved_by_the_boot_loader() -> None:
    host = HugeHost()
    host.finds(at_runtime=1)
    settings = {"pages1g": 4, "perNuma": True}
    first = go(host, settings)
    assert first.changed
    assert first.state == "progressing"
    [(reason, message)] = waits(first)
    assert reason == "RebootRequired"
    assert message.endswith(FROM_THE_NEXT_BOOT)
    assert "1 of 4 on node 0, 1 of 4 on node 1" in message
    assert "hugepagesz=1G hugepages=8" in (host.text(DROP_IN) or "")  # the host's total
    assert "hugepagesz=1G hugepages=8" in (host.text(GRUB) or "")
    assert json.loads(host.text(RECORD) or "") == {"count": 8, "version": 1}
    calls = len(host.calls)
    assert waits(quiet(host, settings)) == waits(first)
    assert host.calls[calls:] == []  # not even nr_hugepages is written again in this boot
    checked = go(host, settings, check=True)
    assert not checked.changed
    assert waits(checked) == waits(first)
    host.boot()
    assert host.by_node(LARGE) == [4, 4]
    assert quiet(host, settings).state == "converged"


def test_a_reservation_is_kept_in_step_and_goes_with_0() -> None:
    host = HugeHost()
    host.finds(at_runtime=1)
    go(host, {"pages1g": 8})
    host.boot()
    passes(host, {"pages1g": 6})
    assert host.count(LARGE) == 6
    assert "hugepages=6" in (host.text(GRUB) or "")
    assert json.loads(host.text(RECORD) or "")["count"] == 6
    more = go(host, {"pages1g": 7})
    assert waits(more)[0][0] == "RebootRequired"
    assert "hugepages=7" in (host.text(GRUB) or "")
    done = passes(host, {"pages1g": 0})
    assert done.changed
    assert host.count(LARGE) == 0
    assert "hugepages" not in (host.text(GRUB) or "")
    assert not {DROP_IN, RECORD, f"{SYSTEM}/{MOUNT}", f"{WANTS}/{MOUNT}", f"{SYSTEM}/{SERVICE}"} & set(host.files)
    assert not mounted(host)


def test_uneven_counts_are_reserved_by_node_where_the_kernel_can() -> None:
    host = HugeHost(release="5.16.0-1-amd64")
    host.finds(at_runtime=0)
    go(host, {"pages1g": [1, 3]})
    assert "hugepagesz=1G hugepages=0:1,1:3" in (host.text(GRUB) or "")
    host.boot()
    assert host.by_node(LARGE) == [1, 3]
    assert quiet(host, {"pages1g": [1, 3]}).state == "converged"


def test_an_older_kernel_gets_the_total_and_the_spreading_is_mended_at_boot() -> None:
    host = HugeHost(release="5.15.0-91-generic")
    host.finds(at_runtime=0)
    go(host, {"pages1g": [1, 3]})
    assert "hugepagesz=1G hugepages=4" in (host.text(GRUB) or "")
    host.finds(at_runtime=99)  # memory is whole after a boot
    host.boot()
    assert host.by_node(LARGE) == [1, 3]  # 2 and 2, mended by the service
    assert quiet(host, {"pages1g": [1, 3]}).state == "converged"


def test_uneven_spreading_is_topped_up_by_the_pass_where_no_service_ran() -> None:
    host = HugeHost(release="5.15.0-91-generic")
    host.finds(at_runtime=0)
    go(host, {"pages1g": [1, 3]})
    del host.files[f"{WANTS}/{SERVICE}"]
    host.finds(at_runtime=99)
    host.boot()
    assert host.by_node(LARGE) == [2, 2]
    passes(host, {"pages1g": [1, 3]})
    assert host.by_node(LARGE) == [1, 3]


def test_uneven_spreading_that_cannot_be_mended_is_reported_with_its_nodes() -> None:
    host = HugeHost(release="5.15.0-91-generic")
    host.finds(at_runtime=0)
    go(host, {"pages1g": [1, 3]})
    host.boot()
    assert host.by_node(LARGE) == [1, 2]
    [(reason, message)] = waits(go(host, {"pages1g": [1, 3]}))
    assert reason == "NotReady"
    assert "2 of 3 on node 1" in message
    assert "hugepagesz=1G hugepages=4" in message
    quiet(host, {"pages1g": [1, 3]})


def test_a_boot_that_gave_fewer_is_told_with_what_was_got_and_not_as_a_reboot() -> None:
    host = HugeHost()
    host.finds(at_runtime=1, at_boot=3)
    settings = {"pages1g": 8}
    assert waits(go(host, settings))[0][0] == "RebootRequired"
    host.boot()
    after = go(host, settings)
    [(reason, message)] = waits(after)
    assert reason == "NotReady"
    assert "6 of 8" in message
    assert "reboot the node" not in message
    assert waits(quiet(host, settings)) == waits(after)


def test_a_boot_without_the_argument_is_told_apart_from_no_boot() -> None:
    host = HugeHost()
    host.finds(at_runtime=1)
    settings = {"pages1g": 8}
    assert "booted without" not in waits(go(host, settings))[0][1]
    host.boot(arguments=False)
    after = go(host, settings)
    [(reason, message)] = waits(after)
    assert reason == "RebootRequired"
    assert "booted without the argument" in message
    assert "reboot the node" in message
    assert "2 of 8" in message
    assert waits(quiet(host, settings)) == waits(after)


def test_without_a_boot_loader_the_step_fails_and_promises_nothing() -> None:
    host = HugeHost()
    host.finds(at_runtime=1)
    del host.programs["update-grub"]
    del host.files[GRUB]
    host.put("/proc/cmdline", "root=/dev/vda1\n")
    for _turn in range(2):
        failed = go(host, {"pages1g": 8})
        assert failed.failure is not None
        assert failed.failure.retryable
        assert "update-grub" in failed.failure.message
        assert "grubby" in failed.failure.message
        assert failed.pending == ()
        assert RECORD not in host.files
    assert mounted(host)  # the other lanes go on


def test_a_kernel_that_refuses_1_gib_pages_at_runtime_leaves_them_to_the_boot_loader() -> None:
    host = HugeHost()

    def refuse(_host: object, path: str, _value: str) -> None:
        raise OSError(22, "Invalid argument", path)

    host.kernel[f"/sys/kernel/mm/hugepages/{LARGE}/nr_hugepages"] = refuse
    seen = go(host, {"pages1g": 4})
    assert seen.failure is not None
    assert seen.failure.retryable
    assert "hugepagesz=1G hugepages=4" in (host.text(GRUB) or "")
    host.boot()
    assert quiet(host, {"pages1g": 4}).state == "converged"


# -- drift, use, removal


def test_a_pool_that_was_shrunk_by_hand_is_repaired_and_nothing_else() -> None:
    host = HugeHost()
    settings = {"pages2m": 256, "pages1g": 2, "perNuma": True}
    passes(host, settings)
    host.set(f"{NODES}/node1/hugepages/{LARGE}/nr_hugepages", "0")
    host.set(f"{NODES}/node0/hugepages/{SMALL}/nr_hugepages", "255")
    calls = len(host.calls)
    drifted = go(host, settings)
    assert drifted.changed
    assert drifted.state == "converged"
    assert host.calls[calls:] == [
        f"set {NODES}/node1/hugepages/{LARGE}/nr_hugepages 2",
        f"set {NODES}/node0/hugepages/{SMALL}/nr_hugepages 256",
    ]


def test_a_short_pool_that_was_shrunk_further_is_brought_back_to_what_there_was() -> None:
    host = HugeHost()
    host.finds(at_runtime=2)
    go(host, {"pages1g": 8})
    assert host.count(LARGE) == 4
    host.set(f"/sys/kernel/mm/hugepages/{LARGE}/nr_hugepages", "1")
    assert go(host, {"pages1g": 8}).changed
    assert host.count(LARGE) == 4
    quiet(host, {"pages1g": 8})


@pytest.mark.parametrize("path", [f"{SYSTEM}/{MOUNT}", f"{SYSTEM}/{SERVICE}", f"{WANTS}/{MOUNT}", f"{WANTS}/{SERVICE}"])
def test_a_file_that_was_deleted_comes_back(path: str) -> None:
    host = HugeHost()
    passes(host, {"pages1g": 2})
    kept = dict(host.files)
    del host.files[path]
    assert go(host, {"pages1g": 2}).changed
    assert host.files == kept


@pytest.mark.parametrize("path", [f"{SYSTEM}/{MOUNT}", f"{SYSTEM}/{SERVICE}"])
def test_a_local_edit_is_replaced_and_systemd_told(path: str) -> None:
    host = HugeHost()
    passes(host, {"pages1g": 2})
    kept = host.text(path)
    host.put(path, f"{kept}# mine\n")
    assert go(host, {"pages1g": 2}).changed
    assert host.text(path) == kept
    assert host.calls[-2:] != []
    assert "systemctl daemon-reload" in host.calls[-3:]


def test_an_edited_service_brings_nothing_in_but_its_own_kind_of_lines() -> None:
    host = HugeHost()
    passes(host, {"pages2m": 8})
    text = host.text(f"{SYSTEM}/{SERVICE}") or ""
    host.put(f"{SYSTEM}/{SERVICE}", text.replace("ExecStart=", "ExecStart=/bin/sh -c 'echo 1 >/tmp/x'\nExecStart=", 1))
    passes(host, {"transparent": "never"})
    assert [line for line in commands(host) if "/tmp" in line] == []
    assert len(commands(host)) == 2


def test_a_mount_that_is_gone_is_started_with_no_reload() -> None:
    host = HugeHost()
    passes(host, {"pages1g": 2})
    host.put("/proc/mounts", "")
    calls = len(host.calls)
    assert go(host, {"pages1g": 2}).changed
    assert host.calls[calls:] == [f"systemctl start {MOUNT}"]


def test_another_mount_at_the_point_is_told() -> None:
    host = HugeHost()
    host.put("/proc/mounts", f"hugetlbfs {POINT} hugetlbfs rw,relatime,pagesize=2M 0 0\n")
    [(reason, message)] = waits(go(host, {"pages1g": 2}))
    assert reason == "NotReady"
    assert "pagesize=2M" in message
    assert "unmount" in message


def test_pages_in_use_are_never_taken() -> None:
    host = HugeHost()
    passes(host, {"pages2m": 400, "pages1g": 4})
    host.use(0, LARGE, 2)
    host.use(1, SMALL, 150)
    checked = go(host, {"pages2m": 100, "pages1g": 0}, check=True)
    shrunk = go(host, {"pages2m": 100, "pages1g": 0})
    assert sorted(waits(shrunk)) == sorted(waits(checked))
    assert [reason for reason, _message in waits(shrunk)] == ["Busy", "Busy"]
    said = " ".join(message for _reason, message in waits(shrunk))
    assert "150 where 100 are wanted" in said
    assert "2 where 0 are wanted" in said
    assert mounted(host)
    assert f"{SYSTEM}/{MOUNT}" in host.files
    assert waits(quiet(host, {"pages2m": 100, "pages1g": 0})) == waits(shrunk)
    host.use(0, LARGE, 0)
    host.use(1, SMALL, 0)
    assert (host.count(SMALL), host.count(LARGE)) == (100, 0)
    passes(host, {"pages2m": 100, "pages1g": 0})
    assert not mounted(host)
    assert f"{SYSTEM}/{MOUNT}" not in host.files


def test_leaving_the_settings_undoes_nothing_and_says_so() -> None:
    host = HugeHost()
    host.finds(at_runtime=1)
    go(host, {"pages2m": 8, "pages1g": 4})
    before = {path: file for path, file in host.files.items() if not path.startswith(f"{STATE}/")}
    gone = go(host, None)
    assert not gone.changed
    assert gone.state == "converged"
    for path, file in before.items():
        assert host.files[path] == file
    said = " ".join(gone.notes)
    for kept in ("pools", SERVICE, MOUNT, "boot loader"):
        assert kept in said


# -- terminal


@pytest.mark.parametrize(
    ("settings", "gone", "named"),
    [
        ({"pages1g": 1}, f"/sys/kernel/mm/hugepages/{LARGE}", "hugepages-1048576kB"),
        ({"transparent": "never"}, THP, "transparent"),
        ({"pages2m": 1, "perNuma": True}, NODES, "NUMA"),
        ({"pages2m": [1, 2]}, NODES, "0 NUMA nodes"),
        ({"pages2m": [1, 2, 3]}, "", "3 counts"),
        ({"pages1g": 33}, "", "32768 MiB"),
        ({"pages1g": 16, "pages2m": 8192}, "", "32768 MiB"),
        ({"pages1g": [17, 1]}, "", "node 0"),
    ],
)
def test_what_this_host_can_never_hold_is_refused_and_nothing_written(
    settings: dict[str, Any], gone: str, named: str
) -> None:
    host = HugeHost()
    for path in [path for path in host.files if gone and path.startswith(gone)]:
        del host.files[path]
    refused = go(host, settings)
    assert refused.failure is not None
    assert refused.failure.reason == "Refused"
    assert not refused.failure.retryable
    assert named in refused.failure.message
    assert host.calls == []


def test_none_of_what_the_kernel_lacks_is_fine() -> None:
    host = HugeHost()
    for path in [path for path in host.files if path.startswith(f"/sys/kernel/mm/hugepages/{LARGE}")]:
        del host.files[path]
    passes(host, {"pages1g": 0})


# -- without systemd, holds, check mode, kills


def test_without_systemd_the_mount_is_made_by_hand_again_after_each_boot() -> None:
    host = HugeHost()
    del host.files["/run/systemd/system/x"]
    done = passes(host, {"pages1g": 2})
    assert "mount -t hugetlbfs -o pagesize=1G hugetlbfs /dev/hugepages1G" in host.calls
    assert not any(call.startswith("systemctl") for call in host.calls)
    assert any("systemd" in note for note in done.notes)
    host.put("/proc/mounts", "")
    passes(host, {"pages1g": 2})
    assert mounted(host)


def test_a_daemon_reload_is_held_back_while_holds_exist() -> None:
    host = HugeHost()
    host.put("/etc/cdi/bcd-a1.json", "{}")
    held = go(host, {"pages1g": 2}, ceiling="none")
    assert [wait.reason for wait in held.pending] == ["HeldBack"]
    assert host.count(LARGE) == 2
    assert "systemctl daemon-reload" not in host.calls
    assert go(host, {"pages1g": 2}, ceiling="service").state == "converged"
    assert host.calls.count("systemctl daemon-reload") == 1
    quiet(host, {"pages1g": 2})


def test_without_holds_a_daemon_reload_disturbs_nothing() -> None:
    host = HugeHost()
    host.put("/etc/cdi/nvidia.json", "{}")
    assert go(host, {"pages1g": 2}, ceiling="none").state == "converged"


SCENES: list[dict[str, Any]] = [
    {"pages2m": 512, "pages1g": 4, "perNuma": True, "transparent": "never"},
    {"pages2m": 100, "pages1g": [1, 3]},
    {"transparent": "always"},
]


@pytest.mark.parametrize("settings", SCENES)
def test_check_mode_tells_the_steps_that_are_then_taken_and_changes_nothing(settings: dict[str, Any]) -> None:
    host = HugeHost()
    before = dict(host.files)
    checked = go(host, settings, check=True)
    assert host.files == before
    assert host.calls == []
    assert checked.changed
    done = go(host, settings)
    assert [line.action for line in checked.steps] == [line.action for line in done.steps]
    after = go(host, settings, check=True)
    assert (after.changed, after.steps, after.state) == (False, (), "converged")


def test_a_module_that_an_earlier_unit_would_load_leaves_nothing_here_unknown() -> None:
    host = HugeHost()
    seen = PredictedHost(host)
    brings = tuple(
        Effect("appears", place, "the module tun is loaded") for place in ("/proc/sys", "/sys/class", "/dev")
    )
    seen.apply(run(("modprobe", "--", "tun"), "load the module tun", effects=brings))
    settings = {"pages2m": 8, "pages1g": 2, "perNuma": True, "transparent": "never"}
    after = converge(Goal(UNIT, settings), seen, Records(seen))
    assert [line.action for line in after.steps] == [line.action for line in go(host, settings).steps]


def test_check_mode_says_what_becomes_of_1_gib_pages_that_are_not_found() -> None:
    checked = go(HugeHost(), {"pages1g": 4}, check=True)
    assert "what the kernel cannot find, the boot loader reserves" in checked.steps[0].action


@pytest.mark.parametrize(
    ("runtime", "before", "settings"),
    [
        (99, None, {"pages2m": 64, "pages1g": 3, "transparent": "never"}),
        (1, None, {"pages2m": 64, "pages1g": 8}),
        (1, {"pages2m": 64, "pages1g": 8}, {"pages2m": 64, "pages1g": 0}),
        (1, {"pages1g": [1, 3]}, {"pages1g": [2, 4], "pages2m": 16}),
    ],
)
def test_a_pass_killed_before_any_of_its_changes_is_taken_up_by_the_next(
    runtime: int, before: dict[str, Any] | None, settings: dict[str, Any]
) -> None:
    def fresh() -> HugeHost:
        host = HugeHost()
        host.finds(at_runtime=runtime)
        if before is not None:
            go(host, before)
        host.calls.clear()
        return host

    whole = fresh()
    expected = go(whole, settings)
    assert len(whole.calls) > 3
    for at in range(1, len(whole.calls) + 1):
        host = fresh()
        host.kill_at = at
        with pytest.raises(Killed):
            go(host, settings)
        host.kill_at = 0
        again = go(host, settings)
        assert again.failure is None, at
        assert waits(again) == waits(expected), at
        assert host_files(host) == host_files(whole), at
        quiet(host, settings)
        assert host.loaded.get(MOUNT, host.text(f"{SYSTEM}/{MOUNT}")) == (host.text(f"{SYSTEM}/{MOUNT}") or ""), at
        assert host.loaded.get(SERVICE) == (host.text(f"{SYSTEM}/{SERVICE}") or ""), at
