# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A FleetConfig: what may stand in one, and everything that is wrong with one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .host_labels import FIXED, label_faults
from .input_faults import Fault, below, plain, shown, some, unknown_keys
from .label_expression import parse
from .pool_policy import LAYOUT, policy_units
from .profile_units import Named, profile_units

VERSION = 1
TOP = ("version", "profiles", "pools")
IGNORED = ("$schema", "plugin")  # for editors, and for Ansible
PROFILE = ("name", "hostConfig")
REQUIRED = ("name", "site", "class")
POOL = (*REQUIRED, "profile", "labels", "hosts", "select", "policy")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
KINDS = {key: label for label, key in FIXED.items()}  # by key of a pool: what its groups are of
LABELS = "bcd_labels"  # the variable of a host
PLUGIN = "bettercompute.bcd.fleet"

Units = Mapping[str, Named]


def fleet_faults(document: Any) -> list[Fault]:
    """Everything that is wrong with a FleetConfig, first the values that JSON does not have."""
    if not isinstance(document, Mapping):
        return [Fault("$", f"this is {shown(document)}: a FleetConfig is a mapping of {', '.join(TOP)}")]
    faults: list[Fault] = []
    config = plain(_without_variables(document), "$", faults)
    unread, these = {fault.path for fault in faults}, len(faults)
    faults += unknown_keys({key: None for key in config if key not in IGNORED}, TOP, "$")
    if config.get("plugin", PLUGIN) != PLUGIN:
        faults.append(Fault("$.plugin", f"this is {shown(config['plugin'])}: it is {PLUGIN} here, or not given"))
    if "version" not in config:
        faults.append(Fault("$", f"version is missing: give {VERSION}"))
    elif isinstance(config["version"], (bool, float)) or config["version"] != VERSION:
        faults.append(
            Fault("$.version", f"this is {shown(config['version'])}: this collection reads version {VERSION}")
        )
    profiles = _profiles(config, faults)
    _pools(config, profiles, faults)
    # What could not be read is null for all that follows, which has nothing more to say of it.
    return [fault for at, fault in enumerate(faults) if at < these or fault.path not in unread]


def _without_variables(document: Mapping[Any, Any]) -> dict[Any, Any]:
    """The document with each host's variables cut down to its labels: what else they hold is Ansible's, of any type."""
    pools = document.get("pools")
    if not isinstance(pools, list):
        return dict(document)
    return {**document, "pools": [_pool_without(pool) for pool in pools]}


def _pool_without(pool: Any) -> Any:
    hosts = pool.get("hosts") if isinstance(pool, Mapping) else None
    if not isinstance(hosts, Mapping):
        return pool
    kept = {
        name: {LABELS: given[LABELS]}
        if isinstance(given, Mapping) and LABELS in given
        else {}
        if isinstance(given, Mapping) or given is None
        else given
        for name, given in hosts.items()
    }
    return {**pool, "hosts": kept}


def _items(config: Mapping[str, Any], key: str, faults: list[Fault]) -> list[tuple[str, dict[str, Any]]]:
    """The mappings of a list of the document, each with its path."""
    given = config.get(key, [])
    if not isinstance(given, list):
        faults.append(Fault(f"$.{key}", f"this is {shown(given)}: give a list"))
        return []
    found = []
    for at, item in enumerate(given):
        place = below(f"$.{key}", at)
        if isinstance(item, dict):
            found.append((place, item))
        else:
            faults.append(Fault(place, f"this is {shown(item)}: give a mapping"))
    return found


def _profiles(config: Mapping[str, Any], faults: list[Fault]) -> dict[str, Units]:
    """The units of each profile by its name; faulty ones are left out of them."""
    found: dict[str, Units] = {}
    for path, profile in _items(config, "profiles", faults):
        faults += unknown_keys(profile, PROFILE, path)
        name = _name(profile, "name", path, faults)
        units = host_config_of(profile, path, faults)
        if name in found:
            faults.append(Fault(f"{path}.name", f"there is a profile {name} already: give each a name of its own"))
        elif name:
            found[name] = units
    return found


def host_config_of(profile: Mapping[str, Any], path: str, faults: list[Fault]) -> dict[str, Named]:
    """The units of a profile that lies at the path; adds what is wrong with them."""
    config = profile.get("hostConfig", {})
    place = below(path, "hostConfig")
    if not isinstance(config, dict):
        faults.append(Fault(place, f"this is {shown(config)}: give a mapping of units, {{}} for none"))
        return {}
    wrong, units = profile_units(config, place)
    faults += wrong
    return units


def _pools(config: Mapping[str, Any], profiles: Mapping[str, Units], faults: list[Fault]) -> None:
    names: set[str] = set()
    hosts: dict[str, str] = {}
    for path, pool in _items(config, "pools", faults):
        faults += unknown_keys(pool, POOL, path)
        name, _site, _class = (_name(pool, key, path, faults) for key in REQUIRED)
        if name and name in names:
            faults.append(Fault(f"{path}.name", f"there is a pool {name} already: give each a name of its own"))
        names.add(name)
        units = _profile_of(pool, profiles, path, faults)
        faults += pool_faults(pool, path)
        _hosts(pool, path, hosts, faults)
        faults += layout_missing(pool, units, path)
    for key in REQUIRED:
        faults += _collisions(config, key)


def pool_faults(pool: Mapping[str, Any], path: str) -> list[Fault]:
    """What is wrong with the labels, the selection and the policy of a pool that lies at the path."""
    faults = []
    if pool.get("labels") is not None:
        faults += label_faults(pool["labels"], below(path, "labels"), pool)
    if "select" in pool:
        faults += _select(pool["select"], below(path, "select"))
    policy = pool.get("policy", {})
    place = below(path, "policy")
    if not isinstance(policy, dict):
        return [*faults, Fault(place, f"this is {shown(policy)}: give a mapping, or leave policy out")]
    return [*faults, *policy_units(policy, place)[0]]


def layout_missing(pool: Mapping[str, Any], units: Units, path: str) -> list[Fault]:
    """The fault of a pool that has no layout for units that take it on every host."""
    policy = pool.get("policy") or {}
    takers = [name for name, unit in units.items() if unit.takes_pools_layout and unit.when is None]
    if not takers or not isinstance(policy, dict) or LAYOUT in policy:
        return []
    return [no_layout(path, takers[0])]


def no_layout(path: str, taker: str) -> Fault:
    """The fault of the pool at the path, which has no layout for a unit that takes it."""
    text = f"{LAYOUT} is missing, and {taker} of the profile takes it (from: pool): give it, or a layout in the profile"
    return Fault(below(path, "policy"), text)


def _select(given: Any, path: str) -> list[Fault]:
    if not isinstance(given, str):
        return [Fault(path, f"this is {shown(given)}: give a label expression as text")]
    try:
        parse(given)
    except ValueError as fault:
        return [Fault(path, str(fault))]
    return []


def _name(given: Mapping[str, Any], key: str, path: str, faults: list[Fault]) -> str:
    """A name that has to be there; "" where there is none that is one."""
    if key not in given:
        faults.append(Fault(path, f"{key} is missing: give it"))
        return ""
    name = given[key]
    if isinstance(name, str) and NAME.fullmatch(name):
        return name
    rule = "letters, digits, dots, - and _, at most 63, and begins with a letter or a digit"
    faults.append(Fault(below(path, key), f"this is {shown(name)}: a name has {rule}"))
    return ""


def _profile_of(pool: Mapping[str, Any], profiles: Mapping[str, Units], path: str, faults: list[Fault]) -> Units:
    if "profile" not in pool or pool["profile"] is None:
        return {}
    name = pool["profile"]
    if isinstance(name, str) and name in profiles:
        return profiles[name]
    text = f"this is {shown(name)}, and the profiles here are {some(profiles)}: correct it"
    faults.append(Fault(below(path, "profile"), text))
    return {}


def _hosts(pool: Mapping[str, Any], path: str, seen: dict[str, str], faults: list[Fault]) -> None:
    """Hosts of the pool: each in one pool alone, with labels that its pool agrees to. `seen`: the pool of each."""
    hosts = pool.get("hosts")
    place = below(path, "hosts")
    if hosts is None:
        return
    if not isinstance(hosts, dict):
        faults.append(Fault(place, f"this is {shown(hosts)}: give a mapping from hosts to their variables"))
        return
    for name, variables in hosts.items():
        here = below(place, name)
        if not name or any(letter.isspace() or not letter.isprintable() for letter in name):
            faults.append(Fault(here, "a host's name is a word without blanks: correct it"))
        if name in seen:
            faults.append(Fault(here, f"this host is one of {seen[name]} already: a host has one pool"))
        seen.setdefault(name, path)
        if not isinstance(variables, dict):
            faults.append(Fault(here, f"this is {shown(variables)}: give a mapping of variables, or nothing"))
        elif LABELS in variables:
            faults += label_faults(variables[LABELS], below(here, LABELS), pool)


def group_word(name: str) -> str:
    """A name as a part of a group's: every character that is not a word's is _."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def _collisions(config: Mapping[str, Any], key: str) -> Iterable[Fault]:
    """Names of pools, sites or classes that differ, and would be one group."""
    first: dict[str, str] = {}
    pools = config.get("pools")
    for at, pool in enumerate(pools if isinstance(pools, list) else []):
        name = pool.get(key) if isinstance(pool, dict) else None
        if not isinstance(name, str) or not NAME.fullmatch(name):
            continue
        group = group_word(name)
        other = first.setdefault(group, name)
        if other != name:
            text = f"{name} and {other} are one group, bcd_{KINDS[key]}_{group}: rename one of them"
            yield Fault(f"$.pools[{at}].{key}", text)
