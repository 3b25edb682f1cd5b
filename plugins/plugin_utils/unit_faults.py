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

WHOLLY = object()  # in the place of what is left of a setting


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

    faults: list[Fault] = []
    rest: dict[str, Any] = {}
    missing: list[str] = []
    for name, value in settings.items():
        wrong, kept = _narrowed(name, value, below(path, name), alone(name), types.get(name, ()))
        faults += wrong
        if kept is WHOLLY:
            missing.append(name)
        else:
            rest[name] = kept
    ways = [rest] if not missing else [rest, _stood_in(unit, rest, missing)]
    if all(refusal(unit, way) for way in ways):
        faults.append(Fault(path, refusal(unit, ways[-1])))
    return faults


def _stood_in(unit: str, rest: dict[str, Any], missing: list[str]) -> dict[str, Any]:
    """The rest with good settings in place of those that are refused, where there are some."""
    good = {**NEEDED.get(unit, {}), **INSTEAD.get(unit, {})}
    return {**rest, **{name: good[name] for name in missing if name in good}}


def _narrowed(name: str, value: Any, path: str, judge: Judge, types: tuple[type, ...]) -> tuple[list[Fault], Any]:
    """What is refused of one setting, and what is left of it, WHOLLY where nothing is.

    Of one that may be a mapping or a list these are its parts, where one of them alone is refused.
    """
    said = judge(value)
    if not said:
        return [], value
    faults, kept = _of_parts(name, value, path, judge) if type(value) in types else ([], value)
    said = judge(kept)
    if not faults or (said and kept):
        return [*faults, Fault(path, said)], WHOLLY
    return faults, kept or WHOLLY


def _of_parts(name: str, value: Any, path: str, judge: Judge) -> tuple[list[Fault], Any]:
    """The faults of the parts by themselves, and what of the value has none."""
    if isinstance(value, dict):
        said = {key: judge({key: item}) for key, item in value.items()}
        faults = [Fault(below(path, key), text) for key, text in said.items() if text]
        return faults, {key: item for key, item in value.items() if not said[key]}
    if isinstance(value, list):
        texts = [judge([item]).replace(f"{name}[0]", f"{name}[{at}]") for at, item in enumerate(value)]
        faults = [Fault(below(path, at), text) for at, text in enumerate(texts) if text]
        return faults, [item for item, text in zip(value, texts) if not text]
    return [], value
