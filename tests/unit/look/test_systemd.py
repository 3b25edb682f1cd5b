# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd says of a unit, and what is no answer of its."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.services import is_active, service, state
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.systemd import unit_file
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.service_seen import Service
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.systemd import control
from tests.unit.fake_host import FakeHost

NAME = "nvidia-dcgm.service"
PID_1 = {"/run/systemd/system": "", f"/usr/lib/systemd/system/{NAME}": ""}


def host_that_says(answer: Answer) -> FakeHost:
    return FakeHost(PID_1, {"systemctl": lambda _host, _argv: answer})


# As systemctl(1) has it: `show` exits with 0 for a unit that does not run, and for one that is not there.
@pytest.mark.parametrize(
    ("said", "runs"),
    [
        ("active", True),
        ("reloading", True),
        ("refreshing", True),
        ("inactive", False),
        ("failed", False),
        ("activating", False),
        ("deactivating", False),
        ("unknown", False),
    ],
)
def test_a_state_is_what_systemd_prints(said: str, runs: bool) -> None:
    host = host_that_says(Answer(0, f"NeedDaemonReload=no\nActiveState={said}\n"))
    assert (state(host, NAME), is_active(host, NAME), service(host, NAME).runs) == (said, runs, runs)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(1, "", "Failed to connect to bus: Connection refused\n"),
        Answer(127, "", "systemctl: no such program"),
        Answer(0, ""),
        Answer(0, "active\n"),
        Answer(-9, ""),
        Answer(0, "ActiveState=\nNeedDaemonReload=no\n"),
        Answer(0, "ActiveState=active\n"),
        Answer(0, "ActiveState=active\nNeedDaemonReload=no\n\nActiveState=active\nNeedDaemonReload=no\n"),
        Answer(1, "ActiveState=active\nNeedDaemonReload=no\n", "Failed to get properties: Connection reset by peer"),
    ],
)
def test_what_is_no_state_is_a_fault_and_no_service_that_does_not_run(answer: Answer) -> None:
    host = host_that_says(answer)
    for ask in (state, is_active, service):
        with pytest.raises(StepFailed, match=rf"systemctl show .* -- {NAME} exited with .*: see that systemd answers"):
            ask(host, NAME)


def test_where_systemd_does_not_run_nothing_runs_and_nobody_is_asked() -> None:
    host = FakeHost({f"/usr/lib/systemd/system/{NAME}": ""})
    assert is_active(host, NAME) is False
    assert service(host, NAME).runs is False
    assert host.asked == [("systemctl", "is-enabled", NAME)]


PAIR = ("containerd.service", NAME.replace("dcgm", "persistenced"))


def test_one_question_serves_all_services_that_a_pass_looks_at() -> None:
    """The installed ones of those, in the same words whichever of them is looked at."""
    shown = "ActiveState=active\nNeedDaemonReload=no\n\nActiveState=failed\nNeedDaemonReload=yes\n"
    files = {"/run/systemd/system": "", **{f"/usr/lib/systemd/system/{name}": "" for name in (*PAIR, NAME)}}
    host = FakeHost(files, {"systemctl": lambda _host, _argv: Answer(0, shown)})
    assert [state(host, name) for name in PAIR] == ["active", "failed"]
    assert [unit_file(host, name, "x.target", ask=True).behind for name in PAIR] == [False, True]
    assert set(host.asked) == {("systemctl", "show", "--property=ActiveState,NeedDaemonReload", "--", *PAIR)}


def test_a_unit_that_no_pass_looks_at_is_asked_for_alone() -> None:
    host = host_that_says(Answer(0, "ActiveState=active\nNeedDaemonReload=no\n"))
    host.put(f"/usr/lib/systemd/system/{PAIR[0]}", "")
    assert state(host, NAME) == "active"
    assert host.asked == [("systemctl", "show", "--property=ActiveState,NeedDaemonReload", "--", NAME)]


def test_a_state_that_a_step_has_declared_is_taken_and_nobody_is_asked() -> None:
    real = host_that_says(Answer(1, "", "Failed to connect to bus"))
    host = PredictedHost(real)
    host.apply(control("start", NAME))
    host.apply(control("enable", NAME))
    assert service(host, NAME) == Service("loaded", "active", "enabled")
    assert real.asked == []
