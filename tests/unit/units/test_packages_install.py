# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Installing packages over hosts in memory: what is due, what may not be, and holds that survive a kill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Past, Plan, Todo, Unit
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.runner import Goal, converge
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.packages import packages
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.packages import Wanted, settle_holds
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.packages_index import not_offered, offers, refresh
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.packages_install import install
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.packages_seen import Packages
from tests.unit import promises
from tests.unit.package_machine import STAMP, PackageHost, Shelf, age, apt_host, dnf_host, zypper_host

NAMES = ("nvidia-*", "tool", "below", "foreign")
LOCKER = "python3-dnf-plugin-versionlock"


def installer(*wanted: Wanted, **terms: Any) -> Unit:
    """A unit that wants these packages; a version that is not offered is said so."""

    def plan(_settings: Any, now: Packages, past: Past) -> Plan:
        todo = Todo()
        if all(now.version(want.name) == want.version for want in wanted):
            settle_holds(todo, now, past, tuple(want.name for want in wanted), bool(terms.get("hold")))
            return todo.plan()
        refreshed = refresh(todo, now, past)
        there = {(offer.name, offer.version) for offer in offers(now, past, tuple(want.name for want in wanted))}
        missing = [want.name for want in wanted if want.version and (want.name, want.version) not in there]
        if missing:
            not_offered(todo, f"install {missing[0]}", f"{missing[0]} is not offered", refreshed)
        else:
            install(todo, now, past, wanted, **terms)
        return todo.plan()

    def look(host: Any, _settings: Any, _past: Any) -> Packages:
        return packages(host, NAMES, "t")

    return Unit("t", (), lambda given: given, look, plan, lambda _now, _past: Plan())


def go(host: PackageHost, unit: Unit, **given: Any) -> Outcome:
    return promises.go(unit, host, {}, **given)


def said(outcome: Outcome) -> list[str]:
    return [line.action for line in outcome.steps]


def message(outcome: Outcome) -> str:
    assert outcome.failure is not None
    return outcome.failure.message


def ran(host: PackageHost, start: str) -> list[str]:
    """The changes that begin so."""
    return [call for call in host.calls if call.startswith(start)]


def rocky10(shelf: Shelf) -> PackageHost:
    return dnf_host(shelf, "rocky10")


def fedora(shelf: Shelf) -> PackageHost:
    return dnf_host(shelf, "fedora")


Make = Callable[[Shelf], PackageHost]
HOSTS: dict[str, tuple[Make, str, str]] = {
    "apt": (apt_host, "1.0-1", "2.0-1"),
    "dnf": (rocky10, "3:1.0-1.el10", "3:2.0-1.el10"),
    "dnf5": (fedora, "1.0-1.fc44", "2.0-1.fc44"),
    "zypper": (zypper_host, "1.0_k6.4.0_1-lp156.1", "2.0_k6.4.0_1-lp156.1"),
}


def shelf_of(kind: str, **given: Any) -> Shelf:
    _make, old, new = HOSTS[kind]
    return Shelf({"tool": [old, new], LOCKER: ["4.7.0-1.el10"]}, **given)


@pytest.mark.parametrize("kind", HOSTS)
def test_an_exact_version_is_installed_and_held_and_the_second_pass_changes_nothing(kind: str) -> None:
    make, old, _new = HOSTS[kind]
    unit = installer(Wanted("tool", old), hold=True)
    host = make(shelf_of(kind))
    first = go(host, unit)
    assert (first.state, first.failure, host.shelf.installed["tool"]) == ("converged", None, old)
    assert packages(host, NAMES, "t").installed["tool"].held
    promises.second_pass_is_quiet(unit, host, {})


@pytest.mark.parametrize("kind", HOSTS)
def test_a_held_package_changes_and_is_held_again(kind: str) -> None:
    make, old, new = HOSTS[kind]
    host = make(shelf_of(kind))
    go(host, installer(Wanted("tool", old), hold=True))
    unit = installer(Wanted("tool", new))  # by itself it would hold nothing
    assert go(host, unit).state == "converged"
    seen = packages(host, NAMES, "t").installed["tool"]
    assert (seen.version, seen.held) == (new, True)
    promises.second_pass_is_quiet(unit, host, {})


@pytest.mark.parametrize("kind", HOSTS)
def test_an_older_version_is_taken_too(kind: str) -> None:
    make, old, new = HOSTS[kind]
    host = make(shelf_of(kind))
    host.come("tool", new)
    assert go(host, installer(Wanted("tool", old), hold=True)).state == "converged"
    assert host.shelf.installed["tool"] == old


@pytest.mark.parametrize("kind", HOSTS)
@pytest.mark.parametrize("held", [True, False])
def test_check_mode_says_the_steps_that_are_then_taken(kind: str, held: bool) -> None:
    make, old, new = HOSTS[kind]

    def machine() -> PackageHost:
        host: PackageHost = make(shelf_of(kind))
        if held:
            go(host, installer(Wanted("tool", old), hold=True))
        age(host)
        return host

    real = promises.check_is_truthful(installer(Wanted("tool", new), hold=True), machine, {})
    assert real.state == "converged"


@pytest.mark.parametrize("kind", HOSTS)
def test_a_kill_loses_no_hold(kind: str) -> None:
    make, old, new = HOSTS[kind]

    def machine() -> PackageHost:
        host: PackageHost = make(shelf_of(kind))
        go(host, installer(Wanted("tool", old), hold=True))
        age(host)
        host.calls.clear()
        return host

    def shown(host: PackageHost) -> object:
        return host.shelf.installed["tool"], packages(host, NAMES, "t").installed["tool"].held

    promises.a_kill_loses_nothing(installer(Wanted("tool", new)), machine, {}, shown)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", HOSTS)
def test_an_install_that_does_nothing_is_a_failure_whatever_it_exits_with(kind: str) -> None:
    make, old, _new = HOSTS[kind]
    host = make(shelf_of(kind))
    host.shelf.lies = True
    outcome = go(host, installer(Wanted("tool", old)))
    assert outcome.state == "progressing"
    assert "done without effect" in message(outcome)
    host.shelf.lies = False
    assert go(host, installer(Wanted("tool", old))).state == "converged"


# -- the index


@pytest.mark.parametrize("kind", HOSTS)
def test_the_index_is_refreshed_only_when_it_is_old_and_something_is_due(kind: str) -> None:
    make, old, _new = HOSTS[kind]
    host = make(shelf_of(kind, fresh=False))
    unit = installer(Wanted("tool", old))
    assert go(host, unit).state == "converged"
    refreshes = [call for call in host.calls if {"update", "makecache", "refresh"} & {*call.split()}]
    assert len(refreshes) == 1
    assert host.text(STAMP)
    age(host)
    promises.second_pass_is_quiet(unit, host, {})


@pytest.mark.parametrize("kind", HOSTS)
def test_check_mode_knows_what_is_not_offered_after_the_refresh(kind: str) -> None:
    make, old, _new = HOSTS[kind]
    host = make(shelf_of(kind, fresh=False))
    planned = go(host, installer(Wanted("tool", old)), check=True)
    assert said(planned)[-1] == "install tool: known after the package index is refreshed"
    assert planned.failure is None
    assert host.calls == []


@pytest.mark.parametrize("kind", HOSTS)
def test_what_no_source_offers_is_retried(kind: str) -> None:
    host = HOSTS[kind][0](shelf_of(kind))
    outcome = go(host, installer(Wanted("tool", "9.9-1")))
    assert outcome.failure is not None
    assert (outcome.failure.reason, outcome.failure.retryable) == ("StepFailed", True)
    assert outcome.failure.message == "tool is not offered"


@pytest.mark.parametrize("kind", HOSTS)
def test_looking_for_it_in_vain_is_no_change(kind: str) -> None:
    host = HOSTS[kind][0](shelf_of(kind))
    unit = installer(Wanted("tool", "9.9-1"))
    go(host, unit)
    age(host)
    again = go(host, unit)
    assert said(again)[0].startswith("refresh the package index")
    assert (again.changed, again.state) == (False, "progressing")
    assert not go(host, unit, check=True).changed


def test_a_second_look_at_a_failed_index_says_why() -> None:
    host = dnf_host(Shelf({}))
    outcome = go(host, installer(Wanted("tool", "1.0-1")))
    assert "no cache for 'cuda-rhel9-x86_64'" in message(outcome)


def test_in_check_mode_the_second_unit_stands_on_the_first_one_s_refresh() -> None:
    seen = PredictedHost(apt_host(Shelf({"tool": ["1.0-1"]}, fresh=False)))
    first, second = installer(Wanted("tool", "1.0-1")), installer(Wanted("foreign", "1.0-1"))
    converge(Goal(first, {}), seen, Records(seen))
    outcome = converge(Goal(second._replace(name="u"), {}), seen, Records(seen))
    assert said(outcome) == ["install foreign: known after the package index is refreshed"]


# -- apt on paper


def test_apt_takes_nothing_away_that_is_not_ours() -> None:
    shelf = Shelf({"tool": ["1.0-1"]})
    shelf.conflicts["tool"] = ("nvidia-utils-550",)
    shelf.exact["foreign"] = ("nvidia-utils-550",)
    shelf.installed.update({"nvidia-utils-550": "550.90.07-1", "foreign": "1-1"})
    host = apt_host(shelf)
    outcome = go(host, installer(Wanted("tool", "1.0-1"), may_go=("nvidia-utils-*",)))
    assert message(outcome).startswith("installing tool 1.0-1 would take away foreign: ")
    assert ran(host, "apt") == []
    del shelf.installed["foreign"]
    assert go(host, installer(Wanted("tool", "1.0-1"), may_go=("nvidia-utils-*",))).state == "converged"
    assert set(shelf.installed) == {"tool"}


def test_apt_gives_way_to_our_own_hold_and_to_no_other() -> None:
    shelf = Shelf({"tool": ["1.0-1"]})
    shelf.conflicts["tool"] = ("nvidia-utils-550",)
    shelf.installed["nvidia-utils-550"] = "550.90.07-1"
    shelf.held.add("nvidia-utils-550")
    host = apt_host(shelf)
    refused = go(host, installer(Wanted("tool", "1.0-1")))
    assert message(refused).startswith("installing tool 1.0-1 would take away nvidia-utils-550: ")
    done = go(host, installer(Wanted("tool", "1.0-1"), may_go=("nvidia-utils-*",)))
    assert done.state == "converged"
    assert said(done) == [
        "take the hold off nvidia-utils-550",
        "install tool 1.0-1, in place of nvidia-utils-550",
    ]


def test_apt_is_told_the_exact_versions_that_an_older_package_stands_on() -> None:
    shelf = Shelf({"tool": ["1.0-1", "2.0-1"], "below": ["1.0-1", "2.0-1"], "ground": ["1.0-1", "2.0-1"]})
    shelf.exact.update({"tool": ("below",), "below": ("ground",)})
    host = apt_host(shelf)
    assert go(host, installer(Wanted("tool", "1.0-1"))).state == "converged"
    assert shelf.installed == {"tool": "1.0-1", "below": "1.0-1", "ground": "1.0-1"}


def test_a_hold_of_another_hand_on_what_would_change_is_named() -> None:
    shelf = Shelf({"tool": ["2.0-1"], "foreign": ["1.0-1", "2.0-1"]})
    shelf.exact["tool"] = ("foreign",)
    shelf.installed["foreign"] = "1.0-1"
    shelf.held.add("foreign")
    outcome = go(apt_host(shelf), installer(Wanted("tool", "2.0-1")))
    assert "would change foreign, which another hand holds: " in message(outcome)
    assert "apt-mark unhold foreign" in message(outcome)


def test_what_apt_says_it_cannot_do_is_said_before_anything_is_done() -> None:
    shelf = Shelf({"tool": ["1.0-1"], "below": ["2.0-1"]})
    shelf.exact["tool"] = ("below",)
    host = apt_host(shelf)
    outcome = go(host, installer(Wanted("tool", "1.0-1")))
    assert message(outcome) == "apt cannot install tool 1.0-1: Version '1.0-1' for 'below' was not found"
    assert ran(host, "apt") == []


@pytest.mark.parametrize("left", ["half configured", "journal"])
def test_what_a_killed_dpkg_left_is_finished_first(left: str) -> None:
    def machine() -> PackageHost:
        host = apt_host(Shelf({"tool": ["1.0-1"]}))
        if left == "journal":
            host.put("/var/lib/dpkg/updates/0001", "")
        else:
            host.come("foreign", "1-1")
            host.shelf.broken.add("foreign")
        return host

    real = promises.check_is_truthful(installer(Wanted("tool", "1.0-1")), machine, {})
    assert real.state == "converged"
    assert said(real)[0].startswith("finish what an interrupted dpkg left")


def test_what_a_repair_brings_is_looked_at_before_more_is_installed() -> None:
    """dpkg's journal may hold the very package that is wanted: only its repair tells."""
    host = apt_host(Shelf({"tool": ["1.0-1"]}))
    host.put("/var/lib/dpkg/updates/0001", "")
    repairs = host.programs["dpkg"]

    def dpkg(host: Any, argv: tuple[str, ...]) -> Any:
        host.come("tool", "1.0-1")
        return repairs(host, argv)

    host.programs["dpkg"] = dpkg
    outcome = go(host, installer(Wanted("tool", "1.0-1")))
    assert (outcome.state, said(outcome)) == ("converged", ["finish what an interrupted dpkg left"])
    assert ran(host, "apt-get") == []


def test_our_own_half_configured_package_needs_no_second_download() -> None:
    host = apt_host(Shelf({"nvidia-smi": ["550.163.01-2"]}))
    host.come("nvidia-smi", "550.163.01-2")
    host.shelf.broken.add("nvidia-smi")

    def plan(_settings: Any, now: Packages, past: Past) -> Plan:
        todo = Todo()
        install(todo, now, past, (Wanted("nvidia-smi", "550.163.01-2"),))
        return todo.plan()

    unit = installer()._replace(plan=plan)
    outcome = promises.go(unit, host, {})
    assert said(outcome) == ["finish what an interrupted dpkg left: configure nvidia-smi"]
    assert (outcome.state, ran(host, "apt-get")) == ("converged", [])


def test_a_locked_database_is_retried_and_named() -> None:
    host = apt_host(Shelf({"tool": ["1.0-1"]}))
    host.shelf.locked = "process 812 (unattended-upgr)"
    outcome = go(host, installer(Wanted("tool", "1.0-1")))
    assert outcome.failure is not None
    assert outcome.failure.retryable
    assert "held by process 812 (unattended-upgr)" in outcome.failure.message


def test_apt_asks_nothing_keeps_edited_files_and_waits_for_the_lock() -> None:
    host = apt_host(Shelf({"tool": ["1.0-1"]}))
    go(host, installer(Wanted("tool", "1.0-1")))
    (call,) = ran(host, "apt-get")
    for option in ("-y", "--no-install-recommends", "Dpkg::Options::=--force-confold", "DPkg::Lock::Timeout=120"):
        assert option in call.split()
    assert call.endswith(" install tool=1.0-1")


# -- hosts that do not install


@pytest.mark.parametrize("path", ["/run/ostree-booted", "transactional"])
def test_a_host_that_is_an_image_is_refused_before_anything_is_written(path: str) -> None:
    host = zypper_host(Shelf({"tool": ["1.0-1"]}))
    if path == "transactional":
        host.programs["transactional-update"] = host.programs["find"]
        host.put("/proc/self/mounts", "overlay / overlay ro,relatime 0 0\n")
    else:
        host.put(path, "")
    outcome = go(host, installer(Wanted("tool", "1.0-1")))
    assert outcome.failure is not None
    assert (outcome.failure.reason, outcome.failure.retryable, host.calls) == ("Refused", False, [])
    assert "put tool into its image" in outcome.failure.message


def test_a_leap_with_a_writable_root_installs_although_the_tool_is_there() -> None:
    host = zypper_host(Shelf({"tool": ["1.0-1"]}))
    host.programs["transactional-update"] = host.programs["find"]
    host.put("/proc/self/mounts", "/dev/vda2 / btrfs rw,relatime 0 0\n")
    assert go(host, installer(Wanted("tool", "1.0-1"))).state == "converged"


def test_a_distribution_that_nobody_knows_is_refused_by_its_id() -> None:
    host = apt_host(Shelf({}))
    host.put("/etc/os-release", 'ID="gentoo"\n')
    outcome = go(host, installer(Wanted("tool", "1.0-1")))
    assert outcome.failure is not None
    assert outcome.failure.reason == "Refused"
    assert "'gentoo'" in outcome.failure.message
