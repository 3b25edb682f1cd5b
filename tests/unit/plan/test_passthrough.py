# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs that virtual machines have: as given, as they run, and as root remembers."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Todo
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import Step
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.unknown import later
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.passthrough import on_vfio, passed
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.assignment import Device, Instance, Section
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.conflicts import Claims
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.devices_seen import Card, Domain, Now, Passed
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.passthrough import RECORD, keep, passed_on
from tests.unit.fake_host import FakeHost

A, B = "GPU-aaaaaaaa-0000-4000-8000-000000000001", "GPU-bbbbbbbb-0000-4000-8000-000000000002"
CARDS = (Card(A, "00000000:17:00.0"), Card(B, "00000000:65:00.0"))
PCI_A = "0000:17:00.0"
GIVEN = Section(passthrough={A: "vm1"})
NONE = Section()


def _runs(started: int, *pci: str, name: str = "vm1") -> tuple[Domain, ...]:
    return (Domain((name, "3f2504e0-4f89-41d3-9a0c-0305e82c3301"), started, 0, pci=pci),)


def _steps(section: Section, now: Now) -> tuple[Step, ...]:
    todo = Todo()
    keep(todo, section, now)
    return todo.plan().steps


def _after(section: Section, now: Now) -> tuple[Passed, ...]:
    """What root remembers after a pass."""
    host = FakeHost({RECORD: "{}"} if now.passed else {})
    for step in _steps(section, now):
        host.apply(step)
    if host.text(RECORD) == "{}":
        return now.passed
    return passed(host)


# -- whose it is


def test_what_is_given_is_passed_through() -> None:
    assert passed_on(GIVEN, Now(cards=CARDS)) == {A: "vm1"}
    assert Claims(passed_on(GIVEN, Now(cards=CARDS))).conflict((Device(f"{A}/s3"),)) == (
        f"{A} is passed through to instance vm1"
    )


@pytest.mark.parametrize(
    ("section", "instance"),
    [
        (NONE, "vm1"),
        (Section(instances=(Instance("VM1"),)), "VM1"),
        (
            Section(instances=(Instance("3F2504E0-4F89-41D3-9A0C-0305E82C3301"),)),
            "3F2504E0-4F89-41D3-9A0C-0305E82C3301",
        ),
        (Section(passthrough={A: "vm2"}), "vm1"),  # it is to be vm2's, and is vm1's
    ],
)
def test_what_a_running_machine_has_is_its_own(section: Section, instance: str) -> None:
    assert passed_on(section, Now(cards=CARDS, domains=_runs(5, PCI_A)))[A] == instance


def test_a_machine_of_another_gpu_has_nothing_of_ours() -> None:
    assert passed_on(NONE, Now(cards=CARDS, domains=_runs(5, "0000:99:00.0"))) == {}


def test_a_gpu_on_vfio_is_somebodys() -> None:
    now = Now(cards=CARDS, vfio=frozenset((PCI_A, "0000:99:00.0")))
    assert passed_on(NONE, now) == {A: "(its driver is vfio-pci)"}
    assert passed_on(GIVEN, now._replace(passed=(Passed(A, "vm1", 5),), domains=_runs(5))) == {A: "vm1"}


# -- what root remembers


def test_what_is_given_is_recorded_with_the_start_of_its_machine() -> None:
    (step,) = _steps(GIVEN, Now(domains=_runs(987654)))
    assert (step.path, step.mode, step.lane) == ("/var/lib/bcd-hostconfig/passthrough.json", 0o600, "VFIO passthrough")
    assert json.loads(step.text) == {"version": 1, "gpus": {A: {"instance": "vm1", "started": 987654}}}
    assert _after(GIVEN, Now()) == (Passed(A, "vm1", 0),)


@pytest.mark.parametrize("section", [GIVEN, NONE])
def test_what_is_recorded_is_not_written_again(section: Section) -> None:
    assert _steps(section, Now(domains=_runs(5), passed=(Passed(A, "vm1", 5),))) == ()
    assert _steps(NONE, Now()) == ()


def test_a_dropped_gpu_stays_the_machines_until_its_next_start() -> None:
    now = Now(cards=CARDS, domains=_runs(5))
    now = now._replace(passed=_after(GIVEN, now))
    assert passed_on(NONE, now) == {A: "vm1"}
    now = now._replace(passed=_after(NONE, now))
    assert passed_on(NONE, now) == {A: "vm1"}
    now = now._replace(domains=_runs(6))  # started again, without it
    assert passed_on(NONE, now) == {}
    assert _after(NONE, now) == ()


def test_a_dropped_gpu_of_a_machine_that_ended_is_free() -> None:
    now = Now(cards=CARDS, passed=(Passed(A, "vm1", 5),))
    assert passed_on(NONE, now) == {}
    assert [step.kind for step in _steps(NONE, now)] == ["remove"]


def test_a_machine_that_was_started_between_two_passes_has_what_it_was_given() -> None:
    now = Now(cards=CARDS, passed=(Passed(A, "vm1", 0),), domains=_runs(7))
    assert passed_on(NONE, now) == {A: "vm1"}
    assert _after(NONE, now) == (Passed(A, "vm1", 7),)
    assert passed_on(NONE, now._replace(domains=())) == {}


def test_a_gpu_that_moves_to_another_machine_is_the_first_ones_while_that_runs() -> None:
    now = Now(cards=CARDS, passed=(Passed(A, "vm1", 5),), domains=_runs(5))
    section = Section(passthrough={A: "vm2"})
    assert passed_on(section, now) == {A: "vm1"}
    assert _after(section, now) == (Passed(A, "vm1", 5),)
    now = now._replace(domains=_runs(6))
    assert passed_on(section, now) == {A: "vm2"}
    assert _after(section, now) == (Passed(A, "vm2", 0),)


# -- the look


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 2, "gpus": {}}',
        '{"version": 1}',
        '{"version": 1, "gpus": {"GPU-a": {"instance": 1}}}',
        '{"version": 1, "gpus": {"GPU-a": {"instance": "vm1", "started": true}}}',
    ],
)
def test_a_damaged_record_fails_its_lane_and_frees_nothing(text: str) -> None:
    with pytest.raises(StepFailed, match=r"passthrough\.json is not a record of version 1") as raised:
        passed(FakeHost({RECORD: text}))
    assert not raised.value.retryable
    now = Now(cards=CARDS, passed=later(passed, FakeHost({RECORD: text})))
    (step,) = _steps(GIVEN, now)
    assert (step.kind, step.lane) == ("fail", "VFIO passthrough")
    with pytest.raises(StepFailed):
        passed_on(GIVEN, now)


def test_no_record_is_an_empty_one() -> None:
    assert passed(FakeHost()) == ()


def test_gpus_on_vfio() -> None:
    drivers: Mapping[str, str] = {
        "0000:17:00.0": "vfio-pci",
        "0000:65:00.0": "nvidia",
        "0009:01:00.0": "nvgrace-gpu-vfio-pci",
    }
    host = FakeHost()
    for address, driver in drivers.items():
        folder = f"/sys/bus/pci/devices/{address}"
        host.put(f"{folder}/vendor", "0x10de\n")
        host.put(f"{folder}/class", "0x030200\n")
        host.put(f"{folder}/device", "0x2330\n")
        host.links[f"{folder}/driver"] = f"../../../bus/pci/drivers/{driver}"
    assert on_vfio(host) == {"0000:17:00.0", "0009:01:00.0"}
