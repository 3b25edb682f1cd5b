# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines that say the same of many CPUs, told as one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import TypeVar

Line = TypeVar("Line")
FEW = 2  # lines that say the same of so many CPUs are told one by one


def alike(lines: Iterable[Line], key: Callable[[Line], object]) -> Iterator[list[Line]]:
    """The lines, those in a row that have the same key together where they are more than FEW."""
    for _key, row in groupby(lines, key):
        together = list(row)
        yield from [together] if len(together) > FEW else ([line] for line in together)


def of_any_cpu(text: str) -> str:
    """The text without the CPU's number: a step for each CPU says the same of all."""
    return re.sub(r"\bcpu ?[0-9]+", "cpu", text, flags=re.IGNORECASE)
