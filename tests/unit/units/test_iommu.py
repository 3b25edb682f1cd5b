# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit iommu: which arguments, and when a reboot is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.runner import Goal, converge
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.iommu import vendor
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.iommu import Settings, arguments, check
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.iommu import UNIT
from tests.unit.boot_machines import machine, next_line, reboot
from tests.unit.fake_host import FakeHost

DROP_IN = "/etc/default/grub.d/90-bcd-iommu.cfg"
WAIT = (
    "iommu: the IOMMU is on from the next boot (amd_iommu=on iommu=pt): reboot the node; "
    "check the firmware enables VT-d or AMD-Vi"
)


def go(host: FakeHost, settings: dict[str, Any] | None) -> Outcome:
    return converge(Goal(UNIT, settings), host, Records(host))


def turn_on(host: FakeHost) -> None:
    host.put("/sys/class/iommu/ivhd0/uevent", "")
    host.put("/sys/kernel/iommu_groups/0/type", "DMA\n")


@pytest.mark.parametrize(
    ("name", "passthrough", "expected"),
    [
        ("GenuineIntel", True, ("intel_iommu=on", "iommu=pt")),
        ("GenuineIntel", False, ("intel_iommu=on",)),
        ("AuthenticAMD", True, ("amd_iommu=on", "iommu=pt")),
        ("HygonGenuine", True, ("amd_iommu=on", "iommu=pt")),
        ("HygonGenuine", False, ("amd_iommu=on",)),
        ("", True, ("iommu=pt",)),
        ("", False, ()),
    ],
)
def test_the_arguments_by_vendor(name: str, passthrough: bool, expected: tuple[str, ...]) -> None:
    assert arguments(Settings(passthrough), name) == expected


def test_another_vendor_is_refused() -> None:
    host = machine("grub")
    host.put("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: CentaurHauls\n")
    outcome = go(host, {})
    assert outcome.failure is not None
    assert (outcome.failure.reason, outcome.failure.retryable) == ("Refused", False)
    assert "CentaurHauls" in outcome.failure.message
    assert host.text(DROP_IN) is None


def test_the_vendor_in_cpuinfo() -> None:
    intel = "processor\t: {}\nvendor_id\t: GenuineIntel\n\n"
    assert vendor(FakeHost({"/proc/cpuinfo": intel.format(0) + intel.format(1)})) == "GenuineIntel"
    assert vendor(FakeHost({"/proc/cpuinfo": "processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\n"})) == ""


def test_passthrough_is_the_default_and_a_truth_value() -> None:
    assert check({}) == Settings(True)
    assert check({"passthrough": False}) == Settings(False)
    for wrong in ("yes", 1, None):
        with pytest.raises(Refused):
            check({"passthrough": wrong})


def test_off_asks_for_a_reboot_until_it_is_on() -> None:
    host = machine("grub")
    first = go(host, {})
    assert first.changed
    assert [wait.message for wait in first.pending] == [WAIT]
    again = go(host, {})
    assert (again.changed, again.steps, again.pending) == (False, (), first.pending)
    reboot(host)
    turn_on(host)
    after = go(host, {})
    assert (after.state, after.notes, after.steps) == ("converged", (), ())


def test_a_firmware_that_has_it_off_keeps_saying_so() -> None:
    host = machine("grub")
    go(host, {})
    reboot(host)
    outcome = go(host, {})
    (wait,) = outcome.pending
    assert wait.reason == "RebootRequired"
    assert wait.message.startswith(WAIT)
    assert "the firmware has it off" in wait.message
    assert not outcome.changed


def test_booted_without_the_argument_is_said() -> None:
    host = machine("grub")
    line = next_line(host)
    go(host, {})
    reboot(host, line=line)
    (wait,) = go(host, {}).pending
    assert wait.message.startswith(WAIT)
    assert "booted without the argument" in wait.message
    assert "GRUB" in wait.message


def test_already_on_asks_for_no_reboot_and_writes_all_the_same() -> None:
    host = machine("grub")
    turn_on(host)
    first = go(host, {})
    assert (first.state, first.pending, first.changed) == ("converged", (), True)
    assert "iommu: the IOMMU is on; amd_iommu=on iommu=pt takes effect at the next boot" in first.notes
    assert "amd_iommu=on iommu=pt" in (host.text(DROP_IN) or "")
    again = go(host, {})
    assert (again.state, again.changed, again.notes) == ("converged", False, first.notes)
    line = (host.text("/proc/cmdline") or "").strip()
    reboot(host, line=line)
    assert any("booted without the argument" in note for note in go(host, {}).notes)


def test_a_unit_without_groups_is_not_on() -> None:
    host = machine("grub")
    host.put("/sys/class/iommu/ivhd0/uevent", "")
    assert [wait.message for wait in go(host, {}).pending] == [WAIT]


def test_an_arm_without_passthrough_needs_no_argument() -> None:
    host = machine("grub")
    host.put("/proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n")
    turn_on(host)
    outcome = go(host, {"passthrough": False})
    assert (outcome.state, outcome.changed, outcome.notes) == ("converged", False, ())


def test_passthrough_turned_off_takes_its_word_out() -> None:
    host = machine("grubby")
    turn_on(host)
    go(host, {})
    go(host, {"passthrough": False})
    assert "amd_iommu=on" in next_line(host).split()
    assert "iommu=pt" not in next_line(host).split()


def test_removal_takes_the_arguments_out_and_says_what_stays() -> None:
    host = machine("grub")
    go(host, {})
    reboot(host)
    turn_on(host)
    outcome = go(host, None)
    assert host.text(DROP_IN) is None
    assert "iommu" not in next_line(host)
    assert outcome.notes == ("iommu: the IOMMU stays as it is at least until the next boot",)
    assert outcome.state == "converged"
    assert go(host, None).changed is False
