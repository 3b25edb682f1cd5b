# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner's promises: lanes, barriers, debts, questions, the lie detector, a pass killed anywhere."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Callable, NamedTuple

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import NotReady, Refused, StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import (
    Answer,
    Field,
    Past,
    Pending,
    Plan,
    Todo,
    Unit,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.runner import Goal, converge
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.state import STATE
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import Effect, remove, run, set_value, write
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.unknown import later
from tests.unit.fake_host import FakeHost, Killed

A, B, DONE = "/etc/a", "/etc/b", "/var/done"


class Now(NamedTuple):
    host: Any


def unit(plan: Callable[[Any, Past], Plan], absent: Callable[[Any, Past], Plan] | None = None) -> Unit:
    """A unit whose planner may read the host as it likes."""
    return Unit(
        name="sample",
        fields=(Field("want", "want", (str,)),),
        check=lambda given: given,
        look=lambda host, _settings, _past: Now(host),
        plan=lambda _settings, now, past: plan(now.host, past),
        absent=lambda now, past: (absent or plan)(now.host, past),
    )


def go(host: Any, made: Unit, *, max_disruption: str = "gpu", records: Records | None = None) -> Outcome:
    return converge(Goal(made, {"want": "it"}), host, records or Records(host), max_disruption)


def actions(outcome: Outcome) -> list[tuple[str, bool]]:
    return [(line.action, line.done) for line in outcome.steps]


def keeps_files(*paths: str) -> Unit:
    def plan(host: Any, _past: Past) -> Plan:
        todo = Todo()
        for path in paths:
            if host.read(path) != "ours\n":
                todo.add(write(path, "ours\n", f"write {path}", lane=path))
        return todo.plan()

    return unit(plan)


def test_a_pass_changes_what_differs_and_the_next_one_nothing() -> None:
    host = FakeHost({A: "edited\n"})
    first = go(host, keeps_files(A, B))
    assert (first.state, first.changed) == ("converged", True)
    assert actions(first) == [(f"write {A}", True), (f"write {B}", True)]
    assert first.diff[0] == {"before_header": A, "after_header": A, "before": "edited\n", "after": "ours\n"}
    second = go(host, keeps_files(A, B))
    assert (second.state, second.changed, second.steps, second.diff) == ("converged", False, (), ())


def test_check_mode_plans_the_same_steps_and_touches_nothing() -> None:
    host = FakeHost({A: "edited\n"})
    before = dict(host.files)
    planned = go(PredictedHost(host), keeps_files(A, B))
    assert (planned.state, planned.changed, host.files, host.calls) == ("progressing", True, before, [])
    taken = go(host, keeps_files(A, B))
    assert [line.action for line in planned.steps] == [line.action for line in taken.steps]
    assert planned.diff == taken.diff


def test_a_mode_that_moved_is_a_difference() -> None:
    def plan(host: Any, _past: Past) -> Plan:
        seen = host.file(A)
        return Plan() if seen.mode == 0o600 else Plan((write(A, seen.text, f"write {A}", mode=0o600),))

    outcome = go(FakeHost({A: "x\n"}), unit(plan))
    assert outcome.changed
    assert outcome.diff[0]["before_header"] == f"{A} (mode 0644)"
    assert outcome.diff[0]["after_header"] == f"{A} (mode 0600)"


def test_a_failed_step_ends_its_own_lane_only() -> None:
    def plan(host: Any, _past: Past) -> Plan:
        todo = Todo()
        if host.read(A) is None:
            todo.add(run(("false",), "break", lane="a"), write(A, "ours\n", f"write {A}", lane="a"))
        if host.read(B) is None:
            todo.add(write(B, "ours\n", f"write {B}", lane="b"))
        return todo.plan()

    host = FakeHost(programs={"false": lambda _host, _argv: Answer(1, "", "it is broken")})
    outcome = go(host, unit(plan))
    assert actions(outcome) == [("break", False), (f"write {B}", True)]
    assert (host.text(A), host.text(B)) == (None, "ours\n")
    assert outcome.failure is not None
    assert (outcome.failure.reason, outcome.failure.retryable, outcome.state) == ("StepFailed", True, "progressing")
    assert outcome.failure.message == "cannot break: false exited with 1: it is broken"
    assert outcome.changed


def test_what_stands_on_a_failed_trunk_is_not_done() -> None:
    def plan(host: Any, _past: Past) -> Plan:
        return (
            Plan((run(("false",), "break"), write(B, "x", f"write {B}", lane="b"))) if host.read(B) is None else Plan()
        )

    host = FakeHost(programs={"false": lambda _host, _argv: Answer(1, "", "no")})
    outcome = go(host, unit(plan))
    assert host.text(B) is None
    assert actions(outcome) == [("break", False)]


def test_a_step_that_succeeds_and_changes_nothing_is_found_out() -> None:
    def plan(host: Any, _past: Past) -> Plan:
        return Plan() if host.read(DONE) else Plan((run(("liar",), "do it"),))

    outcome = go(FakeHost(programs={"liar": lambda _host, _argv: Answer(0, "All done.")}), unit(plan))
    assert outcome.failure is not None
    assert outcome.failure.message == "done without effect: do it succeeded and the host shows no change"
    assert outcome.state == "progressing"


@pytest.mark.parametrize("check", [False, True])
def test_a_file_that_was_written_in_between_is_removed_again(check: bool) -> None:
    def plan(host: Any, _past: Past) -> Plan:
        if host.read(A) == "damaged":
            return Plan((remove(A, "remove what is damaged"),))
        if host.read(B) is None:
            return Plan((write(A, "pending", "note what is pending"), write(B, "done", "do it")))
        return Plan((remove(A, "nothing is pending"),)) if host.read(A) else Plan()

    host = FakeHost({A: "damaged"})
    outcome = go(PredictedHost(host) if check else host, unit(plan))
    assert outcome.failure is None
    assert [line.action for line in outcome.steps] == [
        "remove what is damaged",
        "note what is pending",
        "do it",
        "nothing is pending",
    ]


@pytest.mark.parametrize("check", [False, True])
def test_steps_that_undo_each_other_without_end_are_told(check: bool) -> None:
    def plan(host: Any, _past: Past) -> Plan:
        return Plan((write(A, "x", "write it"),)) if host.read(A) is None else Plan((remove(A, "remove it"),))

    host = FakeHost()
    outcome = go(PredictedHost(host) if check else host, unit(plan))
    assert outcome.state == "progressing"
    assert len(outcome.steps) < 10
    assert check or (outcome.failure is not None and "done without effect" in outcome.failure.message)


def test_a_kernel_value_that_does_not_take_is_reported_with_what_the_kernel_keeps() -> None:
    def plan(host: Any, _past: Past) -> Plan:
        return Plan() if host.read(A) == "4100\n" else Plan((set_value(A, "4100", "set it to 4100"),))

    host = FakeHost({A: "0\n"}, kernel={A: lambda _host, _path, _value: "4096\n"})
    outcome = go(host, unit(plan))
    assert outcome.failure is not None
    assert outcome.failure.message == (
        "done without effect: set it to 4100 succeeded and the kernel keeps 4096: ask for a value that it keeps"
    )


def test_a_planner_learns_which_lanes_failed_in_this_run_and_plans_again() -> None:
    def plan(host: Any, past: Past) -> Plan:
        todo = Todo()
        if "a" not in past.failed:
            todo.add(run(("false",), "break", lane="a"))
        elif host.read(B) is None:
            todo.add(write(B, "without a", f"write {B}", lane="b"))
        return todo.plan()

    host = FakeHost(programs={"false": lambda _host, _argv: Answer(1, "", "it is broken")})
    outcome = go(host, unit(plan))
    assert actions(outcome) == [("break", False), (f"write {B}", True)]
    assert host.text(B) == "without a"
    assert outcome.failure is not None


def test_a_refusal_writes_nothing_and_is_final() -> None:
    def plan(_host: Any, _past: Past) -> Plan:
        raise Refused("sample: no")

    host = FakeHost()
    outcome = go(host, unit(plan))
    assert (outcome.state, outcome.failure) == ("failed", ("Refused", "sample: no", False))
    assert host.calls == []


def test_a_refusal_after_a_step_is_a_failed_step_that_no_retry_mends() -> None:
    def plan(host: Any, _past: Past) -> Plan:
        if host.read(A):
            raise Refused("sample: no")
        return Plan((write(A, "x", f"write {A}"),))

    outcome = go(FakeHost(), unit(plan))
    assert (outcome.state, outcome.failure) == ("failed", ("StepFailed", "sample: no", False))
    assert outcome.changed


def test_a_look_that_is_not_ready_waits() -> None:
    def plan(_host: Any, _past: Past) -> Plan:
        raise NotReady("sample: the driver does not answer")

    outcome = go(FakeHost(), unit(plan))
    assert (outcome.state, outcome.failure) == ("progressing", None)
    assert outcome.pending[0][:2] == ("NotReady", "sample: the driver does not answer")


@pytest.mark.parametrize(("ceiling", "runs"), [("none", False), ("service", True), ("gpu", True)])
def test_what_disturbs_more_than_is_allowed_is_held_back(ceiling: str, runs: bool) -> None:
    def plan(host: Any, _past: Past) -> Plan:
        todo = Todo()
        if host.read(DONE) is None:
            todo.add(run(("restart",), "restart it", lane="a", disruption="service"))
        if host.read(B) is None:
            todo.add(write(B, "ours\n", f"write {B}", lane="b"))
        return todo.plan()

    def restart(host: FakeHost, _argv: tuple[str, ...]) -> Answer:
        host.put(DONE, "yes\n")
        return Answer(0, "")

    host = FakeHost(programs={"restart": restart})
    outcome = go(host, unit(plan), max_disruption=ceiling)
    assert actions(outcome) == [("restart it", runs), (f"write {B}", True)]
    assert outcome.state == ("converged" if runs else "progressing")
    assert [wait.reason for wait in outcome.pending] == ([] if runs else ["HeldBack"])
    if not runs:
        assert "restart it" in outcome.pending[0].message
        assert "max_disruption: service" in outcome.pending[0].message


def test_a_barrier_waits_until_the_lane_shows_its_effect() -> None:
    def plan(host: Any, _past: Past) -> Plan:
        todo = Todo()
        if host.read(A) is None:
            effects = (Effect("file", A, "up\n"),)
            todo.add(run(("start",), "start it", lane="a", barrier=True, settle=30, effects=effects))
        elif host.now < 3 and not host.predicted:
            with todo.lane("a"):
                todo.wait("NotReady", "sample: it does not answer yet")
        if host.read(B) is None and (host.read(A) is None or host.predicted or host.now >= 3):
            todo.add(write(B, "after\n", f"write {B}", lane="a"))
        return todo.plan()

    def start(host: FakeHost, _argv: tuple[str, ...]) -> Answer:
        host.put(A, "up\n")
        return Answer(0, "")

    host = FakeHost(programs={"start": start})
    outcome = go(host, unit(plan))
    assert actions(outcome) == [("start it", True), (f"write {B}", True)]
    assert host.now >= 3
    assert outcome.state == "converged"


def test_a_barrier_waits_also_while_the_look_itself_is_not_ready() -> None:
    def plan(host: Any, _past: Past) -> Plan:
        if host.read(A) is None:
            return Plan((run(("start",), "start it", barrier=True, settle=30, effects=(Effect("file", A, "up"),)),))
        if host.now < 3:
            raise NotReady("sample: no answer yet")
        return Plan() if host.read(B) else Plan((write(B, "x", f"write {B}"),))

    def start(host: FakeHost, _argv: tuple[str, ...]) -> Answer:
        host.put(A, "up\n")
        return Answer(0, "")

    host = FakeHost(programs={"start": start})
    outcome = go(host, unit(plan))
    assert (outcome.state, host.text(B)) == ("converged", "x")
    assert 3 <= host.now < 30


def test_what_is_not_ready_in_the_end_does_not_hide_what_was_held_back() -> None:
    def plan(host: Any, _past: Past) -> Plan:
        if host.read(A):
            raise NotReady("sample: no answer yet")
        return Plan((run(("x",), "restart it", lane="b", disruption="service"), write(A, "x", f"write {A}", lane="a")))

    outcome = go(FakeHost(), unit(plan), max_disruption="none")
    assert [wait.reason for wait in outcome.pending] == ["NotReady", "HeldBack"]


def makes(path: str) -> Callable[[FakeHost, tuple[str, ...]], Answer]:
    def program(host: FakeHost, _argv: tuple[str, ...]) -> Answer:
        host.put(path, "made")
        return Answer(0, "")

    return program


def test_a_trunk_step_behind_lanes_waits_for_a_lane_behind_its_barrier() -> None:
    def plan(host: Any, _past: Past) -> Plan:
        todo = Todo()
        with todo.lane("gpu0"):
            if host.read("/mode") is None:
                todo.add(run(("mode",), "set the mode", barrier=True, effects=(Effect("file", "/mode"),)))
            if host.read("/instance") is None:
                todo.add(run(("create",), "create the instance", effects=(Effect("file", "/instance"),)))
        if host.read("/clients") is None:
            todo.add(write("/clients", "x", "start the clients again"))
        return todo.plan()

    host = FakeHost(programs={"mode": makes("/mode"), "create": makes("/instance")})
    order = ["set the mode", "create the instance", "start the clients again"]
    assert [line.action for line in go(PredictedHost(host), unit(plan)).steps] == order
    assert [line.action for line in go(host, unit(plan)).steps] == order


def test_a_run_that_may_come_to_nothing_is_tried_once_a_boot_and_waited_for() -> None:
    def plan(host: Any, past: Past) -> Plan:
        todo = Todo()
        with todo.lane("gpu0"):
            said = past.tried.get("reset gpu0")
            if host.boot_id() != "first-boot":
                return Plan()
            if said is None:
                todo.add(run(("reset",), "reset gpu0", tries="reset gpu0"))
            else:
                todo.wait("RebootRequired", f"sample: gpu0 waits for a reset ({said}): reboot the node")
        return todo.plan()

    calls = []

    def reset(_host: FakeHost, argv: tuple[str, ...]) -> Answer:
        calls.append(argv)
        return Answer(255, "not supported")

    host = FakeHost(programs={"reset": reset})
    for _again in range(2):
        outcome = go(host, unit(plan))
        assert (outcome.failure, outcome.state, outcome.changed) == (None, "progressing", False)
        assert "not supported" in outcome.pending[0].message
    assert len(calls) == 1
    host.reboot()
    assert go(host, unit(plan)).state == "converged"


def test_one_dead_device_ends_its_own_lane_only() -> None:
    def look(host: Any, _settings: Any, _past: Any) -> Any:
        def device(number: str) -> str:
            said = host.ask(("tool", number))
            if said.rc:
                raise StepFailed(f"sample: device {number} is lost: replace it", retryable=False)
            return str(said.out)

        return {number: later(device, number) for number in "01"}

    def plan(_settings: Any, now: Any, _past: Past) -> Plan:
        todo = Todo()
        for number in "01":
            with todo.lane(f"device {number}"):
                todo.note(f"device {number} says {now[number]}")
        return todo.plan()

    made = unit(lambda _host, _past: Plan())._replace(look=look, plan=plan)
    host = FakeHost(programs={"tool": lambda _host, argv: Answer(15 if argv[1] == "0" else 0, "well")})
    outcome = go(host, made)
    assert outcome.notes == ("device 1 says well",)
    assert outcome.failure == ("StepFailed", "sample: device 0 is lost: replace it", False)


def test_a_fault_of_ours_in_one_unit_is_a_failed_unit_that_names_its_place() -> None:
    outcome = go(FakeHost({A: "[N/A]"}), unit(lambda host, _past: Plan(notes=(str(int(host.read(A))),))))
    assert outcome.failure is not None
    assert (outcome.failure.retryable, outcome.state) == (False, "failed")
    assert "[N/A]" in outcome.failure.message
    assert "test_runner.py line " in outcome.failure.message


def test_a_lie_is_no_change() -> None:
    host = FakeHost(programs={"liar": lambda _host, _argv: Answer(0, "All done.")})
    made = unit(lambda _host, _past: Plan((run(("liar",), "do it"),)))
    assert go(host, made).changed is False


def owing() -> Unit:
    """Two files, each of which a tool has to compile; the tool's result is not readable."""

    def plan(host: Any, past: Past) -> Plan:
        todo = Todo()
        for path in (A, B):
            if host.read(path) != "ours\n":
                todo.add(write(path, "ours\n", f"write {path}", owes=("compile",)))
        if todo.plan().steps or "compile" in past.owed:
            todo.add(run(("compile",), "compile", pays=("compile",)))
        return todo.plan()

    return unit(plan)


def compiled(host: FakeHost, _argv: tuple[str, ...]) -> Answer:
    host.put(DONE, (host.text(A) or "") + (host.text(B) or ""))
    return Answer(0, "")


@pytest.mark.parametrize("at", range(1, 12))
def test_no_follow_up_is_lost_wherever_the_pass_is_killed(at: int) -> None:
    host = FakeHost(programs={"compile": compiled})
    host.kill_at = at
    try:
        go(host, owing())
    except Killed:
        host.kill_at = 0
    after = go(host, owing())
    assert after.state == "converged"
    assert host.text(DONE) == "ours\nours\n"
    assert go(host, owing()).changed is False


def test_a_debt_that_no_step_pays_any_more_is_dropped() -> None:
    host = FakeHost({A: "ours\n", f"{STATE}/owed.json": '{"units": {"sample": ["load x"]}, "version": 1}'})
    assert go(host, keeps_files(A)).state == "converged"
    assert Records(host).past("sample").owed == frozenset()


def test_a_failed_follow_up_stays_owed_until_it_succeeds() -> None:
    host = FakeHost(programs={"compile": lambda _host, _argv: Answer(1, "", "full")})
    assert go(host, owing()).state == "progressing"
    host.programs["compile"] = compiled
    mended = go(host, owing())
    assert actions(mended) == [("compile", True)]
    assert mended.state == "converged"


def resetting() -> Unit:
    """A unit that stops a service to reset two devices, the second once the first has been tried, and starts it."""

    def plan(host: Any, past: Past) -> Plan:
        todo = Todo()
        due = [name for name in ("a", "b") if host.read(f"/dev/{name}") != "reset\n" and name not in past.failed]
        if due:
            todo.add(run(("stop",), "stop the service", owes=("start",), lane="service"))
            todo.add(run(("reset", due[0]), f"reset {due[0]}", lane=due[0]))
        if due or "start" in past.owed:
            todo.add(run(("start",), "start the service", pays=("start",), lane="started"))
        return todo.plan()

    return unit(plan)


def resets(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    if argv[1] == "a" or host.text("/service") != "stopped\n":
        return Answer(1, "", "in use")
    host.put(f"/dev/{argv[1]}", "reset\n")
    return Answer(0, "")


def serves(state: str) -> Callable[[FakeHost, tuple[str, ...]], Answer]:
    def program(host: FakeHost, _argv: tuple[str, ...]) -> Answer:
        host.put("/service", f"{state}\n")
        return Answer(0, "")

    return program


def test_what_was_stopped_and_started_again_may_be_stopped_once_more() -> None:
    host = FakeHost(programs={"reset": resets, "stop": serves("stopped"), "start": serves("running")})
    outcome = go(host, resetting())
    assert actions(outcome) == [
        ("stop the service", True),
        ("reset a", False),
        ("start the service", True),
        ("stop the service", True),
        ("reset b", True),
        ("start the service", True),
    ]
    assert (host.text("/dev/b"), host.text("/service")) == ("reset\n", "running\n")


def test_a_look_that_fails_while_a_service_is_stopped_does_not_keep_it_from_being_stopped_again() -> None:
    """Where the devices are not seen nothing is stopped for them, and what was stopped for them is started."""
    looks = 0

    def plan(host: Any, past: Past) -> Plan:
        nonlocal looks
        looks += 1
        todo = Todo()
        due = [] if looks == 2 else [name for name in ("b", "c") if host.read(f"/dev/{name}") != "reset\n"]
        if due:
            todo.add(run(("stop",), "stop the service", owes=("start",), lane="service"))
            todo.add(run(("reset", due[0]), f"reset {due[0]}", lane=due[0]))
        if len(due) < 2 and (due or "start" in past.owed):  # else it stays stopped for the next one
            todo.add(run(("start",), "start the service", pays=("start",), lane="started"))
        return todo.plan()

    host = FakeHost(programs={"reset": resets, "stop": serves("stopped"), "start": serves("running")})
    outcome = go(host, unit(plan))
    assert outcome.failure is None
    stops = ["stop the service", "reset b", "start the service", "stop the service", "reset c", "start the service"]
    assert [line for line, _done in actions(outcome)] == stops
    assert (host.text("/dev/c"), host.text("/service")) == ("reset\n", "running\n")


def test_a_lie_is_found_out_though_its_follow_up_is_done_each_time() -> None:
    def plan(host: Any, _past: Past) -> Plan:
        todo = Todo()
        todo.add(run(("enable",), "enable it", owes=("reload",)), run(("reload",), "reload", pays=("reload",)))
        return todo.plan()

    nothing = {name: (lambda _host, _argv: Answer(0, "")) for name in ("enable", "reload")}
    host = FakeHost(programs=nothing)
    outcome = go(host, unit(plan))
    assert outcome.failure is not None
    assert "done without effect: enable it" in outcome.failure.message
    assert host.calls.count("reload") <= 2


def test_what_was_held_back_has_no_follow_up() -> None:
    """A service that is not stopped, because that disturbs too much, is not started again either."""

    def plan(host: Any, past: Past) -> Plan:
        todo = Todo()
        todo.add(run(("stop",), "stop it", owes=("start",), lane="service", disruption="gpu"))
        todo.add(run(("start",), "start it", pays=("start",), lane="started"))
        return todo.plan()

    host = FakeHost(programs={"stop": serves("stopped"), "start": serves("running")})
    outcome = go(host, unit(plan), max_disruption="none")
    assert (outcome.failure, host.text("/service")) == (None, None)
    assert [wait.reason for wait in outcome.pending] == ["HeldBack"]
    assert actions(outcome) == [("stop it", False)]


def short_pool(host: FakeHost, path: str, value: str) -> str:
    """A kernel that finds 40 pages at most."""
    return f"{min(int(value), int(host.text('/memory') or 0))}\n"


def pool() -> Unit:
    path = "/sys/pool"

    def plan(host: Any, past: Past) -> Plan:
        now = host.read(path).strip()
        todo = Todo()
        if now != "64":
            again = f"{path}=64" in past.tried
            todo.add(set_value(path, "64", f"set {path} to 64", tries=True, retry=again))
            if again:
                todo.wait("NotReady", f"sample: 64 pages asked for, {now} there")
        return todo.plan()

    return unit(plan)


def test_a_retry_without_effect_in_one_boot_is_no_change() -> None:
    host = FakeHost({"/sys/pool": "0\n", "/memory": "40"}, kernel={"/sys/pool": short_pool})
    first = go(host, pool())
    assert (first.changed, first.state) == (True, "progressing")
    assert first.failure is None
    for _again in range(2):
        again = go(host, pool())
        assert (again.changed, again.state) == (False, "progressing")
        assert go(PredictedHost(host), pool()).changed is False
    host.put("/memory", "64")
    healed = go(host, pool())
    assert (healed.changed, healed.state, host.text("/sys/pool")) == (True, "converged", "64\n")
    assert "64" not in (host.text(f"{STATE}/tried.json") or "")


def test_what_was_tried_in_another_boot_does_not_count() -> None:
    host = FakeHost({"/sys/pool": "0\n", "/memory": "40"}, kernel={"/sys/pool": short_pool})
    go(host, pool())
    host.reboot()
    assert Records(host).past("sample").tried == {}


def test_a_question_is_answered_over_private_files_and_planned_again() -> None:
    def plan(host: Any, past: Past) -> Plan:
        said = past.ask(("judge", "{candidate}"), (("candidate", "text"),))
        return Plan((write(A, said.out, f"write {A}"),)) if host.read(A) is None else Plan()

    outcome = go(FakeHost(programs={"judge": lambda _host, _argv: Answer(0, "good\n")}), unit(plan))
    assert outcome.state == "converged"


def test_an_answer_stands_until_a_step_changes_the_host_and_costs_no_look() -> None:
    looks = []

    def plan(host: Any, past: Past) -> Plan:
        said = [past.ask(("policy", package)).out for package in "ab"]
        return Plan(notes=tuple(said)) if host.read(A) else Plan((run(("update",), "update"),))

    made = unit(plan)

    def look(host: Any, settings: Any, past: Any) -> Any:
        looks.append(1)
        return made.look(host, settings, past)

    counted = made._replace(look=look)

    def policy(host: FakeHost, _argv: tuple[str, ...]) -> Answer:
        return Answer(0, "new" if host.text(A) else "old")

    host = FakeHost(programs={"update": makes(A), "policy": policy})
    assert go(host, counted).notes == ("new", "new")
    assert len(looks) == 2


def test_a_question_to_what_is_not_installed_yet_is_known_later_in_its_lane() -> None:
    def plan(host: Any, past: Past) -> Plan:
        todo = Todo()
        if host.read(A) is None:
            effects = (Effect("file", A), Effect("program", "apt-cache", "the lists are fetched"))
            todo.add(run(("addrepo",), "add the repository", effects=effects))
            return todo.plan()
        with todo.lane("package"):
            todo.note(past.ask(("apt-cache", "policy")).out)
        return todo.plan()

    outcome = go(PredictedHost(FakeHost(programs={"apt-cache": lambda _h, _a: Answer(0, "stale")})), unit(plan))
    assert [line.action for line in outcome.steps] == [
        "add the repository",
        "package: known after the lists are fetched",
    ]
    assert outcome.notes == ()


def test_a_prediction_that_its_own_steps_made_unknown_keeps_what_it_said() -> None:
    def look(host: Any, _settings: Any, _past: Any) -> Any:
        return (host, host.ask(("tool", "-L")).out)

    def plan(_settings: Any, _now: Any, _past: Past) -> Plan:
        todo = Todo()
        with todo.lane("gpu1"):
            todo.wait("Busy", "sample: GPU 1 is busy")
        todo.note("Secure Boot is on")
        with todo.lane("gpu0"):
            todo.add(run(("tool", "mig"), "create", effects=(Effect("program", "tool", "the layout is made"),)))
        return todo.plan()

    made = unit(lambda _host, _past: Plan())._replace(look=look, plan=plan)
    outcome = go(PredictedHost(FakeHost(programs={"tool": lambda _h, _a: Answer(0, "")})), made)
    assert [line.action for line in outcome.steps] == ["create"]
    assert ([wait.reason for wait in outcome.pending], outcome.notes) == (["Busy"], ("Secure Boot is on",))


def test_waiting_for_a_reboot_is_recorded_with_its_boot_and_goes_with_it() -> None:
    def plan(host: Any, _past: Past) -> Plan:
        todo = Todo()
        if host.boot_id() == "first-boot":
            todo.wait("RebootRequired", "sample: it is there from the next boot: reboot the node")
        return todo.plan()

    host = FakeHost()
    go(host, unit(plan))
    assert Records(host).reboot_reasons() == {"sample": "sample: it is there from the next boot: reboot the node"}
    written = host.files[f"{STATE}/reboot.json"]
    go(host, unit(plan))
    assert host.files[f"{STATE}/reboot.json"] is written
    host.reboot()
    assert Records(host).reboot_reasons() == {}
    go(host, unit(plan))
    assert Records(host).reboot_reasons() == {}


def test_what_is_applied_is_remembered_before_the_first_step_and_forgotten_when_removed() -> None:
    host = FakeHost()
    host.kill_at = 2  # 1: applied.json, 2: the write
    with pytest.raises(Killed):
        go(host, keeps_files(A))
    host.kill_at = 0
    assert Records(host).applied() == {"sample": {"want": "it"}}

    def absent(seen: Any, _past: Past) -> Plan:
        return Plan((remove(A, f"remove {A}"),)) if seen.read(A) is not None else Plan()

    made = unit(lambda _host, _past: Plan(), absent)
    assert converge(Goal(made, None), host, Records(host)).state == "converged"
    assert Records(host).applied() == {}


def test_check_mode_says_what_is_known_only_later_lane_by_lane() -> None:
    def plan(host: Any, _past: Past) -> Plan:
        todo = Todo()
        if host.read("/sys/module/tun/refcnt") is None:
            effects = (
                Effect("file", "/sys/module/tun/refcnt", "0"),
                Effect("appears", "/proc/sys/net", "the module tun is loaded"),
                Effect("appears", "/proc/sys", "the module br is loaded"),
            )
            todo.add(run(("modprobe", "tun"), "load the module tun", effects=effects))
        for key in ("net/x", "vm/y"):
            with todo.lane(key):
                now = host.read(f"/proc/sys/{key}")
                if now is None:
                    todo.wait("NotReady", f"no {key}")
        return todo.plan()

    outcome = go(PredictedHost(FakeHost(programs={"modprobe": lambda _h, _a: Answer(0, "")})), unit(plan))
    assert [line.action for line in outcome.steps] == [
        "load the module tun",
        "net/x: known after the module tun is loaded and the module br is loaded",
        "vm/y: known after the module br is loaded",
    ]
    assert (outcome.changed, outcome.state, outcome.failure) == (True, "progressing", None)


def test_a_removal_that_failed_is_not_forgotten() -> None:
    def absent(host: Any, _past: Past) -> Plan:
        return Plan((run(("drop",), "drop it", lane="a"),)) if host.read(A) else Plan()

    made = unit(lambda _host, _past: Plan(), absent)
    host = FakeHost({A: "ours"}, programs={"drop": lambda _h, _a: Answer(1, "", "busy")})
    go(host, made)
    assert converge(Goal(made, None), host, Records(host)).state == "progressing"
    assert Records(host).applied() == {"sample": {"want": "it"}}
    del host.files[A]
    assert converge(Goal(made, None), host, Records(host)).state == "converged"
    assert Records(host).applied() == {}


@pytest.mark.parametrize(("reason", "kept"), [("Busy", True), ("NotReady", True), ("RebootRequired", False)])
def test_a_removal_that_waits_is_tried_again_and_one_that_waits_for_a_reboot_is_through(
    reason: str, kept: bool
) -> None:
    made = unit(lambda _host, _past: Plan(), lambda _host, _past: Plan(pending=(Pending(reason, "reboot the node"),)))
    host = FakeHost()
    go(host, made)
    assert converge(Goal(made, None), host, Records(host)).state == "progressing"
    assert bool(Records(host).applied()) is kept


def test_a_value_that_reads_only_once_it_is_set_is_set() -> None:
    def plan(host: Any, _past: Past) -> Plan:
        return Plan() if host.text("/secret") == "s\n" else Plan((set_value("/secret", "s", "set it"),))

    host = FakeHost({"/secret": ""})
    host.unreadable.add("/secret")

    def show(seen: FakeHost, path: str, value: str) -> str:
        seen.unreadable.discard(path)
        return value + "\n"

    host.kernel["/secret"] = show
    assert go(host, unit(plan)).state == "converged"


@pytest.mark.parametrize(
    "text",
    ['{"version": 1, "units": null}', '{"version": 1, "units": []}', '{"version": 1, "units": {"a": 1}}', "[" * 100000],
)
@pytest.mark.parametrize("name", ["owed", "applied"])
def test_a_damaged_record_is_named(name: str, text: str) -> None:
    host = FakeHost({f"{STATE}/{name}.json": text})
    outcome = go(host, keeps_files(A))
    assert outcome.failure is not None
    assert outcome.failure.message.startswith(f"{STATE}/{name}.json is not a record of version 1")


def test_a_record_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    host = FakeHost()

    def full(*_given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(host, "write", full)
    outcome = go(host, keeps_files(A))
    assert outcome.failure is not None
    assert (outcome.failure.message, outcome.failure.retryable, host.calls) == (
        f"cannot write {STATE}/applied.json: No space left on device (free some space there)",
        True,
        [],
    )


@pytest.mark.parametrize("text", ['{"version": 1, "units": []}', "garbage"])
@pytest.mark.parametrize("name", ["tried", "reboot"])
def test_without_a_record_of_which_nothing_is_lost_the_pass_goes_on_and_says_so(name: str, text: str) -> None:
    host = FakeHost({f"{STATE}/{name}.json": text})
    outcome = go(host, keeps_files(A))
    assert (outcome.state, host.text(A) is not None) == ("converged", True)
    (note,) = outcome.notes
    assert note.startswith(f"{STATE}/{name}.json is not a record of version 1, and the pass goes on without it: ")
    with pytest.raises(StepFailed) if name == "reboot" else nullcontext():  # nobody is told that nothing waits
        Records(host).reboot_reasons()


def test_what_waits_for_a_reboot_is_recorded_in_place_of_garbage() -> None:
    host = FakeHost({f"{STATE}/reboot.json": "garbage"})
    waiting = unit(lambda _host, _past: Plan(pending=(Pending("RebootRequired", "reboot the node"),)))
    assert go(host, waiting).state == "progressing"
    assert Records(host).reboot_reasons() == {"sample": "reboot the node"}


def test_all_damaged_records_are_named_at_once() -> None:
    names = ("applied", "owed", "tried", "reboot")
    outcome = go(FakeHost({f"{STATE}/{name}.json": "garbage" for name in names}), keeps_files(A))
    assert outcome.failure is not None
    assert outcome.failure.retryable is False
    for name in names:
        assert (
            f"{STATE}/{name}.json is not a record of version 1: look at it, then move it away ("
            in outcome.failure.message
        )
    assert "unless `known` (in playbooks bcd_converge_known) names them" in outcome.failure.message


def test_a_record_that_is_not_ours_stops_the_unit_and_names_the_file() -> None:
    host = FakeHost({f"{STATE}/owed.json": '{"version": 2}'})
    outcome = go(host, keeps_files(A))
    assert outcome.failure is not None
    assert outcome.failure.message.startswith(f"{STATE}/owed.json is not a record of version 1")
    assert outcome.state == "failed"
    assert host.text(A) is None


def test_a_unit_that_never_settles_is_stopped() -> None:
    def plan(host: Any, _past: Past) -> Plan:
        return Plan((write(A, (host.read(A) or "") + "x", f"write {A}"),))

    outcome = go(FakeHost(), unit(plan))
    assert outcome.failure is not None
    assert "is not settled after 20 looks" in outcome.failure.message


def test_a_full_disk_is_a_failed_step_with_the_next_move() -> None:
    class Full(FakeHost):
        def write(self, path: str, text: str, mode: int) -> None:
            if path == A:
                raise OSError(28, "No space left on device", path)
            super().write(path, text, mode)

    outcome = go(Full(), keeps_files(A))
    assert outcome.failure is not None
    assert outcome.failure.message == f"cannot write {A}: No space left on device (free some space there)"
    assert outcome.failure.retryable


def test_what_an_unprivileged_look_cannot_read_is_known_as_root() -> None:
    host = FakeHost({A: "x"})
    host.unreadable.add(A)
    host.user = 1000
    outcome = go(PredictedHost(host), keeps_files(A))
    assert [line.action for line in outcome.steps] == ["sample: known after it is seen as root"]


def test_what_root_cannot_read_is_a_fault_in_check_mode_too() -> None:
    host = FakeHost({A: "x"})
    host.unreadable.add(A)
    outcome = go(PredictedHost(host), keeps_files(A))
    assert outcome.failure is not None
    assert outcome.failure.message == f"cannot read {A}: Permission denied"
