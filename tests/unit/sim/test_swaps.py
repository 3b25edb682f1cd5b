# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swap of a simulated host: swapon and swapoff by their manual, fstab, swap units, and what a mask keeps off."""

from __future__ import annotations

import re

from tests.sim.host import SimulatedHost

from .conftest import Maker

TITLES = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
UNIT = "[Swap]\nWhat=/var/swap\n[Install]\nWantedBy=swap.target\n"


def on(host: SimulatedHost) -> list[str]:
    text = host.read("/proc/swaps") or ""
    assert text.startswith(TITLES)
    return [line.split()[0] for line in text.splitlines()[1:]]


def with_fstab(make: Maker) -> SimulatedHost:
    host = make()
    host.write("/swapfile", "")
    host.write("/etc/fstab", "/swapfile none swap sw 0 0\n/off none swap noauto 0 0\n/gone none swap sw 0 0\n")
    host.reboot()
    return host


def test_fstab_turns_on_what_is_there(make: Maker) -> None:
    host = with_fstab(make)
    assert on(host) == ["/swapfile"]
    assert re.search(r"^SwapTotal: +2097148 kB$", host.read("/proc/meminfo") or "", re.MULTILINE)


def test_swapoff_and_swapon(make: Maker) -> None:
    host = with_fstab(make)
    assert host.run("swapoff", "-a").returncode == 0
    assert on(host) == []
    assert host.run("swapon", "-p", "5", "--", "/swapfile").returncode == 0
    assert (host.read("/proc/swaps") or "").splitlines()[1].split() == ["/swapfile", "file", "2097148", "0", "5"]
    again = host.run("swapon", "/swapfile")
    assert (again.returncode, again.stderr) == (255, "swapon: /swapfile: swapon failed: Device or resource busy\n")
    missing = host.run("swapon", "/none")
    assert (missing.returncode, missing.stderr) == (255, "swapon: cannot open /none: No such file or directory\n")
    assert host.run("swapoff", "/swapfile").returncode == 0
    assert host.run("swapoff", "/swapfile").returncode == 4


def test_a_boot_turns_it_on_again_unless_swap_target_is_masked(make: Maker) -> None:
    host = with_fstab(make)
    host.run("swapoff", "-a")
    host.reboot()
    assert on(host) == ["/swapfile"]
    assert host.run("systemctl", "mask", "swap.target").returncode == 0
    host.reboot()
    assert on(host) == []
    host.run("systemctl", "unmask", "swap.target")
    host.reboot()
    assert on(host) == ["/swapfile"]


def test_a_swap_unit_is_on_while_it_is_active(make: Maker) -> None:
    host = make()
    host.write("/var/swap", "")
    host.write("/etc/systemd/system/var-swap.swap", UNIT)
    assert host.run("systemctl", "enable", "--now", "var-swap.swap").returncode == 0
    assert on(host) == ["/var/swap"]
    assert host.run("systemctl", "is-active", "var-swap.swap").stdout == "active\n"
    host.run("swapoff", "-a")
    assert host.run("systemctl", "is-active", "var-swap.swap").stdout == "inactive\n"
    host.reboot()
    assert on(host) == ["/var/swap"]
    assert host.run("systemctl", "stop", "var-swap.swap").returncode == 0
    assert on(host) == []


def test_a_swap_unit_comes_neither_disabled_nor_by_a_masked_target(make: Maker) -> None:
    host = make()
    host.write("/var/swap", "")
    host.write("/etc/systemd/system/var-swap.swap", UNIT)
    host.run("systemctl", "enable", "var-swap.swap")
    host.run("systemctl", "mask", "swap.target")
    host.reboot()
    assert on(host) == []
    host.run("systemctl", "unmask", "swap.target")
    host.run("systemctl", "disable", "var-swap.swap")
    host.reboot()
    assert on(host) == []
