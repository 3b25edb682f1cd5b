# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pass report's table, from results as the modules return them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.pass_table import Pass
from tests.unit.filter.plans import REBOOT, WRITE, governors, holds, plan, refused, stuck, unit, waits


def told(**results: Any) -> list[str]:
    seen = Pass()
    for host, result in results.items():
        seen.add(host.replace("_", "-"), result)
    return seen.lines()


def cells(line: str) -> list[str]:
    return [cell for cell in line.split("  ") if cell]


def test_a_run_of_others_says_nothing() -> None:
    seen = Pass()
    assert not seen.add("a", {"changed": True, "stdout": "x"})
    assert not seen.add("a", {"unit": "ssh.service", "state": "started"})
    seen.fault("b", "unreachable: no route", ours=False)
    assert seen.lines() == []
    seen.fault("b", "the module was killed")
    assert [cell.strip() for cell in cells(seen.lines()[0])] == ["host", "state", "changed", "waits for", "failed"]
    assert [cell.strip() for cell in cells(seen.lines()[1])] == ["b", "no result", "-", "-", "-"]


def test_a_line_a_host_and_below_every_reason() -> None:
    host = plan(
        "PROGRESSING",
        unit("kernel-modules", changed=True),
        refused("sysctl", "kernel.core_pattern is refused"),
        unit("hugepages", "progressing", pending=waits("RebootRequired", "hugepages: 4 pages: reboot the node")),
        unit("cpu", "progressing", pending=waits("RebootRequired", REBOOT), changed=True),
    )
    lines = told(debian=host, rhel=plan("CONVERGED", unit("cpu")))
    assert [word.strip() for word in cells(lines[0])] == ["host", "state", "changed", "waits for", "failed"]
    assert [word.strip() for word in cells(lines[1])] == [
        "debian",
        "failed",
        "kernel-modules, cpu",
        "RebootRequired: hugepages, cpu",
        "Refused: sysctl",
    ]
    assert [word.strip() for word in cells(lines[2])] == ["rhel", "converged", "-", "-", "-"]
    assert lines[3:] == [
        "debian: sysctl: kernel.core_pattern is refused (no run helps before that is mended)",
        "debian: hugepages: 4 pages: reboot the node",
        f"debian: {REBOOT}",
    ]


def test_what_the_agent_repaired_is_one_line_a_host() -> None:
    repairs = [{"at": 1, "unit": unit, "action": "a step"} for unit in ("sysctl", "sysctl", "devices")]
    last = {"at": 1, "boot_id": "", "host": {"state": "CONVERGED", "message": ""}, "devices": None}
    several, one, none = (
        {**plan("CONVERGED", unit("cpu")), "agent": {"last": last, "repairs": repairs[:number]}} for number in (3, 1, 0)
    )
    assert told(a=several, b=one, c=none, d=plan("CONVERGED", unit("cpu")))[5:] == [
        "a: note: bcd agent repaired drift since the run before: sysctl, devices (3 steps)",
        "b: note: bcd agent repaired drift since the run before: sysctl (1 step)",
    ]


def test_units_one_by_one_add_up_to_their_host() -> None:
    seen = Pass()
    assert seen.add("a", unit("sysctl", "progressing", steps=[WRITE], changed=True))
    assert seen.add("a", unit("sysctl"))
    assert seen.add("a", refused("cpu", "cpu: CPU 0 is never isolated"))
    table = seen.lines()
    assert [word.strip() for word in cells(table[1])] == ["a", "failed", "sysctl", "-", "Refused: cpu"]
    assert table[2:] == ["a: cpu: CPU 0 is never isolated (no run helps before that is mended)"]


def test_hosts_without_a_result_are_named() -> None:
    seen = Pass()
    seen.add("a", plan("CONVERGED"))
    seen.fault("b", "unreachable: no\n route")
    seen.add("c", plan("FAILED", message="the unit cpu is named twice"))
    lines = seen.lines()
    assert [cells(line)[1].strip() for line in lines[1:4]] == ["no result", "no result", "converged"]
    assert lines[4:] == ["b: unreachable: no route", "c: the unit cpu is named twice"]


def test_what_many_hosts_say_is_one_line() -> None:
    waiting = plan("PROGRESSING", unit("cpu", "progressing", pending=waits("RebootRequired", REBOOT)))
    assert told(a=waiting, b=waiting)[3:] == [f"a, b: {REBOOT}"]
    many = told(**{f"h{number}": waiting for number in range(9)})
    assert many[10:] == [f"h0, h1, h2, h3, 5 more: {REBOOT}"]


def test_what_differs_in_the_host_s_own_name_alone_is_one_line() -> None:
    def waiting(host: str) -> dict[str, Any]:
        join = {"action": f"join https://10.0.0.1:6443 as {host}", "disruption": "none", "done": False}
        notes = [f"join https://10.0.0.1:6443 as {host} needs a secret"]
        return plan("PROGRESSING", unit("k8s-join", "progressing", steps=[join], notes=notes))

    def lines(*hosts: str) -> list[str]:
        seen = Pass()
        for host in hosts:
            seen.add(host, waiting(host), planned=True)
        return seen.lines()[len(hosts) + 1 :]

    join = "k8s-join: join https://10.0.0.1:6443 as "
    assert lines("w-1", "w-2") == [
        f"w-1, w-2: note: {join}<its name> needs a secret",
        "w-1, w-2 would:",
        f"  1. {join}<its name>",
    ]
    assert lines("w-1") == [f"w-1: note: {join}w-1 needs a secret", "w-1 would:", f"  1. {join}w-1"]


def test_a_host_s_name_inside_a_longer_one_stays() -> None:
    def failing(said: str) -> dict[str, Any]:
        return plan("FAILED", refused("k8s-join", said))

    lines = told(w_1=failing("k8s-join: see w-10 and w-1.example.com"), w_2=failing("k8s-join: see w-20 of w-2."))
    assert [line.partition(" (")[0] for line in lines[3:]] == [
        "w-1: k8s-join: see w-10 and w-1.example.com",
        "w-2: k8s-join: see w-20 of w-2.",
    ]


def test_a_condition_of_a_converged_unit_is_told() -> None:
    drift = {
        "type": "KubernetesTaintsDrift",
        "status": "true",
        "reason": "NodeRestriction",
        "message": "an admin runs x",
    }
    down = {"type": "FabricManagerDown", "status": "true", "reason": "NotRunning", "message": "it is down"}
    waiting = unit(
        "fabric-manager", "progressing", pending=waits("NotReady", "the fabric is not up"), conditions=[down]
    )
    lines = told(a=plan("PROGRESSING", unit("k8s-join", conditions=[drift], notes=["x stays"]), waiting))
    assert lines[2:] == [
        "a: fabric-manager: the fabric is not up",
        "a: k8s-join: KubernetesTaintsDrift: an admin runs x",
        "a: note: k8s-join: x stays",
    ]


def test_failures_come_first() -> None:
    wait = unit("cpu", "progressing", pending=waits("RebootRequired", REBOOT))
    lines = told(
        a=plan("PROGRESSING", wait), b=plan("PROGRESSING", wait, stuck("sysctl", "I/O error")), c=plan("CONVERGED")
    )
    shown = [[cell.strip() for cell in cells(line)[:2]] for line in lines[1:4]]
    assert shown == [["b", "failed"], ["a", "progressing"], ["c", "converged"]]
    assert lines[4:] == ["b: sysctl: I/O error (another run may help)", f"b, a: {REBOOT}"]


def test_what_strikes_every_unit_is_told_once() -> None:
    lines = told(a=plan("PROGRESSING", *(stuck(name, "another pass") for name in ("sysctl", "cpu", "iommu"))))
    assert cells(lines[1])[-1].strip() == "StepFailed: all units"
    assert lines[2:] == ["a: all units: another pass (another run may help)"]
    lines = told(a=plan("PROGRESSING", stuck("sysctl", "no"), stuck("cpu", "no"), unit("iommu")))
    assert lines[2:] == ["a: sysctl, cpu: no (another run may help)"]


def test_of_the_same_failure_it_is_told_where_another_run_may_help() -> None:
    lines = told(a=plan("FAILED", stuck("cpu", "no", retryable=False)), b=plan("PROGRESSING", stuck("cpu", "no")))
    assert lines[3:] == ["a: cpu: no (no run helps before that is mended)", "b: cpu: no (another run may help)"]


def test_a_plan_lists_its_steps() -> None:
    restart = {"action": "restart x.service", "disruption": "service", "done": False}
    later = {"action": "sysctl: known after the module tun is loaded", "disruption": "none", "done": False}
    planned = plan(
        "PROGRESSING",
        unit("sysctl", "progressing", steps=[WRITE, restart, later], changed=True),
        unit("cpu", "progressing", steps=governors(128), pending=waits("RebootRequired", REBOOT)),
    )
    seen = Pass()
    assert seen.add("b", planned, planned=True)
    assert seen.add("a", planned, planned=True)
    assert seen.add("c", plan("CONVERGED", unit("cpu")), planned=True)
    lines = seen.lines()
    assert [cell.strip() for cell in cells(lines[0])] == ["host", "state", "would change", "would wait for", "failed"]
    assert lines[4:] == [
        f"a, b: {REBOOT}",
        "a, b would:",
        "  1. sysctl: write /etc/sysctl.d/90-bcd.conf",
        "  2. sysctl: restart x.service (service)",
        "  3. sysctl: known after the module tun is loaded",
        "  4. cpu: set the governor of CPU 0 to performance (now: powersave), and 127 more like it",
    ]


def test_what_a_pass_left_is_no_plan() -> None:
    seen = Pass()
    seen.add("a", unit("sysctl", "progressing", steps=[WRITE]))
    assert seen.lines()[2:] == ["a: sysctl: still to do: write /etc/sysctl.d/90-bcd.conf"]


def test_notes_are_told_short_and_after_all_else() -> None:
    stays = unit("cpu", notes=["cpu: the governor stays", "x" * 500], pending=waits("Busy", "cpu: in use"))
    lines = told(a=plan("PROGRESSING", stays), b=plan("PROGRESSING", stays))
    assert lines[3:5] == ["a, b: cpu: in use", "a, b: note: cpu: the governor stays"]
    assert lines[5].startswith("a, b: note: cpu: xxx")
    assert lines[5].endswith("x ...")
    assert len(lines[5]) < 280


def test_a_host_whose_last_module_died_is_failed() -> None:
    seen = Pass()
    seen.add("a", unit("sysctl"))
    seen.fault("a", "the module was killed")
    assert [cell.strip() for cell in cells(seen.lines()[1])][:2] == ["a", "failed"]
    seen.add("a", plan("CONVERGED", unit("sysctl")))
    assert [cell.strip() for cell in cells(seen.lines()[1])][:2] == ["a", "converged"]


def test_a_failure_stands_until_its_unit_was_tried_again() -> None:
    seen = Pass()
    seen.add("a", plan("PROGRESSING", stuck("sysctl", "I/O error")))
    seen.add("a", plan("PROGRESSING", unit("sysctl", "progressing", steps=[WRITE])))
    assert [cell.strip() for cell in cells(seen.lines()[1])] == ["a", "failed", "-", "-", "StepFailed: sysctl"]
    assert seen.lines()[2:] == ["a: sysctl: I/O error (another run may help)"]
    seen.add("a", plan("CONVERGED", unit("sysctl")))
    assert [cell.strip() for cell in cells(seen.lines()[1])] == ["a", "converged", "-", "-", "-"]


# -- what a task with no_log came to, by the fact that is kept of it

JOIN = waits("NotReady", "k8s-join: join needs the secret 'vault:pool', which was not given")


def test_what_a_hidden_task_came_to_takes_the_place_of_what_was_told_before() -> None:
    seen = Pass()
    seen.add("a", plan("PROGRESSING", unit("k8s-join", "progressing", pending=JOIN), unit("sysctl", changed=True)))
    assert seen.tell("a", plan("CONVERGED", unit("k8s-join", changed=True), unit("sysctl")))
    assert [cell.strip() for cell in cells(seen.lines()[1])] == ["a", "converged", "sysctl, k8s-join", "-", "-"]
    assert len(seen.lines()) == 2


def test_a_lookup_that_failed_is_told_beside_what_waits_for_it() -> None:
    seen = Pass()
    left = plan("PROGRESSING", unit("k8s-join", "progressing", pending=JOIN), message="k8s-join: join needs the secret")
    seen.tell("a", {**left, "failed": True, "msg": "the vault is sealed"})
    assert [cell.strip() for cell in cells(seen.lines()[1])][:2] == ["a", "failed"]
    assert seen.lines()[2:] == ["a: the vault is sealed", f"a: {JOIN[0]['message']}"]


def test_a_hidden_failure_of_a_unit_is_told_once() -> None:
    seen = Pass()
    failed = plan("PROGRESSING", stuck("k8s-join", "the token has expired"), message="k8s-join: the token has expired")
    seen.tell("a", {**failed, "failed": True, "msg": "k8s-join: the token has expired"})
    assert seen.lines()[2:] == ["a: k8s-join: the token has expired (another run may help)"]


# -- holds


def test_the_holds_are_a_unit_of_their_host() -> None:
    host = Pass()
    host.add("node", plan("CONVERGED", unit("sysctl", changed=True)))
    host.add("node", holds("converged", changed=True))
    assert cells(host.lines()[1]) == ["node", "converged", "sysctl, devices", "-", "-"]
    assert len(host.lines()) == 2


def test_an_assignment_that_failed_is_told_by_its_allocation() -> None:
    host = Pass()
    host.add("node", plan("CONVERGED", unit("sysctl")))
    host.add("node", holds("failed", ("alloc_2", "GPU-a is assigned to alloc_1"), message="not this one"))
    host.add("node", unit("devices", changed=True))  # events were acknowledged: that says nothing of the holds
    lines = host.lines()
    assert cells(lines[1]) == ["node", "failed", "-", "-", "AssignmentFailed: devices"]
    assert lines[2:] == [
        "node: devices: alloc_2: GPU-a is assigned to alloc_1 (no run helps before that is mended)",
    ]


def test_a_step_of_a_hold_that_failed_is_told_with_all_that_is_wrong() -> None:
    host = Pass()
    said = "alloc_2: it is taken; cannot write /etc/cdi/bcd-alloc_1.json: No space left on device"
    more = {"reason": "StepFailed", "retryable": True}
    host.add("node", holds("progressing", ("alloc_2", "it is taken"), message=said, **more))
    assert host.lines()[2:] == [f"node: devices: {said} (another run may help)"]


def test_options_of_holds_that_are_refused_are_told_as_they_are() -> None:
    host = Pass()
    refused = {"reason": "Refused", "retryable": False, "msg": "devices: the allocation alloc_1 is there twice"}
    host.add("node", holds("failed", message="x", **refused))
    assert host.lines()[2:] == [
        "node: devices: the allocation alloc_1 is there twice (no run helps before that is mended)",
    ]


# -- what others' text may not do


def test_no_name_and_no_message_steers_the_terminal() -> None:
    seen = Pass()
    seen.add("a\x1b[2J", plan("PROGRESSING", stuck("sysctl", "no\x1b]0;owned\x07\n\u202etxet")))
    seen.fault("b", "unreachable: \x9b31mred")
    seen.add("c", plan("CONVERGED", unit("cpu", notes=["x\x1b[1Ay"])), planned=True)
    lines = seen.lines()
    assert all(line.isprintable() for line in lines)
    assert lines[4:] == [
        "a?[2J: sysctl: no?]0;owned? ?txet (another run may help)",
        "b: unreachable: ?31mred",
        "c: note: cpu: x?[1Ay",
    ]


def test_the_columns_stand_below_each_other_whatever_the_script() -> None:
    lines = told(**dict.fromkeys(("节点", "node"), plan("CONVERGED")))
    assert lines == [
        "host  state      changed  waits for  failed",
        "node  converged  -        -          -",
        "节点  converged  -        -          -",
    ]


# -- the same as a document


def test_the_document_has_what_the_table_says() -> None:
    seen = Pass()
    waiting = unit("cpu", "progressing", pending=waits("RebootRequired", REBOOT), changed=True)
    seen.add("b", plan("PROGRESSING", refused("sysctl", "no"), waiting, unit("iommu", notes=["n" * 500])))
    seen.fault("gone", "unreachable: no route")
    seen.layout_waits("b", "the pool's layout waits")
    document = seen.document()
    assert (document["kind"], document["version"], list(document["hosts"])) == ("PassReport", 1, ["b", "gone"])
    assert document["hosts"]["b"] == {
        "state": "failed",
        "planned": False,
        "changed": ["cpu"],
        "waits_for": {"RebootRequired": ["cpu"]},
        "failed": {"Refused": ["sysctl"]},
        "failures": ["sysctl: no (no run helps before that is mended)"],
        "waits": [REBOOT],
        "conditions": [],
        "notes": ["mig-layout: the pool's layout waits", "iommu: " + "n" * 500],
        "steps": [],
    }
    assert document["hosts"]["gone"]["state"] == "no result"
    assert document["hosts"]["gone"]["failures"] == ["unreachable: no route"]


def test_the_document_of_a_plan_has_its_steps() -> None:
    seen = Pass()
    seen.add("a", plan("PROGRESSING", unit("sysctl", "progressing", steps=[WRITE], changed=True)), planned=True)
    host = seen.document()["hosts"]["a"]
    assert (host["planned"], host["changed"]) == (True, ["sysctl"])
    assert host["steps"] == ["sysctl: write /etc/sysctl.d/90-bcd.conf"]


def test_the_document_of_a_run_of_others_has_no_hosts() -> None:
    seen = Pass()
    seen.fault("b", "unreachable", ours=False)
    assert seen.document() == {"kind": "PassReport", "version": 1, "hosts": {}}


@pytest.mark.parametrize(
    "broken",
    [
        {"pending": [{"reason": ["a"], "message": {}}, {}, 5]},
        {"pending": 5, "steps": [{}, None, {"action": 1}]},
        {"reason": {"x": []}},
        {"reason": "StepFailed"},
        {"state": ["converged"], "notes": 7, "conditions": [{}], "unit": {"a": 1}},
    ],
)
def test_what_no_module_returns_takes_nothing_from_the_other_hosts(broken: dict[str, Any]) -> None:
    seen = Pass()
    for planned in (False, True):
        seen.add("broken", {**unit("sysctl", "progressing"), **broken, "agent": {"repairs": [{}, 3]}}, planned)
        seen.tell("told", {**unit("sysctl", "progressing"), **broken, "msg": "x", "section": None}, planned)
    seen.add("whole", plan("CONVERGED", unit("cpu")))
    assert [word.strip() for word in cells(next(line for line in seen.lines() if line.startswith("whole")))] == [
        "whole", "converged", "-", "-", "-",
    ]  # fmt: skip
    assert seen.document()["hosts"]["whole"]["state"] == "converged"


def test_a_text_without_end_leaves_the_table_a_table() -> None:
    endless = "word " * 20_000
    host = plan("PROGRESSING", unit("cpu", "progressing", pending=waits(endless, f"cpu: {endless}"), changed=True))
    lines = told(endless=host, short=plan("CONVERGED", unit("cpu")))
    assert all(len(line) < 5 * 120 + 10 for line in lines[:3])
    assert max(map(len, lines)) <= 4_000
    assert lines[3].startswith("endless: cpu: word word")
    assert lines[3].endswith("...")
