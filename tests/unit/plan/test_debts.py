# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of follow-ups: what was named so is found again, by its verb alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.debts import debt, owed

VERBS = ("hold", "load", "load again", "restart", "start")
NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789_.-@+:", min_size=1)


@given(st.sets(st.tuples(st.sampled_from(VERBS), NAMES)))
def test_every_name_is_found_under_its_own_verb(given: set[tuple[str, str]]) -> None:
    debts = frozenset(debt(verb, name) for verb, name in given)
    for verb in VERBS:
        assert owed(debts, verb) == tuple(sorted(name for own, name in given if own == verb))


@pytest.mark.parametrize("other", ["daemon-reload", "initramfs", "packages", "update-grub", "unload 580.95.05 open"])
def test_follow_ups_of_another_kind_are_passed_over(other: str) -> None:
    assert owed([other, "start nvidia-dcgm"], "start") == ("nvidia-dcgm",)
    assert owed([other], "load") == ()
