# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every layout of the vendor's tables, from one to the next on a simulated GPU of each product, and read back equal."""

from __future__ import annotations

from collections import Counter

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.units.mig_layout import UNIT
from tests.gpu.fake import gpu_host
from tests.gpu.model import Machine
from tests.gpu.products import products
from tests.unit import promises
from tests.unit.plan.test_mig_placement import MIG, feasible

# Profiles that came with a later branch are not offered by an old driver, which takes no starts either.
BRANCHES = [(key, "550.163.01") for key in MIG] + [("A100-40GB", "460.106.00"), ("A30-24GB", "465.19.01")]


def fitting(key: str, driver: str) -> list[tuple[str, ...]]:
    """The layouts that the driver offers all profiles of, in an order that jumps."""
    offered = {one.name for one in products()[key].profiles if one.since <= int(driver.partition(".")[0])}
    layouts = (names for names in feasible(key) if names and offered.issuperset(names))
    return sorted(layouts, key=lambda names: (_mixed(names), names))


def _mixed(names: tuple[str, ...]) -> int:
    """A number that is the same in each run."""
    return sum((at + 7) * ord(letter) for at, letter in enumerate("".join(names))) % 101


@pytest.mark.parametrize(("key", "driver"), BRANCHES)
def test_every_layout_that_fits_is_made_and_read_back_equal(key: str, driver: str) -> None:
    host = gpu_host(Machine.from_products([key], driver=driver))
    tried = fitting(key, driver)
    assert len(tried) > 5
    for names in tried:
        settings = {"layout": dict(Counter(names))}
        done = promises.go(UNIT, host, settings)
        assert (done.state, done.failure) == ("converged", None), names
        assert sorted(host.machine.instances(0)) == sorted(names)
        assert promises.go(UNIT, host, settings).steps == ()


@pytest.mark.parametrize("key", MIG)
def test_every_layout_that_is_one_too_much_is_refused_before_anything_is_destroyed(key: str) -> None:
    host = gpu_host(Machine.from_products([key]))
    largest = products()[key].profiles[-1].name
    promises.go(UNIT, host, {"layout": largest})
    before, calls = host.machine.instances(0), list(host.calls)
    assert before == [largest]
    tried = 0
    for names in fitting(key, "550.163.01")[::4]:
        for one in products()[key].profiles:
            more = tuple(sorted((*names, one.name)))
            if more not in feasible(key):
                refused = promises.go(UNIT, host, {"layout": dict(Counter(more))})
                assert refused.failure is not None
                assert (refused.failure.reason, refused.state) == ("Refused", "failed"), more
                tried += 1
    assert tried > 5
    assert (host.machine.instances(0), host.calls) == (before, calls)
