# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rolling reboot as values: which hosts go when, so that no pool has more of them unavailable than it may.

A host's turn is one of three. `reboot`: it goes down, which takes room of its pool. `prove`: it was rebooted before,
and what it waited for is looked at. `release`: an earlier run cordoned its Node, and lets pods come again. The last two
make nothing unavailable, so they are always done, and first: what they find may end the pool's rollout.

The plan is a mapping of plain values, since it is kept as a fact between two plays:

    waves      hosts by wave, in order; queue, the same in one list; sizes, how many each wave has
    turns      host in the queue -> its turn
    pool_of    host in the queue -> its pool
    pools      pool -> size, allowed, room (see Rollout), unavailable (host -> why), cordoned (by us), ended (by whom),
               waves
    left_out   host that waits for a reboot -> why it has no turn
    failed     host -> what is wrong with it
    looked     how many hosts of this run were looked at
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from .reboot_budget import Limit, allowed

REBOOT, PROVE, RELEASE = "reboot", "prove", "release"
DONE, FAILED, STUCK, LEFT_OUT = "done", "failed", "stuck", "left out"  # how a turn ends
NO_ANSWER = "it gave no answer"


class Seen(NamedTuple):
    """A host as the look before the reboots found it.

    `reach`: this run may touch it. `unavailable`: why its pool has to do without it now, a clause, "" where it has not.
    `away`: why it could not be looked at; `fault`: what ends the pool's rollout; `kept`: why it is left out although it
    waits. `stays`: no turn of this run brings it back. `cordoned`: an earlier run of ours noted that it cordons its
    Node. `due`: it waits for a reboot; `done`: it was rebooted since. `most`: what it says of its pool's limit.
    """

    host: str
    pool: str
    site: str = ""
    reach: bool = True
    unavailable: str = ""
    away: str = ""
    fault: str = ""
    kept: str = ""
    stays: bool = False
    cordoned: bool = False
    due: bool = False
    done: bool = False
    most: Limit = Limit(1)


class Rollout(NamedTuple):
    """One pool: its waves of hosts, and the room that it has: hosts that may go down at a time."""

    waves: list[list[str]]
    turns: dict[str, str]
    left_out: dict[str, str]
    failed: dict[str, str]
    shown: dict[str, Any]
    room: int


class Outcome(NamedTuple):
    """How a host's turn ended; `away`: its pool has to do without it since."""

    state: str
    reason: str = ""
    away: bool = False


class Turn(NamedTuple):
    """What a host does when its wave comes: its turn, "" for nothing; why it is left out, "" where it is not."""

    turn: str
    reason: str = ""


def plan_waves(seen: Iterable[Seen]) -> dict[str, Any]:
    """The plan over all hosts of the pools, whether this run may touch them or not. Stable: by the order of `seen`.

    Of the limits that a pool's hosts give, the lowest is the pool's.
    """
    pools: dict[str, list[Seen]] = {}
    for one in seen:
        pools.setdefault(one.pool, []).append(one)
    rollouts = {
        pool: _rollout(pool, hosts, min(allowed(one.most, len(hosts)) for one in hosts))
        for pool, hosts in pools.items()
    }
    depth = max((len(rollout.waves) for rollout in rollouts.values()), default=0)
    waves = [
        [host for rollout in rollouts.values() if at < len(rollout.waves) for host in rollout.waves[at]]
        for at in range(depth)
    ]
    reach = [one for hosts in pools.values() for one in hosts if one.reach]
    return {
        "waves": waves,
        "queue": [host for wave in waves for host in wave],
        "sizes": [len(wave) for wave in waves],
        "turns": {host: turn for rollout in rollouts.values() for host, turn in rollout.turns.items()},
        "pool_of": {one.host: one.pool for one in reach},
        "pools": {pool: rollout.shown for pool, rollout in rollouts.items()},
        "left_out": {host: why for rollout in rollouts.values() for host, why in rollout.left_out.items()},
        "failed": {host: why for rollout in rollouts.values() for host, why in rollout.failed.items()},
        "looked": len(reach),
    }


def _rollout(pool: str, hosts: list[Seen], most: int) -> Rollout:
    """The waves of one pool: proofs and releases, then what is unavailable already and due, then the others."""
    reach = [one for one in hosts if one.reach]
    failed = {one.host: one.away or one.fault for one in reach if one.away or one.fault}
    ended = next((one.host for one in reach if one.fault and not one.away), "")
    turns = {one.host: _turn(one) for one in reach if one.host not in failed}
    left_out = {one.host: one.kept for one in reach if one.host in turns and one.due and one.kept}
    back = {host for host, turn in turns.items() if turn}  # comes back by its own turn, if it is gone
    lasting = {one.host: one.unavailable for one in hosts if one.unavailable and (one.stays or one.host not in back)}
    room = max(0, most - len(lasting))
    why = _why_not(pool, ended, failed, lasting, most, room)
    if why:
        for one in reach:
            if turns.get(one.host) == REBOOT:
                left_out[one.host] = why
                turns[one.host] = RELEASE if one.cordoned else ""
    first = [one.host for one in reach if turns.get(one.host) in (PROVE, RELEASE)]
    gone = _over_sites(one for one in reach if turns.get(one.host) == REBOOT and one.unavailable)
    others = _over_sites(one for one in reach if turns.get(one.host) == REBOOT and not one.unavailable)
    waves = [*([first] if first else []), *_chunks(gone, room), *_chunks(others, room)]
    shown = {
        "size": len(hosts),
        "allowed": most,
        "room": room,
        "unavailable": {one.host: one.unavailable for one in hosts if one.unavailable},
        "cordoned": [one.host for one in reach if one.cordoned],
        "ended": ended,
        "waves": [wave for wave in waves if wave],
    }
    return Rollout(waves, {host: turn for host, turn in turns.items() if turn}, left_out, failed, shown, room)


def _turn(one: Seen) -> str:
    if one.due and not one.kept:
        return REBOOT
    if one.done and not one.due:
        return PROVE
    return RELEASE if one.cordoned and not one.stays else ""  # none while it is going down


def _why_not(pool: str, ended: str, failed: Mapping[str, str], lasting: Mapping[str, str], most: int, room: int) -> str:
    """Why no host of the pool may go down, "" where one may."""
    if ended:
        return f"no host of {called(pool)} is rebooted while {ended} is as it is: {failed[ended]}"
    return "" if room else no_room(pool, lasting, most)


def no_room(pool: str, unavailable: Mapping[str, str], most: int) -> str:
    """That the pool has no room, and what takes it."""
    named = [f"{host} ({why})" for host, why in list(unavailable.items())[:5]]
    more = f" and {len(unavailable) - 5} more" if len(unavailable) > 5 else ""
    return (
        f"{called(pool)} may do without {most} host{'' if most == 1 else 's'} at a time, and does already, without "
        f"{', '.join(named)}{more}: bring {'it' if len(unavailable) == 1 else 'them'} back, or raise "
        "bcd_reboot_max_unavailable"
    )


def called(pool: str) -> str:
    """A pool in a sentence; hosts without one are a pool of their own."""
    return f"the pool {pool}" if pool else "the hosts without a pool"


def _over_sites(hosts: Iterable[Seen]) -> list[str]:
    """The hosts in turn from each site, so that one wave does not empty a site; stable within a site."""
    sites: dict[str, list[str]] = {}
    for one in hosts:
        sites.setdefault(one.site, []).append(one.host)
    rows = [sites[site] for site in sorted(sites)]
    return [row[at] for at in range(max(map(len, rows), default=0)) for row in rows if at < len(row)]


def _chunks(hosts: list[str], size: int) -> list[list[str]]:
    return [hosts[at : at + size] for at in range(0, len(hosts), max(1, size))]


# -- while it goes on


def turns(plan: Mapping[str, Any], outcomes: Mapping[str, Outcome], at: int) -> dict[str, Turn]:
    """What each host of the wave `at` may do now, by what the waves before came to."""
    return next(islice(_played(plan, outcomes), at, None))


def _played(plan: Mapping[str, Any], outcomes: Mapping[str, Outcome]) -> Iterator[dict[str, Turn]]:
    """Wave by wave what each host does, by what those before came to.

    A host that had a turn and has no outcome counts as failed: nobody knows how it is. One that had none, and was
    unavailable before, still is.
    """
    ended: dict[str, tuple[str, str]] = {}  # pool -> the host that ended its rollout, and why
    away: dict[str, dict[str, str]] = {}
    for wave in plan["waves"]:
        taken = _wave(plan, wave, ended, away)
        yield taken
        for host, turn in taken.items():
            pool, before = plan["pool_of"][host], plan["pools"][plan["pool_of"][host]]["unavailable"].get(host, "")
            idle = Outcome(LEFT_OUT, before, bool(before))
            outcome = outcomes.get(host, Outcome(FAILED, NO_ANSWER, True)) if turn.turn else idle
            if outcome.state == FAILED:
                ended.setdefault(pool, (host, outcome.reason))
            if outcome.away:
                away.setdefault(pool, {})[host] = outcome.reason


def _wave(
    plan: Mapping[str, Any],
    wave: Iterable[str],
    ended: Mapping[str, tuple[str, str]],
    away: Mapping[str, Mapping[str, str]],
) -> dict[str, Turn]:
    """The turns of one wave: what the pools have left of their room goes by the wave's order."""
    found: dict[str, Turn] = {}
    begun: dict[str, int] = {}
    for host in wave:
        pool, turn = plan["pool_of"][host], plan["turns"][host]
        gone = away.get(pool, {})
        if turn != REBOOT:
            found[host] = Turn(turn)
        elif pool in ended:
            culprit, why = ended[pool]
            found[host] = _left(plan, pool, host, f"the rollout of {called(pool)} ended with {culprit}: {why}")
        elif begun.get(pool, 0) >= plan["pools"][pool]["room"] - len(gone):
            found[host] = _left(plan, pool, host, _since(pool, gone))
        else:
            begun[pool] = begun.get(pool, 0) + 1
            found[host] = Turn(REBOOT)
    return found


def _since(pool: str, gone: Mapping[str, str]) -> str:
    named = ", ".join(f"{host} ({why})" for host, why in gone.items())
    return f"{called(pool)} has no room for another reboot since it has to do without {named}: bring back what is gone"


def _left(plan: Mapping[str, Any], pool: str, host: str, why: str) -> Turn:
    """Left out; one that an earlier run cordoned is let go."""
    return Turn(RELEASE if host in plan["pools"][pool]["cordoned"] else "", why)


class End(NamedTuple):
    """What the whole run came to: hosts that were rebooted and proved, that were left out and that failed, with why."""

    rebooted: list[str]
    proved: list[str]
    left_out: dict[str, str]
    failed: dict[str, str]
    ended: dict[str, str]  # pool -> the host that ended its rollout


def ending(plan: Mapping[str, Any], outcomes: Mapping[str, Outcome]) -> End:
    """The end, wave by wave, by the same decisions that were taken while it went on."""
    left_out, failed = dict(plan["left_out"]), dict(plan["failed"])
    rebooted: list[str] = []
    proved: list[str] = []
    ended = {pool: shown["ended"] for pool, shown in plan["pools"].items() if shown["ended"]}
    for taken in _played(plan, outcomes):
        for host, (turn, why) in taken.items():
            if why:
                left_out[host] = why
            if not turn:
                continue
            outcome = outcomes.get(host, Outcome(FAILED, NO_ANSWER, True))
            if outcome.state == LEFT_OUT:
                left_out[host] = outcome.reason
            elif outcome.state != DONE:
                failed[host] = outcome.reason
            if outcome.state == FAILED:
                ended.setdefault(plan["pool_of"][host], host)
            if outcome.state in (DONE, STUCK) and turn == REBOOT:
                rebooted.append(host)
            if outcome.state in (DONE, STUCK) and turn in (REBOOT, PROVE):
                proved.append(host)
    return End(rebooted, proved, left_out, failed, ended)
