# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of `nvidia-smi mig`, in the widths of each driver generation."""

from __future__ import annotations

from . import placement
from .cards import CI_IDS, Card, Ci, Gi, ci_name, ci_slices
from .products import GpuProfile


def _wider(branch: int) -> int:
    """By how many columns names are wider than in the first MIG drivers."""
    return 0 if branch < 470 else 3 if branch < 570 else 5


def _table(width: int, head: list[str], rows: list[list[str]]) -> str:
    rule = "+" + "-" * (width - 2) + "+"
    lines = [rule, *(f"| {text:<{width - 3}}|" for text in head), "|" + "=" * (width - 2) + "|"]
    for row in rows:
        lines += [*row, rule]
    return "\n".join(lines) + "\n"


def gi_profiles(rows: list[tuple[int, Card, GpuProfile]], branch: int) -> str:
    """-lgip."""
    more = _wider(branch)
    pad = " " * more
    head = [
        "GPU instance profiles:",
        f"GPU   Name          {pad}ID    Instances   Memory     P2P    SM    DEC   ENC",
        f"{pad}                          Free/Total   GiB              CE    JPEG  OFA",
    ]
    lines = []
    for index, card, one in rows:
        free = placement.remaining(card, one) if card.mig else 0
        sm, ce, dec, enc, jpeg, ofa = one.engines
        first = (
            f"|{index:>4}  MIG {one.name:<{10 + more}}{one.id:>3}{free:>6}/{one.most:<9}"
            f"{one.memory_gib:<11.2f}No     {sm:<7}{dec:<6}{enc:<4}|"
        )
        second = "|" + " " * (58 + more) + f"{ce:<6}{jpeg:<6}{ofa:<4}|"
        lines.append([first, second])
    return _table(76 + more, head, lines)


def gi_placements(rows: list[tuple[int, GpuProfile]]) -> str:
    """-lgipp."""
    lines = []
    for index, one in rows:
        word = "Placements" if len(one.starts) > 1 else "Placement "
        starts = ",".join(map(str, one.starts))
        lines.append(f"GPU {index:>2} Profile ID {one.id:>2} {word}: {{{starts}}}:{one.size}\n")
    return "".join(lines)


def gpu_instances(rows: list[tuple[int, Card, Gi]], branch: int) -> str:
    """-lgi."""
    more = _wider(branch)
    pad = " " * more
    head = [
        "GPU instances:",
        f"GPU   Name          {pad}Profile  Instance   Placement",
        f"                    {pad}  ID       ID       Start:Size",
    ]
    lines = []
    for index, card, gi in rows:
        one = card.profile(gi.profile)
        lines.append([f"|{index:>4}  MIG {one.name:<{11 + more}}{one.id:>4}{gi.id:>9}{gi.start:>11}:{one.size:<6}|"])
    return _table(54 + more, head, lines)


def compute_instances(rows: list[tuple[int, Card, Gi, Ci]]) -> str:
    """-lci."""
    head = [
        "Compute instances:",
        "GPU     GPU       Name             Profile   Instance   Placement",
        "      Instance                       ID        ID       Start:Size",
        "        ID",
    ]
    lines = []
    for index, card, gi, ci in rows:
        name, number = card.device_name(gi, ci), CI_IDS[ci.slices]
        place = f"{ci.start:>11}:{ci.slices:<6}|"
        lines.append([f"|{index:>4}{gi.id:>7}       MIG {name:<14}{number:>4}{ci.id:>10}{place}"])
    return _table(70, head, lines)


def compute_profiles(rows: list[tuple[int, Card, Gi]]) -> str:
    """-lcip."""
    head = [
        "Compute instance profiles:",
        "GPU     GPU       Name             Profile  Instances   Exclusive       Shared",
        "      Instance                       ID     Free/Total     SM       DEC   ENC   OFA",
        "        ID                                                          CE    JPEG",
    ]
    lines = []
    for index, card, gi in rows:
        one = card.profile(gi.profile)
        sm, ce, dec, enc, jpeg, ofa = one.engines
        for slices in ci_slices(one):
            whole = slices == one.compute
            total = 1 if whole else one.compute // slices
            free = _free_slices(gi, one.compute, slices)
            number = f"{CI_IDS[slices]}{'*' if whole else ' '}"
            first = (
                f"|{index:>4}{gi.id:>7}       MIG {ci_name(one, slices):<14}{number:>5}{free:>6}/{total:<12}"
                f"{sm * slices // one.compute:<10}{dec:<6}{enc:<6}{ofa:<4}|"
            )
            lines.append([first, "|" + " " * 70 + f"{ce:<6}{jpeg:<10}|"])
    return _table(88, head, lines)


def _free_slices(gi: Gi, whole: int, slices: int) -> int:
    """How many more compute instances of so many slices fit."""
    occupied = {unit for ci in gi.cis for unit in range(ci.start, ci.start + ci.slices)}
    count = 0
    while True:
        start = placement.place_compute(occupied, whole, slices)
        if start is None:
            return count
        occupied |= set(range(start, start + slices))
        count += 1
