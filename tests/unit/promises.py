# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every unit promises, as checks that each unit's tests call with machines of their own.

A *machine* is a function that makes a fresh host, as it is before the pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Unit
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.runner import Goal, converge
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.secret import Given
from tests.unit.fake_host import FakeHost, Killed

Settings = dict[str, Any]
NOTHING = Given()
MOST_CHANGES = 200  # of one pass


def go(
    unit: Unit,
    host: FakeHost,
    settings: Settings | None,
    *,
    check: bool = False,
    max_disruption: str = "gpu",
    given: Given = NOTHING,
) -> Outcome:
    """One pass of one unit; None removes it."""
    seen = PredictedHost(host) if check else host
    return converge(Goal(unit, settings, given), seen, Records(seen), max_disruption)


def lines(outcome: Outcome) -> list[str]:
    """The sentences of the steps, without what is known only later."""
    return [line.action for line in outcome.steps if not line.later]


def check_is_truthful(
    unit: Unit, machine: Callable[[], FakeHost], settings: Settings | None, given: Given = NOTHING
) -> Outcome:
    """Check mode changes nothing, and its steps are those then taken, up to "known after"; returns the real pass.

    Where a step of check mode says that something is known later, what follows it may be missing from its plan; what
    it does plan is taken, in that order.
    """
    host = machine()
    files, calls = dict(host.files), list(host.calls)
    planned = go(unit, host, settings, check=True, given=given)
    assert (host.files, host.calls) == (files, calls), "check mode changed the host"
    real = go(unit, host, settings, given=given)
    if any(line.later for line in planned.steps):
        taken = iter(lines(real))
        missing = [action for action in lines(planned) if action not in taken]
        assert not missing, f"planned, and not taken in that order: {missing}"
    else:
        assert lines(planned) == lines(real)
    assert planned.changed or not real.changed, "the pass changed what check mode did not say"
    return real


def second_pass_is_quiet(unit: Unit, host: FakeHost, settings: Settings | None) -> Outcome:
    """After a pass, another changes nothing and writes nothing, whatever it still waits for; returns it."""
    calls = len(host.calls)
    again = go(unit, host, settings)
    assert again.changed is False, again.steps
    assert host.calls[calls:] == [], "the second pass touched the host"
    return again


def a_kill_loses_nothing(
    unit: Unit,
    machine: Callable[[], FakeHost],
    settings: Settings | None,
    shown: Callable[[FakeHost], object],
    meanwhile: Callable[[FakeHost], None] = lambda _host: None,
    given: Given = NOTHING,
) -> int:
    """Killed before any change, the next pass ends as an undisturbed one; returns how many changes a pass makes.

    `shown` is what must be equal in the end: what the host shows, not our records' times. `meanwhile` is what happens
    between the killed pass and the next, such as a reboot.
    """
    whole = machine()
    end = go(unit, whole, settings, given=given)
    want = (end.state, shown(whole))
    for at in range(1, MOST_CHANGES):
        host = machine()
        host.kill_at = at
        try:
            go(unit, host, settings, given=given)
        except Killed:
            host.kill_at = 0
        else:
            assert at > 1, "this pass changes nothing: nothing can be killed in it"
            return at - 1
        meanwhile(host)
        after = go(unit, host, settings, given=given)
        assert (after.state, shown(host)) == want, f"killed before change {at}: {host.calls[at - 1 :]}"
        assert go(unit, host, settings).changed is False, f"killed before change {at}: not settled by the next pass"
    raise AssertionError(f"more than {MOST_CHANGES} changes in one pass")
