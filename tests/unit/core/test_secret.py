# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets on their way to a program: never in a plan, a line, a record or a message."""

from __future__ import annotations

from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer, Past, Plan, Todo, Unit
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.runner import Goal, converge
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.secret import SLOT, Given, Secret
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import run
from tests.unit.fake_host import FakeHost

TOKEN = "abcdef.0123456789abcdef"
DOOR = "/run/door"


def plan(settings: Any, now: Any, past: Past) -> Plan:
    todo = Todo()
    if not now:
        tries = "open" if settings else ""
        todo.add(run(("gate",), "open the gate", stdin=f"key: {SLOT}\n", secret="vault:gate", tries=tries, lane="gate"))
    if "open" in past.vain:
        raise StepFailed(f"the gate stays shut: {past.tried['open']}")
    return todo.plan()


GATE = Unit("gate", (), lambda given: given, lambda host, _s, _p: host.exists(DOOR), plan, lambda _n, _p: Plan())


class GateHost(FakeHost):
    """A gate that opens to the token, and else says what it was given, as kubeadm does."""

    def __init__(self, key: str = TOKEN) -> None:
        super().__init__()
        self.heard: list[str] = []
        self.key = key
        self.programs["gate"] = lambda _host, _argv: self._gate()

    def _gate(self) -> Answer:
        self.heard.append(self.stdin)
        if self.stdin != f"key: {self.key}\n":
            return Answer(1, "", f"invalid value {self.stdin!r}, or is it {TOKEN.rpartition('.')[2]}?")
        self.put(DOOR, "open")
        return Answer(0, "")


def opened(host: Host, given: Given, settings: dict[str, Any] | None = None) -> Outcome:
    return converge(Goal(GATE, settings or {}, given), host, Records(host))


def given(token: str = TOKEN) -> Given:
    return Given({"vault:gate": Secret(token)})


def test_the_program_reads_the_secret_and_nobody_else_does() -> None:
    host = GateHost()
    done = opened(host, given())
    assert (done.state, host.heard) == ("converged", [f"key: {TOKEN}\n"])
    assert TOKEN not in repr((done, host.files, host.calls, given()))


def test_without_it_the_unit_waits_and_says_what_it_needs() -> None:
    host = GateHost()
    waits = opened(host, Given())
    assert (waits.state, waits.needs, host.heard, waits.failure) == ("progressing", ("vault:gate",), [], None)
    assert [(wait.reason, "'vault:gate'" in wait.message) for wait in waits.pending] == [("NotReady", True)]
    assert [(line.action, line.done) for line in waits.steps] == [("open the gate", False)]


def test_check_mode_plans_without_it_and_says_that_it_will_be_needed() -> None:
    host = GateHost()
    seen = opened(PredictedHost(host), Given())
    assert ([line.action for line in seen.steps], seen.needs) == (["open the gate"], ("vault:gate",))
    # Nothing waits for it yet.
    said = "gate: open the gate needs the secret 'vault:gate', which is to be given then"
    assert (seen.pending, seen.notes) == ((), (said,))
    assert (host.calls, opened(PredictedHost(host), given()).needs) == ([], ())


def test_a_module_with_one_secret_says_by_which_option_it_is_given() -> None:
    (wait,) = opened(GateHost(), Given(option="token")).pending
    assert wait.message == "gate: open the gate needs a secret, which was not given: give token and run again"


def test_what_a_program_says_of_it_is_masked() -> None:
    said = opened(GateHost(key="another"), given())
    assert said.failure is not None
    assert "invalid value 'key: ***" in said.failure.message
    assert "0123456789abcdef" not in repr(said)


def test_what_came_to_nothing_in_this_run_is_told_apart_from_what_did_before() -> None:
    host = GateHost(key="another")
    said = opened(host, given(), {"tries": True})
    assert said.failure is not None
    assert said.failure.message.startswith("the gate stays shut: cannot open the gate")
    assert "0123456789abcdef" not in repr((said, host.files))
    again = opened(host, given(), {"tries": True})  # a new run tries again
    assert (len(host.heard), again.failure) == (2, said.failure)


def test_a_secret_shows_itself_to_no_one() -> None:
    secret = Secret(TOKEN)
    assert (repr(secret), str(secret), f"{secret}") == ("***", "***", "***")
    assert (secret == Secret(TOKEN), secret == Secret("other"), secret == TOKEN) == (True, False, False)
    assert (secret.digest, len(secret.digest)) == (Secret(TOKEN).digest, 16)
