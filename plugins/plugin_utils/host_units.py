# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's units, rendered of its pool and its profile: the section in wire form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..module_utils.plan.unit_names import MIG_LAYOUT
from .fleet_config import POOL, PROFILE, host_config_of, no_layout, pool_faults
from .host_labels import FIXED, label_faults, labels_of
from .input_faults import Fault, InvalidInput, below, plain, shown, unknown_keys
from .label_expression import holds
from .mig_gate import gated
from .pool_policy import LAYOUT, layout_faults, policy_units
from .profile_units import Named

AT_POOL, AT_PROFILE, AT_LABELS = "$.pool", "$.profile", "$.labels"
AT_GPUS, AT_FROZEN = "$.gpus", "$.frozen_layout"


class _Given(NamedTuple):
    """The arguments in plain values, once nothing is wrong with them."""

    pool: dict[str, Any]
    profile: dict[str, Named]
    labels: dict[str, Any]
    frozen: Any
    gpus: list[dict[str, Any]]


def render(
    pool: Any,
    profile: Any = None,
    labels: Any = None,
    gpus: Any = None,
    frozen_layout: Any = None,
) -> dict[str, dict[str, Any]]:
    """The units of a host by wire name, sorted, each with its settings as the host takes them.

    `pool` and `profile` are as in a FleetConfig; `labels` are the host's own, or all that it has; `gpus` is what
    host_info returns, and `frozen_layout` a layout that the host is to keep whatever the pool's is. Raises InvalidInput
    with every fault; paths begin at the arguments: `$.pool.policy.cpu.isolate`, `$.profile.hostConfig.sysctl`.
    """
    given = _checked(pool, profile, labels, frozen_layout, gpus)
    units = {
        name: unit.settings
        for name, unit in given.profile.items()
        if unit.when is None or holds(unit.when, given.labels)
    }
    _faults, of_pool = policy_units(given.pool.get("policy", {}), AT_POOL)
    units.update(of_pool)
    if MIG_LAYOUT in units and given.profile[MIG_LAYOUT].takes_pools_layout:
        policy = given.pool.get("policy", {})
        if given.frozen is not None:
            units[MIG_LAYOUT] = gated(units[MIG_LAYOUT], given.frozen, [])
        elif LAYOUT in policy:
            units[MIG_LAYOUT] = gated(units[MIG_LAYOUT], policy[LAYOUT], given.gpus)
        else:
            raise InvalidInput([no_layout(AT_POOL, MIG_LAYOUT)])
    return {name: _settled(units[name]) for name in sorted(units)}


def _checked(pool: Any, profile: Any, labels: Any, frozen: Any, gpus: Any) -> _Given:
    faults: list[Fault] = []
    pool = _mapping(pool, AT_POOL, faults)
    profile = _mapping({} if profile is None else profile, AT_PROFILE, faults)
    own = _mapping({} if labels is None else labels, AT_LABELS, faults)
    frozen = plain(frozen, AT_FROZEN, faults)
    faults += unknown_keys(pool, POOL, AT_POOL)
    faults += unknown_keys(profile, PROFILE, AT_PROFILE)
    for key in FIXED.values():
        if key in pool and not isinstance(pool[key], str):
            faults.append(Fault(f"{AT_POOL}.{key}", f"this is {shown(pool[key])}: give a name as text"))
    faults += pool_faults(pool, AT_POOL)
    units = host_config_of(profile, AT_PROFILE, faults)
    faults += label_faults(own, AT_LABELS, pool)
    if frozen is not None:
        faults += layout_faults(frozen, AT_FROZEN)
    looked = _gpus(gpus, faults)
    if faults:
        raise InvalidInput(faults)
    return _Given(pool, units, labels_of(pool, own), frozen, looked)


def _gpus(given: Any, faults: list[Fault]) -> list[dict[str, Any]]:
    """What host_info shows of the GPUs; nothing where nobody looked."""
    if given is None:
        return []
    if not isinstance(given, list):
        faults.append(Fault(AT_GPUS, f"this is {shown(given)}: give the list gpus of host_info"))
        return []
    looked = []
    for at, gpu in enumerate(plain(given, AT_GPUS, faults)):
        if isinstance(gpu, dict) and isinstance(gpu.get("uuid"), str):
            looked.append(gpu)
        else:
            faults.append(Fault(below(AT_GPUS, at), "this is no GPU with its uuid: give the list gpus of host_info"))
    return looked


def _mapping(given: Any, path: str, faults: list[Fault]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        faults.append(Fault(path, f"this is {shown(given)}: give a mapping"))
        return {}
    given = {key: value for key, value in given.items() if key != "hosts"} if path == AT_POOL else given
    found: dict[str, Any] = plain(given, path, faults)
    return found


def _settled(value: Any) -> Any:
    """The value in one form: keys sorted, and a whole number that some serializer gave a point without it."""
    if isinstance(value, dict):
        return {key: _settled(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_settled(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
