# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host would refuse of a unit's settings, each fault with its place, found by the host's own checks.

A check refuses settings as a whole, and most at the first fault. Where one does, it is asked again about every part by
itself: so each part that is refused has its own sentence, and no rule stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from ..module_utils.plan import unit_names as names
from ..module_utils.plan.unit_checks import CHECKED, refusal
from .input_faults import Fault, below

Settings = Mapping[str, Any]
Judge = Callable[[Any], str]  # why a part is refused, "" where it is not

ANY_CLUSTER = {"apiServer": "https://192.0.2.1:6443", "caCertSha256": "0" * 64}
# Good settings without which a check asks for them, whatever part it is shown.
NEEDED: dict[str, Settings] = {
    names.NVIDIA_DRIVER: {"branch": "580"},
    names.MIG_LAYOUT: {"layout": "off"},
    names.GPU_SHARING: {"mode": "mps"},
    names.K8S_JOIN: ANY_CLUSTER,
}
# Good settings of those that may stand in for them.
INSTEAD: dict[str, Settings] = {
    names.NVIDIA_DRIVER: {"version": "580.95.05"},
    names.MIG_LAYOUT: {"gpus": [{"select": {"index": 0}, "layout": "off"}]},
}


def unit_faults(unit: str, settings: Mapping[str, Any], path: str) -> list[Fault]:
    """What the host refuses of the settings, which lie at the path: of each part that is refused by itself, and of the
    others together.
    """
    if not refusal(unit, settings):
        return []
    types = {field.wire: field.types for field in CHECKED[unit].fields}
    needed = NEEDED.get(unit, {})

    def alone(name: str) -> Judge:
        def judge(value: Any) -> str:
            said = refusal(unit, {name: value})
            return said and refusal(unit, {**needed, name: value})

        return judge

    found = {
        name: _narrowed(name, value, below(path, name), alone(name), types.get(name, ()))
        for name, value in settings.items()
    }
    faults = [fault for each in found.values() for fault in each]
    rest = {name: value for name, value in settings.items() if not found[name]}
    ways = [rest] if not faults else [rest, *_stood_in(unit, rest, found)]
    if all(refusal(unit, way) for way in ways):
        faults.append(Fault(path, refusal(unit, ways[-1])))
    return faults


def _stood_in(unit: str, rest: dict[str, Any], found: Mapping[str, list[Fault]]) -> list[dict[str, Any]]:
    """The rest with good settings in place of those that are refused, where there are some."""
    good = {**NEEDED.get(unit, {}), **INSTEAD.get(unit, {})}
    missing = {name: good[name] for name, faults in found.items() if faults and name in good}
    return [{**rest, **missing}] if missing else []


def _narrowed(name: str, value: Any, path: str, judge: Judge, types: tuple[type, ...]) -> list[Fault]:
    """What is refused of one setting: of one that may be a mapping or a list, its parts where one of them alone is."""
    said = judge(value)
    if not said:
        return []
    if type(value) not in types:
        return [Fault(path, said)]
    faults, kept = _of_parts(name, value, path, judge)
    said = judge(kept) if faults else said
    # With every part taken out, that nothing is left is no fault of its own.
    return [*faults, Fault(path, said)] if said and (kept or not faults) else faults


def _of_parts(name: str, value: Any, path: str, judge: Judge) -> tuple[list[Fault], Any]:
    """The faults of the parts by themselves, and what of the value has none."""
    faults: list[Fault] = []
    if isinstance(value, dict):
        said = {key: judge({key: item}) for key, item in value.items()}
        faults = [Fault(below(path, key), text) for key, text in said.items() if text]
        return faults, {key: item for key, item in value.items() if not said[key]}
    if isinstance(value, list):
        kept = []
        for at, item in enumerate(value):
            text = judge([item])
            if text:
                faults.append(Fault(below(path, at), text.replace(f"{name}[0]", f"{name}[{at}]")))
            else:
                kept.append(item)
        return faults, kept
    return faults, value
