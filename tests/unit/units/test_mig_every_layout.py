# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every layout of the vendor's tables, from one to the next on a simulated GPU of each product, and read back equal."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.units.mig_layout import UNIT
from tests.gpu.fake import GpuHost, gpu_host
from tests.gpu.model import Machine
from tests.gpu.products import products
from tests.unit import promises
from tests.unit.plan.test_mig_placement import MIG, feasible

pytestmark = pytest.mark.exhaustive

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
        wanted = {"layout": dict(Counter(names))}
        done = promises.go(UNIT, host, wanted)
        assert (done.state, done.failure) == ("converged", None), names
        assert sorted(host.machine.instances(0)) == sorted(names)
        assert promises.go(UNIT, host, wanted).steps == ()


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


# -- compute slices: random layouts one after the other, each from what the one before left

DEVICES = (
    "1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "1c.2g.20gb", "3g.40gb", "1c.3g.40gb", "2c.3g.40gb", "4g.40gb",
    "1c.4g.40gb", "2c.4g.40gb", "7g.80gb", "1c.7g.80gb", "2c.7g.80gb", "3c.7g.80gb", "4c.7g.80gb",
)  # fmt: skip


def fewest_instances(devices: tuple[str, ...]) -> tuple[str, ...]:
    """The GPU instances of as few as hold the devices, by trying every way to put each into one of them."""
    found: list[str] = []
    for name in {device.rpartition("c.")[2] for device in devices}:
        slices = int(name.partition("g.")[0])
        sizes = [
            int(device.partition("c.")[0]) if "c." in device else slices
            for device in devices
            if device.rpartition("c.")[2] == name
        ]
        ways = [[0] * len(sizes)]
        for size in sizes:
            ways = [
                sorted([*way[:at], way[at] + size, *way[at + 1 :]])
                for way in ways
                for at in range(len(sizes))
                if way[at] + size <= slices
            ]
            ways = [list(way) for way in {tuple(way) for way in ways}]
        found += [name] * min(sum(1 for used in way if used) for way in ways)
    return tuple(sorted(found))


def devices_shown(host: GpuHost) -> Counter[str]:
    """What nvidia-smi -L would name."""
    card = host.machine.cards[0]
    return Counter(card.device_name(gi, ci) for gi, ci in card.devices())


@given(
    st.lists(
        st.lists(st.sampled_from(DEVICES), min_size=1, max_size=5).map(lambda some: tuple(sorted(some))),
        min_size=1,
        max_size=4,
    )
)
@settings(max_examples=120)
def test_one_random_layout_after_the_other(layouts: list[tuple[str, ...]]) -> None:
    host = gpu_host(Machine.from_products(["H100-80GB"]))
    for devices in layouts:
        before = host.machine.instances(0)
        given_settings = {"layout": dict(Counter(devices))}
        done = promises.go(UNIT, host, given_settings)
        if fewest_instances(devices) in feasible("H100-80GB"):
            assert (done.state, done.failure) == ("converged", None), (before, devices)
            assert devices_shown(host) == Counter(devices)
            assert all(gi.cis for gi in host.machine.cards[0].instances)
            assert promises.go(UNIT, host, given_settings).steps == ()
        else:
            assert done.failure is not None
            assert done.failure.reason == "Refused"
            assert host.machine.instances(0) == before
