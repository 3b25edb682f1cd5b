# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a FleetConfig makes of an inventory: which host is in which pool, the groups, and their variables.

A host is in a pool because the pool names it (`hosts`), because it names the pool (its variable ``bcd_pool``), or
because a source before has it, and has put it into the pool's group or given it ``bcd_labels`` for which the pool's
`select` holds. Two pools that have one host are a fault, as is a pool that a host names and nobody has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ..module_utils.plan.unit_names import MIG_LAYOUT
from .fleet_config import LABELS, PLUGIN, group_word
from .host_labels import label_faults, labels_of
from .input_faults import Fault, below, plain, shown, some
from .label_expression import Expression, holds, parse
from .profile_units import FROM, WHEN

GATE = "bcd_mig_gate"
# Rendered when a task asks, by what host_info has shown of the GPUs in this run; a host's own variable wins over each.
# What is signed for a host is what counts, whatever its GPUs show: the units beside it are to say the same.
TEMPLATES = {
    "bcd_fleet_labels": (
        "{{ bcd_pool_config.labels | default({}, true) | combine(bcd_labels | default({}, true),"
        " {'pool': bcd_pool_config.name, 'site': bcd_pool_config.site, 'class': bcd_pool_config['class']}) }}"
    ),
    "bcd_converge_units": (
        "{{ undef(hint='the host has its section as bcd_converge_wire_units') if bcd_converge_wire_units is defined"
        " else bcd_pool_config | bettercompute.bcd.host_units(profile=bcd_profile_config, labels=bcd_fleet_labels,"
        " gpus=none if bcd_converge_signed_spec is defined"
        " else ((ansible_facts | default({})).bcd | default({})).gpus | default(none)) }}"
    ),
}
TO_BE_FIRST = (
    "hosts of other sources join it, by bcd_pool or by select, only where their source is read before this one: "
    "give it first (-i hosts.yml -i fleet.yml), or in a directory a name that sorts before this file's"
)


class Seen(NamedTuple):
    """A host: whether a source before has it, its ``bcd_pool`` ("" where it has none), ``bcd_labels`` and groups."""

    is_earlier: bool
    pool: Any
    labels: Any
    groups: frozenset[str]


class Fleet(NamedTuple):
    """The groups with their hosts, in the document's order, and their variables; pools that nobody is in."""

    members: dict[str, list[str]]
    variables: dict[str, dict[str, Any]]
    empty: list[str]


class Pool(NamedTuple):
    """A pool of the document, of which only so much is sure: its path there, its name, itself."""

    path: str
    name: str
    config: Mapping[str, Any]


class Claim(NamedTuple):
    """A pool that has a host, and why: a path in the document, or words."""

    pool: Pool
    why: str


def group(kind: str, name: str) -> str:
    """The group of a pool, a site or a class."""
    return f"bcd_{kind}_{group_word(name)}"


def is_fleet(document: Any) -> bool:
    """Whether a file that is named as one is a FleetConfig, well made or not, and no inventory of another kind."""
    if not isinstance(document, Mapping):
        return True
    if "plugin" in document:
        return bool(document["plugin"] == PLUGIN)
    return any(key in document for key in ("version", "pools", "profiles", "$schema"))


def pools_of(document: Any) -> list[Pool]:
    """The pools that have a name at all, so that what is wrong with others does not hide what is wrong with these."""
    pools = document.get("pools") if isinstance(document, Mapping) else None
    return [
        Pool(f"$.pools[{at}]", pool["name"], pool)
        for at, pool in enumerate(pools if isinstance(pools, list) else ())
        if isinstance(pool, Mapping) and isinstance(pool.get("name"), str)
    ]


def hosts_of(pool: Pool) -> dict[str, Mapping[str, Any]]:
    """The hosts that a pool names, with their variables."""
    hosts = pool.config.get("hosts")
    named = hosts.items() if isinstance(hosts, Mapping) else ()
    return {name: own if isinstance(own, Mapping) else {} for name, own in named if isinstance(name, str) and name}


def place(
    document: Any, hosts: Mapping[str, Seen], before: Mapping[str, str], beside: Mapping[str, str]
) -> tuple[dict[str, list[str]], list[Fault]]:
    """The hosts of each pool of a document, in its order, and what is wrong with who is in which.

    `hosts` are all hosts so far, those that the document names too. `before` are the pools of the documents that were
    read before, by name, each with where it is, and `beside` those of the files beside this one, of which nobody knows
    whether they will be read: a host may be in one of either instead.
    """
    pools = pools_of(document)
    elsewhere = {**beside, **before}
    faults = [*_same_pool(pools, before), *_unknown_pools(pools, hosts, elsewhere)]
    placed: dict[str, list[str]] = {pool.name: [] for pool in pools}
    for host, claimed in _claims(pools, hosts).items():
        first = claimed[0].pool
        faults += [*_two_pools(host, claimed, hosts[host], elsewhere), *_labels(host, first, hosts[host])]
        placed[first.name].append(host)
    return placed, faults


def fleet_of(document: Mapping[str, Any], hosts: Mapping[str, Seen], placed: Mapping[str, list[str]]) -> Fleet:
    """The groups of a document that has no fault, with its hosts as they were placed."""
    fleet = Fleet({}, {}, [pool.path for pool in pools_of(document) if not placed[pool.name]])
    for pool in pools_of(document):
        profile = profile_of(document, pool.config)
        _add(fleet, pool, profile, placed[pool.name])
        gated = [
            host for host in placed[pool.name] if _takes_layout(profile, labels_of(pool.config, hosts[host].labels))
        ]
        if gated:
            fleet.members.setdefault(GATE, []).extend(gated)
    return fleet


def _add(fleet: Fleet, pool: Pool, profile: Mapping[str, Any] | None, hosts: list[str]) -> None:
    for kind, key in (("pool", "name"), ("site", "site"), ("class", "class")):
        fleet.members.setdefault(group(kind, pool.config[key]), []).extend(hosts)
    fleet.variables[group("pool", pool.name)] = {
        "bcd_pool": pool.name,
        "bcd_site": pool.config["site"],
        "bcd_class": pool.config["class"],
        "bcd_pool_config": {key: value for key, value in pool.config.items() if key != "hosts"},
        "bcd_profile_config": profile,
        "bcd_converge_site": pool.config["site"],
    }


def _takes_layout(profile: Mapping[str, Any] | None, labels: Mapping[str, Any]) -> bool:
    """Whether a host with these labels is to have the MIG layout of its pool."""
    unit = ((profile or {}).get("hostConfig") or {}).get(MIG_LAYOUT) or {}
    return FROM in unit and _is_meant(unit.get(WHEN), labels)


def profile_of(document: Mapping[str, Any], pool: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The profile that a pool names, None where it names none or one that is not there."""
    profiles = document.get("profiles")
    for profile in profiles if isinstance(profiles, list) else ():
        if isinstance(profile, Mapping) and pool.get("profile") is not None and profile.get("name") == pool["profile"]:
            return profile
    return None


def _is_meant(expression: Any, labels: Mapping[str, Any]) -> bool:
    """Whether a label expression holds; one that is none has its own fault in the check of the document."""
    if not isinstance(expression, str):
        return expression is None
    parsed = _parsed(expression)
    return parsed is not None and holds(parsed, labels)


@lru_cache(maxsize=256)
def _parsed(expression: str) -> Expression | None:
    try:
        return parse(expression)
    except ValueError:
        return None


def _claims(pools: list[Pool], hosts: Mapping[str, Seen]) -> dict[str, list[Claim]]:
    """By host the pools that have it, each with why. Of two that both name it the check of the document tells."""
    found: dict[str, list[Claim]] = {}
    for pool in pools:
        for host in hosts_of(pool):
            found.setdefault(host, [Claim(pool, below(below(pool.path, "hosts"), host))])
    plainly = {host: seen._replace(labels=_plain_labels(seen)) for host, seen in hosts.items()}
    for pool in pools:
        for host, seen in plainly.items():
            why = "" if any(claim.pool.name == pool.name for claim in found.get(host, ())) else _why(pool, seen)
            if why:
                found.setdefault(host, []).append(Claim(pool, why))
    return found


def _plain_labels(seen: Seen) -> dict[str, Any]:
    """The labels of a host, as far as they are any; what is wrong with them is told once it is in a pool."""
    return plain(seen.labels, LABELS, []) if isinstance(seen.labels, Mapping) else {}


def _why(pool: Pool, seen: Seen) -> str:
    if seen.pool == pool.name:
        return f"its bcd_pool, {seen.pool!r}"
    if seen.is_earlier and group("pool", pool.name) in seen.groups:
        return f"its group {group('pool', pool.name)}"
    select = pool.config.get("select")
    if seen.is_earlier and isinstance(select, str) and _is_meant(select, seen.labels):
        return below(pool.path, "select")
    return ""


def _two_pools(host: str, claimed: list[Claim], seen: Seen, elsewhere: Mapping[str, str]) -> Iterator[Fault]:
    said = [(f"the pool {claim.pool.name!r}", claim.why) for claim in claimed]
    if seen.pool in elsewhere and all(claim.pool.name != seen.pool for claim in claimed):
        said.append((f"the pool {seen.pool!r} of {elsewhere[seen.pool]}", "its bcd_pool"))
    if len(said) > 1:
        told = " and ".join(f"{pool} by {why}" for pool, why in said)
        path = next((why for _pool, why in reversed(said) if why.startswith("$")), claimed[0].pool.path)
        yield Fault(path, f"the host {host} is in {told}: a host is in one pool, so leave it in one")


def _labels(host: str, pool: Pool, seen: Seen) -> list[Fault]:
    """What is wrong with labels that the host has of another source; the document's own are checked with it."""
    if seen.labels is None or LABELS in hosts_of(pool).get(host, {}):
        return []
    faults: list[Fault] = []
    own = plain(seen.labels, LABELS, faults)
    faults += label_faults(own, LABELS, pool.config)
    return [Fault(pool.path, f"the {fault.path} of the host {host}: {fault.text}") for fault in faults]


def _unknown_pools(pools: list[Pool], hosts: Mapping[str, Seen], elsewhere: Mapping[str, str]) -> Iterator[Fault]:
    known = {*(pool.name for pool in pools), *elsewhere}
    for host, seen in hosts.items():
        if seen.pool in (None, "") or (isinstance(seen.pool, str) and seen.pool in known):
            continue
        yield Fault(
            "$.pools",
            f"the host {host} has bcd_pool {shown(seen.pool)}, and no pool has that name ({some(sorted(known))}): "
            "correct one of the two, or take bcd_pool from the host",
        )


def _same_pool(pools: list[Pool], before: Mapping[str, str]) -> Iterator[Fault]:
    for pool in pools:
        if pool.name in before:
            yield Fault(below(pool.path, "name"), f"{before[pool.name]} has a pool {pool.name!r} too: rename one")
