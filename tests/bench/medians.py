# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Medians of interleaved runs, over an empty one, their spreads and their ratios: values in, values out."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median, quantiles
from typing import NamedTuple


class Spread(NamedTuple):
    """A median and the quartiles about it."""

    median: float
    low: float
    high: float

    @property
    def share(self) -> float:
        """Half of the distance between the quartiles, in medians: 0.02 is a quiet machine."""
        return (self.high - self.low) / 2 / abs(self.median) if self.median else 0.0


def spread(values: Sequence[float]) -> Spread:
    """The median and the quartiles of what was measured; of one value, that value."""
    if len(values) < 2:
        return Spread(values[0], values[0], values[0])
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return Spread(middle, low, high)


def over(values: Sequence[float], empty: Sequence[float]) -> list[float]:
    """Each value over the median of the empty runs among which it stood."""
    base = median(empty)
    return [value - base for value in values]


def ratio(above: Sequence[float], below: Sequence[float]) -> Spread:
    """The ratio of the medians; its quartiles are those of the rounds, value by value where there are as many.

    Raises ZeroDivisionError where what is below is nothing, or less: then it is no figure.
    """
    base = median(below)
    if base <= 0:
        raise ZeroDivisionError(f"the median below is {base:g}")
    whole = median(above) / base
    if len(above) == len(below) and min(below) > 0:
        rounds = spread([up / down for up, down in zip(above, below)])
    else:
        rounds = spread([up / base for up in above])
    return Spread(whole, min(whole, rounds.low), max(whole, rounds.high))


def order(names: Sequence[str], turn: int) -> list[str]:
    """The cases of a round: turned by one each round, so that none always follows the same moment of the machine."""
    at = turn % len(names) if names else 0
    return [*names[at:], *names[:at]]
