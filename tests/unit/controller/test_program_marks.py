# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which hosts of a run are asked for the program, by marks that all its workers share."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.program_marks import Marks


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    """The marks of a run that has just begun."""
    return Marks(str(tmp_path / "marks"))


def test_after_three_hosts_without_it_no_other_is_asked(marks: Marks) -> None:
    asked = []
    for number in range(20):
        if marks.should_ask(f"host-{number}"):
            asked.append(number)
            marks.absent(f"host-{number}")
    assert asked == [0, 1, 2]


def test_one_that_has_it_has_all_be_asked_but_those_that_have_not(marks: Marks) -> None:
    for host in ("a", "b"):
        assert marks.should_ask(host)
        marks.absent(host)
    assert marks.should_ask("c")
    marks.present()
    marks.present()
    for number in range(5):
        assert marks.should_ask(f"host-{number}")
        marks.absent(f"host-{number}")
    assert marks.should_ask("another")
    assert not marks.should_ask("host-4")
    assert not marks.should_ask("a")
    assert marks.is_absent("b")


def test_while_the_first_have_not_answered_the_others_wait_and_then_ask(
    marks: Marks, monkeypatch: pytest.MonkeyPatch
) -> None:
    for host in "abc":
        assert marks.should_ask(host)
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(time, "monotonic", lambda: len(slept) * 0.1)
    assert marks.should_ask("d", longest_wait=0.5)
    assert len(slept) == 5


@pytest.mark.parametrize("has_it", [True, False])
def test_who_waits_goes_by_the_answers_that_come(marks: Marks, monkeypatch: pytest.MonkeyPatch, has_it: bool) -> None:
    for host in "abc":
        assert marks.should_ask(host)

    def an_answer_comes(_seconds: float) -> None:
        if has_it:
            marks.present()
        for host in "abc":
            marks.absent(host)

    monkeypatch.setattr(time, "sleep", an_answer_comes)
    assert marks.should_ask("d", longest_wait=60) is has_it


def test_workers_that_begin_at_once_ask_no_more_than_three_hosts(marks: Marks, tmp_path: Path) -> None:
    """Each worker is a process, and has its host say that it has none."""
    children = []
    for number in range(12):
        child = os.fork()
        if child == 0:
            asks = marks.should_ask(f"host-{number}", longest_wait=30)
            if asks:
                marks.absent(f"host-{number}")
            os._exit(1 if asks else 0)
        children.append(child)
    assert sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children) == 3


@pytest.mark.parametrize("name", ["..", "a/b", "a" * 300, "\udcff", "présent", ""])
def test_a_host_may_have_any_name(marks: Marks, name: str) -> None:
    assert marks.should_ask(name)
    marks.absent(name)
    assert not marks.should_ask(name)
    assert marks.should_ask(name + "x")
