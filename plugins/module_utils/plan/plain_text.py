# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text for a terminal: what programs, files and other people wrote is shown there, and never obeyed."""

from __future__ import annotations

from typing import Any

# Control characters, and what turns the direction of a text or hides in it.
HIDDEN = (*range(32), *range(127, 160), 0x200B, *range(0x200E, 0x2010), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
VISIBLE = {code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" for code in HIDDEN}
IN_LINES = {code: text for code, text in VISIBLE.items() if chr(code) not in "\n\t"}


def plain(text: Any) -> str:
    """One line of text, with what would steer a terminal made visible."""
    return " ".join(str(text).split()).translate(VISIBLE)


def plain_lines(text: str) -> str:
    """The same of a text that keeps its lines and tabs."""
    return text.translate(IN_LINES)
