# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The generation of a GPU, as its product name tells it."""

from __future__ import annotations

import re

# Whole words of product names, by generation; a word is what stands between anything but letters and digits.
GENERATIONS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("blackwell", re.compile(r"Blackwell|G?B(?:100|200|300)|GB10|Thor|50[5-9]0")),
    ("hopper", re.compile(r"Hopper|GH200|H(?:20|100|200|800)")),
    ("ada", re.compile(r"Ada|L(?:2|4|20|40|40S|40G)|40[5-9]0")),
    (
        "ampere",
        re.compile(r"A(?:2|10|10G|10M|16|30|30X|40|100|100X|800|[1-6]0{3}|[45]500)|30[5-9]0|170HX|Orin|PG50[69]"),
    ),
    ("turing", re.compile(r"T(?:4|4G|4[0-9]{2}|[56]00|1000|1200|2000)|16[3-6]0|20[6-8]0")),
    ("volta", re.compile(r"G?V100|V100S|Xavier")),
    ("pascal", re.compile(r"P(?:4|6|40|100|400|500|520|600|620|[1-6]0{3}|[35]200|2200)|GP100|Xp|10[1-8]0")),
    ("maxwell", re.compile(r"M(?:4|6|10|40|60|[2-6]000)|9[5-8]0")),
)
BY_PHRASE = (("TITAN RTX", "turing"), ("TITAN V", "volta"), ("GTX TITAN X", "maxwell"), ("TITAN X", "pascal"))


def generation(name: str) -> str:
    """The generation of a product, "maxwell" to "blackwell", by whole words of its name; "unknown" for the rest.

    "NVIDIA GH200 480GB" is no H200: words are compared whole.
    """
    for phrase, known in BY_PHRASE:
        if re.search(rf"\b{phrase}\b", name):
            return known
    words = re.split(r"[^A-Za-z0-9]+", name)
    # "NVIDIA RTX 6000 Ada Generation", "NVIDIA RTX PRO 6000 Blackwell": a generation's own name decides.
    for known, _pattern in GENERATIONS:
        if known.capitalize() in words:
            return known
    for known, pattern in GENERATIONS:
        if any(pattern.fullmatch(word) for word in words):
            return known
    return "turing" if re.search(r"\bQuadro RTX [3-8]000\b", name) else "unknown"
