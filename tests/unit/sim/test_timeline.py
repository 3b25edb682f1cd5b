# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a simulated host was down, and how many were down together."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.sim import boot, timeline
from tests.sim.timeline import Most, Span, most_down

from .conftest import Maker

# Moments in halves of a second, so that hosts change places at the very same one.
SPANS = some.lists(some.tuples(some.integers(0, 20), some.integers(1, 10)), max_size=4).map(
    lambda found: [Span(since / 2, (since + length) / 2) for since, length in found]
)


def test_each_reboot_is_a_line_down_and_a_line_up(make: Maker) -> None:
    host, before = make(), time.time()
    assert timeline.spans(host.tree) == []
    host.reboot()
    host.reboot()
    first, second = timeline.spans(host.tree)
    assert before <= first.since <= first.until <= second.since <= second.until <= time.time()


def test_a_host_that_is_down_for_a_while_is_up_when_it_answers_again(make: Maker) -> None:
    host = make(down_seconds=30.0)
    host.reboot()
    ((since, until),) = timeline.spans(host.tree)
    assert since + 29.9 < until < since + 31
    assert float(host.read(boot.DOWN) or "") == pytest.approx(until, abs=1e-5)


def test_one_that_never_comes_back_is_down_until_somebody_brings_it_up(make: Maker) -> None:
    host = make(misboot="never-back")
    host.reboot()
    ((since, until),) = timeline.spans(host.tree)
    assert until == math.inf
    host.up()
    ((since, until),) = timeline.spans(host.tree)
    assert since <= until <= time.time()


def test_what_was_no_reboot_was_never_down(make: Maker) -> None:
    host = make(misboot="same-boot-id")
    host.reboot()
    assert timeline.spans(host.tree) == []


def test_a_line_that_is_none_is_told(tmp_path: Path) -> None:
    timeline.note(str(tmp_path), "sideways", 1.0)
    with pytest.raises(ValueError, match=r"'1\.000000 sideways' is no line"):
        timeline.spans(str(tmp_path))


def test_the_most_that_were_down_together_are_found() -> None:
    hosts = {"a": [Span(0, 10)], "b": [Span(2, 3), Span(5, 7)], "c": [Span(6, math.inf)], "d": [Span(7, 8)], "e": []}
    assert most_down(hosts.items()) == Most(3, 6, ("a", "b", "c"))
    assert most_down({"a": [Span(0, 1)], "b": [Span(1, 2)]}.items()).number == 1  # one comes up as the other goes down
    assert most_down([]) == Most(0, 0.0, ())


@given(some.dictionaries(some.sampled_from("abcdef"), SPANS))
def test_no_instant_has_more(hosts: dict[str, list[Span]]) -> None:
    most = most_down(hosts.items())
    counts = [
        sum(any(span.since <= at / 4 < span.until for span in spans) for spans in hosts.values()) for at in range(80)
    ]
    assert most.number == max(counts)
    assert len(most.hosts) == most.number
