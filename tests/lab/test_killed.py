# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Passes that die on a real machine: the next ones take up what they left, and lose no follow-up.

A pass is killed after each of its changes on simulated hosts (tests/sim/test_kills.py); here are the places where a
real kernel, systemd and GRUB have a follow-up to lose, and in test_gpu_driver those of apt.
"""

from __future__ import annotations

import json

import pytest
import sandbox
import strikes
from labvm.machine import Machine
from play import Stage
from seen import G1, STATE, Eyes


def test_passes_that_are_killed_one_after_the_other_are_taken_up(
    lab: Machine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stage = Stage(lab, tmp_path_factory.mktemp("kills"))
    section, kvm, vendor = sandbox.section(lab), sandbox.kvm_module(lab), sandbox.vendor(lab)
    sandbox.load_without_nesting(lab, kvm)
    places = (
        f"rmmod -- {kvm}",  # kernel-modules: it was taken out to be loaded again, and its file is right already
        "/etc/default/grub.d/90-bcd-iommu.cfg",  # iommu: update-grub is owed
        "update-grub",  # and what is ours is not recorded yet
    )
    strikes.order(lab, *(("SIGKILL", place) for place in places))
    for number in range(1, len(places) + 1):
        died = stage.converge(section)
        assert died.rc != 0
        assert len(strikes.left(lab)) == len(places) - number, died.said
    clean = stage.converge(section)
    assert clean.rc == 0, clean.said
    assert strikes.left(lab) == []
    eyes = Eyes(lab)
    sandbox.modules_are_as_asked(eyes, kvm)
    sandbox.parameters_are_as_asked(eyes)
    sandbox.small_pages_and_mount_are_as_asked(eyes)
    sandbox.next_boot_has(eyes, "cpu", sandbox.ISOLATION)
    sandbox.next_boot_has(eyes, "iommu", sandbox.IOMMU[vendor])
    if eyes.pools(G1) != [sandbox.PAGES_1G] * sandbox.NODES:
        sandbox.next_boot_has(eyes, "hugepages", sandbox.RESERVATION)
    assert json.loads(lab.read(f"{STATE}/owed.json"))["units"] == {}
    assert clean.waits("cpu").keys() == {"RebootRequired"}
