# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rolling reboot in sentences: what is planned, and what it came to."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from .reboot_seen import facts_of
from .reboot_waves import PROVE, REBOOT, End, called


def lines(plan: Mapping[str, Any], variables: Mapping[str, Any]) -> list[str]:
    """The plan for people: what is due and why, the waves of each pool, and who is left out."""
    found = _why(plan, variables)
    for pool, shown in plan["pools"].items():
        if shown["waves"]:
            gone = f", {len(shown['unavailable'])} unavailable now" if shown["unavailable"] else ""
            size = f"{shown['size']} host{'' if shown['size'] == 1 else 's'}"
            most = f"at most {shown['allowed']} unavailable at a time, room for {shown['room']}"
            found.append(f"{called(pool)}: {size}{gone}, {most}")
        for number, wave in enumerate(shown["waves"], 1):
            found.append(f"  wave {number}: " + ", ".join(_member(host, plan["turns"][host]) for host in wave))
    found += [f"left out, {host}: {why}" for host, why in plan["left_out"].items()]
    found += [f"failed, {host}: {why}" for host, why in plan["failed"].items()]
    return found or [f"no unit waits for a reboot on {_hosts(plan['looked'])}"]


def _member(host: str, turn: str) -> str:
    return host if turn == REBOOT else f"{host} ({'proof' if turn == PROVE else 'uncordon'})"


def _hosts(number: int) -> str:
    return f"the {number} hosts" if number > 1 else "the host"


def _why(plan: Mapping[str, Any], variables: Mapping[str, Any]) -> list[str]:
    """What is due, each text once with the hosts that it is of."""
    said: dict[str, list[str]] = {}
    for host, turn in plan["turns"].items():
        facts = facts_of(variables[host].get("bcd_before"))
        due, done = dict(facts.get("reboot_reasons") or {}), dict(facts.get("rebooted_for") or {})
        if turn == REBOOT:
            text = f"a reboot is due, of which the units say: {'; '.join(map(str, due.values()))}"
        elif turn == PROVE:
            text = f"rebooted since, and still to be looked at: {', '.join(done)}"
        else:
            text = "an earlier run cordoned its Node, and it is let go"
        said.setdefault(text, []).append(host)
    return [f"{', '.join(hosts)}: {text}" for text, hosts in said.items()]


def end(plan: Mapping[str, Any], came: End, limit: str) -> dict[str, Any]:
    """What the run came to: `stats` for what runs next, `lines` for people, and `failed`, the messages by host."""
    stats = {
        "rebooted": came.rebooted,
        "proved": came.proved,
        "left_out": came.left_out,
        "failed": came.failed,
        "waves": plan["waves"],
    }
    found = []
    if came.rebooted:
        found.append(f"rebooted and proved, {len(came.rebooted)}: {_few(came.rebooted)}")
    alone = [host for host in came.proved if host not in came.rebooted]
    if alone:
        found.append(f"proved without another reboot, {len(alone)}: {_few(alone)}")
    said: dict[str, list[str]] = {}
    for host, why in came.left_out.items():
        said.setdefault(why, []).append(host)
    found += [f"left out, {len(hosts)}: {_few(hosts)}: {why}" for why, hosts in said.items()]
    return {"stats": stats, "lines": found or ["no host was rebooted"], "failed": _failed(plan, came, limit)}


def _failed(plan: Mapping[str, Any], came: End, limit: str) -> dict[str, str]:
    """By host its reason, who did not begin because of it, and the next move."""
    found = {}
    for host, why in came.failed.items():
        pool = plan["pool_of"].get(host, "")
        is_end = came.ended.get(pool) == host
        waits = [other for other in came.left_out if is_end and plan["pool_of"].get(other) == pool]
        out = f"{limit}:!{host}" if limit else f"!{host}"
        found[host] = (
            f"{host}: {why}"
            + (f"; of {called(pool)} did not begin, {len(waits)}: {_few(waits)}" if waits else "")
            + ": mend it and start the playbook again"
            + (f", or leave this host out with --limit {shlex.quote(out)}" if len(plan["pool_of"]) > 1 else "")
        )
    return found


def _few(names: list[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
