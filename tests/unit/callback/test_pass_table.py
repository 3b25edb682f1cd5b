# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pass report's table, from results as the modules return them."""

from __future__ import annotations

from typing import Any

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.pass_table import Pass
from tests.unit.filter.plans import REBOOT, WRITE, plan, refused, unit, waits


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
    seen.fault("b", "unreachable: no route")
    assert seen.lines() == []


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
        "progressing",
        "kernel-modules, cpu",
        "RebootRequired: hugepages, cpu",
        "Refused: sysctl",
    ]
    assert [word.strip() for word in cells(lines[2])] == ["rhel", "converged", "-", "-", "-"]
    assert lines[3:] == [
        "debian: sysctl: kernel.core_pattern is refused",
        "debian: hugepages: 4 pages: reboot the node",
        f"debian: {REBOOT}",
    ]


def test_units_one_by_one_add_up_to_their_host() -> None:
    seen = Pass()
    assert seen.add("a", unit("sysctl", "progressing", steps=[WRITE], changed=True))
    assert seen.add("a", unit("sysctl"))
    assert seen.add("a", refused("cpu", "cpu: CPU 0 is never isolated"))
    table = seen.lines()
    assert [word.strip() for word in cells(table[1])] == ["a", "failed", "sysctl", "-", "Refused: cpu"]
    assert table[2:] == ["a: cpu: CPU 0 is never isolated"]


def test_hosts_without_a_result_are_named() -> None:
    seen = Pass()
    seen.add("a", plan("CONVERGED"))
    seen.fault("b", "unreachable: no\n route")
    seen.add("c", plan("FAILED", message="the unit cpu is named twice"))
    lines = seen.lines()
    assert [cells(line)[1].strip() for line in lines[1:4]] == ["converged", "no result", "no result"]
    assert lines[4:] == ["b: unreachable: no route", "c: the unit cpu is named twice"]


def test_what_many_hosts_say_is_one_line() -> None:
    waiting = plan("PROGRESSING", unit("cpu", "progressing", pending=waits("RebootRequired", REBOOT)))
    assert told(a=waiting, b=waiting)[3:] == [f"a, b: {REBOOT}"]
    many = told(**{f"h{number}": waiting for number in range(9)})
    assert many[10:] == [f"h0, h1, h2, h3, 5 more: {REBOOT}"]
