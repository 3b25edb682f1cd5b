# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvidia-driver on machines in memory: installed, loaded, swapped, and left alone where it is in use."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.units.nvidia_driver import UNIT
from tests.unit import promises
from tests.unit.driver_hosts import BLACKLIST, NEW, NEWER, OLD, bare, go, running
from tests.unit.driver_machine import DriverMachine
from tests.unit.promises import lines

# -- a first installation


@pytest.mark.parametrize(
    ("distribution", "branch", "expected", "packages"),
    [
        (
            "ubuntu",
            "580",
            f"{NEWER} open",
            {"nvidia-headless-580-server-open", "nvidia-utils-580-server", "nvidia-compute-utils-580-server"},
        ),
        (
            "ubuntu",
            "550",
            f"{OLD} proprietary",
            {"nvidia-headless-550-server", "nvidia-utils-550-server", "nvidia-compute-utils-550-server"},
        ),
        ("debian", "550", f"{OLD} proprietary", {"nvidia-kernel-dkms", "nvidia-smi", "libnvidia-ml1"}),
        ("rocky9", "580", f"{NEWER} open", {"nvidia-driver-cuda", "kmod-nvidia-open-dkms", "nvidia-persistenced"}),
        ("rocky10", "580", f"{NEWER} open", {"nvidia-driver-cuda", "kmod-nvidia-open-dkms", "nvidia-persistenced"}),
        ("sles", "580", f"{NEWER} open", {"nvidia-open-driver-G06-signed-kmp-default", "nvidia-compute-utils-G06"}),
    ],
)
def test_a_bare_host_gets_the_driver_of_the_branch(
    distribution: str, branch: str, expected: str, packages: set[str]
) -> None:
    host = bare(distribution)
    done = go(host, {"branch": branch})
    assert (done.state, done.changed, done.failure, done.pending) == ("converged", True, None, ())
    assert host.running == expected
    assert packages <= set(host.packages)
    assert {"nvidia", "nvidia_uvm"} <= set(host.loaded)
    assert "nvidia-persistenced" in host.active
    assert "blacklist nouveau\n" in (host.text("/initramfs") or "")
    assert {step.disruption for step in done.steps} == {"none"}
    promises.second_pass_is_quiet(UNIT, host, {"branch": branch})


@pytest.mark.parametrize("distribution", ["ubuntu", "rocky9", "rocky10", "sles"])
def test_check_mode_says_what_a_bare_host_gets(distribution: str) -> None:
    host = bare(distribution)
    planned = go(host, {"branch": "580"}, check=True)
    assert planned.failure is None
    said = [line.action for line in planned.steps]
    assert f"write {BLACKLIST}" in said
    assert "load the module nvidia" in said
    assert said[-1] == ("device nodes and nvidia-persistenced: known after the driver is installed and loaded"), said
    promises.check_is_truthful(UNIT, lambda: bare(distribution), {"branch": "580"})


def test_a_stale_index_is_refreshed_first() -> None:
    def stale() -> DriverMachine:
        host = bare()
        del host.files["/var/lib/bcd-hostconfig/package-index"]
        return host

    done = promises.check_is_truthful(UNIT, stale, {"branch": "580"})
    assert done.state == "converged"
    assert any("refresh the package index" in line for line in lines(done))


def test_an_exact_version_is_installed_and_held() -> None:
    host = bare()
    done = go(host, {"version": NEW})
    assert (done.state, host.running) == ("converged", f"{NEW} open")
    assert {"nvidia-headless-580-server-open", "nvidia-utils-580-server"} <= host.held
    promises.second_pass_is_quiet(UNIT, host, {"version": NEW})
    host.held.clear()
    again = go(host, {"version": NEW})
    assert again.changed is True
    assert {"nvidia-headless-580-server-open", "nvidia-utils-580-server"} <= host.held


def test_a_newer_driver_of_the_branch_is_no_reason() -> None:
    host = running(NEW, "-open")
    assert go(host, {"branch": "580"}).changed is True  # nouveau's file
    assert host.running == f"{NEW} open"
    promises.second_pass_is_quiet(UNIT, host, {"branch": "580"})


def test_hosts_without_a_gpu_have_nothing_to_do() -> None:
    host = bare(gpus=())
    done = go(host, {"branch": "580"})
    assert (done.state, done.changed, done.steps) == ("converged", False, ())
    assert done.notes == ("this host has no NVIDIA GPU on its PCI bus: no driver is installed",)
    host = bare()
    host.links["/sys/bus/pci/devices/0000:01:00.0/driver"] = "../../../bus/pci/drivers/vfio-pci"
    done = go(host, {"branch": "580"})
    assert (done.state, done.changed) == ("converged", False)
    assert "vfio-pci" in done.notes[0]


@pytest.mark.parametrize(
    ("settings", "gpus", "said"),
    [
        ({}, ("2330",), "neither branch nor version"),
        ({"branch": "five"}, ("2330",), "'five' is no branch"),
        ({"branch": "0580"}, ("2330",), "'0580' is no branch"),
        ({"branch": "580", "version": "550.54.14"}, ("2330",), "550.54.14 is not of branch 580"),
        ({"version": "580"}, ("2330",), "'580' is no full version"),
        ({"version": "0580.95.05"}, ("2330",), "'0580.95.05' is no full version"),
        ({"version": "\u0665\u0668\u0660.95.05"}, ("2330",), "is no full version"),  # digits of another script
        ({"branch": "580", "dkms": True}, ("2330",), "'dkms' is no setting"),
        ({"branch": 580}, ("2330",), 'branch is an integer (580), and takes a string, in quotes: "580"'),
        ({"branch": "470"}, ("2330",), "(Hopper, device 2330) is served from branch 520 on, and branch is 470"),
        ({"version": "470.256.02"}, ("2330",), "(Hopper, device 2330) is served from branch 520 on"),
        ({"branch": "580", "open": False}, ("2901",), "Blackwell"),
        ({"branch": "580", "open": True}, ("1db1",), "Volta"),
        ({"branch": "590"}, ("1db1",), "up to branch 580"),
        ({"branch": "580"}, ("1db1", "2901"), "a host loads one flavour"),
    ],
)
def test_what_is_never_done_is_refused_before_anything_is_touched(
    settings: dict[str, Any], gpus: tuple[str, ...], said: str
) -> None:
    host = bare(gpus=gpus)
    done = go(host, settings)
    assert done.failure is not None
    assert (done.failure.reason, done.failure.retryable, done.state) == ("Refused", False, "failed")
    assert said in done.failure.message
    assert host.calls == []


def test_a_distribution_without_a_known_manager_is_refused() -> None:
    host = DriverMachine("arch", {})
    done = go(host, {"branch": "580"})
    assert done.failure is not None
    assert done.failure.reason == "Refused"
    assert "'arch'" in done.failure.message
    assert host.calls == []


def test_a_driver_that_no_source_has_is_said_and_tried_again() -> None:
    host = bare()
    done = go(host, {"branch": "555"})
    assert done.failure is not None
    assert (done.failure.reason, done.failure.retryable, done.state) == ("StepFailed", True, "progressing")
    assert "555" in done.failure.message
    assert host.packages == {}
    assert host.loaded == {}
