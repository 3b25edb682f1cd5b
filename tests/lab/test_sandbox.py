# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The specification's sandbox host on a real machine: planned, converged in one pass, rebooted, quiet.

The tests tell one story on one machine, in their order. What is expected comes from the specification, and what is
there is read from the kernel and the files.
"""

from __future__ import annotations

from typing import Any

import pytest
import sandbox
from labvm.machine import Machine
from play import LATER, Pass, Stage
from sandbox import BRIDGE, IOMMU, ISOLATED, ISOLATION, RESERVATION
from seen import G1, STATE, Eyes, Fingerprint, fingerprint

UNITS = ["kernel-modules", "sysctl", "hugepages", "cpu", "iommu"]
ISOLATION_WAITS = f'cpu: CPUs {ISOLATED} are isolated from the next boot (now: ""): reboot the node'


class Story:
    """What the tests of this module hand on."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.section: dict[str, Any] = sandbox.section(stage.machine)
        self.kvm = sandbox.kvm_module(stage.machine)
        self.vendor = sandbox.vendor(stage.machine)
        self.boot_id = stage.machine.boot_id()
        self.untouched: Fingerprint = fingerprint(stage.machine)
        self.checked: Pass


@pytest.fixture(scope="module")
def story(lab_story: Machine, tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(Stage(lab_story, tmp_path_factory.mktemp("sandbox")))


@pytest.fixture
def eyes(story: Story) -> Eyes:
    return Eyes(story.stage.machine)


def test_a_check_of_an_untouched_machine_says_everything_and_changes_nothing(story: Story) -> None:
    planned = story.stage.plan(story.section)
    checked = story.checked = story.stage.converge(story.section, "--check", "--diff")
    after = fingerprint(story.stage.machine)
    assert (planned.rc, checked.rc) == (0, 0), planned.said + checked.said
    assert after.touched_since(story.untouched) == []
    assert STATE not in after.files
    assert checked.all_steps() == planned.all_steps()
    assert list(checked.all_steps()) == UNITS
    assert checked.recap["changed"] == 1
    for name in BRIDGE:  # the key is there only once the module is loaded
        [line] = [step for step in checked.steps("sysctl") if name in step]
        assert line.startswith(f"{name}{LATER}")
        assert "br_netfilter is loaded" in line
    differences = checked.differences()
    words = {"cpu": ISOLATION, "iommu": IOMMU[story.vendor]}
    for unit, given in words.items():
        before, wanted = differences[f"/etc/default/grub.d/90-bcd-{unit}.cfg"]
        assert before == ""
        assert wanted.splitlines()[1:] == [f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {" ".join(given)}"']
    report = story.stage.report()
    assert report["hosts"]["lab"]


def test_one_pass_sets_everything_that_needs_no_reboot(story: Story, eyes: Eyes) -> None:
    sandbox.break_up(story.stage.machine)
    first = story.stage.converge(story.section)
    assert first.rc == 0, first.said
    assert first.recap["changed"] == 1
    assert first.state == "PROGRESSING"
    sandbox.modules_are_as_asked(eyes, story.kvm)
    sandbox.parameters_are_as_asked(eyes)
    sandbox.small_pages_and_mount_are_as_asked(eyes)
    sandbox.governors_are_as_asked(eyes)
    sandbox.next_boot_has(eyes, "cpu", ISOLATION)
    sandbox.next_boot_has(eyes, "iommu", IOMMU[story.vendor])
    assert first.waits("cpu") == {"RebootRequired": ISOLATION_WAITS}
    # The steps that the check announced are the steps that were taken, up to what it could not know.
    for unit in UNITS:
        announced = [step for step in story.checked.steps(unit) if LATER not in step]
        taken = first.steps(unit)
        if unit in ("kernel-modules", "cpu", "iommu"):
            assert taken == announced
        else:
            assert [step for step in taken if step in announced] == announced
    assert [step for step in first.steps("sysctl") if step not in story.checked.steps("sysctl")] == [
        f"set {name} to 0 (now: 1)" for name in sorted(BRIDGE)
    ]


def test_1_gib_pages_that_are_not_found_are_reserved_for_the_next_boot(story: Story, eyes: Eyes) -> None:
    found = eyes.pools(G1)
    assert found == [0] * sandbox.NODES
    sandbox.next_boot_has(eyes, "hugepages", RESERVATION)
    planned = story.stage.plan(story.section)
    [message] = planned.waits("hugepages").values()
    assert all(f"0 of {sandbox.PAGES_1G} on node {node}" in message for node in range(sandbox.NODES))
    assert message.endswith("the boot loader reserves them from the next boot: reboot the node")


def test_a_machine_that_waits_for_its_reboot_is_left_alone(story: Story) -> None:
    before = fingerprint(story.stage.machine)
    again = story.stage.converge(story.section)
    assert (again.rc, again.recap["changed"], again.all_steps()) == (0, 0, {})
    assert fingerprint(story.stage.machine).changed_since(before) == []
    waiting = ["hugepages", "cpu"]
    [condition] = again.whole["section"]["conditions"]
    assert (condition["type"], condition["status"]) == ("RebootRequired", "true")
    assert condition["reason"] == ",".join(waiting)
    assert condition["message"].count("reboot the node") == len(waiting)
    assert list(again.statistics["_run"]["bcd_converge_reboot_required"]["lab"]) == waiting


def test_the_playbook_reboots_and_proves_it(story: Story) -> None:
    played = story.stage.play("reboot", None)
    assert played.rc == 0, played.said
    assert "every unit is converged" in played.said
    story.stage.machine.wait_for_ssh()
    assert story.stage.machine.boot_id() != story.boot_id


def test_the_boot_itself_brought_everything(story: Story, eyes: Eyes) -> None:
    """No pass ran since the reboot: modules, parameters, pools and the mount come from what the pass left."""
    sandbox.booted_as_asked(eyes, story.kvm, story.vendor)


def test_the_next_pass_is_converged_and_changes_nothing(story: Story) -> None:
    before = fingerprint(story.stage.machine)
    after = story.stage.converge(story.section)
    assert (after.rc, after.recap["changed"], after.all_steps()) == (0, 0, {})
    assert after.state == "CONVERGED", after.message
    assert after.whole["section"]["conditions"] == []
    assert fingerprint(story.stage.machine).changed_since(before) == []
    assert story.stage.play("reboot", None).said.count("no unit waits for a reboot") == 1
    story.stage.machine.snapshot(sandbox.snapshot_name(story.section))  # for test_sandbox_drift
