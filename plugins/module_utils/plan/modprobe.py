# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of modules: how lines of them are read, and the kernel's way to show their values."""

from __future__ import annotations

import re

TRUE, FALSE = frozenset(("y", "1", "on", "true")), frozenset(("n", "0", "off", "false"))


# What kmod and the kernel read in one way only: a name, alone or with a value that is bare or in quotes as a whole.
# The kernel strips quotes around a whole word, keeps those inside one, ends at "--", and takes the byte 0xa0, part of
# many letters in UTF-8, for a blank.
PLAIN = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_-]*(?:=(?:"[ !#-~]*"|[!#-~]*))?')


def split_options(line: str) -> tuple[str, ...]:
    """The words of an options line as the kernel splits them: quotes hold blanks together, also one left open."""
    return tuple(re.findall(r'(?:[^\s"]|"[^"]*"?)+', line))


def parse_options(line: str) -> tuple[tuple[str, str], ...]:
    """The pairs of "nested=1 emulate" as the kernel reads them; a bare name is a flag, "1", - in a name is _."""
    found = []
    for word in split_options(line):
        if word == "--":
            break
        key, equals, value = _unquoted(word).partition("=")
        found.append((key.replace("-", "_"), _unquoted(value) if equals else "1"))
    return tuple(found)


def _unquoted(text: str) -> str:
    """Without the quotes around it, if it begins with one."""
    if not text.startswith('"'):
        return text
    return text[1:-1] if len(text) > 1 and text.endswith('"') else text[1:]


def same_value(wanted: str, shown: str) -> bool:
    """Whether the kernel's text means the option: Y and 1, N and 0, 0x10 and 16, 0660 and 432 are alike."""
    one, other = wanted.strip().lower(), shown.strip().lower()
    if one == other or any(one in kind and other in kind for kind in (TRUE, FALSE)):
        return True
    number = _number(one)
    return number is not None and number == _number(other)


def _number(text: str) -> int | None:
    """A number as the kernel reads one: 0x.. is hexadecimal, 0.. octal."""
    found = re.fullmatch(r"([+-]?)(?:0x([0-9a-f]+)|(0[0-7]*)|([1-9][0-9]*))", text)
    if not found:
        return None
    sign, hexadecimal, octal, decimal = found.groups()
    value = int(hexadecimal, 16) if hexadecimal else int(octal, 8) if octal else int(decimal)
    return -value if sign == "-" else value
