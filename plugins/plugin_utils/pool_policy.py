# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pool's policy as units: which one each of its keys becomes, with the defaults of the control plane."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, NamedTuple

from ..module_utils.plan import unit_names as names
from ..module_utils.plan.gpu_sharing import MPS, REPLICAS
from ..module_utils.plan.unit_checks import refusal
from .input_faults import Fault, below, shown, unknown_keys
from .unit_faults import ANY_CLUSTER, unit_faults

PAGES = {"2Mi": "pages2m", "1Gi": "pages1g"}  # by size: the setting of the unit
HUGEPAGES = {"size": "2Mi or 1Gi", "count": "the number of pages"}  # what has to be there
CLUSTER = ("apiServer", "caCertSha256", "joinTokenRef")
DROPPED = ("gpu", "gpuApi")  # of policy.kubernetes, for who schedules
JOIN = (*CLUSTER, "labels", "taints", "kubernetesVersion", *DROPPED)
EXCLUSIVE = "exclusive"
MODES = (*REPLICAS, EXCLUSIVE)
LAYOUT = "migLayout"


class Made(NamedTuple):
    """What a key of the policy becomes: faults, or the settings of its unit, None where it has none."""

    faults: list[Fault]
    settings: dict[str, Any] | None = None


Make = Callable[[Any, str], Made]


def policy_units(policy: Mapping[str, Any], path: str) -> tuple[list[Fault], dict[str, dict[str, Any]]]:
    """The faults of a policy in plain values that lies at the path, and its units by name, good where there are none.

    What the host would refuse of a unit is a fault, at the key of the policy that it comes from.
    """
    faults: list[Fault] = []
    units: dict[str, dict[str, Any]] = {}
    for key, value in policy.items():
        place = below(path, key)
        if key == names.SYSCTL:
            text = "kernel parameters come only from a profile: give them as sysctl of its hostConfig"
            faults.append(Fault(place, text))
        elif key == LAYOUT:
            faults += layout_faults(value, place)
        elif key not in POLICY:
            faults.append(Fault(place, f"there is no such key here: it takes {', '.join(KEYS)}"))
        elif not isinstance(value, dict):
            faults.append(Fault(place, f"this is {shown(value)}: give a mapping, or leave {key} out"))
        else:
            unit, make = POLICY[key]
            made = make(value, place)
            faults += made.faults
            if made.settings is not None:
                units[unit] = made.settings
    return faults, units


def layout_faults(value: Any, path: str) -> list[Fault]:
    """What is wrong with a layout of MIG that lies at the path."""
    text = refusal(names.MIG_LAYOUT, {"layout": value})
    return [Fault(path, text)] if text else []


def _as_it_is(unit: str) -> Make:
    def make(value: dict[str, Any], path: str) -> Made:
        return Made(unit_faults(unit, value, path), value)

    return make


def _hugepages(value: dict[str, Any], path: str) -> Made:
    """{size, count, perNuma?}: the count is of the unit's setting for the size."""
    faults = unknown_keys(value, ("size", "count", "perNuma"), path)
    size = value.get("size")
    missing = [f"{key} ({what})" for key, what in HUGEPAGES.items() if key not in value]
    if missing:
        faults.append(Fault(path, f"{' and '.join(missing)} must be given"))
    if "size" in value and (not isinstance(size, str) or size not in PAGES):
        faults.append(Fault(below(path, "size"), f"this is {shown(size)}: give {' or '.join(PAGES)}"))
    setting = PAGES.get(size, PAGES["2Mi"]) if isinstance(size, str) else PAGES["2Mi"]
    settings = {setting if key == "count" else key: value[key] for key in ("count", "perNuma") if key in value}
    refused = unit_faults(names.HUGEPAGES, settings, path)
    faults += [
        Fault(fault.path.replace(below(path, setting), below(path, "count")), fault.text.replace(setting, "count"))
        for fault in refused
    ]
    return Made(faults, settings)


def _sharing(value: dict[str, Any], path: str) -> Made:
    """{mode, replicas?}: exclusive is no unit; each other mode has as many slots as the control plane counts."""
    faults = unknown_keys(value, ("mode", "replicas"), path)
    mode = value.get("mode")
    if "mode" not in value:
        faults.append(Fault(path, f"mode is missing: give one of {', '.join(MODES)}"))
    elif not isinstance(mode, str) or mode not in MODES:
        faults.append(Fault(below(path, "mode"), f"this is {shown(mode)}: give one of {', '.join(MODES)}"))
    shared = mode if isinstance(mode, str) and mode in REPLICAS else ""
    settings = {"mode": shared or MPS, "replicas": value.get("replicas", REPLICAS[shared or MPS])}
    faults += unit_faults(names.GPU_SHARING, settings, path)
    return Made(faults, settings if shared else None)


def _kubernetes(value: dict[str, Any], path: str) -> Made:
    """{apiServer, caCertSha256, joinTokenRef, ...}: these three or none, and without them no unit."""
    faults = unknown_keys(value, JOIN, path)
    missing = [key for key in CLUSTER if key not in value]
    given = [key for key in CLUSTER if key in value]
    if missing and given:
        faults.append(
            Fault(
                path,
                f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing: {', '.join(CLUSTER)} go "
                f"together, so give all three, or take out {' and '.join(given)}",
            )
        )
    settings = {key: item for key, item in value.items() if key in JOIN and key not in DROPPED}
    faults += unit_faults(names.K8S_JOIN, {**ANY_CLUSTER, **settings}, path)
    return Made(faults, None if missing else settings)


def _reserve(_value: dict[str, Any], _path: str) -> Made:
    """What of the host is kept from guests: for who counts capacity, and no unit."""
    return Made([])


POLICY: dict[str, tuple[str, Make]] = {
    "hugepages": (names.HUGEPAGES, _hugepages),
    "kernelModules": (names.KERNEL_MODULES, _as_it_is(names.KERNEL_MODULES)),
    "cpu": (names.CPU, _as_it_is(names.CPU)),
    "iommu": (names.IOMMU, _as_it_is(names.IOMMU)),
    "gpu": (names.GPU_SETTINGS, _as_it_is(names.GPU_SETTINGS)),
    "kubernetes": (names.K8S_JOIN, _kubernetes),
    "sharing": (names.GPU_SHARING, _sharing),
    "hostReserve": ("", _reserve),
}
KEYS = (*POLICY, LAYOUT)
