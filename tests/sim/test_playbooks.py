# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shipped playbooks, run by the real ansible-playbook on simulated hosts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.sim import controller, fleet
from tests.sim.controller import Played
from tests.sim.host import SimulatedHost
from tests.sim.machine import Machine
from tests.sim.tree import PROFILES

newest_core = pytest.mark.newest_core
MODULES = {"kernel-modules": {"load": ["br_netfilter"]}}
SYSCTL = {"sysctl": {"vm.swappiness": 10}}
ISOLATED = {"cpu": {"isolate": "2-3"}}
NESTED = {"kernel-modules": {"load": ["kvm_intel"], "options": {"kvm_intel": "nested=1"}}}
TABLE = {"ANSIBLE_CALLBACKS_ENABLED": "bettercompute.bcd.pass_report"}
TWO_REBOOTS = {**ISOLATED, "iommu": {}}
REFUSED = {"sysctl": {"kernel.core_pattern": "|/tmp/x"}}


class Fleet(NamedTuple):
    """A fleet in a scratch directory."""

    scratch: Path
    inventory: str

    def play(self, name: str, *arguments: str, **more: Any) -> Played:
        """Run a shipped playbook."""
        return controller.playbook(str(self.scratch), self.inventory, f"bettercompute.bcd.{name}", *arguments, **more)

    def host(self, name: str) -> SimulatedHost:
        """One of its hosts."""
        return SimulatedHost(str(self.scratch / "trees" / f"{name}-01"))

    def report(self, folder: str = "bcd-report") -> dict[str, Any]:
        """The drift report that `plan` wrote."""
        document: dict[str, Any] = json.loads((self.scratch / folder / "fleet.json").read_text(encoding="utf-8"))
        return document


Maker = Callable[..., Fleet]


@pytest.fixture
def make(tmp_path: Path) -> Maker:
    """Makes a fleet of one host a name, with the section of each."""

    def build(profiles: dict[str, Machine] | None = None, **sections: Any) -> Fleet:
        kinds = [fleet.Hosts(name, (profiles or {}).get(name, PROFILES["debian"])) for name in sections]
        variables = {
            f"{name}-01": {} if units is None else {"bcd_converge_units": units} for name, units in sections.items()
        }
        scratch = tmp_path / "fleet"
        return Fleet(scratch, fleet.make(str(scratch), kinds, hostvars=variables))

    return build


def of_task(played: Played, task: str, host: str) -> list[dict[str, Any]]:
    """The results of a task on a host."""
    return [
        event["result"] for event in played.events()["tasks"] if event["task"].endswith(task) and event["host"] == host
    ]


def state_of(host: SimulatedHost) -> dict[str, str]:
    """Every file of the tree that is not the simulator's own, with its text."""
    found = {}
    for folder, _unused, files in os.walk(host.tree):
        for name in files:
            path = os.path.join(folder, name)
            inside = path[len(host.tree) :]
            if not inside.startswith(("/dev", "/var/log/sim", "/run/sim", "/var/lib/sim")) and not os.path.islink(path):
                found[inside] = Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    return found


def record(host: SimulatedHost) -> dict[str, Any]:
    """Root's record of what waits for a reboot."""
    found: dict[str, Any] = json.loads(host.read("/var/lib/bcd-hostconfig/reboot.json") or "{}")
    return found


def waiting(host: SimulatedHost) -> dict[str, str]:
    """What each unit that waits for a reboot says, by root's record."""
    return dict(record(host).get("units", {}))


def put_down(host: SimulatedHost) -> None:
    """Let no connection reach the host."""
    host.change(misboot="never-back")
    host.reboot()


# -- converge


def test_converge_costs_a_converged_host_one_task(make: Maker) -> None:
    hosts = make(one={**MODULES, **SYSCTL})
    first = hosts.play("converge", as_json=True)
    second = hosts.play("converge", as_json=True)
    assert (first.rc, second.rc) == (0, 0), first.out
    assert first.events()["stats"]["one-01"]["changed"] == 1
    stats = second.events()["stats"]["one-01"]
    assert {key: stats[key] for key in ("ok", "changed", "failures", "skipped")} == {
        "ok": 1,
        "changed": 0,
        "failures": 0,
        "skipped": 0,
    }
    assert hosts.host("one").read("/proc/sys/vm/swappiness") == "10\n"


def test_converge_takes_the_hosts_it_is_told(make: Maker) -> None:
    hosts = make(one=SYSCTL, two=SYSCTL)
    played = hosts.play("converge", "-e", "bcd_hosts=two")
    assert played.rc == 0, played.out
    assert hosts.host("one").read("/proc/sys/vm/swappiness") == "60\n"
    assert hosts.host("two").read("/proc/sys/vm/swappiness") == "10\n"


@pytest.mark.parametrize("playbook", ["converge", "plan"])
@pytest.mark.parametrize(
    ("section", "sentence"),
    [
        (None, "bcd_converge_units is not defined: give the section of the host, {} to clean everything"),
        (
            [{"sysctl": {"vm.swappiness": 10}}],
            'bcd_converge_units is [{"sysctl": {"vm.swappiness": 10}}]: it is a mapping from a unit\'s name to',
        ),
    ],
)
def test_a_section_that_is_none_is_told_in_a_sentence(make: Maker, playbook: str, section: Any, sentence: str) -> None:
    hosts = make(one=section)
    played = hosts.play(playbook, as_json=True)
    assert played.rc != 0
    told = [event["result"].get("msg", "") for event in played.events()["tasks"] if event["status"] == "failed"]
    assert told
    assert all(sentence in " ".join(message.split()) for message in told)


def test_the_pass_report_tells_a_killed_module(make: Maker) -> None:
    hosts = make(one=SYSCTL)
    hosts.host("one").fault({"at_step": 1, "do": "kill"})
    played = hosts.play("converge", variables=TABLE)
    assert played.rc != 0
    table = played.out.partition("PASS REPORT")[2]
    assert "one-01: the module was killed (rc 137; out of memory?): nothing is lost, run again" in table
    assert "deserialization" not in table


# -- plan


@pytest.mark.parametrize("arguments", [("plan",), pytest.param(("converge", "--check"), marks=newest_core)])
def test_a_plan_shows_its_steps(make: Maker, arguments: tuple[str, ...]) -> None:
    hosts = make(one={**SYSCTL, "cpu": {"governor": "performance"}})
    played = hosts.play(*arguments, variables=TABLE)
    assert played.rc == 0, played.out
    table = played.out.partition("PASS REPORT")[2].splitlines()
    assert re.search("^one-01 +progressing +sysctl, cpu +- +-$", "\n".join(table), re.MULTILINE)
    steps = table[table.index("one-01 would:") + 1 :]
    assert any(line.endswith(". sysctl: write /etc/sysctl.d/90-bcd.conf") for line in steps)
    assert [line.split(".")[0].strip() for line in steps if line] == [str(n + 1) for n in range(len(steps))]
    (governors,) = [line for line in steps if "set the governor" in line]
    assert governors.endswith("cpu: set the governor of CPU 0 to performance (now: powersave), and 7 more like it")


def test_plan_reports_the_fleet_and_changes_nothing(make: Maker) -> None:
    hosts = make(drifted={**MODULES, **SYSCTL}, converged=SYSCTL)
    assert hosts.play("converge", "-e", "bcd_hosts=converged").rc == 0
    before = [state_of(hosts.host(name)) for name in ("drifted", "converged")]
    played = hosts.play("plan")
    assert played.rc == 0, played.out
    assert [state_of(hosts.host(name)) for name in ("drifted", "converged")] == before
    document = hosts.report()
    assert (document["kind"], document["version"], document["source"]) == ("FleetReport", 2, "plan")
    assert document["hosts"]["converged-01"]["state"] == "converged"
    assert document["hosts"]["drifted-01"]["drift"] == ["kernel-modules", "sysctl"]
    entry = {each["after_header"]: each for each in document["hosts"]["drifted-01"]["units"][1]["diff"]}
    assert (entry["/proc/sys/vm/swappiness"]["before"], entry["/proc/sys/vm/swappiness"]["after"]) == ("60\n", "10\n")
    page = (hosts.scratch / "bcd-report" / "fleet.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "drifted-01" in page
    assert str(hosts.scratch / "bcd-report" / "fleet.html") in played.out
    assert "-60\n+10\n" in played.out


@newest_core
def test_plan_writes_the_same_report_of_the_same_fleet(make: Maker) -> None:
    hosts = make(one={**MODULES, **SYSCTL, **ISOLATED}, two=REFUSED)
    hosts.play("plan", "-e", "bcd_report_dir=first")
    hosts.play("plan", "--check", "-e", f"bcd_report_dir={hosts.scratch}/deep/second")
    first = (hosts.scratch / "first" / "fleet.json").read_bytes()
    assert first == (hosts.scratch / "deep" / "second" / "fleet.json").read_bytes()
    assert json.loads(first) == hosts.report("first")
    keys = list(json.loads(first)["hosts"]["one-01"])
    assert keys == sorted(keys)


def test_plan_reports_hosts_that_gave_no_plan_and_fails_them(make: Maker) -> None:
    hosts = make(one=SYSCTL, unset=None, gone=SYSCTL)
    put_down(hosts.host("gone"))
    played = hosts.play("plan", as_json=True)
    assert played.rc != 0
    found = {name: host["state"] for name, host in hosts.report()["hosts"].items()}
    assert found == {"gone-01": "unreachable", "one-01": "progressing", "unset-01": "unknown"}
    assert "units" in hosts.report()["hosts"]["unset-01"]["message"]
    stats = played.events()["stats"]
    assert {name: stats[name]["failures"] for name in found} == {"gone-01": 1, "one-01": 0, "unset-01": 1}


@newest_core
def test_plan_reports_a_fleet_of_which_no_host_answers(make: Maker) -> None:
    hosts = make(gone=SYSCTL)
    put_down(hosts.host("gone"))
    assert hosts.play("plan").rc != 0
    assert hosts.report()["summary"] == {
        **dict.fromkeys(("converged", "progressing", "failed", "unknown", "drifted", "failing"), 0),
        **dict.fromkeys(("reboot_required", "reboot_later"), 0),
        **dict.fromkeys(("hosts", "unreachable"), 1),
        "pools": {},
    }


@newest_core
def test_plan_fails_by_what_it_is_told_and_never_for_drift(make: Maker) -> None:
    hosts = make(drifted=SYSCTL, refused=REFUSED)
    for fail_on, failing in (("progressing", 1), ("terminal", 1), ("never", 0)):
        played = hosts.play("plan", "-e", f"bcd_converge_fail_on={fail_on}", as_json=True)
        assert (played.rc != 0) is bool(failing), played.out
        stats = played.events()["stats"]
        assert {name: stats[name]["failures"] for name in stats} == {"drifted-01": 0, "refused-01": failing}


# -- reboot


@newest_core
def test_reboot_leaves_alone_what_waits_for_none(make: Maker) -> None:
    hosts = make(one=SYSCTL)
    assert hosts.play("converge").rc == 0
    boot = hosts.host("one").read("/proc/sys/kernel/random/boot_id")
    played = hosts.play("reboot")
    assert played.rc == 0, played.out
    assert "no unit waits for a reboot" in played.out
    assert hosts.host("one").read("/proc/sys/kernel/random/boot_id") == boot


def test_reboot_proves_that_it_was_enough_and_the_next_pass_changes_nothing(make: Maker) -> None:
    hosts = make({"el": PROFILES["rocky"]}, one=TWO_REBOOTS, el=ISOLATED)
    assert hosts.play("converge").rc == 0
    boots = {name: hosts.host(name).read("/proc/sys/kernel/random/boot_id") for name in ("one", "el")}
    played = hosts.play("reboot")
    assert played.rc == 0, played.out
    assert played.out.count("no unit waits for a reboot any more") == 2
    for name, boot in boots.items():
        assert hosts.host(name).read("/proc/sys/kernel/random/boot_id") != boot
        assert hosts.host(name).read("/sys/devices/system/cpu/isolated") == "2-3\n"
    after = hosts.play("converge", as_json=True)
    assert after.rc == 0
    assert {name: stats["changed"] for name, stats in after.events()["stats"].items()} == {"one-01": 0, "el-01": 0}
    assert "RebootRequired" not in after.out
    assert "no unit waits for a reboot" in hosts.play("reboot", "-e", "bcd_hosts=one").out


@newest_core
def test_reboot_acts_on_what_a_pass_unit_by_unit_found_waiting_without_steps(make: Maker) -> None:
    hosts = make(one=NESTED)
    assert hosts.play("converge").rc == 0
    one = hosts.host("one")
    one.hold_module("kvm_intel", 1)
    one.write("/sys/module/kvm_intel/parameters/nested", "N\n")
    assert waiting(one) == {}
    boot = one.read("/proc/sys/kernel/random/boot_id")
    played = hosts.play("converge", "-e", "bcd_converge_mode=tasks", as_json=True)
    assert played.rc == 0, played.out
    (status,) = of_task(played, "Converge what is left", "one-01")
    assert (status["todo"], status["reboot_required"]) == ([], True)
    assert list(waiting(one)) == ["kernel-modules"]
    assert "reboot the node" in waiting(one)["kernel-modules"]
    rebooted = hosts.play("reboot")
    assert rebooted.rc == 0, rebooted.out
    assert "no unit waits for a reboot any more" in " ".join(rebooted.out.split())
    assert one.read("/proc/sys/kernel/random/boot_id") != boot


@newest_core
def test_a_pass_unit_by_unit_sees_that_a_reboot_by_hand_was_not_enough(make: Maker) -> None:
    hosts = make(one=ISOLATED)
    assert hosts.play("converge").rc == 0
    one = hosts.host("one")
    one.change(misboot="other-loader")
    boot = one.reboot()
    assert record(one)["boot_id"] != boot
    played = hosts.play("converge", "-e", "bcd_converge_mode=tasks")
    assert played.rc == 0, played.out
    assert record(one)["boot_id"] == boot
    assert list(waiting(one)) == ["cpu"]


def test_reboot_in_check_mode_says_what_it_would_do(make: Maker) -> None:
    hosts = make(one=ISOLATED)
    assert hosts.play("converge").rc == 0
    before = state_of(hosts.host("one"))
    played = hosts.play("reboot", "--check")
    assert played.rc == 0, played.out
    assert "a reboot is due" in played.out
    assert state_of(hosts.host("one")) == before


def test_reboot_stops_at_a_host_that_boots_without_what_it_waits_for(make: Maker) -> None:
    hosts = make(one=ISOLATED, two=ISOLATED)
    assert hosts.play("converge").rc == 0
    hosts.host("one").change(misboot="other-loader")
    boot = hosts.host("two").read("/proc/sys/kernel/random/boot_id")
    played = hosts.play("reboot")
    assert played.rc != 0
    assert "one-01: still required after the reboot: cpu: " in " ".join(played.out.split())
    assert hosts.host("two").read("/proc/sys/kernel/random/boot_id") == boot
    assert "the hosts after it were not looked at, 1: two-01: mend it and start" in " ".join(played.out.split())
    again = hosts.play("reboot")
    assert again.rc != 0
    assert "rebooted since, and still to be looked at: cpu" in " ".join(again.out.split())
    assert "one-01: still required after the reboot: cpu: " in " ".join(again.out.split())


def test_reboot_is_not_done_again_for_what_it_was_in_vain_for(make: Maker) -> None:
    hosts = make(one=ISOLATED)
    assert hosts.play("converge").rc == 0
    one = hosts.host("one")
    one.change(misboot="other-loader")
    boot = one.reboot()
    assert hosts.play("converge").rc == 0
    assert "booted without the argument" in waiting(one)["cpu"]
    played = hosts.play("reboot", as_json=True)
    assert played.rc != 0
    (vain,) = of_task(played, "Stop where another reboot would be in vain", "one-01")
    assert "(booted without the argument: it was in place for GRUB" in vain["msg"]
    assert "not rebooted again, as the last reboot was in vain: see which loader" in vain["msg"]
    (stop,) = of_task(played, "Stop, and say what was not looked at", "one-01")
    assert stop["msg"] == "one-01: stopped here for the reason above: mend it and start the playbook again"
    assert one.read("/proc/sys/kernel/random/boot_id") == boot + "\n"
    checked = hosts.play("reboot", "--check")
    assert checked.rc == 0, checked.out
    assert "not rebooted again" in " ".join(checked.out.split())
    forced = hosts.play("reboot", "-e", "bcd_reboot_again=true")
    assert "one-01: still required after the reboot: cpu: " in " ".join(forced.out.split())
    assert one.read("/proc/sys/kernel/random/boot_id") != boot + "\n"


@newest_core
def test_reboot_says_once_what_is_wrong_with_the_record(make: Maker) -> None:
    hosts = make(one=ISOLATED)
    assert hosts.play("converge").rc == 0
    boot = hosts.host("one").read("/proc/sys/kernel/random/boot_id")
    hosts.host("one").write("/var/lib/bcd-hostconfig/reboot.json", "garbage")
    played = hosts.play("reboot", as_json=True)
    assert played.rc != 0
    (result,) = of_task(played, "Stop where root's record cannot be read", "one-01")
    assert result["msg"].count("/var/lib/bcd-hostconfig/reboot.json") == 1
    assert "look at it, then move it away" in result["msg"]
    assert "become" not in result["msg"]
    assert hosts.host("one").read("/proc/sys/kernel/random/boot_id") == boot


@newest_core
def test_reboot_says_which_hosts_it_did_not_look_at_behind_one_that_is_gone(make: Maker) -> None:
    hosts = make(gone=ISOLATED, two=ISOLATED)
    put_down(hosts.host("gone"))
    for arguments, limit in (((), "!gone-01"), (("--limit", "gone-01:two-01"), "gone-01:two-01:!gone-01")):
        played = hosts.play("reboot", *arguments, as_json=True)
        assert played.rc != 0
        (stop,) = of_task(played, "Stop, and say what was not looked at", "gone-01")
        assert stop["msg"] == (
            "gone-01: stopped here for the reason above, and the hosts after it were not looked at, 1: two-01: "
            f"mend it and start the playbook again, or leave this host out with --limit '{limit}'"
        )


@newest_core
def test_reboot_goes_on_with_the_proof_where_it_was_interrupted(make: Maker) -> None:
    hosts = make(one=ISOLATED)
    assert hosts.play("converge").rc == 0
    boot = hosts.host("one").reboot()
    played = hosts.play("reboot")
    assert played.rc == 0, played.out
    assert "no unit waits for a reboot any more, and every unit is converged" in " ".join(played.out.split())
    assert hosts.host("one").read("/proc/sys/kernel/random/boot_id") == f"{boot}\n"


def test_reboot_stops_at_a_host_that_does_not_come_back_as_another_boot(make: Maker) -> None:
    hosts = make(one=ISOLATED, two=ISOLATED)
    assert hosts.play("converge").rc == 0
    hosts.host("one").change(misboot="same-boot-id")
    boot = hosts.host("two").read("/proc/sys/kernel/random/boot_id")
    played = hosts.play("reboot", "-e", "bcd_reboot_timeout=3")
    assert played.rc != 0
    assert "one-01" in played.out
    assert "[two-01]" not in played.out
    assert "the hosts after it were not looked at, 1: two-01" in " ".join(played.out.split())
    assert hosts.host("two").read("/proc/sys/kernel/random/boot_id") == boot


@newest_core
def test_reboot_knows_the_settings_without_being_told(make: Maker) -> None:
    hosts = make(one=None)
    section = json.dumps({"bcd_converge_units": ISOLATED})
    assert hosts.play("converge", "-e", section).rc == 0
    played = hosts.play("reboot")
    assert played.rc == 0, played.out
    assert "no unit waits for a reboot any more, and every unit is converged" in " ".join(played.out.split())


@newest_core
def test_reboot_stops_where_only_root_may_read_the_record(make: Maker) -> None:
    hosts = make(one=ISOLATED)
    assert hosts.play("converge").rc == 0
    boot = hosts.host("one").read("/proc/sys/kernel/random/boot_id")
    hosts.host("one").fault({"read": "/var/lib/bcd-hostconfig/reboot.json", "do": "EACCES"})
    played = hosts.play("reboot")
    assert played.rc != 0
    assert "set become" in " ".join(played.out.split())
    assert hosts.host("one").read("/proc/sys/kernel/random/boot_id") == boot
