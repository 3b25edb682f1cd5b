# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent: drift repaired from root's copy, signed or not, and what it leaves for the next run of Ansible."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import host as machine
from ansible_collections.bettercompute.bcd.plugins.module_utils.core import state
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import (
    Fault,
    NotReady,
    Refused,
    StepFailed,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.lock import Held
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Todo
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import agent, holds, opening, repairs, section
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.single import Asked, unit_result
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.memory import MEMORY, RECORD
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.config import OUTSIDE
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.installed import CONFIG
from ansible_collections.bettercompute.bcd.plugins.module_utils.units import catalog
from tests.pki import ControlPlane
from tests.unit.fake_host import FakeHost, Killed
from tests.unit.hold_host import assign, hold_host, uuids
from tests.unit.shelf import Shelf

STATE = "/var/lib/bcd-hostconfig"
ASKED, APPLIED, AGENT = f"{STATE}/asked.json", f"{STATE}/applied.json", f"{STATE}/agent.json"
X, Y = {"text": "x"}, {"text": "y"}
DAY = 86_400  # seconds
OPTIONS = ("units", "wire_units", "known", "generation", "signed_spec", "secrets", "node_id", "site", "only", "label")
HOLDS = (
    "assignments", "generation", "passthrough", "instances", "max_cdi_version", "slot_count", "acknowledge",
    "signing_key", "node_id", "signed_spec",
)  # fmt: skip


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """sysctl keeps a file, cpu waits for a reboot behind it, iommu for a file that never comes, the GPUs' unit is
    disruptive."""
    shelf = Shelf()
    shelf.keeper("sysctl")
    shelf.keeper("kernel-modules")
    shelf.keeper("cpu", reboot="cpu: CPUs 1 are isolated from the next boot: reboot the node")
    shelf.keeper("iommu", needs="/sys/never")
    shelf.keeper("gpu-settings", disruption="gpu")
    monkeypatch.setattr(catalog, "SHIPPED", {name: lambda name=name: shelf.units[name] for name in shelf.units})
    return shelf


def converge(host: Host, **given: Any) -> dict[str, Any]:
    """A run of host_section by Ansible."""
    params = {
        **dict.fromkeys(OPTIONS),
        "max_disruption": "gpu",
        "fail_on": "failed",
        "fail_on_secrets": False,
        **given,
    }
    ended = section.heard(section.converge_section(params, host, Records(host)), params, host)
    return section.report(ended, params["fail_on"], params["only"])


def hold(host: Host, **given: Any) -> dict[str, Any]:
    """A run of cdi_holds by Ansible."""
    params = {**dict.fromkeys(HOLDS), "max_disruption": "gpu", **given}
    return holds.report(holds.converge_holds(holds.intended(params, host), host, Records(host)))


class Kept:
    """One pass of the agent: its exit status, and what it said."""

    def __init__(self, host: Host) -> None:
        self.said: list[str] = []
        self.rc = agent.keep(host, Records(host), self.said.append)


def record(host: FakeHost, path: str) -> Any:
    return json.loads(host.text(path) or "null")


@contextmanager
def unlocked(_host: Host, _what: str) -> Iterator[None]:
    """The lock, held."""
    yield


def inside(monkeypatch: pytest.MonkeyPatch, host: FakeHost) -> None:
    """Let what opens a host open this one, whose lock nobody has."""
    monkeypatch.setattr(machine, "Host", lambda: host)
    monkeypatch.setattr(opening, "only_pass", unlocked)


# -- unsigned: what passes were asked


def test_a_host_that_was_never_asked_anything_is_left_alone(shelf: Shelf) -> None:
    host = FakeHost({"/etc/sysctl": "mine"})
    kept = Kept(host)
    assert (kept.rc, kept.said) == (0, ["nothing to keep: this host was not asked anything yet"])
    assert (host.text("/etc/sysctl"), shelf.looks) == ("mine", [])


def test_drift_is_repaired_and_said_and_a_quiet_pass_writes_nothing(shelf: Shelf) -> None:
    host = FakeHost()
    converge(host, units={"sysctl": X, "kernel-modules": X}, generation=4)
    host.put("/etc/sysctl", "drifted")
    kept = Kept(host)
    assert (kept.rc, host.text("/etc/sysctl")) == (0, "x")
    assert kept.said == ["sysctl: write /etc/sysctl", "host CONVERGED"]
    host.calls.clear()
    again = Kept(host)
    assert (again.rc, again.said, host.calls) == (0, ["host CONVERGED"], [])


def test_what_was_asked_outlives_a_pass_that_died_before_its_first_step(shelf: Shelf) -> None:
    """Killed at each of its changes: what had its turn is kept as it was asked then, and nothing goes back."""
    whole = FakeHost()
    converge(whole, units={"sysctl": X, "kernel-modules": X})
    for at in range(2, len(whole.calls) + 1):
        host = FakeHost()
        host.kill_at = at
        with pytest.raises(Killed):
            converge(host, units={"sysctl": X, "kernel-modules": X})
        host.kill_at = 0
        assert Kept(host).rc == 0, at
        kept = record(host, ASKED)["units"]
        assert {unit: host.text(f"/etc/{unit}") for unit in kept} == dict.fromkeys(kept, "x"), at
        assert Kept(host).said == ["host CONVERGED"], at


def test_killed_at_each_of_its_own_changes_the_next_pass_converges(shelf: Shelf) -> None:
    def drifted() -> FakeHost:
        host = FakeHost()
        converge(host, units={"sysctl": X, "kernel-modules": X})
        host.put("/etc/sysctl", "drifted")
        host.put("/etc/kernel-modules", "drifted")
        host.calls.clear()
        return host

    whole = drifted()
    Kept(whole)
    assert len(whole.calls) >= 3
    for at in range(1, len(whole.calls) + 1):
        host = drifted()
        host.kill_at = at
        with pytest.raises(Killed):
            Kept(host)
        host.kill_at = 0
        assert Kept(host).rc == 0, at
        assert {host.text("/etc/sysctl"), host.text("/etc/kernel-modules")} == {"x"}, at
        assert record(host, ASKED) == record(whole, ASKED), at


def test_what_left_the_section_is_cleaned_and_not_brought_back(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """The removal fails: the record says that we applied it, and what was asked that it goes."""
    host = FakeHost()
    converge(host, units={"sysctl": X, "kernel-modules": X})

    def stuck(path: str) -> None:
        raise OSError(30, "Read-only file system", path)

    with monkeypatch.context() as patch:
        patch.setattr(host, "remove", stuck)
        assert "Read-only" in converge(host, units={"kernel-modules": X})["msg"]
    assert set(record(host, APPLIED)["units"]) == {"sysctl", "kernel-modules"}
    assert Kept(host).rc == 0
    assert (host.text("/etc/sysctl"), host.text("/etc/kernel-modules")) == (None, "x")


def test_a_refused_unit_is_kept_as_it_was_before(shelf: Shelf) -> None:
    host = FakeHost()
    converge(host, units={"sysctl": X})
    assert converge(host, units={"sysctl": {"text": "no"}})["msg"]
    host.put("/etc/sysctl", "drifted")
    assert (Kept(host).rc, host.text("/etc/sysctl")) == (0, "x")


@pytest.mark.parametrize("where", ["look", "plan"])
@pytest.mark.parametrize(
    ("fault", "is_kept"), [(Refused("no"), False), (StepFailed("cannot"), True), (NotReady("not yet"), True)]
)
def test_what_a_look_or_a_plan_refuses_is_not_kept_and_what_it_cannot_do_now_is(
    shelf: Shelf, where: str, fault: Fault, is_kept: bool
) -> None:
    host = FakeHost()
    converge(host, units={"sysctl": X})

    def raises(*_given: Any) -> Any:
        raise fault

    broken: dict[str, Any] = {where: raises}
    shelf.units["sysctl"] = shelf.units["sysctl"]._replace(**broken)
    assert fault.message in json.dumps(converge(host, units={"sysctl": Y})["units"])
    assert record(host, ASKED)["units"]["sysctl"] == (Y if is_kept else X)


def test_a_refused_section_leaves_no_record(shelf: Shelf) -> None:
    host = FakeHost()
    converge(host, units={"sysctl": {"text": "no"}, "nosuch": {}})
    assert host.calls == []


def test_a_check_remembers_nothing(shelf: Shelf) -> None:
    host = FakeHost()
    converge(PredictedHost(host), units={"sysctl": X})
    assert host.calls == []


def test_units_left_out_by_only_are_not_asked(shelf: Shelf) -> None:
    host = FakeHost()
    converge(host, units={"sysctl": X, "kernel-modules": X}, only=["sysctl"])
    assert Kept(host).rc == 0
    assert (host.text("/etc/sysctl"), host.text("/etc/kernel-modules")) == ("x", None)


def test_a_unit_asked_by_its_own_module_is_kept_beside_the_section(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FakeHost()
    inside(monkeypatch, host)
    converge(host, units={"sysctl": X})
    unit_result(shelf.units["sysctl"], Asked(Y), check_mode=False)
    unit_result(shelf.units["kernel-modules"], Asked(X), check_mode=False)
    host.put("/etc/sysctl", "drifted")
    host.put("/etc/kernel-modules", "drifted")
    assert Kept(host).rc == 0
    assert (host.text("/etc/sysctl"), host.text("/etc/kernel-modules")) == ("y", "x")
    unit_result(shelf.units["sysctl"], Asked(None), check_mode=False)
    assert (Kept(host).rc, host.text("/etc/sysctl")) == (0, None)


def test_a_host_of_an_earlier_version_is_kept_by_what_was_applied(shelf: Shelf) -> None:
    host = FakeHost({APPLIED: state.render({"units": {"sysctl": X}})})
    assert (Kept(host).rc, host.text("/etc/sysctl")) == (0, "x")


def test_a_damaged_record_is_said_and_nothing_is_done(shelf: Shelf) -> None:
    host = FakeHost({ASKED: "{", "/etc/sysctl": "mine"})
    kept = Kept(host)
    assert kept.rc == 1
    (said,) = kept.said
    assert said.startswith(f"host FAILED: {ASKED} is not a record of version 1: look at it, then move it away (")
    converge(host, units={"sysctl": X})
    assert Kept(host).rc == 0


JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(max_size=5),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    some.fixed_dictionaries(
        {"version": some.just(1)},
        optional={"units": JSON, "host": JSON, "limits": JSON, "devices": JSON},
    ),
    some.fixed_dictionaries({"version": some.just(1)}, optional={"last": JSON, "repairs": JSON, "told": JSON}),
)
def test_whatever_the_records_hold_the_agent_ends_with_a_sentence(asked: Any, told: Any) -> None:
    host = FakeHost({ASKED: json.dumps(asked), AGENT: json.dumps(told)})
    kept = Kept(host)
    assert kept.rc in (0, 1, 2)
    assert kept.said
    assert not [line for line in kept.said if "fault of the collection's own" in line]


# -- how far a pass goes, and when the next one is due


def test_an_unattended_pass_disturbs_no_more_than_the_last_one_asked_for(shelf: Shelf) -> None:
    host = FakeHost()
    converge(host, units={"gpu-settings": X})
    assert converge(host, units={"gpu-settings": Y}, max_disruption="service")["units"][0]["pending"]
    kept = Kept(host)
    assert (kept.rc, host.text("/etc/gpu-settings")) == (0, "x")
    assert "max_disruption is service" in kept.said[-1]
    converge(host, units={"gpu-settings": Y}, max_disruption="gpu")
    host.put("/etc/gpu-settings", "drifted")
    assert (Kept(host).rc, host.text("/etc/gpu-settings")) == (0, "y")


def test_a_limit_that_is_none_allows_nothing_that_disturbs(shelf: Shelf) -> None:
    host = FakeHost({ASKED: state.render({"units": {"gpu-settings": X}, "host": {"max_disruption": "everything"}})})
    kept = Kept(host)
    assert (kept.rc, host.text("/etc/gpu-settings")) == (0, None)
    assert "max_disruption is none" in kept.said[-1]


def test_the_limit_of_a_units_own_module_counts_too(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    host = FakeHost()
    inside(monkeypatch, host)
    unit_result(shelf.units["gpu-settings"], Asked(X), check_mode=False)
    unit_result(shelf.units["sysctl"], Asked(X, max_disruption="none"), check_mode=False)
    host.put("/etc/gpu-settings", "drifted")
    Kept(host)
    assert (record(host, ASKED)["limits"], host.text("/etc/gpu-settings")) == ({"sysctl": "none"}, "drifted")
    unit_result(shelf.units["sysctl"], Asked(X), check_mode=False)
    assert (Kept(host).rc, host.text("/etc/gpu-settings")) == (0, "x")
    unit_result(shelf.units["sysctl"], Asked(X, max_disruption="none"), check_mode=False)
    converge(host, units={"sysctl": X, "gpu-settings": Y}, only=["gpu-settings"])
    assert record(host, ASKED)["limits"] == {"sysctl": "none"}
    converge(host, units={"sysctl": X, "gpu-settings": Y}, only=["sysctl"])
    assert record(host, ASKED)["limits"] == {}


@pytest.mark.parametrize(
    ("unit", "rc"),
    [("sysctl", 0), ("cpu", 0), ("iommu", 2)],
    ids=["converged", "waits for a reboot", "waits for what may come"],
)
def test_the_exit_status_says_whether_another_pass_is_due(shelf: Shelf, unit: str, rc: int) -> None:
    host = FakeHost()
    converge(host, units={unit: X})
    assert Kept(host).rc == rc


@pytest.mark.parametrize(
    ("waits", "rc"),
    [
        (("Busy",), 0),
        (("RebootRequired",), 0),
        (("Busy", "RebootRequired"), 0),
        (("NotReady",), 2),
        (("Busy", "NotReady"), 2),
    ],
)
def test_what_only_a_reboot_or_an_end_of_work_helps_has_no_pass_soon(
    shelf: Shelf, waits: tuple[str, ...], rc: int
) -> None:
    def plan(*_given: Any) -> Any:
        todo = Todo()
        for reason in waits:
            todo.wait(reason, f"iommu: {reason}: reboot the node")
        return todo.plan()

    shelf.units["iommu"] = shelf.units["iommu"]._replace(plan=plan)
    host = FakeHost()
    converge(host, units={"iommu": X})
    assert Kept(host).rc == rc


def test_what_neither_waits_nor_came_to_its_end_has_a_pass_soon() -> None:
    outcome = Outcome("iommu", False, "progressing", (), (), (), (), (), None)
    result: dict[str, Any] = {"state": "progressing", "pending": []}
    assert agent._status([outcome], [result]) == 2
    assert agent._status([outcome._replace(needs=("token",))], [result]) == 0


def test_a_repair_is_a_step_that_was_done_and_changed_something() -> None:
    done, left = {"action": "write it", "done": True}, {"action": "restart it", "done": False}
    told = agent._repairs(
        [{"unit": "cpu", "changed": True, "steps": [done, left]}, {"unit": "mig", "changed": False, "steps": [done]}]
    )
    assert told == (repairs.Repair("cpu", "write it"),)


def test_what_no_pass_can_help_is_a_failure(shelf: Shelf) -> None:
    host = FakeHost({ASKED: state.render({"units": {"sysctl": {"text": "no"}, "iommu": X}})})
    kept = Kept(host)
    assert kept.rc == 1
    assert "sysctl: no is refused" in kept.said[-1]


# -- holds


def test_holds_are_kept_and_their_events_wait_for_the_next_run() -> None:
    host = hold_host()
    first, second = uuids(host)
    hold(host, assignments=[assign("a1", first), assign("a2", second)], generation=3, node_id="node-1")
    before = host.text("/etc/cdi/bcd-a1.json")
    for path in ("/etc/cdi/bcd-a1.json", "/run/bcd/allocations/a2.env"):
        host.files.pop(path)
    kept = Kept(host)
    assert (kept.rc, kept.said[-1]) == (0, "devices CONVERGED")
    assert host.text("/etc/cdi/bcd-a1.json") == before
    assert host.text("/run/bcd/allocations/a2.env")
    assert [repair["unit"] for repair in record(host, AGENT)["repairs"]] == ["devices"] * 2
    told = hold(host, assignments=[assign("a1", first), assign("a2", second)], generation=3, node_id="node-1")
    assert [event["type"] for event in told["events"]] == ["AllocationBound"] * 2
    host.calls.clear()
    assert (Kept(host).rc, host.calls) == (0, [])


def test_a_bind_that_was_cut_short_is_ended_by_the_agent_and_told_by_the_next_run() -> None:
    host = hold_host()
    (gpu, _other) = uuids(host)
    host.kill_at = 3
    with pytest.raises(Killed):
        hold(host, assignments=[assign("a1", gpu)], generation=3, node_id="node-1")
    host.kill_at = 0
    assert Kept(host).rc == 0
    assert host.text("/etc/cdi/bcd-a1.json")
    told = hold(host, assignments=[assign("a1", gpu)], generation=3, node_id="node-1")
    assert [event["type"] for event in told["events"]] == ["AllocationBound"]
    assert told["kept"] == ["a1"]


def test_the_options_beside_the_assignments_are_kept() -> None:
    host = hold_host()
    (gpu, other) = uuids(host)
    given = {"passthrough": [{"gpu": other, "instance": "vm-1"}], "max_cdi_version": "0.6.0", "slot_count": 8}
    hold(host, assignments=[assign("a1", gpu)], generation=3, node_id="node-1", **given)
    kept = agent.sections(host).devices
    assert kept is not None
    assert {name: kept[name] for name in given} == given


def test_bad_options_of_holds_are_not_kept() -> None:
    host = hold_host()
    (gpu, _other) = uuids(host)
    hold(host, assignments=[assign("a 1", gpu)])
    assert (agent.sections(host).devices, host.calls) == (None, [])


def test_what_fails_in_the_host_does_not_hold_back_its_holds(shelf: Shelf) -> None:
    host = hold_host()
    (gpu, _other) = uuids(host)
    hold(host, assignments=[assign("a1", gpu)], generation=3, node_id="node-1")
    wrong = {**record(host, ASKED), "units": {"sysctl": {"text": "no"}}}
    host.put(ASKED, json.dumps(wrong))
    host.files.pop("/etc/cdi/bcd-a1.json")
    assert Kept(host).rc == 1
    assert host.text("/etc/cdi/bcd-a1.json")


# -- signed


class Signed:
    """A host whose root pins a control plane, which has signed a spec for it."""

    def __init__(self, host: FakeHost, **more: Any) -> None:
        self.plane = ControlPlane()
        self.host = host
        host.put(CONFIG, self.plane.config(**more))

    def spec(self, generation: int = 1, **sections: Any) -> dict[str, Any]:
        return self.plane.desired_state("node-1", generation, **sections)


def test_a_signed_copy_is_kept_also_when_its_certificate_has_ended(shelf: Shelf) -> None:
    host = FakeHost()
    signed = Signed(host)
    short = signed.plane.root.worker(end=host.unix + DAY)
    assert "msg" not in converge(host, signed_spec=signed.spec(host={"sysctl": X}, signer=short))
    host.unix += 2 * DAY
    host.put("/etc/sysctl", "drifted")
    kept = Kept(host)
    assert (kept.rc, host.text("/etc/sysctl")) == (0, "x")
    host.calls.clear()
    assert (Kept(host).rc, host.calls) == (0, [])
    refused = converge(host, signed_spec=signed.spec(2, host={"sysctl": Y}, signer=short))
    assert refused["section"]["state"] == "FAILED"  # a new body needs a certificate that is good
    assert (Kept(host).rc, host.text("/etc/sysctl")) == (0, "x")


def test_an_accepted_spec_whose_pass_died_is_applied(shelf: Shelf) -> None:
    host = FakeHost()
    signed = Signed(host)
    host.kill_at = 2  # it is remembered, and no more
    with pytest.raises(Killed):
        converge(host, signed_spec=signed.spec(host={"sysctl": X}))
    host.kill_at = 0
    assert (Kept(host).rc, host.text("/etc/sysctl")) == (0, "x")


def test_unsigned_copies_are_ignored_where_signing_is_demanded(shelf: Shelf) -> None:
    host = FakeHost()
    converge(host, units={"sysctl": X})
    Signed(host)
    host.put("/etc/sysctl", "drifted")
    kept = Kept(host)
    assert (kept.rc, host.text("/etc/sysctl")) == (0, "drifted")
    assert kept.said == ["nothing to keep: this host takes a signed spec alone, and has not accepted one yet"]


def test_a_copy_under_another_pin_is_refused(shelf: Shelf) -> None:
    host = FakeHost()
    converge(host, signed_spec=Signed(host).spec(host={"sysctl": X}))
    Signed(host)  # another control plane is pinned
    host.put("/etc/sysctl", "drifted")
    kept = Kept(host)
    assert (kept.rc, host.text("/etc/sysctl")) == (1, "drifted")
    assert kept.said[0].startswith("host FAILED: ")


def test_a_copy_for_another_node_is_refused(shelf: Shelf) -> None:
    host = FakeHost()
    signed = Signed(host, join=True)
    plane = signed.plane
    host.put(RECORD, json.dumps(plane.join_response("node-1", roots=[plane.root])))
    converge(host, signed_spec=signed.spec(host={"sysctl": X}))
    assert host.text("/etc/sysctl") == "x"
    host.put(RECORD, json.dumps(plane.join_response("node-2", roots=[plane.root])))
    host.put("/etc/sysctl", "drifted")
    kept = Kept(host)
    assert (kept.rc, host.text("/etc/sysctl")) == (1, "drifted")
    assert "for the node node-1, and this host is node-2" in kept.said[0]


def test_a_host_that_is_enrolled_as_another_node_is_kept_under_its_new_name(shelf: Shelf) -> None:
    host = FakeHost()
    signed = Signed(host, join=True)
    plane = signed.plane
    host.put(RECORD, json.dumps(plane.join_response("node-1", roots=[plane.root])))
    converge(host, signed_spec=signed.spec(host={"sysctl": X}), node_id="node-1")
    host.put(RECORD, json.dumps(plane.join_response("node-2", roots=[plane.root])))
    assert "msg" not in hold(host, signed_spec=plane.desired_state("node-2", 1, host={"sysctl": X}, devices=[]))
    host.put("/etc/sysctl", "drifted")
    assert (Kept(host).rc, host.text("/etc/sysctl")) == (0, "x")


def test_a_copy_that_was_tampered_with_is_refused(shelf: Shelf) -> None:
    host = FakeHost()
    signed = Signed(host)
    converge(host, signed_spec=signed.spec(host={"sysctl": X}))
    memory = record(host, MEMORY)
    memory["envelope"]["body"] = signed.spec(host={"sysctl": Y})["body"]
    host.put(MEMORY, json.dumps(memory))
    assert (Kept(host).rc, host.text("/etc/sysctl")) == (1, "x")


def test_a_spec_keeps_what_it_manages(shelf: Shelf) -> None:
    host = hold_host()
    (gpu, _other) = uuids(host)
    signed = Signed(host)
    envelope = signed.spec(devices=[assign("a1", gpu)])
    assert hold(host, signed_spec=envelope, slot_count=8)["bound"] == ["a1"]
    host.files.pop("/etc/cdi/bcd-a1.json")
    kept = Kept(host)
    assert (kept.rc, [line.partition(" ")[0] for line in kept.said[-1:]]) == (0, ["devices"])
    assert host.text("/etc/cdi/bcd-a1.json")
    found = agent.sections(host)
    assert (found.host, (found.devices or {})["slot_count"]) == (None, 8)


# -- what the next run tells


def test_the_next_run_tells_what_was_repaired_once(shelf: Shelf) -> None:
    host = FakeHost()
    assert "agent" not in converge(host, units={"sysctl": X})
    host.put("/etc/sysctl", "drifted")
    Kept(host)
    planned = converge(PredictedHost(host), units={"sysctl": X})
    told = converge(host, units={"sysctl": X})
    repaired = [{"at": host.unix, "unit": "sysctl", "action": "write /etc/sysctl"}]
    assert planned["agent"]["repairs"] == told["agent"]["repairs"] == repaired
    assert told["agent"]["last"] == {
        "at": host.unix,
        "boot_id": "first-boot",
        "host": {"state": "CONVERGED", "message": ""},
        "devices": None,
    }
    assert told["ansible_facts"]["bcd_converge_status"]["agent"] == told["agent"]
    assert (told["changed"], "agent" in converge(host, units={"sysctl": X})) == (False, False)


def test_a_run_that_dies_or_is_not_the_last_leaves_it_to_the_next(shelf: Shelf) -> None:
    host = FakeHost()
    converge(host, units={"sysctl": X, "kernel-modules": X})
    host.put("/etc/sysctl", "drifted")
    Kept(host)
    host.kill_at = len(host.calls) + 1  # as it says that it has told
    with pytest.raises(Killed):
        converge(host, units={"sysctl": X, "kernel-modules": X})
    host.kill_at = 0
    assert converge(host, units={"sysctl": X, "kernel-modules": X}, only=["sysctl"])["agent"]["repairs"]
    assert converge(host, units={"sysctl": X, "kernel-modules": X})["agent"]["repairs"]
    assert "agent" not in converge(host, units={"sysctl": X, "kernel-modules": X})


def test_a_pass_by_hand_over_roots_copy_tells_and_leaves_it_to_the_next_run(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FakeHost()
    inside(monkeypatch, host)
    converge(host, units={"sysctl": X})
    host.put("/etc/sysctl", "drifted")
    Kept(host)
    options = agent.sections(host).host
    assert options is not None
    asked = record(host, ASKED)
    assert section.section_result(options, check_mode=False)["agent"]["repairs"]
    assert converge(host, units={"sysctl": X})["agent"]["repairs"]
    assert record(host, ASKED) == asked


def test_a_pass_by_hand_over_roots_copy_of_holds_leaves_it_to_the_next_run_too(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = hold_host()
    inside(monkeypatch, host)
    monkeypatch.setattr(holds, "Host", lambda: host)
    given: dict[str, Any] = {"assignments": [assign("a1", uuids(host)[0])], "generation": 3, "node_id": "node-1"}
    hold(host, **given)
    host.files.pop("/etc/cdi/bcd-a1.json")
    Kept(host)
    options = agent.sections(host).devices
    assert options is not None
    assert holds.holds_result(options, False)["agent"]["repairs"]
    asked = {**dict.fromkeys(HOLDS), "max_disruption": "gpu", **given}
    assert holds.holds_result(asked, False)["agent"]["repairs"]
    assert "agent" not in holds.holds_result(asked, False)


def test_that_the_host_is_not_well_is_told_by_each_run(shelf: Shelf) -> None:
    host = FakeHost()
    converge(host, units={"iommu": X})
    Kept(host)
    for _run in range(2):
        last = converge(host, units={"iommu": X})["agent"]["last"]
        assert last["host"] == {"state": "PROGRESSING", "message": "iommu: /sys/never is missing"}


def test_the_record_is_bounded_and_root_alone_reads_it() -> None:
    host = FakeHost()
    for number in range(7):
        more = [repairs.Repair("sysctl", f"step {number}.{each} " + "x" * 5000) for each in range(30)]
        repairs.remember(host, "host", "PROGRESSING", "y" * 5000, more)
    found = repairs.seen(host)
    assert [repair["number"] for repair in found["repairs"]] == list(range(111, 211))
    assert found["repairs"][-1]["action"].startswith("step 6.29 ")
    assert len(host.text(AGENT) or "") < 150_000
    assert host.files[AGENT].mode == 0o600


def test_told_repairs_that_were_dropped_stay_told() -> None:
    host = FakeHost()
    repairs.remember(host, "host", "CONVERGED", "", [repairs.Repair("sysctl", "a step")])
    repairs.told(host)
    found = record(host, AGENT)
    host.put(AGENT, json.dumps({**found, "repairs": []}))
    repairs.remember(host, "host", "CONVERGED", "", [repairs.Repair("sysctl", "another")])
    news = repairs.news(host)
    assert news is not None
    assert [each["action"] for each in news["repairs"]] == ["another"]


def test_a_record_that_cannot_be_written_stops_nothing(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    host = FakeHost()
    converge(host, units={"sysctl": X})
    host.put("/etc/sysctl", "drifted")
    write = host.write

    def full(path: str, text: str, mode: int) -> None:
        if path == AGENT:
            raise OSError(28, "No space left on device", path)
        write(path, text, mode)

    monkeypatch.setattr(host, "write", full)
    kept = Kept(host)
    assert (kept.rc, host.text("/etc/sysctl")) == (0, "x")
    assert kept.said[0] == f"cannot write {AGENT}, so that no run will tell of this pass: No space left on device"


# -- the whole word


def test_root_may_keep_us_off_the_host(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    host = FakeHost({ASKED: state.render({"units": {"sysctl": X}}), CONFIG: "[host]\nunits = false\n"})
    inside(monkeypatch, host)
    said: list[str] = []
    assert (agent.run(said.append), said, host.calls) == (0, [OUTSIDE], [])


def test_a_configuration_that_is_not_roots_alone_is_a_failure(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    host = FakeHost({ASKED: state.render({"units": {"sysctl": X}}), CONFIG: ""})
    host.files[CONFIG] = host.files[CONFIG]._replace(mode=0o664)
    inside(monkeypatch, host)
    said: list[str] = []
    assert (agent.run(said.append), host.calls) == (1, [])
    assert said == [f"{CONFIG} must be a regular file root owns that no one else can write"]


def test_another_account_is_told_so(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    host = FakeHost()
    host.user = 1000
    inside(monkeypatch, host)
    said: list[str] = []
    assert agent.run(said.append) != 0
    assert "this account is not root" in said[0]


def test_where_another_pass_runs_on_the_work_is_left_to_it(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    host = FakeHost({ASKED: state.render({"units": {"sysctl": X}})})
    inside(monkeypatch, host)
    asked: list[str] = []

    def held(_host: Host, what: str) -> None:  # with no wait of its own: many that come and go are waited for
        asked.append(what)
        raise Held(f"another pass holds {what}")

    monkeypatch.setattr(opening, "only_pass", held)
    said: list[str] = []
    assert (agent.run(said.append), asked, host.calls) == (0, ["bcd agent"], [])
    assert said[0].startswith("left to the pass that runs now: ")


@pytest.mark.parametrize(("retryable", "rc"), [(True, 2), (False, 1)])
def test_a_host_that_cannot_be_opened_is_tried_again_where_that_may_help(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, retryable: bool, rc: int
) -> None:
    host = FakeHost({ASKED: state.render({"units": {"sysctl": X}})})
    inside(monkeypatch, host)

    def fails(_host: Host, _what: str) -> None:
        raise StepFailed("the lock is on a disk that is full", retryable)

    monkeypatch.setattr(opening, "only_pass", fails)
    said: list[str] = []
    assert (agent.run(said.append), said, host.calls) == (rc, ["the lock is on a disk that is full"], [])


def test_a_fault_of_ours_in_the_host_is_told_and_keeps_back_no_hold(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = hold_host()
    hold(host, assignments=[assign("a1", uuids(host)[0])], generation=3, node_id="node-1")
    converge(host, units={"sysctl": X})
    host.files.pop("/etc/cdi/bcd-a1.json")

    def broken(*_given: Any) -> None:
        raise KeyError("x")

    monkeypatch.setattr(section, "converge_section", broken)
    kept = Kept(host)
    assert kept.rc == 1
    assert host.text("/etc/cdi/bcd-a1.json")
    assert any(line.startswith("host FAILED: ") and "KeyError" in line for line in kept.said)
    assert kept.said[-1] == "devices CONVERGED"


def test_a_pass_that_is_told_to_stop_comes_to_its_end(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package manager that is killed leaves a broken database."""
    host = FakeHost({ASKED: state.render({"units": {"sysctl": X, "kernel-modules": Y}})})
    inside(monkeypatch, host)
    stopped: list[int] = []
    write = host.write

    def told_to_stop(path: str, text: str, mode: int) -> None:
        if path.startswith("/etc/"):
            os.kill(os.getpid(), signal.SIGTERM)
        write(path, text, mode)

    monkeypatch.setattr(host, "write", told_to_stop)
    before = signal.signal(signal.SIGTERM, lambda number, _frame: stopped.append(number))
    try:
        assert agent.run(lambda _line: None) == 0
        assert stopped == []
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopped == [signal.SIGTERM]  # who waited for it before does again
    finally:
        signal.signal(signal.SIGTERM, before)
    assert [host.text("/etc/sysctl"), host.text("/etc/kernel-modules")] == ["x", "y"]


def test_a_pass_of_the_whole_word(shelf: Shelf, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    host = FakeHost({ASKED: state.render({"units": {"sysctl": X}})})
    inside(monkeypatch, host)
    assert agent.run() == 0
    assert capsys.readouterr().out == "sysctl: write /etc/sysctl\nhost CONVERGED\n"


def test_a_line_of_the_journal_is_one_line(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shelf.keeper("sysctl", path="/etc/x\nhost CONVERGED")
    host = FakeHost({ASKED: state.render({"units": {"sysctl": X}})})
    inside(monkeypatch, host)
    assert agent.run() == 0
    assert capsys.readouterr().out == "sysctl: write /etc/x host CONVERGED\nhost CONVERGED\n"


def test_a_journal_that_is_gone_leaves_no_pass_half_done(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    host = FakeHost({ASKED: state.render({"units": {"sysctl": X, "kernel-modules": Y}})})
    inside(monkeypatch, host)
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8") as gone:
        monkeypatch.setattr(sys, "stdout", gone)
        assert agent.run() == 0
    assert [host.text("/etc/sysctl"), host.text("/etc/kernel-modules")] == ["x", "y"]
    assert json.loads(host.text(AGENT) or "")["last"]["host"]["state"] == "CONVERGED"


@pytest.mark.parametrize("how", ["held back", "cannot be looked at"])
def test_a_unit_that_left_the_section_before_its_first_step_is_not_applied_by_the_agent(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """What was asked and never begun is not what was applied, and the section that comes after it is the whole."""
    host = FakeHost()
    inside(monkeypatch, host)
    if how == "held back":
        converge(host, units={"sysctl": X, "gpu-settings": Y}, max_disruption="none")
    else:
        host.unreadable.add("/etc/gpu-settings")
        converge(host, units={"sysctl": X, "gpu-settings": Y})
        host.unreadable.clear()
    assert "gpu-settings" in json.loads(host.text(ASKED) or "")["units"]
    converge(host, units={"sysctl": X})
    assert agent.run(lambda _line: None) == 0
    assert host.text("/etc/gpu-settings") is None
    assert json.loads(host.text(ASKED) or "")["units"] == {"sysctl": X}
    host.calls.clear()
    converge(host, units={"sysctl": X})
    assert host.calls == []
