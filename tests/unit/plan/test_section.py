# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole host's section: turns, what results add up to, the condition RebootRequired."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import section
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.bounded_message import bounded
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.section import Turn
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.unit_names import ORDER


def result(unit: str, state: str = "converged", msg: str = "", **more: Any) -> dict[str, Any]:
    """One unit's result, with the keys that every unit returns."""
    found: dict[str, Any] = {"unit": unit, "state": state, "pending": [], "conditions": [], "steps": [], **more}
    if msg:
        found.update(msg=msg, reason="Refused" if state == "failed" else "StepFailed", retryable=state != "failed")
    return found


def waiting(unit: str, *messages: str, reason: str = "RebootRequired") -> dict[str, Any]:
    return result(unit, "progressing", pending=[{"reason": reason, "message": text} for text in messages])


DONE, FAULTY, STUCK = result("cpu"), result("sysctl", "failed", "no"), result("iommu", "progressing", "cannot")
WAITS = waiting("hugepages", "hugepages: reboot the node")


# -- turns


def test_the_order_is_the_specification_s() -> None:
    assert ORDER == (
        "kernel-modules",
        "sysctl",
        "hugepages",
        "cpu",
        "iommu",
        "nvidia-driver",
        "fabric-manager",
        "gpu-settings",
        "mig-layout",
        "gpu-sharing",
        "container-toolkit",
        "k8s-join",
    )


def test_units_have_their_turn_in_the_order_whatever_the_section_s_is() -> None:
    named = {"zfs": {}, "iommu": {"passthrough": True}, "sysctl": {}, "kernel-modules": {}, "acme": {}}
    assert section.turns(named, ()) == (
        Turn("kernel-modules", {}),
        Turn("sysctl", {}),
        Turn("iommu", {"passthrough": True}),
        Turn("acme", {}),
        Turn("zfs", {}),
    )


def test_what_left_the_section_goes_first_and_the_last_in_the_order_before_those_it_stands_on() -> None:
    assert section.turns({"cpu": {}}, ["cpu", "kernel-modules", "k8s-join", "gpu-sharing"]) == (
        Turn("k8s-join", leaves=True),
        Turn("gpu-sharing", leaves=True),
        Turn("kernel-modules", leaves=True),
        Turn("cpu", {}),
    )


def test_an_empty_section_cleans_everything() -> None:
    assert section.turns({}, ["sysctl", "iommu"]) == (Turn("iommu", leaves=True), Turn("sysctl", leaves=True))


def test_only_takes_units_even_such_as_this_host_has_nothing_of() -> None:
    section.check_only(["sysctl", "k8s-join"], ["sysctl"])
    section.check_only(["acme"], ["acme"])
    section.check_only([], [])
    with pytest.raises(Refused, match=r"^only: 'kernel_modules', 'sysctll': no unit has that name"):
        section.check_only(["sysctll", "kernel_modules"], ["sysctl"])


# -- states


@pytest.mark.parametrize(
    ("results", "state"),
    [
        ([], "CONVERGED"),
        ([DONE], "CONVERGED"),
        ([DONE, FAULTY], "FAILED"),
        ([FAULTY, FAULTY], "FAILED"),
        ([DONE, WAITS], "PROGRESSING"),
        ([FAULTY, WAITS], "PROGRESSING"),
        ([FAULTY, STUCK, DONE], "PROGRESSING"),
    ],
)
def test_failed_is_only_what_is_terminal_altogether(results: list[dict[str, Any]], state: str) -> None:
    assert section.state_of(results) == state


@pytest.mark.parametrize(
    ("results", "failing"),
    [
        ([DONE], set()),
        ([DONE, WAITS], {"progressing"}),
        ([STUCK], {"failed", "progressing"}),
        ([FAULTY], {"terminal", "failed", "progressing"}),
        ([result("cpu", "progressing", steps=[{"action": "set", "done": False}])], set()),
        ([result("cpu", "failed", "took half", reason="StepFailed")], {"terminal", "failed", "progressing"}),
    ],
)
def test_what_makes_the_task_fail(results: list[dict[str, Any]], failing: set[str]) -> None:
    assert {kind for kind in section.FAIL_ON if section.fails(results, kind)} == failing


# -- the message


def test_the_message_names_every_unit_that_is_not_converged_once() -> None:
    several = waiting(
        "cpu", "cpu: CPUs 1-3 are isolated from the next boot: reboot the node", "held", reason="HeldBack"
    )
    left = result(
        "iommu", "progressing", steps=[{"action": "set b", "done": True}, {"action": "write a", "done": False}]
    )
    assert section.message_of([DONE, FAULTY, several, left]) == (
        "sysctl: no; cpu: CPUs 1-3 are isolated from the next boot: reboot the node; cpu: held; "
        "iommu: still to do: write a"
    )
    assert section.message_of([DONE]) == ""


def test_of_several_steps_left_the_first_is_named() -> None:
    steps = [{"action": action, "done": False} for action in ("write a", "load b", "set c")]
    assert section.message_of([result("cpu", "progressing", steps=steps)]) == "cpu: still to do: write a, and 2 more"


def test_a_failed_unit_says_what_it_waits_for_too() -> None:
    both = result("sysctl", "progressing", "cannot set a", pending=[{"reason": "NotReady", "message": "no b"}])
    assert section.message_of([both]) == "sysctl: cannot set a; sysctl: no b"


def test_what_strikes_several_units_is_told_once_after_their_names() -> None:
    struck = [
        result(name, "progressing", "another pass holds the lock", reason="StepFailed") for name in ("cpu", "iommu")
    ]
    assert section.message_of([DONE, *struck, FAULTY]) == "cpu, iommu: another pass holds the lock; sysctl: no"


# -- RebootRequired


def test_the_condition_names_the_waiting_units_and_carries_their_messages() -> None:
    fabric = {"type": "FabricManagerDown", "status": "true", "reason": "NotRunning", "message": "down"}
    results = [
        result("fabric-manager", conditions=[fabric]),
        waiting("cpu", "cpu: CPUs 1-3 are isolated from the next boot: reboot the node"),
        waiting("sysctl", "sysctl: this kernel has no x", reason="NotReady"),
        waiting("iommu", "the IOMMU is on from the next boot: reboot the node"),
    ]
    assert section.conditions_of(results) == [
        fabric,
        {
            "type": "RebootRequired",
            "status": "true",
            "reason": "cpu,iommu",
            "message": "cpu: CPUs 1-3 are isolated from the next boot: reboot the node; "
            "iommu: the IOMMU is on from the next boot: reboot the node",
        },
    ]


def test_there_is_no_condition_where_nothing_waits_for_a_reboot() -> None:
    assert section.conditions_of([DONE, FAULTY, waiting("cpu", "busy", reason="Busy")]) == []


def test_a_message_of_1024_bytes_is_kept_whole() -> None:
    text = "é" * 504 + ": reboot the node"
    assert len(text.encode()) == 1025
    assert bounded([text[1:] + "x"]) == text[1:] + "x"
    assert bounded([text]) != text


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=1500), min_size=1, max_size=12))
def test_the_condition_s_message_is_bounded_in_bytes_and_each_part_says_what_to_do(texts: list[str]) -> None:
    messages = [f"{text}: reboot the node" for text in texts]
    said = bounded(messages)
    assert len(said.encode("utf-8")) <= 1024
    assert said.count("reboot the node") >= len(messages)


def test_no_unit_leaves_while_a_name_is_mistyped() -> None:
    """The name may be the leaving unit's own: a typo must not take its service away."""
    assert [turn.unit for turn in section.turns({"gpu_sharing": {}}, {"gpu-sharing", "sysctl"})] == ["gpu_sharing"]
    left = [turn.unit for turn in section.turns({"cpu": {}}, {"gpu-sharing", "sysctl"}) if turn.leaves]
    assert left == ["gpu-sharing", "sysctl"]
