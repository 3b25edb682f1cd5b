# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of /proc/swaps is a difference: not how much of it is in use."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.look.swap import allowed, swap
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.swaps import without_use
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import KUBELET_CONFIG
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.swap_areas import Area, parse_swaps
from tests.unit.fake_host import FakeHost

TITLES = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
# As Linux 6.12 prints it.
ON = TITLES + "/dev/sda5                               partition\t1000444\t\t{}\t\t-2\n/my\\040swap file 2048 {} 5\n"


def seen(text: str) -> str:
    return str(FakeHost({"/proc/swaps": text}).sight(without_use))


def test_what_is_in_use_is_no_difference() -> None:
    assert seen(ON.format(0, 0)) == seen(ON.format(524, 2048))
    assert parse_swaps(seen(ON.format(524, 2048))) == (
        Area("/dev/sda5", "partition", 1000444, 0, -2),
        Area("/my swap", "file", 2048, 0, 5),
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [("sda5", "sdb5"), ("partition", "file"), ("1000444", "1000448"), ("-2", "-3"), ("file ", "x ")],
)
def test_all_else_is(before: str, after: str) -> None:
    assert before in ON
    assert seen(ON.replace(before, after).format(7, 7)) != seen(ON.format(7, 7))
    assert parse_swaps(seen(ON.replace(before, after).format(7, 7))) != parse_swaps(seen(ON.format(7, 7)))


def test_lines_that_are_not_known_count_as_they_are() -> None:
    assert len(parse_swaps(seen(TITLES + "/dev/sda5 new\n/dev/sdb5 partition 10 some -2\n"))) == 2
    assert parse_swaps(seen(TITLES)) == ()
    assert str(FakeHost().sight(without_use)) == ""


@pytest.mark.parametrize("is_wanted", [False, True])
@pytest.mark.parametrize("text", [None, "", TITLES, TITLES + "/dev/sda5 partition 1000444 0 -2\n", TITLES + "odd\n"])
def test_a_line_of_titles_is_no_area_and_any_other_line_is(text: str | None, is_wanted: bool) -> None:
    host = FakeHost({} if text is None else {"/proc/swaps": text})
    lines = (text or "").splitlines()[1:]
    assert [area.path for area in swap(host, is_wanted).areas] == [line.split()[0] for line in lines]


@pytest.mark.parametrize(
    ("config", "beside"),
    [
        (None, False),
        ("kind: KubeletConfiguration\n", False),  # the kubelet's own default is to fail
        ("kind: KubeletConfiguration\nfailSwapOn: true\n", False),
        ("kind: KubeletConfiguration\nfailSwapOn: false\n", True),
    ],
)
def test_a_kubelet_runs_beside_swap_only_where_its_configuration_says_so(config: str | None, beside: bool) -> None:
    assert allowed(FakeHost({} if config is None else {KUBELET_CONFIG: config})) is beside
