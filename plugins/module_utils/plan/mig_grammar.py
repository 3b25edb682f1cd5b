# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole grammar of MIG layouts, and what is wrong with what is none. `mig` reads the plain ones by itself."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..core.errors import Refused
from .mig import ALL, COMPUTE, EMPTY, LISTED, OFF, Layout, Profile, largest_first, parse_profile

ATTRIBUTES = ("", "+me", "+gfx", "+me.all", "-me")
ITEM = re.compile(r"(?P<name>[^:]*?)(?:\s*:\s*(?P<count>[0-9]{1,3}))?")
PLAIN = re.compile(r"(?:[0-9]+c\.)?[0-9]+g\.[0-9]+gb")


def read(given: Any, where: str) -> Layout:
    """A layout from its text or mapping, as `mig.parse_layout` has it; raises Refused for what is none."""
    if given is False:
        return Layout(OFF)
    if isinstance(given, Mapping):
        return _listed([(_item(str(name), where), _count(name, count, where)) for name, count in given.items()], where)
    if not isinstance(given, str):
        raise Refused(f"{where} is {given!r}: give a layout such as all-1g.10gb, 3g.40gb,1g.10gb:4, or off")
    text = given.strip()
    if text in (OFF, EMPTY):
        return Layout(text)
    if text.startswith("all-"):
        return Layout(ALL, ((_item(text[len("all-") :], where), 0),))
    return _listed([_counted(item, where) for item in _items(text, where)] if text else [], where)


def _items(text: str, where: str) -> list[str]:
    """The items of a list: joined by commas, or by + where no profile has an attribute that begins so."""
    items = re.split(r"[,+]", text)
    if all(PLAIN.fullmatch(item.partition(":")[0].strip()) for item in items):
        return items
    items = text.split(",")
    for item in items:
        if item.count("+") > 1 or re.search(r"\+\s*(?:\d+c\.)?\d+g\.", item):
            raise Refused(f"{where} has {item.strip()!r}: beside a profile with an attribute, join profiles by commas")
    return items


def _counted(item: str, where: str) -> tuple[Profile, int]:
    found = ITEM.fullmatch(item.strip())
    if not found:
        raise Refused(f"{where} has {item.strip()!r}, which is no <profile> or <profile>:<count>: correct the layout")
    count = int(found["count"] or 1)
    return _item(found["name"], where), _count(item.strip(), count, where)


def _count(name: Any, count: Any, where: str) -> int:
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= 999:
        shown = "null" if count is None else repr(count)
        raise Refused(f"{where} asks for {shown} of {name!r}: give a count from 1 on, or leave the profile out")
    return count


def _item(name: str, where: str) -> Profile:
    """The profile of a name as a person writes it; raises Refused."""
    profile = parse_profile(name.strip())
    if profile is None or profile.attribute not in ATTRIBUTES or not (profile.slices and profile.memory_gb):
        raise Refused(
            f"{where} has {name.strip()!r}, which is no profile such as 3g.40gb, 1c.3g.40gb, 1g.10gb+me: see "
            "nvidia-smi mig -lgip for those of a GPU"
        )
    if profile.compute not in COMPUTE.get(profile.slices, range(1, profile.slices + 1)):
        raise Refused(f"{where} has {name.strip()!r}, and no compute instance has {profile.compute} of its slices")
    return profile


def _listed(devices: list[tuple[Profile, int]], where: str) -> Layout:
    if not devices:
        raise Refused(f"{where} is empty: give off, or the word empty for MIG mode without instances")
    counts: Counter[Profile] = Counter()
    for profile, count in devices:
        counts[profile] += count
    return Layout(LISTED, largest_first(counts))
