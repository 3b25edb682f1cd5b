# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `nvidia-smi mig` lists: profiles, placements and instances, of every driver generation.

Tables are read by the shape of their rows, since their columns move between drivers; a line that has no place in the
table is a fault that names it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from ..core.errors import StepFailed
from ..core.host import Host
from ..plan.mig import ComputeInstance, GpuInstance
from .smi import ask, is_plain

if TYPE_CHECKING:
    from ..plan.mig_offered import Offered, Placements

Row = TypeVar("Row")

GPU_INSTANCE = re.compile(r"\|\s+(\d+)\s+MIG (\S+)\s+(\d+)\s+(\d+)\s+(\d+):(\d+)\s*\|")
COMPUTE_INSTANCE = re.compile(r"\|\s+(\d+)\s+(\d+)\s+MIG (\S+)\s+(\d+)\*?\s+(\d+)\s+(\d+):(\d+)\s*\|")
BORDER = re.compile(r"\+-+\+")
HEADING = re.compile(r"\| *[A-Z].*\|")
RULE = re.compile(r"\|=+\|")


class Tables:
    """What `nvidia-smi mig` lists of a GPU, by its index; () is nothing, as of every GPU whose MIG mode is off.

    Each listing is asked once, of all GPUs. Where that fails, or shows nothing of a GPU, this GPU is asked by itself:
    one that is dead hides no other.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._seen: dict[str, dict[int, tuple[Any, ...]] | None] = {}

    def offered(self, gpu: int) -> tuple[Offered, ...]:
        """What the GPU offers, with MIG mode off too: free is 0 then."""
        from .mig_offers import parse_lgip

        return self._rows(gpu, "-lgip", parse_lgip)

    def placements(self, gpu: int) -> tuple[Placements, ...]:
        """Where instances of each profile may start on the GPU, with MIG mode off too."""
        from .mig_offers import parse_lgipp

        return self._rows(gpu, "-lgipp", parse_lgipp)

    def gpu_instances(self, gpu: int) -> tuple[GpuInstance, ...]:
        """The GPU's instances."""
        return self._rows(gpu, "-lgi", parse_lgi)

    def compute_instances(self, gpu: int) -> tuple[ComputeInstance, ...]:
        """The GPU's compute instances."""
        return self._rows(gpu, "-lci", parse_lci)

    def _rows(self, gpu: int, what: str, parse: Callable[[str], tuple[tuple[int, Row], ...]]) -> tuple[Row, ...]:
        if what not in self._seen:
            self._seen[what] = _of_all(self._host, what, parse)
        seen = self._seen[what]
        if seen is not None and not seen:
            return ()
        if seen and gpu in seen:
            return seen[gpu]
        from .mig_unlisted import of_one

        return of_one(self._host, gpu, what, parse)


def _of_all(
    host: Host, what: str, parse: Callable[[str], tuple[tuple[int, Row], ...]]
) -> dict[int, tuple[Row, ...]] | None:
    """The rows of a listing by GPU, {} where no GPU has any; None where nvidia-smi does not list all GPUs at once."""
    try:
        rows = answered(host, ("mig", what), parse)
    except StepFailed:
        return None
    found: dict[int, tuple[Row, ...]] = {}
    for index, row in rows:
        found[index] = (*found.get(index, ()), row)
    return found


def answered(
    host: Host, arguments: tuple[str, ...], parse: Callable[[str], tuple[tuple[int, Row], ...]]
) -> tuple[tuple[int, Row], ...]:
    """(GPU index, row) of a listing; () where nvidia-smi says that there is none to list."""
    answer = ask(host, *arguments)
    if is_plain(answer):
        return parse(answer.out)
    from .mig_unlisted import lists_nothing

    return () if lists_nothing(host, answer, arguments) else parse(answer.out)


def parse_lgi(text: str) -> tuple[tuple[int, GpuInstance], ...]:
    """(GPU index, GPU instance) of `mig -lgi`; raises StepFailed naming what it does not know."""
    return tuple(
        (int(gpu), GpuInstance(int(number), name, int(profile), int(start), int(size)))
        for gpu, name, profile, number, start, size in table_rows(text, "GPU instances:", (GPU_INSTANCE,))
    )


def parse_lci(text: str) -> tuple[tuple[int, ComputeInstance], ...]:
    """(GPU index, compute instance) of `mig -lci`; raises StepFailed naming what it does not know."""
    return tuple(
        (int(gpu), ComputeInstance(int(gi), int(number), name, int(profile), int(start), int(size)))
        for gpu, gi, name, profile, number, start, size in table_rows(text, "Compute instances:", (COMPUTE_INSTANCE,))
    )


def table_rows(text: str, title: str, shapes: tuple[re.Pattern[str], ...]) -> list[tuple[str, ...]]:
    """The rows of a table: a border, the title, headings, a rule, then for each row its lines and a border.

    `shapes` are a row's lines; what the first captures is the row. A table has at least one.
    """
    lines = text.rstrip().splitlines()
    rule = next((at for at, line in enumerate(lines) if RULE.fullmatch(line)), 0)
    whole = (*shapes, BORDER)
    found = [whole[at % len(whole)].fullmatch(line) for at, line in enumerate(lines[rule + 1 :])]
    headed = rule >= 3 and BORDER.fullmatch(lines[0]) and lines[1].strip("| ") == title
    if headed and all(map(HEADING.fullmatch, lines[2:rule])) and found and len(found) % len(whole) == 0:
        rows = [line.groups() for line in found[:: len(whole)] if line]
        if all(found):
            return rows
    from .mig_unlisted import no_table

    raise no_table(text, title, whole)
