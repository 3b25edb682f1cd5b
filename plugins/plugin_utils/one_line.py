# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text on a terminal: what it may not do there, how many columns it takes, and no more columns than there are.

Hosts' names and messages are others' text. A terminal obeys what it finds in them: an escape sequence clears the screen
or renames the window, a direction mark turns the rest of the line round.
"""

from __future__ import annotations

import unicodedata

STANDS_FOR = "?"  # what a terminal would obey
MARKS = 4  # characters a column, at most: marks on marks take no columns, and no end of bytes


def plain(text: str) -> str:
    """The text with nothing in it that a terminal obeys: a line break or a tab is a blank, the rest a question mark."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_plain, text))


def cells(text: str) -> int:
    """The columns that plain text takes: two for wide characters, none for marks on the one before (UAX #11)."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def cut(text: str, width: int) -> str:
    """Plain text in at most so many columns, with dots at its end where some of it is left out."""
    if cells(text) <= width and len(text) <= width * MARKS:
        return text
    dots = "..." if width > 6 else ""
    kept, taken = [], 0
    for character in text[: width * MARKS - len(dots)]:
        taken += _cells(character)
        if taken > width - len(dots):
            break
        kept.append(character)
    return "".join(kept).rstrip() + dots if width > 0 else ""


def fill(text: str, width: int) -> str:
    """Plain text with blanks up to so many columns."""
    return text + " " * (width - cells(text))


def _plain(character: str) -> str:
    kind = unicodedata.category(character)[0]
    if kind == "Z" or character in "\t\n\r\v\f\x85":
        return " "
    return STANDS_FOR if kind == "C" else character


def _cells(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
