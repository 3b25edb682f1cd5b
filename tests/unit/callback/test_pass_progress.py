# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a run is, in one line: what Ansible's events add up to, in any strategy, at any width."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.one_line import cells
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.pass_progress import Progress, spell

SLOW = 30.0


def of(hosts: int, name: str = "Converge the host") -> Progress:
    """A play over node-0, node-1, ... with its first task."""
    run = Progress()
    run.begin("play", [f"node-{number}" for number in range(hosts)], hosts)
    run.task("t", name)
    return run


def test_nothing_is_said_before_a_host_runs_and_after_the_last() -> None:
    run = of(2)
    assert run.line(0, 100, SLOW) == ""
    run.start("node-0", "t", 0)
    assert run.line(0, 100, SLOW) == "Converge the host: 0 of 2 hosts, running node-0 0 s"
    run.finish("node-0", "t")
    assert run.line(1, 100, SLOW) == ""


def test_hosts_done_of_all_and_those_that_run_for_longest_first() -> None:
    run = of(200)
    for number in range(40):
        run.start(f"node-{number}", "t", number)
    for number in range(35):
        run.finish(f"node-{number}", "t")
    said = "Converge the host: 35 of 200 hosts, running node-35 7 s, node-36 6 s, node-37 5 s, 2 more"
    assert run.line(42, 100, SLOW) == said


def test_a_host_that_takes_long_is_waited_for() -> None:
    run = of(2)
    run.start("node-0", "t", 0)
    run.start("node-1", "t", 1)
    run.finish("node-0", "t")
    assert run.line(30.9, 100, SLOW) == "Converge the host: 1 of 2 hosts, running node-1 29 s"
    assert run.line(31, 100, SLOW) == "Converge the host: 1 of 2 hosts, waiting for node-1 30 s"
    assert run.line(1 + 754, 100, SLOW) == "Converge the host: 1 of 2 hosts, waiting for node-1 12 min 34 s"


def test_the_item_of_a_loop_and_another_attempt_stand_beside_the_host() -> None:
    run = of(1, "Converge the units that lack something")
    run.start("node-0", "t", 0)
    run.note("node-0", "sysctl done")
    assert run.line(3, 100, SLOW).endswith("running node-0 3 s (sysctl done)")
    run.note("node-0", "hugepages done")
    assert run.line(4, 100, SLOW).endswith("running node-0 4 s (hugepages done)")
    run.finish("node-0", "t")
    run.note("node-0", "late")  # of a host that is through already
    assert run.line(5, 100, SLOW) == ""


def test_hosts_that_fell_out_are_not_waited_for_and_count_where_they_come_back() -> None:
    run = of(4)
    for number in range(4):
        run.start(f"node-{number}", "t", 0)
    run.finish("node-0", "t", lost=True)
    run.finish("node-1", "t", lost=True)
    assert run.line(0, 100, SLOW).startswith("Converge the host: 2 of 4 hosts, running node-2")
    run.finish("node-2", "t")
    run.finish("node-3", "t")
    run.task("u", "Next")
    run.start("node-2", "u", 1)
    assert run.line(1, 100, SLOW) == "Next: 0 of 2 hosts, running node-2 0 s"
    run.start("node-1", "u", 1)  # its failure was rescued
    assert run.line(1, 100, SLOW).startswith("Next: 0 of 3 hosts, running node-1 0 s, node-2 0 s")


def test_in_batches_what_is_behind_is_told_too() -> None:
    run = Progress()
    run.begin("play", ["a", "b"], 5)
    run.task("t", "Reboot")
    run.start("a", "t", 0)
    assert run.line(0, 100, SLOW) == "Reboot: 0 of 2 hosts of this batch, 0 of 5 before it, running a 0 s"
    run.finish("a", "t")
    run.begin("play", ["c", "d"], 5)
    run.task("t", "Reboot")
    run.start("c", "t", 0)
    assert run.line(0, 100, SLOW) == "Reboot: 0 of 2 hosts of this batch, 2 of 5 before it, running c 0 s"
    run.begin("another", ["a", "b", "c", "d", "e"], 5)
    run.task("t", "Look")
    run.start("a", "t", 0)
    assert run.line(0, 100, SLOW) == "Look: 0 of 5 hosts, running a 0 s"


def test_a_task_for_all_on_one_host_is_one_of_one() -> None:
    run = of(200)
    run.task("once", "Write the report", alone=True)
    run.start("node-0", "once", 0)
    assert run.line(2, 100, SLOW) == "Write the report: 0 of 1 host, running node-0 2 s"


def test_where_each_host_goes_at_its_own_speed_its_own_task_is_told() -> None:
    run = of(3, "First")
    run.start("node-0", "t", 0)
    run.start("node-1", "t", 0)
    run.finish("node-1", "t")
    run.task("u", "Second")
    run.start("node-1", "u", 4)
    assert run.line(5, 100, SLOW) == "First: 1 of 3 hosts, running node-0 5 s, node-1 1 s (Second)"


def test_a_task_that_nobody_announced_is_a_task() -> None:
    run = of(1)
    run.start("node-0", "unknown", 0)
    assert run.line(0, 100, SLOW) == "a task: 0 of 1 host, running node-0 0 s"


def test_a_narrow_terminal_names_fewer_hosts_and_then_less_of_all() -> None:
    run = of(9)
    for number in range(4):
        run.start(f"node-{number}", "t", 0)
    wide = "Converge the host: 0 of 9 hosts, running node-0 9 s, node-1 9 s, node-2 9 s, 1 more"
    assert run.line(9, len(wide), SLOW) == wide
    assert run.line(9, len(wide) - 1, SLOW) == "Converge the host: 0 of 9 hosts, running node-0 9 s, node-1 9 s, 2 more"
    assert run.line(9, 60, SLOW) == "Converge the host: 0 of 9 hosts, running node-0 9 s, 3 more"
    assert run.line(9, 40, SLOW) == "Converge the host: 0 of 9 hosts, runn..."


def test_a_long_name_of_a_task_gives_way_to_the_hosts() -> None:
    run = of(1, "Converge whatever this host has by the section that its pool gives it")
    run.start("node-0", "t", 0)
    assert run.line(0, 80, SLOW) == "Converge whatever this host has by the secti...: 0 of 1 host, running node-0 0 s"


def test_the_role_of_a_task_is_left_out() -> None:
    for name, shown in (
        ("bettercompute.bcd.bcd_converge : Converge the host", "Converge the host"),
        ("Wait for it : and then go on", "Wait for it : and then go on"),
        ("role : First : second", "First : second"),
    ):
        run = of(1, name)
        run.start("h1", "t", 0)
        assert run.line(0, 120, 10).startswith(f"{shown}: 0 of ")


def test_hostile_names_neither_steer_the_terminal_nor_push_others_out() -> None:
    run = Progress()
    bad = "\x1b]0;owned\x07\x1b[2J" + "x" * 500
    run.begin("play", [bad, "node-1"], 2)
    run.task("t", "Task\r\n\x1b[31m of many\n lines")
    run.start(bad, "t", 0)
    run.note(bad, "\x1b[1A" + "y" * 500 + " done")
    line = run.line(1, 120, SLOW)
    assert line.isprintable()
    assert line.startswith("Task ?[31m of many lines: 0 of 2 hosts, running ?]0;owned??[2Jxxx")
    assert cells(line) <= 120


@given(
    some.lists(some.tuples(some.text(max_size=40), some.floats(0, 1e6), some.booleans()), max_size=12),
    some.text(max_size=80),
    some.integers(0, 200),
)
def test_whatever_happens_the_line_fits(hosts: list[tuple[str, float, bool]], task: str, width: int) -> None:
    run = Progress()
    run.begin("play", [host for host, _since, _done in hosts], len(hosts) + 1)
    run.task("t", task)
    for host, since, done in hosts:
        run.start(host, "t", since)
        run.note(host, host + task)
        if done:
            run.finish(host, "t", lost=len(host) % 2 == 0)
    line = run.line(1e6, width, SLOW)
    assert cells(line) <= width
    assert line == "" or line.isprintable()


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-1, "0 s"), (0.9, "0 s"), (119.9, "119 s"), (120, "2 min 0 s"), (3599, "59 min 59 s"), (7320, "2 h 2 min")],
)
def test_seconds_are_spelled(seconds: float, said: str) -> None:
    assert spell(seconds) == said
