# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTML by construction: every string that is not already HTML is escaped, so that no message can become a tag."""

from __future__ import annotations

from html import escape

VOID = frozenset(("meta", "br", "hr", "wbr", "input"))
CLOSED = frozenset(("path", "use"))  # of a picture, where an element that holds nothing closes itself


class Html(str):
    """Text that is HTML. Joining it with other strings gives a plain string again, which is escaped when used."""

    __slots__ = ()


def text(given: str) -> Html:
    """The string, escaped; control characters that a browser would swallow, or that turn the text around, are shown."""
    return Html(escape("".join(_visible(char) for char in given)))


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
    """All parts in a row; what is not HTML is escaped."""
    return Html("".join(part if isinstance(part, Html) else text(part) for part in content))


def _visible(char: str) -> str:
    turns = "\u202a" <= char <= "\u202e" or "\u2066" <= char <= "\u2069"
    control = (char < " " and char not in "\t\n") or "\x7f" <= char <= "\x9f"
    return f"\\u{ord(char):04x}" if turns or control else char
