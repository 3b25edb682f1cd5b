# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a document that a person wrote: a path and a sentence each, and all of them at once.

Paths are JSONPath: ``$.pools[0].policy.cpu.isolate``, a key that is no plain word in brackets and quotes,
``$.profiles[0].hostConfig['mig-layout'].from``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..module_utils.plan.settings_faults import WORDS

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
CODE = "INVALID_INPUT"
DEEPEST = 64  # what no document of ours comes near
LONGEST_SHOWN = 80  # characters of somebody's value, in a sentence
LARGEST = 10**30  # beyond every setting; and Python writes out no number of thousands of digits
MOST_NAMES = 12  # of a list, in a sentence
JSONLESS = ("builtins", "datetime")  # modules of types that YAML has and JSON does not


class Fault(NamedTuple):
    """One fault: where it is, and what it is with the next move."""

    path: str
    text: str


class InvalidInput(ValueError):
    """A document with faults; its text has a line for each."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(map(said, self.faults)))


def said(fault: Fault) -> str:
    """The fault as one line."""
    return f"{CODE}: {fault.path}: {' '.join(fault.text.split())}"


def below(path: str, key: Any) -> str:
    """The path of what a mapping at the path has under a key, or a list at a number."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    name = str(key)
    if WORD.fullmatch(name):
        return f"{path}.{name}"
    quoted = "".join(_escaped(letter) for letter in name)
    return f"{path}['{quoted}']"


def _escaped(letter: str) -> str:
    if letter in "\\'":
        return "\\" + letter
    return letter if letter.isprintable() else f"\\u{ord(letter):04x}"


def shown(value: Any) -> str:
    """Somebody's value in a sentence: what kind it is, and of text and numbers which, cut where it is long."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if _is_beyond(value):
        return f"a number of more than {len(str(LARGEST)) - 1} digits"
    if isinstance(value, (str, int, float)):
        text = repr(value) if isinstance(value, str) else str(value)
        return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."
    return WORDS[dict] if isinstance(value, Mapping) else WORDS[list] if isinstance(value, list) else strange(value)


def strange(value: Any) -> str:
    """What is no JSON value, by its type. An undefined variable, which older Ansible hands in, raises what it is."""
    str(value)
    # Ansible's own types, which say where a value comes from, have names of theirs.
    known = [kind.__name__ for kind in type(value).__mro__ if kind.__module__ in JSONLESS and kind is not object]
    return f"of the type {(known or [type(value).__name__])[0]}, which JSON does not have"


def some(names: Iterable[str]) -> str:
    """Names in a sentence, of many the first ones."""
    found = list(names)
    more = f" and {len(found) - MOST_NAMES} more" if len(found) > MOST_NAMES else ""
    return (", ".join(found[:MOST_NAMES]) or "none") + more


def _is_beyond(value: Any) -> bool:
    return isinstance(value, int) and abs(value) >= LARGEST


def plain(value: Any, path: str, faults: list[Fault], levels: int = DEEPEST) -> Any:
    """The value in Python's own types: Ansible's carry where they come from, and are types of their own.

    What JSON has no form for becomes None, and a fault: a key that is no text, a date, NaN, a number without end.
    """
    if levels < 1:
        faults.append(Fault(path, f"this is nested deeper than {DEEPEST} levels: no setting is"))
        return None
    if isinstance(value, Mapping):
        return _mapping(value, path, faults, levels)
    if isinstance(value, (list, tuple)):
        return [plain(item, below(path, at), faults, levels - 1) for at, item in enumerate(value)]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int) and not _is_beyond(value):
        return int.__int__(value)
    if isinstance(value, float) and math.isfinite(value):
        return float.__float__(value)
    if isinstance(value, (int, float)):
        faults.append(Fault(path, f"this is {shown(value)}, which is no number of a setting: correct it"))
    else:
        faults.append(Fault(path, f"this is {strange(value)}: put it in quotes"))
    return None


def _mapping(value: Mapping[Any, Any], path: str, faults: list[Fault], levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(key, str):
            name = str.__str__(key)
            found[name] = plain(item, below(path, name), faults, levels - 1)
        else:
            faults.append(Fault(path, f"its key {shown(key)} is no text: put it in quotes"))
    return found


def unknown_keys(given: Mapping[str, Any], known: Iterable[str], path: str) -> list[Fault]:
    """A fault for each key that is none of the known ones."""
    text = f"there is no such key here: it takes {', '.join(known)}"
    return [Fault(below(path, key), text) for key in given if key not in known]
