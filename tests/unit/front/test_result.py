# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The diff of a unit's result: what differs alike on many CPUs is one entry."""

from __future__ import annotations

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.result import render

GOVERNOR = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"


def entry(path: str, before: str = "powersave\n", after: str = "performance\n") -> dict[str, str]:
    return {"before_header": path, "after_header": path, "before": before, "after": after}


def shown(*entries: dict[str, str]) -> list[dict[str, str]]:
    outcome = Outcome("cpu", True, "converged", (), (), (), (), entries, None)
    found: list[dict[str, str]] = render(outcome)["diff"]
    return found


def test_cpus_that_differ_alike_are_one_entry() -> None:
    first = GOVERNOR.format(0)
    told = shown(entry("/etc/x"), *(entry(GOVERNOR.format(cpu)) for cpu in range(128)), entry("/etc/y"))
    assert told == [entry("/etc/x"), entry(f"{first} and 127 more like it"), entry("/etc/y")]


def test_a_few_and_what_differs_otherwise_stand_by_themselves() -> None:
    few = [entry(GOVERNOR.format(cpu)) for cpu in range(2)]
    odd = [entry(GOVERNOR.format(2), before="ondemand\n"), entry(GOVERNOR.format(3))]
    keys = [entry(f"/proc/sys/net/bridge/{key}", "1\n", "0\n") for key in ("a", "b", "c", "d")]
    assert shown(*few, *odd, *keys) == [*few, *odd, *keys]
