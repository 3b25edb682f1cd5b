# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MIG listings that do not have the rows of every GPU: nothing to list, one GPU by itself, what is no table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Callable, TypeVar

from ..core.errors import StepFailed
from ..core.host import Host
from .mig import BORDER, HEADING, RULE, answered
from .smi_faults import quoted, tells_of_the_dead, unanswered

if TYPE_CHECKING:
    from ..core.plan import Answer

Row = TypeVar("Row")

NONE_FOUND = re.compile(r"No (?:GPU|compute) instances found: Not Found")
# MIG mode is off, or the GPU has no MIG: exit status 6 up to R535, 0 since 550.
NO_MIG = re.compile(r"No MIG-(?:enabled|supported) devices found\.")


def lists_nothing(host: Host, answer: Answer, arguments: tuple[str, ...]) -> bool:
    """Whether nvidia-smi says that there is nothing to list; raises the fault that its answer is."""
    said = answer.out.strip()
    none = NO_MIG.fullmatch(said) or NONE_FOUND.fullmatch(said)
    if answer.rc in (0, 6) and none and not tells_of_the_dead(answer):
        return True
    fault = unanswered(host, answer, arguments)
    if fault:
        raise fault
    return False


def of_one(host: Host, gpu: int, what: str, parse: Callable[[str], tuple[tuple[int, Row], ...]]) -> tuple[Row, ...]:
    """The rows of a listing of one GPU; () where there is none to list."""
    return _of(gpu, answered(host, ("mig", what, "-i", str(gpu)), parse))


def _of(asked: int, found: tuple[tuple[int, Row], ...]) -> tuple[Row, ...]:
    """The rows, which must be the asked GPU's."""
    shown = {index for index, _row in found}
    if shown - {asked}:
        listed = ", ".join(str(index) for index in sorted(shown))
        raise StepFailed(f"nvidia-smi mig -i {asked} lists GPU {listed}: look again once no GPU comes or goes")
    return tuple(row for _index, row in found)


def no_table(text: str, title: str, whole: tuple[re.Pattern[str], ...]) -> StepFailed:
    """The first fault of what is no table of the title, as `mig.table_rows` has it; `whole` are the lines of a row."""
    what = title.rstrip(":")
    lines = text.rstrip().splitlines()
    if not lines:
        return StepFailed(f"nvidia-smi mig prints nothing, not even a table of {what}")
    rule = next((at for at, line in enumerate(lines) if RULE.fullmatch(line)), None)
    if rule is None or rule < 3 or not BORDER.fullmatch(lines[0]) or lines[1].strip("| ") != title:
        return StepFailed(f"nvidia-smi mig prints {quoted(text)}, not a table of {what}")
    for line in lines[2:rule]:
        if not HEADING.fullmatch(line):
            return StepFailed(f"nvidia-smi mig prints {quoted(line)} above its table of {what}")
    for at, line in enumerate(lines[rule + 1 :]):
        if not whole[at % len(whole)].fullmatch(line):
            return StepFailed(f"nvidia-smi mig prints {quoted(line)} in its table of {what}")
    return StepFailed(f"nvidia-smi mig ends its table of {what} with {quoted(lines[-1])}")
