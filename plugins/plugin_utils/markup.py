# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTML by construction: every string that is not already HTML is escaped, so that no message can become a tag."""

from __future__ import annotations

import re
from html import escape

VOID = frozenset(("meta", "br", "hr", "wbr", "input"))
CLOSED = frozenset(("path", "use"))  # of a picture, where an element that holds nothing closes itself
LONGEST = 4000  # characters of one text: what a page is to be looked at for is at its beginning
# Control characters, halves of a character, and what is of no width or turns the text around it.
UNSEEN = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb"
    "\\ud800-\\udfff\\U000e0000-\\U000e007f]"
)


class Html(str):
    """Text that is HTML. Joining it with other strings gives a plain string again, which is escaped when used."""

    __slots__ = ()


def text(given: str) -> Html:
    """The string, escaped; what a browser would swallow or obey is shown by its number."""
    return Html(escape(UNSEEN.sub(_number, given)))


def element(tag: str, /, *content: str, **attributes: str) -> Html:
    """One element with its content. In an attribute's name `_` stands for `-`, and one at the end is dropped."""
    words = [tag]
    for given, value in attributes.items():
        name = given.rstrip("_").replace("_", "-")
        words.append(f'{name}="{text(value)}"' if value else name)
    if tag in CLOSED:
        return Html(f"<{' '.join(words)}/>")
    start = f"<{' '.join(words)}>"
    return Html(start if tag in VOID else f"{start}{join(*content)}</{tag}>")


def join(*content: str) -> Html:
    """All parts in a row; what is not HTML is escaped, and of a text without end the beginning is there."""
    return Html("".join(part if isinstance(part, Html) else _beginning(part) for part in content))


def _beginning(given: str) -> Html:
    more = len(given) - LONGEST
    return text(f"{given[:LONGEST]}… and {more:,} characters more" if more > 0 else given)


def _number(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
