# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvidia-driver's packages beside a driver that is right, and those that follow the kernel."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.units.nvidia_driver import UNIT
from tests.unit import promises
from tests.unit.driver_hosts import NEW, NEWER, bare, go, running
from tests.unit.driver_machine import DriverMachine, ubuntu

MODULES = "linux-modules-nvidia-580-server-open"
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
UTILS = "nvidia-compute-utils-580-server"


def strayed(version: str = NEWER, have: str = NEW) -> DriverMachine:
    """The right module and library, and the package of persistenced and MPS of another version beside them."""
    host = running(have, "-open")
    go(host, {"branch": "580"})
    host.packages[UTILS] = f"{version}-0ubuntu0.24.04.1"
    host.calls.clear()
    return host


def versions(host: DriverMachine) -> set[str]:
    return {version.partition("-")[0] for version in host.packages.values()}


def test_packages_that_are_of_another_version_than_the_driver_are_finished() -> None:
    """As an upgrade leaves them that was broken off: the newest of them is where it was going."""
    done = promises.check_is_truthful(UNIT, strayed, {"branch": "580"})
    assert (done.state, done.changed) == ("converged", True)
    host = strayed()
    go(host, {"branch": "580"})
    assert (host.running, versions(host)) == (f"{NEWER} open", {NEWER})
    promises.second_pass_is_quiet(UNIT, host, {"branch": "580"})


def test_an_older_package_beside_the_driver_is_brought_to_it_and_nothing_is_unloaded() -> None:
    host = strayed(NEW, NEWER)
    done = go(host, {"branch": "580"})
    assert (done.state, host.running, versions(host)) == ("converged", f"{NEWER} open", {NEWER})
    assert {step.disruption for step in done.steps} == {"none"}


@pytest.mark.parametrize(
    ("distribution", "name", "older"),
    [
        ("rocky9", "kmod-nvidia-open-dkms", f"3:{NEW}-1.el9"),
        ("rocky10", "nvidia-driver-cuda", f"3:{NEW}-1.el10"),
        ("sles", "nvidia-compute-utils-G06", f"{NEW}-1"),
    ],
)
def test_rpm_s_packages_are_brought_to_it_too(distribution: str, name: str, older: str) -> None:
    host = bare(distribution)
    assert go(host, {"branch": "580"}).state == "converged"
    whole = host.packages[name]
    host.packages[name] = older
    done = go(host, {"branch": "580"})
    assert (done.state, done.changed, host.packages[name]) == ("converged", True, whole)
    promises.second_pass_is_quiet(UNIT, host, {"branch": "580"})


def test_an_exact_version_is_what_all_packages_come_to() -> None:
    host = strayed()
    done = go(host, {"version": NEW})
    assert (done.state, host.running, versions(host)) == ("converged", f"{NEW} open", {NEW})
    assert UTILS in host.held
    assert not [call for call in host.calls if call.startswith("rmmod")]


def test_a_held_package_says_the_version() -> None:
    host = strayed()
    host.held.add("nvidia-headless-580-server-open")
    done = go(host, {"branch": "580"})
    assert (done.state, host.running, versions(host)) == ("converged", f"{NEW} open", {NEW})
    assert host.held == {"nvidia-headless-580-server-open"}


def test_packages_that_stray_wait_for_holds_and_processes_as_any_other_driver() -> None:
    host = strayed()
    host.put("/etc/cdi/bcd-a.json", "{")
    done = go(host, {"branch": "580"})
    assert ([wait.reason for wait in done.pending], done.changed, host.calls) == (["Busy"], False, [])
    del host.files["/etc/cdi/bcd-a.json"]
    host.open_nodes(4242, "python3", "/dev/nvidia0")
    done = go(host, {"branch": "580"})
    assert ([wait.reason for wait in done.pending], versions(host)) == (["RebootRequired"], {NEWER})


def test_a_half_configured_package_of_the_driver_is_finished() -> None:
    host = running(NEW, "-open")
    go(host, {"branch": "580"})
    host.broken.add(UTILS)
    done = go(host, {"branch": "580"})
    assert (done.state, host.broken) == ("converged", set())


def test_a_package_of_another_repository_s_driver_is_named() -> None:
    """The driver's own packages are in place; what strays is none of them."""
    host = running(NEW, "-open")
    go(host, {"branch": "580"})
    host.packages["nvidia-open-580"] = "580.82.07-1"
    done = go(host, {"branch": "580"})
    assert done.failure is not None
    assert "nvidia-open-580 580.82.07-1" in done.failure.message
    assert f"the driver {NEW}, open are installed" in done.failure.message
    assert host.running == f"{NEW} open"


def test_what_is_asked_of_packages_on_a_host_that_is_as_it_should_be_is_one_question() -> None:
    host = running(NEW, "-open")
    go(host, {"branch": "580"})
    host.asked.clear()
    go(host, {"branch": "580"})
    assert [argv[0] for argv in host.asked if argv[0] in ("dpkg-query", "apt-cache", "apt-get", "find")] == [
        "dpkg-query"
    ]


def test_a_driver_that_no_package_brought_is_left_as_it_is() -> None:
    """NVIDIA's installer, say, or a distribution whose packages nobody here knows."""
    host = running(NEW, "-open")
    host.packages.clear()
    assert go(host, {"branch": "580"}).state == "converged"
    promises.second_pass_is_quiet(UNIT, host, {"branch": "580"})
    host.put("/etc/os-release", "ID=arch\n")
    promises.second_pass_is_quiet(UNIT, host, {"branch": "580"})


# -- modules that Ubuntu signs


def signed(image: str = "", modules: str = "6.8.0-88.89+1") -> DriverMachine:
    """Ubuntu with Secure Boot, its signed modules, and the metapackages that follow a kernel's."""
    host = bare()
    host.repo = {**ubuntu(NEWER)}
    host.put(SECURE_BOOT, "\x06\x00\x00\x00\x01")
    host.put("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n")
    host.signs = True
    version = f"{NEWER}-0ubuntu0.24.04.1"
    host.repo["nvidia-headless-no-dkms-580-server-open"] = (f"{NEW}-0ubuntu0.24.04.1", version)
    host.repo[f"{MODULES}-{host.release}"] = ("6.8.0-88.89+1",)
    host.repo[f"{MODULES}-generic"] = (modules,)
    host.repo[f"{MODULES}-generic-hwe-24.04"] = ("6.17.0-40.40~24.04.1",)
    if image:
        host.install(image)
    return host


def test_without_a_kernel_s_metapackage_none_of_modules_comes_along() -> None:
    host = signed()
    assert go(host, {"branch": "580"}).state == "converged"
    assert [name for name in host.packages if name.startswith(MODULES)] == [f"{MODULES}-{host.release}"]


def test_modules_of_the_kernels_to_come_follow_the_kernel_s_own_metapackage() -> None:
    """Or the GPUs are down from a kernel's upgrade to the next pass."""

    def machine() -> DriverMachine:
        return signed("linux-image-generic=6.8.0-88.89").install("linux-image-6.8.0-88-generic=6.8.0-88.89")

    done = promises.check_is_truthful(UNIT, machine, {"branch": "580"})
    assert (done.state, done.failure) == ("converged", None)
    host = machine()
    go(host, {"branch": "580"})
    assert [name for name in sorted(host.packages) if name.startswith(MODULES)] == [
        f"{MODULES}-6.8.0-88-generic",
        f"{MODULES}-generic",
    ]
    promises.second_pass_is_quiet(UNIT, host, {"branch": "580"})


def test_what_follows_the_kernel_is_not_held_with_an_exact_version() -> None:
    host = signed("linux-image-generic=6.8.0-88.89")
    assert go(host, {"version": NEWER}).state == "converged"
    assert f"{MODULES}-generic" in host.packages
    assert "nvidia-headless-no-dkms-580-server-open" in host.held
    assert not [name for name in host.held if name.startswith("linux-")]
    promises.second_pass_is_quiet(UNIT, host, {"version": NEWER})


def test_a_newer_kernel_is_not_brought_for_its_module() -> None:
    """The modules' metapackage stands on the newest kernel's image alone: the host would boot it without the rest."""
    host = signed("linux-image-generic=6.8.0-88.89", modules="6.8.0-90.91")
    assert go(host, {"branch": "580"}).state == "converged"
    assert f"{MODULES}-generic" not in host.packages
    host = signed("linux-image-generic=6.8.0-88.89")
    host.held.add("linux-image-generic")
    assert go(host, {"branch": "580"}).state == "converged"
    assert f"{MODULES}-generic" not in host.packages
