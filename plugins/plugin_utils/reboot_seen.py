# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the looks at hosts mean for a reboot: registered results of host_info, asked for the host's Node too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .reboot_waves import FAILED, LEFT_OUT, NO_ANSWER, Outcome, Seen
from .reboot_wishes import Wishes

# What the units say of a boot that had been asked for the argument, came up, and was not enough.
IN_VAIN = re.compile(r"booted with(out)? the argument|this boot has ")
RECORDS = re.compile(r"(reboot_required|reboot_reasons|rebooted_for): ")


def pools_of(hosts: Iterable[str], variables: Mapping[str, Any]) -> dict[str, str]:
    """The pool of each host by its variable bcd_pool, "" for none."""
    return {host: str(variables[host].get("bcd_pool") or "") for host in hosts}


def elsewhere(
    reach: list[str], everyone: Iterable[str], named: Iterable[str], variables: Mapping[str, Any]
) -> list[str]:
    """The hosts that this run may not touch and has to look at: the rest of each pool that has a host due.

    `reach` are the hosts of the run, after --limit; `named` those of bcd_hosts, before it, which are what the hosts
    without a pool are counted among.
    """
    inside = set(reach)
    due = {
        pool for host, pool in pools_of(reach, variables).items() if _waits(facts_of(variables[host].get("bcd_before")))
    }
    if not due:
        return []
    others = pools_of([host for host in everyone if host not in inside], variables)
    lone = set(named)
    return [host for host, pool in others.items() if pool in due and (pool or host in lone)]


def seen(
    reach: list[str],
    looks: Mapping[str, Any],
    variables: Mapping[str, Any],
    wishes: Mapping[str, Wishes],
    lost: Iterable[str] = (),
) -> list[Seen]:
    """Every host: those of the run with what they registered, then those elsewhere, with their look in `looks`.

    `lost` are those of the run that an earlier play lost: what they have registered is older than this run's look.
    """
    gone = set(lost)
    here = {host: None if host in gone else variables[host].get("bcd_before") for host in reach}
    found = [_seen(host, look, variables[host], True, wishes[host]) for host, look in here.items()]
    return found + [_seen(host, look, variables[host], False, wishes[host]) for host, look in looks.items()]


def facts_of(look: Any) -> Mapping[str, Any]:
    """The facts in a registered result of host_info, {} in one that has none."""
    facts = look.get("ansible_facts") if isinstance(look, Mapping) else None
    found = facts.get("bcd") if isinstance(facts, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _waits(facts: Mapping[str, Any]) -> bool:
    return bool(facts.get("reboot_reasons"))


def _seen(host: str, look: Any, variables: Mapping[str, Any], reach: bool, wishes: Wishes) -> Seen:
    facts = facts_of(look)
    one = Seen(host, str(variables.get("bcd_pool") or ""), str(variables.get("bcd_site") or ""), reach)
    one = one._replace(most=wishes.most)
    if not facts:
        why = " ".join(str(look.get("msg") or "").split()) if isinstance(look, Mapping) else ""
        return one._replace(
            away=f"it cannot be looked at: {why or NO_ANSWER}", unavailable="cannot be looked at", stays=True
        )
    due, done = dict(facts.get("reboot_reasons") or {}), dict(facts.get("rebooted_for") or {})
    one = one._replace(due=bool(due), done=bool(done), fault=_fault(facts, due, wishes))
    one = _node(one, facts, wishes)
    if facts.get("going_down"):
        text = f"it is going down by itself: {facts['going_down']}"
        return one._replace(kept=text, unavailable="is going down", stays=True, due=bool(due or done))
    held = _held(facts)
    if held and not wishes.with_holds and not one.kept:
        return one._replace(kept=held)
    return one


def _fault(facts: Mapping[str, Any], due: Mapping[str, str], wishes: Wishes) -> str:
    """Why the host cannot be rebooted, which ends its pool's rollout."""
    if facts.get("reboot_required") is None:
        said = [str(line) for line in facts.get("unreadable") or [] if RECORDS.match(str(line))]
        unread = "; ".join(dict.fromkeys(RECORDS.sub("", line, count=1) for line in said))
        root = " (only root reads it: set become)" if "ermission denied" in unread else ""
        return f"why the host waits for a reboot is in root's record, and cannot be told: {unread}{root}"
    if due and not wishes.again and all(IN_VAIN.search(str(why)) for why in due.values()):
        return (
            f"{'; '.join(map(str, due.values()))}: not rebooted again, as the last reboot was in vain: see which "
            "loader and which entry the node boots by, and mend what the reason names (-e bcd_reboot_again=true "
            "reboots all the same)"
        )
    return ""


def _node(one: Seen, facts: Mapping[str, Any], wishes: Wishes) -> Seen:
    """With what its Node shows, where it is a worker of a cluster."""
    node = facts.get("node")
    if node is None:
        said = [str(line) for line in facts.get("unreadable") or [] if str(line).startswith("node: ")]
        if not said or not (wishes.cordon or wishes.drain):
            return one
        why = f"whether its Node is cordoned cannot be told: {'; '.join(line[6:] for line in said)}"
        # A proof waits too: whether its Node is to be let go after it is not known.
        return one._replace(kept=why, unavailable="its Node cannot be asked for", stays=True, due=one.due or one.done)
    if not node:
        return one
    name = node.get("name")
    if node.get("cordoned_by") == "us":
        return one._replace(cordoned=True, unavailable=f"its Node {name} was cordoned by an earlier run")
    if node.get("cordoned_by"):
        why = (
            f"its Node {name} is cordoned, and not by us, so it stays as it is: have whoever did it let it go "
            f"(kubectl uncordon {name}), and start the playbook again"
        )
        return one._replace(kept=why, unavailable=f"its Node {name} is cordoned by others", stays=True)
    one = one._replace(cordoned=bool(node.get("remembered")))  # an earlier run was killed before, or after, its cordon
    return one if node.get("ready") else one._replace(unavailable=f"its Node {name} is not ready")


def _held(facts: Mapping[str, Any]) -> str:
    """Why its holds keep it up, "" where it has none."""
    holds = facts.get("holds")
    if holds is None:
        said = [str(line)[7:] for line in facts.get("unreadable") or [] if str(line).startswith("holds: ")]
        return f"whether allocations hold its devices cannot be told: {'; '.join(said)}" if said else ""
    names = sorted({str(hold.get("allocation_id")) for hold in holds})
    if not names:
        return ""
    listed = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
    return (
        f"allocations hold its devices, {listed}: release them, or reboot it under them with "
        "-e bcd_reboot_with_holds=true"
    )


# -- when a host's turn comes


def stays_up(look: Any, wishes: Wishes) -> dict[str, Any]:
    """Why the host is not rebooted after all, by a look of just now, which may be hours after that of the plan.

    `reason`, "" where it is rebooted; `state`, how its turn ends then; `away`, its pool has to do without it; `ours`,
    its Node is to be let go.
    """
    one = _seen("", look, {}, True, wishes)
    reason = one.away or one.fault or one.kept
    if not reason and not one.due:
        reason = "no unit of it waits for a reboot any more: somebody else has rebooted it, or changed its settings"
    ours = one.cordoned and not one.stays
    state = FAILED if one.fault and not one.away else LEFT_OUT
    return {"reason": reason, "state": state, "away": bool(one.unavailable) and not ours, "ours": ours}


# -- how turns ended


def outcomes(hosts: Iterable[str], variables: Mapping[str, Any]) -> dict[str, Outcome]:
    """How the turns of these hosts ended, by the fact bcd_reboot_outcome that each left."""
    found = {}
    for host in hosts:
        left = variables[host].get("bcd_reboot_outcome")
        if isinstance(left, Mapping) and left:
            found[host] = Outcome(str(left["state"]), " ".join(str(left["reason"]).split()), bool(left["away"]))
    return found
