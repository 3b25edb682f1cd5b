# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The clock as decisions depend on it."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.look.moment import days_until
from tests.unit.fake_host import FakeHost

DAY = 86_400


@pytest.mark.parametrize(
    ("seconds", "days"),
    [
        (300 * DAY, 7),
        (7 * DAY, 7),
        (7 * DAY - 1, 6),
        (5 * DAY + 10, 5),
        (DAY, 1),
        (DAY - 1, 0),
        (1, 0),
        (0, -1),
        (-1, -1),
        (1 - DAY, -1),
        (-DAY, -2),
        (-3 * DAY, -4),
    ],
)
def test_days_until_a_moment_and_after_it(seconds: int, days: int) -> None:
    host = FakeHost()
    assert host.sight(days_until, host.time() + seconds, 7) == days
