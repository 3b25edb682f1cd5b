# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shipped playbooks, run by the real ansible-playbook on simulated hosts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.sim.few_hosts import ISOLATED, SYSCTL, Fleet, build, put_down, state_of
from tests.sim.machine import Machine

newest_core = pytest.mark.newest_core
MODULES = {"kernel-modules": {"load": ["br_netfilter"]}}
TABLE = {"ANSIBLE_CALLBACKS_ENABLED": "bettercompute.bcd.pass_report"}
REFUSED = {"sysctl": {"kernel.core_pattern": "|/tmp/x"}}


Maker = Callable[..., Fleet]


@pytest.fixture
def make(tmp_path: Path) -> Maker:
    """Makes a fleet of one host a name, with the section of each."""

    def make_fleet(profiles: dict[str, Machine] | None = None, **sections: Any) -> Fleet:
        return build(tmp_path / "fleet", sections, profiles)

    return make_fleet


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


@newest_core
@pytest.mark.parametrize("strategy", ["host_pinned", "free"])
def test_converge_takes_every_host_in_whatever_step_they_go(make: Maker, strategy: str) -> None:
    """With fewer forks than hosts, so that some have not begun when the first has ended."""
    hosts = make(**dict.fromkeys(("one", "two", "three", "four"), SYSCTL), other=REFUSED)
    played = hosts.play("converge", "--forks", "2", as_json=True, variables={"ANSIBLE_STRATEGY": strategy})
    assert played.rc == 2, played.out
    stats = played.events()["stats"]
    assert {name: (each["ok"], each["skipped"]) for name, each in stats.items() if name != "other-01"} == {
        f"{name}-01": (1, 0) for name in ("one", "two", "three", "four")
    }
    assert stats["other-01"]["failures"] == 1
    assert {hosts.host(name).read("/proc/sys/vm/swappiness") for name in ("one", "two", "three", "four")} == {"10\n"}


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
