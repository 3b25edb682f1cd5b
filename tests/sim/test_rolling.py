# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rolling reboot of 200 hosts that is killed in the middle, by the real ansible-playbook on simulated hosts.

A few hosts of each pool are due here. `python -m tests.sim.rolling OUT` plays it with all of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sim import rolling
from tests.sim.marks import in_namespace


@in_namespace
@pytest.mark.newest_core
def test_200_hosts_in_4_pools_are_rebooted_within_their_budgets_whatever_fails(tmp_path: Path) -> None:
    # Six are one wave of five and one more. To begin with the steady pool alone spares a second look at all the others.
    story = rolling.make(str(tmp_path), due=6, fails=2)
    rolling.begin_and_kill(story, f"-ebcd_hosts=bcd_pool_{rolling.STEADY.replace('-', '_')}")
    played = rolling.finish(story)
    assert rolling.faults(story, played) == [], played.out[-3000:]
