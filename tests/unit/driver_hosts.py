# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that the tests of nvidia-driver start from, and what counts on them in the end."""

from __future__ import annotations

from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.nvidia_driver import UNIT
from tests.unit import promises
from tests.unit.driver_machine import DriverMachine, debian, red_hat, suse, ubuntu
from tests.unit.fake_host import FakeHost

BLACKLIST = "/etc/modprobe.d/bcd-nouveau.conf"
OLD, NEW, NEWER = "550.163.01", "580.95.05", "580.105.08"


def go(host: DriverMachine, settings: dict[str, Any] | None, **given: Any) -> Outcome:
    return promises.go(UNIT, host, settings, **given)


def bare(distribution: str = "ubuntu", gpus: tuple[str, ...] = ("2330",)) -> DriverMachine:
    """A host with GPUs and package sources, and no driver."""
    repo = {
        "ubuntu": ubuntu(OLD, NEW, NEWER),
        "debian": debian(OLD),
        "rocky9": red_hat(OLD, NEW, NEWER),
        "rocky10": red_hat(OLD, NEW, NEWER, release="el10"),
        "sles": suse(OLD, NEW, NEWER),
    }[distribution]
    host = DriverMachine(distribution, repo, gpus)
    if distribution == "rocky9":
        host.streams = {"550-dkms": "", "550-open": "", "580-dkms": "", "580-open": "", "open-dkms": " [d]"}
    return host


def running(version: str = OLD, flavour: str = "", gpus: tuple[str, ...] = ("2330",)) -> DriverMachine:
    """An Ubuntu host whose driver of the version is loaded."""
    host = bare("ubuntu", gpus)
    server = f"{version.partition('.')[0]}-server"
    package = f"{version}-0ubuntu0.24.04.1"
    host.install(f"nvidia-headless-{server}{flavour}={package}", f"nvidia-utils-{server}={package}")
    host.install(f"nvidia-compute-utils-{server}={package}")
    host.load("nvidia", "nvidia_uvm").serve("nvidia-persistenced")
    host.enabled["nvidia-persistenced"] = "static"
    return host


def reasons(outcome: Outcome) -> list[str]:
    return [wait.reason for wait in outcome.pending]


def shown(host: FakeHost) -> object:
    """What counts in the end."""
    assert isinstance(host, DriverMachine)
    return (
        host.running,
        sorted(host.loaded),
        sorted(host.packages.items()),
        sorted(host.held),
        sorted(host.active),
        host.text("/initramfs"),
        host.text(BLACKLIST),
        sorted((path, host.text(path)) for path in host.files if path.startswith("/dev/")),
    )
