# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shipped playbooks, run by the real ansible-playbook on simulated hosts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.sim import controller, fleet
from tests.sim.controller import Played
from tests.sim.host import SimulatedHost
from tests.sim.machine import Machine
from tests.sim.tree import PROFILES

MODULES = {"kernel-modules": {"load": ["br_netfilter"]}}
SYSCTL = {"sysctl": {"vm.swappiness": 10}}
ISOLATED = {"cpu": {"isolate": "2-3"}}
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


# -- plan


def test_plan_reports_the_fleet_and_changes_nothing(make: Maker) -> None:
    hosts = make(drifted={**MODULES, **SYSCTL}, converged=SYSCTL)
    assert hosts.play("converge", "-e", "bcd_hosts=converged").rc == 0
    before = [state_of(hosts.host(name)) for name in ("drifted", "converged")]
    played = hosts.play("plan")
    assert played.rc == 0, played.out
    assert [state_of(hosts.host(name)) for name in ("drifted", "converged")] == before
    document = hosts.report()
    assert (document["kind"], document["version"]) == ("FleetReport", 1)
    assert document["hosts"]["converged-01"]["state"] == "converged"
    assert document["hosts"]["drifted-01"]["drift"] == ["kernel-modules", "sysctl"]
    entry = {each["after_header"]: each for each in document["hosts"]["drifted-01"]["units"][1]["diff"]}
    assert (entry["/proc/sys/vm/swappiness"]["before"], entry["/proc/sys/vm/swappiness"]["after"]) == ("60\n", "10\n")
    page = (hosts.scratch / "bcd-report" / "fleet.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "drifted-01" in page
    assert str(hosts.scratch / "bcd-report" / "fleet.html") in played.out
    assert "-60\n+10\n" in played.out


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


def test_plan_reports_a_fleet_of_which_no_host_answers(make: Maker) -> None:
    hosts = make(gone=SYSCTL)
    put_down(hosts.host("gone"))
    assert hosts.play("plan").rc != 0
    assert hosts.report()["summary"] == {
        **dict.fromkeys(("converged", "progressing", "failed", "unknown", "drifted", "reboot_required"), 0),
        **dict.fromkeys(("hosts", "unreachable"), 1),
    }


def test_plan_fails_by_what_it_is_told_and_never_for_drift(make: Maker) -> None:
    hosts = make(drifted=SYSCTL, refused=REFUSED)
    for fail_on, failing in (("progressing", 1), ("terminal", 1), ("never", 0)):
        played = hosts.play("plan", "-e", f"bcd_converge_fail_on={fail_on}", as_json=True)
        assert (played.rc != 0) is bool(failing), played.out
        stats = played.events()["stats"]
        assert {name: stats[name]["failures"] for name in stats} == {"drifted-01": 0, "refused-01": failing}


# -- reboot


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
    again = hosts.play("reboot")
    assert again.rc != 0
    assert "rebooted since, and still to be looked at: cpu" in " ".join(again.out.split())
    assert "one-01: still required after the reboot: cpu: " in " ".join(again.out.split())


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
    assert "two-01" not in played.out
    assert hosts.host("two").read("/proc/sys/kernel/random/boot_id") == boot


def test_reboot_knows_the_settings_without_being_told(make: Maker) -> None:
    hosts = make(one=None)
    section = json.dumps({"bcd_converge_units": ISOLATED})
    assert hosts.play("converge", "-e", section).rc == 0
    played = hosts.play("reboot")
    assert played.rc == 0, played.out
    assert "no unit waits for a reboot any more, and every unit is converged" in " ".join(played.out.split())


def test_reboot_stops_where_only_root_may_read_the_record(make: Maker) -> None:
    hosts = make(one=ISOLATED)
    assert hosts.play("converge").rc == 0
    boot = hosts.host("one").read("/proc/sys/kernel/random/boot_id")
    hosts.host("one").fault({"read": "/var/lib/bcd-hostconfig/reboot.json", "do": "EACCES"})
    played = hosts.play("reboot")
    assert played.rc != 0
    assert "set become" in " ".join(played.out.split())
    assert hosts.host("one").read("/proc/sys/kernel/random/boot_id") == boot
