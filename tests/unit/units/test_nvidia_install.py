# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A driver's packages over hosts in memory: streams, pins, rivals of the other flavour, and holds."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer, Past, Plan, Todo, Unit
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.packages import packages
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.nvidia_install import install_choice
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.nvidia_names import (
    driver_globs,
    driver_sets,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.nvidia_packages import (
    choose,
    names_of,
    unserved,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.package_rows import upstream
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.packages_index import not_offered, offers, refresh
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.packages_seen import Packages
from tests.unit import promises
from tests.unit.package_machine import PackageHost, Shelf, age, apt_host, dnf_host, zypper_host

KERNELS = {"leap": "6.4.0-150600.23.65-default"}


def driver(branch: str, is_open: bool = True, version: str = "") -> Unit:
    """A unit that wants the packages of a branch or a version, and keeps what it has of it."""

    def look(host: Any, _settings: Any, _past: Any) -> Packages:
        from ansible_collections.bettercompute.bcd.plugins.module_utils.look.os_release import distribution

        return packages(host, driver_globs(distribution(host)), "d")

    def plan(_settings: Any, now: Packages, past: Past) -> Plan:
        todo = Todo()
        sets = driver_sets(now.distribution, branch, is_open, KERNELS.get("leap", ""), False)
        if any(_is_there(one.driver, now, branch, version) for one in sets):
            return todo.plan()
        refreshed = refresh(todo, now, past)
        offered = offers(now, past, names_of(sets))
        choice = choose(sets, offered, now, branch, version)
        if choice is None:
            not_offered(
                todo, "install the driver", unserved(sets, offered, now.distribution, branch, version), refreshed
            )
        else:
            install_choice(todo, now, past, choice, refreshed=refreshed, hold=bool(version))
        return todo.plan()

    return Unit("d", (), lambda given: given, look, plan, lambda _now, _past: Plan())


def _is_there(names: tuple[str, ...], now: Packages, branch: str, version: str) -> bool:
    found = [upstream(now.version(name)) for name in names]
    return all(one.startswith(f"{branch}.") and version in ("", one) for one in found)


def go(host: PackageHost, unit: Unit, **given: Any) -> Outcome:
    return promises.go(unit, host, {}, **given)


def said(outcome: Outcome) -> list[str]:
    return [line.action for line in outcome.steps]


RPMS = [f"3:{version}-1.el9" for version in ("570.195.03", "580.82.07", "580.95.05", "590.44.01")]
OPEN, CLOSED = "kmod-nvidia-open-dkms", "kmod-nvidia-latest-dkms"


def rocky9(streams: dict[str, str] | None = None) -> PackageHost:
    names = ("nvidia-driver-cuda", OPEN, CLOSED, "nvidia-persistenced")
    shelf = Shelf(dict.fromkeys(names, RPMS) | {"python3-dnf-plugin-versionlock": ["4.3.0-1.el9"]})
    shelf.streams = streams or {"latest-dkms": "", "open-dkms": "[d]", "580-open": "", "580-dkms": "", "570-open": ""}
    shelf.needs_stream = {OPEN: "580-open", CLOSED: "580-dkms"}
    shelf.conflicts = {OPEN: (CLOSED,), CLOSED: (OPEN,)}
    return dnf_host(shelf)


def test_a_branch_is_a_stream_whatever_the_default_is() -> None:
    host = rocky9()
    outcome = go(host, driver("580"))
    assert said(outcome)[0] == "enable the module stream nvidia-driver:580-open"
    assert outcome.state == "converged"
    assert host.shelf.installed == dict.fromkeys(("nvidia-driver-cuda", OPEN, "nvidia-persistenced"), RPMS[2])
    promises.second_pass_is_quiet(driver("580"), host, {})


def test_a_rerun_upgrades_nothing_although_the_stream_has_moved_on() -> None:
    host = rocky9({"latest-dkms": "[e]", "580-open": "", "580-dkms": ""})
    host.shelf.installed.update(dict.fromkeys(("nvidia-driver-cuda", CLOSED), "3:580.82.07-1.el9"))
    outcome = go(host, driver("580", is_open=False))
    assert (outcome.state, outcome.changed, outcome.steps) == ("converged", False, ())


def test_switching_the_flavour_resets_the_stream_and_swaps_the_module() -> None:
    def machine() -> PackageHost:
        host = rocky9()
        go(host, driver("580"))
        return host

    real = promises.check_is_truthful(driver("580", is_open=False), machine, {})
    assert real.state == "converged"
    assert said(real) == [
        "reset nvidia-driver:580-open, which is enabled, before nvidia-driver:580-dkms is enabled",
        "enable the module stream nvidia-driver:580-dkms",
        f"install {CLOSED} {RPMS[2]}, in place of {OPEN}",
    ]


def test_a_version_is_asked_of_the_stream_of_its_branch() -> None:
    """525.125.06 is no stream, 525-dkms is."""
    host = rocky9()
    assert go(host, driver("580", version="580.82.07")).state == "converged"
    assert host.shelf.installed[OPEN] == "3:580.82.07-1.el9"
    assert f"{OPEN}-3:580.82.07-1.el9.*" in (host.text("/etc/dnf/plugins/versionlock.list") or "")
    age(host)
    assert go(host, driver("580", version="580.95.05")).state == "converged"
    assert host.shelf.installed[OPEN] == "3:580.95.05-1.el9"


def test_a_stream_that_is_not_there_is_retried_and_named() -> None:
    host = rocky9({"latest-dkms": "[d]", "570-open": ""})
    outcome = go(host, driver("580"))
    assert outcome.failure is not None
    assert outcome.failure.retryable
    assert "no stream nvidia-driver:580-open" in outcome.failure.message
    assert "570-open" in outcome.failure.message


@pytest.mark.parametrize("distribution", ["rocky10", "fedora"])
def test_without_streams_a_hold_keeps_the_branch(distribution: str) -> None:
    names = ("nvidia-driver-cuda", OPEN)
    shelf = Shelf(dict.fromkeys(names, RPMS) | {"python3-dnf-plugin-versionlock": ["4.7.0-1.el10"]})
    host = dnf_host(shelf, distribution)
    outcome = go(host, driver("580"))
    assert outcome.state == "converged"
    assert not any("stream" in action for action in said(outcome))
    seen = packages(host, ("nvidia-*", "kmod-*"), "d").installed
    assert {name: (seen[name].version, seen[name].held) for name in names} == dict.fromkeys(names, (RPMS[2], True))
    promises.second_pass_is_quiet(driver("580"), host, {})


def test_on_suse_the_other_flavour_goes_in_the_same_transaction_and_the_branch_is_locked() -> None:
    builds = {version: f"{version}_k6.4.0_150600.21-150600.3.1" for version in ("570.195.03", "580.95.05", "600.10.01")}
    opened, closed = "nvidia-open-driver-G06-signed-kmp-default", "nvidia-driver-G06-kmp-default"
    shelf = Shelf({opened: list(builds.values()), closed: list(builds.values())})
    shelf.carried["nvidia-compute-utils-G06"] = [f"{version}-150600.1.1" for version in builds]
    shelf.index = dict(shelf.carried)
    shelf.conflicts = {opened: (closed,), closed: (opened,)}
    host = zypper_host(shelf)
    assert go(host, driver("580")).state == "converged"
    assert upstream(shelf.installed[opened]) == "580.95.05"
    assert f"solvable_name: {opened}\n" in (host.text("/etc/zypp/locks") or "")
    outcome = go(host, driver("580", is_open=False))
    assert outcome.state == "converged"
    assert opened not in shelf.installed
    assert upstream(shelf.installed[closed]) == "580.95.05"


PREFERENCES = "/etc/apt/preferences.d"


def debian() -> PackageHost:
    """NVIDIA's repository for Debian."""
    deb = ["580.95.05-1", "590.44.01-1"]
    names = ("nvidia-driver-cuda", "nvidia-kernel-open-dkms", "nvidia-persistenced", "libcuda1")
    shelf = Shelf(
        dict.fromkeys(names, deb) | {"nvidia-driver-pinning-580": ["580-1"], "nvidia-driver-pinning-590": ["590-1"]}
    )
    shelf.conflicts["nvidia-driver-pinning-590"] = ("nvidia-driver-pinning-580",)
    for branch in ("580", "590"):
        pin = f"Package: *nvidia*\nPin: version {branch}*\nPin-Priority: 1000\n"
        shelf.conffiles[f"nvidia-driver-pinning-{branch}"] = (f"{PREFERENCES}/nvidia-driver-pinning-{branch}", pin)
    shelf.exact["nvidia-driver-cuda"] = ("libcuda1",)
    return apt_host(shelf, "debian")


PINS = {"nvidia-driver-pinning-580", "nvidia-driver-pinning-590"}


def test_the_pin_of_a_branch_comes_before_its_driver() -> None:
    host = debian()
    outcome = go(host, driver("580"))
    assert outcome.state == "converged"
    installs = [call.rpartition(" install ")[2] for call in host.calls if " install " in call]
    assert installs[0] == "nvidia-driver-pinning-580"
    assert {upstream(host.shelf.installed[name]) for name in ("nvidia-driver-cuda", "libcuda1")} == {"580.95.05"}
    promises.second_pass_is_quiet(driver("580"), host, {})


def test_the_next_branch_takes_the_pin_s_place() -> None:
    host = debian()
    go(host, driver("580"))
    assert go(host, driver("590")).state == "converged"
    assert "nvidia-driver-pinning-580" not in host.shelf.installed
    assert host.names(PREFERENCES) == ("nvidia-driver-pinning-590",)
    assert upstream(host.shelf.installed["nvidia-driver-cuda"]) == "590.44.01"


def after_580() -> PackageHost:
    host = debian()
    go(host, driver("580"))
    host.calls.clear()
    return host


def left_behind() -> PackageHost:
    """A pass that died between the pin of the next branch and the purge of the one before."""
    host = after_580()
    del host.shelf.installed["nvidia-driver-pinning-580"]
    host.shelf.left["nvidia-driver-pinning-580"] = "580-1"
    host.come("nvidia-driver-pinning-590", "590-1")
    return host


@pytest.mark.parametrize("machine", [after_580, left_behind])
def test_the_pin_that_dpkg_leaves_of_another_branch_goes_before_the_driver_comes(machine: Any) -> None:
    real = promises.check_is_truthful(driver("590"), machine, {})
    purge = "purge nvidia-driver-pinning-580, whose pin stays in apt's preferences when the package goes"
    assert real.state == "converged"
    assert said(real)[-2] == purge
    assert said(real)[-1].startswith("install nvidia-driver-cuda 590.44.01-1")
    host = machine()
    go(host, driver("590"))
    assert (host.names(PREFERENCES), host.shelf.left) == (("nvidia-driver-pinning-590",), {})
    promises.second_pass_is_quiet(driver("590"), host, {})


def test_a_kill_between_the_pins_loses_nothing() -> None:
    def shown(host: Any) -> object:
        return dict(host.shelf.installed), dict(host.shelf.left), host.names(PREFERENCES)

    promises.a_kill_loses_nothing(driver("590"), after_580, {}, shown)


def test_check_mode_is_truthful_where_a_pin_comes_first() -> None:
    real = promises.check_is_truthful(driver("580"), debian, {})
    assert real.state == "converged"


def test_what_apt_would_do_is_asked_behind_the_pin() -> None:
    """Without the pin apt's candidates are those of the newest branch, and the driver's do not fit them."""

    def machine() -> PackageHost:
        host = debian()
        installs = host.programs["apt-get"]

        def apt_get(host: Any, argv: tuple[str, ...]) -> Answer:
            names = {spec.partition("=")[0] for spec in argv}
            if "-s" in argv and "nvidia-driver-cuda" in names and not {*names, *host.shelf.installed} & PINS:
                unmet = " nvidia-driver-cuda : Depends: nvidia-modprobe (>= 580) but it is not going to be installed\n"
                return Answer(100, f"The following packages have unmet dependencies:\n{unmet}", "E: Broken packages\n")
            return installs(host, argv)

        host.programs["apt-get"] = apt_get
        return host

    planned = go(machine(), driver("580"), check=True)
    assert planned.failure is None
    assert said(planned)[-1].startswith("install nvidia-driver-cuda 580.95.05-1")
    assert promises.check_is_truthful(driver("580"), machine, {}).state == "converged"


def test_a_kill_between_pin_stream_and_packages_loses_nothing() -> None:
    def shown(host: Any) -> object:
        return dict(host.shelf.installed), dict(host.shelf.streams)

    promises.a_kill_loses_nothing(driver("580", version="580.95.05"), debian, {}, shown)
    promises.a_kill_loses_nothing(driver("580", is_open=False), rocky9, {}, shown)


def test_a_swap_of_branches_on_ubuntu_leaves_the_container_toolkit_where_it_is() -> None:
    new = ["nvidia-headless-580-server-open", "nvidia-utils-580-server", "nvidia-compute-utils-580-server"]
    shelf = Shelf({name: ["580.95.05-0ubuntu0.24.04.1"] for name in new})
    old = "nvidia-headless-550-server-open"
    shelf.installed.update({old: "550.90.07-0ubuntu1", "nvidia-container-toolkit": "1.17.8-1"})
    shelf.held.add(old)
    shelf.conflicts[new[0]] = (old,)
    host = apt_host(shelf)
    assert go(host, driver("580")).state == "converged"
    assert set(shelf.installed) == {*new, "nvidia-container-toolkit"}
    shelf.installed = {"nvidia-container-toolkit": "1.17.8-1"}
    shelf.conflicts[new[0]] = ("nvidia-container-toolkit",)
    outcome = go(host, driver("580"))
    assert outcome.failure is not None
    assert "would take away nvidia-container-toolkit" in outcome.failure.message
