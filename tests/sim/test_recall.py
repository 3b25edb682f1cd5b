# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quiet turns are known again by real passes: what is kept of them is marked here, to show where it is used."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.sim.machine import put
from tests.sim.test_role_converge import Ran, Site

FOLDER = "/run/bcd-hostconfig/quiet"
UNITS = {"kernel-modules": {"load": ["tun"]}, "sysctl": {"vm.swappiness": 10}, "hugepages": {"pages2m": 64}}
MARK = "this turn was known again"


def marked(one: Site) -> list[str]:
    """Mark what is kept; the units of which something is."""
    [name] = os.listdir(one.host.tree + FOLDER)
    assert os.stat(f"{one.host.tree}{FOLDER}").st_mode & 0o7777 == 0o700
    assert os.stat(f"{one.host.tree}{FOLDER}/{name}").st_mode & 0o7777 == 0o600
    kept = json.loads(one.host.read(f"{FOLDER}/{name}") or "")
    for unit in kept["units"].values():
        unit["notes"] = [MARK]
    put(one.host.tree, f"{FOLDER}/{name}", json.dumps(kept), 0o600)
    return sorted(kept["units"])


def known(ran: Ran) -> list[str]:
    """The units whose turns were known again."""
    assert ran.rc == 0, ran.text
    return sorted(unit["unit"] for unit in ran.status["units"] if MARK in unit["notes"])


def whole(ran: Ran) -> list[dict[str, Any]]:
    return [{**unit, "notes": []} for unit in ran.status["units"]]


def test_passes_know_quiet_turns_again_until_something_differs(tmp_path: Path) -> None:
    one = Site(tmp_path)
    one.section(units=UNITS)
    quiet = one.section(units=UNITS)
    assert (known(quiet), marked(one)) == ([], sorted(UNITS))
    for arguments, module in (((), "host_section"), (("--check",), "host_section"), ((), "host_plan")):
        ran = one.section(*arguments, module=module, units=UNITS)
        assert (known(ran), whole(ran)) == (sorted(UNITS), whole(quiet))
    put(one.host.tree, "/proc/sys/vm/swappiness", "60\n")
    planned = one.section(module="host_plan", units=UNITS)
    assert known(planned) == ["hugepages", "kernel-modules"]
    mended = one.section(units=UNITS)
    assert [unit["unit"] for unit in mended.status["units"] if unit["changed"]] == ["sysctl"]
    assert one.host.read("/proc/sys/vm/swappiness") == "10\n"
    marked(one)
    one.host.reboot()
    assert known(one.section(units=UNITS)) == []
