# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook reboot, run by the real ansible-playbook on a few simulated hosts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.sim import timeline
from tests.sim.controller import Played
from tests.sim.few_hosts import (
    BOOT_ID,
    ISOLATED,
    SYSCTL,
    Converged,
    Fleet,
    build,
    of_task,
    put_down,
    record,
    state_of,
    waiting,
)
from tests.sim.host import SimulatedHost

newest_core = pytest.mark.newest_core
NESTED = {"kernel-modules": {"load": ["kvm_intel"], "options": {"kvm_intel": "nested=1"}}}
TWO_REBOOTS = {**ISOLATED, "iommu": {}}
POOL_A, POOL_B = {"bcd_pool": "a"}, {"bcd_pool": "b"}
KEPT = "allocations hold its devices, alloc_1: release them, or reboot it under them with -e bcd_reboot_with_holds=true"
HELD = "/etc/cdi/bcd-alloc_1.json"

Maker = Callable[..., Fleet]


@pytest.fixture(scope="module")
def converged(tmp_path_factory: pytest.TempPathFactory) -> Converged:
    return Converged(tmp_path_factory.mktemp("converged"))


@pytest.fixture
def make(tmp_path: Path, converged: Converged) -> Maker:
    """Makes a fleet of one host a name, with the section of each, converged."""

    def make_fleet(variables: dict[str, dict[str, Any]] | None = None, **sections: Any) -> Fleet:
        return converged.build(tmp_path / "fleet", sections, variables)

    return make_fleet


def boot(host: SimulatedHost) -> str:
    """The id of the running boot."""
    return (host.read(BOOT_ID) or "").strip()


def said(played: Played) -> str:
    """All that was printed, in one line."""
    return " ".join(played.out.split())


def planned(played: Played) -> list[str]:
    """The lines of the plan."""
    [result] = [event["result"] for event in played.events()["tasks"] if event["task"].endswith("Say what is planned")]
    return list(result["msg"])


def end(played: Played) -> dict[str, Any]:
    """What the run hands on."""
    found: dict[str, Any] = played.events()["custom"]["_run"]["bcd_reboot"]
    return found


def failed(played: Played) -> dict[str, str]:
    """Why the run failed, by host."""
    return {
        event["host"]: event["result"]["msg"]
        for event in played.events()["tasks"]
        if event["task"].endswith("Fail what went wrong") and event["status"] == "failed"
    }


# -- one host


@newest_core
def test_leaves_alone_what_waits_for_none(make: Maker) -> None:
    hosts = make(one=SYSCTL)
    before = boot(hosts.host("one"))
    played = hosts.play("reboot", as_json=True)
    assert played.rc == 0, played.out
    assert planned(played) == ["no unit waits for a reboot on the host"]
    assert end(played) == {"rebooted": [], "proved": [], "left_out": {}, "failed": {}, "waves": []}
    assert boot(hosts.host("one")) == before


def test_proves_that_it_was_enough_and_the_next_pass_changes_nothing(make: Maker) -> None:
    hosts = make(one=TWO_REBOOTS)
    one = hosts.host("one")
    before = boot(one)
    played = hosts.play("reboot")
    assert played.rc == 0, played.out
    assert "no unit waits for a reboot any more" in said(played)
    assert boot(one) != before
    assert one.read("/sys/devices/system/cpu/isolated") == "2-3\n"
    assert one.read("/var/lib/sim/boots") == "2"  # one for all reasons
    after = hosts.play("converge", as_json=True)
    assert (after.rc, after.events()["stats"]["one-01"]["changed"]) == (0, 0)
    assert "RebootRequired" not in after.out


@newest_core
def test_acts_on_what_a_pass_unit_by_unit_found_waiting_without_steps(make: Maker) -> None:
    hosts = make(one=NESTED)
    one = hosts.host("one")
    one.hold_module("kvm_intel", 1)
    one.write("/sys/module/kvm_intel/parameters/nested", "N\n")
    assert waiting(one) == {}
    before = boot(one)
    played = hosts.play("converge", "-e", "bcd_converge_mode=tasks", as_json=True)
    assert played.rc == 0, played.out
    (status,) = of_task(played, "Converge what is left", "one-01")
    assert (status["todo"], status["reboot_required"]) == ([], True)
    assert list(waiting(one)) == ["kernel-modules"]
    assert "reboot the node" in waiting(one)["kernel-modules"]
    rebooted = hosts.play("reboot")
    assert rebooted.rc == 0, rebooted.out
    assert "no unit waits for a reboot any more" in said(rebooted)
    assert boot(one) != before


@newest_core
def test_a_pass_unit_by_unit_sees_that_a_reboot_by_hand_was_not_enough(make: Maker) -> None:
    hosts = make(one=ISOLATED)
    one = hosts.host("one")
    one.change(misboot="other-loader")
    after = one.reboot()
    assert record(one)["boot_id"] != after
    played = hosts.play("converge", "-e", "bcd_converge_mode=tasks")
    assert played.rc == 0, played.out
    assert record(one)["boot_id"] == after
    assert list(waiting(one)) == ["cpu"]


@pytest.mark.parametrize(
    "arguments", [("--check",), pytest.param(("-e", "bcd_reboot_dry_run=true"), marks=newest_core)]
)
def test_a_dry_run_says_the_waves_and_who_is_left_out(make: Maker, arguments: tuple[str, ...]) -> None:
    hosts = make(variables={"one": POOL_A, "two": POOL_A, "held": POOL_A}, one=ISOLATED, two=ISOLATED, held=ISOLATED)
    hosts.host("held").write(HELD, "{")
    before = [state_of(hosts.host(name)) for name in ("one", "two", "held")]
    played = hosts.play("reboot", *arguments, as_json=True)
    assert played.rc == 0, played.out
    lines = planned(played)
    assert lines[0].startswith("one-01, two-01: a reboot is due, of which the units say: cpu: ")
    assert lines[1:] == [
        "the pool a: 3 hosts, at most 1 unavailable at a time, room for 1",
        "  wave 1: one-01",
        "  wave 2: two-01",
        f"left out, held-01: {KEPT}",
    ]
    assert end(played)["rebooted"] == []
    assert end(played)["waves"] == [["one-01"], ["two-01"]]
    assert [state_of(hosts.host(name)) for name in ("one", "two", "held")] == before


@newest_core
def test_is_not_done_again_for_what_it_was_in_vain_for(make: Maker) -> None:
    hosts = make(one=ISOLATED)
    one = hosts.host("one")
    one.change(misboot="other-loader")
    before = one.reboot()
    assert hosts.play("converge").rc == 0
    assert "booted without the argument" in waiting(one)["cpu"]
    played = hosts.play("reboot", as_json=True)
    assert played.rc != 0
    why = failed(played)["one-01"]
    assert "(booted without the argument: it was in place for GRUB" in why
    assert "not rebooted again, as the last reboot was in vain: see which loader" in why
    assert why.endswith(": mend it and start the playbook again")
    assert boot(one) == before
    checked = hosts.play("reboot", "--check")
    assert checked.rc == 0, checked.out
    assert "not rebooted again" in said(checked)
    forced = hosts.play("reboot", "-e", "bcd_reboot_again=true")
    assert "one-01: still required after the reboot: cpu: " in said(forced)
    assert boot(one) != before


@newest_core
def test_says_once_what_is_wrong_with_the_record(make: Maker) -> None:
    hosts = make(one=ISOLATED)
    before = boot(hosts.host("one"))
    hosts.host("one").write("/var/lib/bcd-hostconfig/reboot.json", "garbage")
    played = hosts.play("reboot", as_json=True)
    assert played.rc != 0
    why = failed(played)["one-01"]
    assert why.count("/var/lib/bcd-hostconfig/reboot.json") == 1
    assert "look at it, then move it away" in why
    assert "become" not in why
    assert boot(hosts.host("one")) == before


@newest_core
def test_goes_on_with_the_proof_where_it_was_interrupted(make: Maker) -> None:
    hosts = make(one=ISOLATED)
    after = hosts.host("one").reboot()
    played = hosts.play("reboot")
    assert played.rc == 0, played.out
    assert "one-01: rebooted since, and still to be looked at: cpu" in said(played)
    assert "no unit waits for a reboot any more, and every unit is converged" in said(played)
    assert boot(hosts.host("one")) == after


@newest_core
def test_knows_the_settings_without_being_told(tmp_path: Path) -> None:
    hosts = build(tmp_path / "fleet", {"one": None})
    section = json.dumps({"bcd_converge_units": ISOLATED})
    assert hosts.play("converge", "-e", section).rc == 0
    played = hosts.play("reboot")
    assert played.rc == 0, played.out
    assert "no unit waits for a reboot any more, and every unit is converged" in said(played)


@newest_core
def test_stops_where_only_root_may_read_the_record(make: Maker) -> None:
    hosts = make(one=ISOLATED)
    before = boot(hosts.host("one"))
    hosts.host("one").fault({"read": "/var/lib/bcd-hostconfig/reboot.json", "do": "EACCES"})
    played = hosts.play("reboot")
    assert played.rc != 0
    assert "set become" in said(played)
    assert boot(hosts.host("one")) == before


def test_a_bad_budget_is_one_error_before_anything_is_touched(make: Maker) -> None:
    hosts = make(one=ISOLATED)
    before = state_of(hosts.host("one"))
    played = hosts.play("reboot", "-e", "bcd_reboot_max_unavailable=0%", as_json=True)
    assert played.rc != 0
    assert [(event["task"].split(" : ")[-1], event["status"]) for event in played.events()["tasks"]] == [
        ("Refuse a budget that is none", "failed")
    ]
    assert played.events()["tasks"][0]["result"]["msg"] == (
        "bcd_reboot_max_unavailable is 0%, and says how many hosts of a pool may be unavailable at a time: give a "
        "number from 1 on, or a percentage of the pool from 1% to 100%, as 3 or 10%"
    )
    assert state_of(hosts.host("one")) == before


# -- several


@newest_core
def test_a_hold_that_came_after_the_plan_keeps_its_host_up(make: Maker) -> None:
    hosts = make(
        variables={"one": POOL_A, "two": POOL_A, "three": POOL_A}, **dict.fromkeys(("one", "two", "three"), ISOLATED)
    )

    def hold() -> None:
        end_of_wait = time.monotonic() + 300
        while not timeline.spans(hosts.host("one").tree):
            assert time.monotonic() < end_of_wait
            time.sleep(0.05)
        hosts.host("two").write(HELD, "{")

    with ThreadPoolExecutor() as pool:
        held = pool.submit(hold)
        played = hosts.play("reboot", as_json=True)
        held.result()
    assert played.rc == 0, played.out
    assert end(played)["rebooted"] == ["one-01", "three-01"]
    assert end(played)["left_out"] == {"two-01": KEPT}


def test_what_hosts_say_is_never_evaluated_here(make: Maker, tmp_path: Path) -> None:
    hosts = make(variables={"vain": POOL_B}, due=ISOLATED, held=ISOLATED, vain=ISOLATED)

    def hostile(name: str) -> str:
        return "{{ lookup('pipe', 'touch " + str(tmp_path / f"evaluated-{name}") + "') }}"

    for name, more in (("due", ""), ("held", ""), ("vain", " this boot has none")):
        kept = record(hosts.host(name))
        kept["units"]["cpu"] = f"{hostile(name)} reboot the node{more}"
        hosts.host(name).write("/var/lib/bcd-hostconfig/reboot.json", json.dumps(kept))
    hosts.host("held").write("/run/nologin", f"the system is going down {hostile('nologin')}")
    hosts.host("due").change(misboot="same-boot-id")
    hosts.host("due").write("/var/lib/bcd-hostconfig/applied.json", "{}")
    played = hosts.play("reboot", "-e", "bcd_reboot_timeout=3", "-e", "bcd_reboot_max_unavailable=3", as_json=True)
    assert played.rc != 0
    assert any("due-01: a reboot is due, of which the units say: { { lookup(" in line for line in planned(played))
    assert set(end(played)["left_out"]) == {"held-01"}
    assert set(failed(played)) == {"due-01", "vain-01"}
    assert list(tmp_path.glob("evaluated*")) == []


@newest_core
def test_each_pool_has_its_own_budget_and_wishes(make: Maker) -> None:
    wide = {**POOL_B, "bcd_reboot_max_unavailable": "100%", "bcd_reboot_with_holds": True}
    hosts = make(
        variables={"a": POOL_A, "b": POOL_A, "c": POOL_A, "x": wide, "y": wide}, **dict.fromkeys("abcxy", ISOLATED)
    )
    for name in "cy":
        hosts.host(name).write(HELD, "{")
    played = hosts.play("reboot", "--check", as_json=True)
    assert end(played)["waves"] == [["a-01", "x-01", "y-01"], ["b-01"]]
    assert end(played)["left_out"] == {"c-01": KEPT}
    told = hosts.play("reboot", "--check", "-e", "bcd_reboot_max_unavailable=2", as_json=True)
    assert end(told)["waves"] == [["a-01", "b-01", "x-01", "y-01"]]


def test_a_failure_ends_its_own_pools_rollout(make: Maker) -> None:
    variables = {"one": POOL_A, "two": POOL_A, "three": POOL_B, "four": POOL_B}
    hosts = make(variables=variables, **dict.fromkeys(variables, ISOLATED))
    hosts.host("one").change(misboot="other-loader")
    before = boot(hosts.host("two"))
    played = hosts.play("reboot", as_json=True, variables={"ANSIBLE_ANY_ERRORS_FATAL": "true"})
    assert played.rc != 0
    assert boot(hosts.host("two")) == before
    came = end(played)
    assert (came["rebooted"], came["proved"]) == (["three-01", "four-01"], ["three-01", "four-01"])
    assert came["waves"] == [["one-01", "three-01"], ["two-01", "four-01"]]
    assert came["failed"]["one-01"].startswith("still required after the reboot: cpu: ")
    assert came["left_out"]["two-01"].startswith("the rollout of the pool a ended with one-01: still required after")
    assert failed(played)["one-01"].endswith(
        "; of the pool a did not begin, 1: two-01: mend it and start the playbook again, or leave this host out with "
        "--limit '!one-01'"
    )
    again = hosts.play("reboot", as_json=True)
    assert again.rc != 0
    assert planned(again)[0] == "one-01, three-01, four-01: rebooted since, and still to be looked at: cpu"
    assert end(again)["failed"]["one-01"].startswith("still required after the reboot: cpu: ")
    assert boot(hosts.host("two")) == before


@newest_core
def test_a_host_that_does_not_come_back_as_another_boot_ends_it(make: Maker) -> None:
    hosts = make(one=ISOLATED, two=ISOLATED)
    hosts.host("one").change(misboot="same-boot-id")
    before = boot(hosts.host("two"))
    played = hosts.play("reboot", "-e", "bcd_reboot_timeout=3", as_json=True)
    assert played.rc != 0
    assert list(end(played)["failed"]) == ["one-01"]
    assert list(end(played)["left_out"]) == ["two-01"]
    assert "of the hosts without a pool did not begin, 1: two-01" in failed(played)["one-01"]
    assert boot(hosts.host("two")) == before


@newest_core
def test_a_host_that_is_gone_takes_room_and_is_named(make: Maker) -> None:
    hosts = make(gone=ISOLATED, two=ISOLATED, three=ISOLATED)
    put_down(hosts.host("gone"))
    before = boot(hosts.host("two"))
    played = hosts.play("reboot", as_json=True)
    assert played.rc != 0
    assert failed(played)["gone-01"].startswith("gone-01: it cannot be looked at: ")
    assert failed(played)["gone-01"].endswith("or leave this host out with --limit '!gone-01'")
    assert end(played)["left_out"]["two-01"] == (
        "the hosts without a pool may do without 1 host at a time, and does already, without gone-01 (cannot be looked "
        "at): bring it back, or raise bcd_reboot_max_unavailable"
    )
    assert boot(hosts.host("two")) == before
    roomier = hosts.play("reboot", "-e", "bcd_reboot_max_unavailable=2", as_json=True)
    assert roomier.rc != 0
    assert end(roomier)["rebooted"] == ["two-01", "three-01"]
    assert end(roomier)["waves"] == [["two-01"], ["three-01"]]
    assert list(failed(roomier)) == ["gone-01"]


def test_the_whole_pool_counts_also_where_the_run_touches_a_part_of_it(make: Maker) -> None:
    variables = {"one": POOL_A, "gone": POOL_A, "closing": POOL_A, "other": POOL_B}
    hosts = make(variables=variables, one=ISOLATED, gone=SYSCTL, closing=ISOLATED, other=ISOLATED)
    put_down(hosts.host("gone"))
    hosts.host("closing").write("/run/systemd/shutdown/scheduled", "USEC=1\nWARN_WALL=1\nMODE=reboot\n")
    before = boot(hosts.host("one"))
    limit = ("--limit", "one-01")
    for narrower in (limit, ("-e", "bcd_hosts=one")):
        played = hosts.play("reboot", *narrower, "-e", "bcd_reboot_max_unavailable=50%", as_json=True)
        assert played.rc == 0, played.out
        assert end(played)["left_out"] == {
            "one-01": "the pool a may do without 1 host at a time, and does already, without gone-01 (cannot be looked "
            "at), closing-01 (is going down): bring them back, or raise bcd_reboot_max_unavailable"
        }
        assert boot(hosts.host("one")) == before
    roomier = hosts.play("reboot", *limit, "-e", "bcd_reboot_max_unavailable=3", as_json=True)
    assert roomier.rc == 0, roomier.out
    assert end(roomier)["rebooted"] == ["one-01"]


@newest_core
def test_holds_keep_their_host_up_unless_it_is_told(make: Maker) -> None:
    hosts = make(one=ISOLATED)
    hosts.host("one").write(HELD, "{")
    before = boot(hosts.host("one"))
    played = hosts.play("reboot", as_json=True)
    assert played.rc == 0, played.out
    assert "alloc_1" in end(played)["left_out"]["one-01"]
    assert boot(hosts.host("one")) == before
    told = hosts.play("reboot", "-e", "bcd_reboot_with_holds=true", as_json=True)
    assert told.rc == 0, told.out
    assert end(told)["rebooted"] == ["one-01"]


@newest_core
def test_a_wave_takes_no_task_of_the_hosts_outside_of_it(make: Maker) -> None:
    hosts = make(one=ISOLATED, idle=SYSCTL)
    played = hosts.play("reboot", as_json=True)
    assert played.rc == 0, played.out
    tasks = [event["task"] for event in played.events()["tasks"] if event["host"] == "idle-01"]
    assert [task.split(" : ")[-1] for task in tasks] == ["Look what waits for a reboot"]
