# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The doctor's checks of who may have root do what: config, signatures, node, helper, agent, clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Callable

from .doctor_seen import FAILURE, FIRST, OK, RECORD, WARNING, Snapshot, Told
from .installed import (
    AGENT_SERVICE,
    AGENT_TIMER,
    CONFIG,
    ENROLL,
    GROUP,
    HELPER_SERVICE,
    HELPER_SOCKET,
    SCRIPT,
    SOCKET,
)
from .pins import JOIN_KEY, ROOTS
from .service_seen import Service

# As the specification words it.
UNSIGNED = "bcd helper applies host units unsigned unless the node itself presents a trust bundle"
KEYS = {
    "": (ROOTS, JOIN_KEY, "signing_key"),
    "host": ("units",),
    "kubernetes": ("allowed_clusters",),
}  # what we read of config.toml; another program may read more of it
NOT_OWNED = "must be a regular file root owns"  # as look/config words it
LATE = 3600  # seconds: the agent's timer is due every ten minutes


def config(seen: Snapshot) -> Iterator[Told]:
    """config.toml is root's and can be read; no key that is nearly one of ours."""
    if seen.config.fault:
        yield Told(
            FAILURE, f"{seen.config.fault}: until then nothing is applied on this host{_owned(seen.config.fault)}"
        )
        return
    for table, keys in seen.config.tables.items():
        for key in keys:
            meant = _meant(table, key)
            if meant:
                place = f"[{table}] {key}" if table else key
                yield Told(WARNING, f"{CONFIG} has {place}, which nothing reads: is {meant} meant?")
    if seen.config.there:
        yield Told(OK, f"{CONFIG} is root's, and says what is understood")


def _owned(fault: str) -> str:
    """How to have a file as root's files have to be, where that is the fault."""
    return f" (chown root:{GROUP} {CONFIG}; chmod 0640 {CONFIG})" if NOT_OWNED in fault else ""


def _meant(table: str, key: str) -> str:
    """The key of ours that this one may be a slip of; "" where it is one of ours, or none that is like it."""
    ours = KEYS.get(table, ())
    pins = (ROOTS, JOIN_KEY)  # these are read in whichever table
    if key in ours or key in pins:
        return ""
    from difflib import get_close_matches

    known = {f"[{place}] {name}" if place else name: name for place, names in KEYS.items() for name in names}
    close = get_close_matches(key, known.values(), 1, 0.75)
    return next((place for place, name in known.items() if close and name == close[0]), "")


def signed_intent(seen: Snapshot) -> Iterator[Told]:
    """Something demands a signature wherever a helper applies what an unprivileged account asks for."""
    if seen.config.fault:
        return  # said by config
    if seen.trust.fault:
        yield Told(FAILURE, seen.trust.fault)
    elif seen.trust.demand:
        yield Told(OK, f"{seen.trust.demand} a signed spec")
    elif seen.helper.installed:
        yield Told(
            FAILURE,
            f"{UNSIGNED}: pin {ROOTS} in {CONFIG} ({ENROLL}), or join the machine again as root against a control "
            "plane that signs intent",
        )


def node_binding(seen: Snapshot) -> Iterator[Told]:
    """Which node specs must be for: by root's join record, or only by the first spec that came."""
    trust = seen.trust
    if seen.config.fault or trust.fault or not trust.library or not (seen.helper.installed or trust.pinned):
        return
    if not trust.demand:
        yield Told(
            FAILURE,
            f"nothing is signed on this host, and no spec names the node that it is for: pin {ROOTS} in {CONFIG} "
            f"({ENROLL})",
        )
    elif trust.binding == RECORD:
        yield Told(OK, f"root's join record binds this host to the node {trust.node_id}")
    elif trust.binding == FIRST:
        yield Told(
            WARNING,
            f"only the first signed spec that came binds this host to the node {trust.node_id}: if that is right "
            f"and a control plane has its join record, lay that down ({ENROLL} with bcd_config_join_record), which "
            "binds it for good",
        )
    else:
        yield Told(
            WARNING,
            "no join record binds this host to a node, and the first signed spec that comes will, another node's too: "
            f"join it as root for a join record ({ENROLL} with bcd_config_join_record)",
        )


def cryptography(seen: Snapshot) -> Iterator[Told]:
    """What is pinned can be verified."""
    if seen.trust.pinned and not seen.trust.library:
        yield Told(
            FAILURE,
            f"{CONFIG} pins a signer, and this host's Python has no package cryptography to verify by, so that every "
            "spec is refused: install python3-cryptography",
        )


def helper(seen: Snapshot) -> Iterator[Told]:
    """The helper's socket listens, now and after a boot, for a group that has somebody in it."""
    it = seen.helper
    if not it.installed:
        return
    faults = list(_unit(HELPER_SOCKET, it.socket, it.systemd))
    if it.systemd and it.socket.runs and not it.listens:
        faults.append(
            Told(FAILURE, f"{SOCKET} is not there, and {HELPER_SOCKET} runs: systemctl restart {HELPER_SOCKET}")
        )
    if it.service.active == "failed":
        faults.append(Told(FAILURE, f"{HELPER_SERVICE} has failed: see journalctl -u {HELPER_SERVICE}"))
    yield from faults
    yield from (told for told in _accounts(seen) if told.level != OK or not faults)  # it answers nobody then


def _accounts(seen: Snapshot) -> Iterator[Told]:
    it = seen.helper
    if it.group is None:
        yield Told(FAILURE, f"there is no group {GROUP}, and only root may use the helper: make it again by {ENROLL}")
    elif not it.members:
        yield Told(
            WARNING,
            "nobody is in the group bcd, and only root may use the helper: add the account that Ansible logs in with "
            f"({ENROLL} with bcd_config_members)",
        )
    else:
        yield Told(OK, f"bcd helper answers root and the group bcd ({', '.join(it.members)})")


def _unit(name: str, unit: Service, systemd: bool) -> Iterator[Told]:
    if not systemd:
        yield Told(FAILURE, f"{name} is installed, and systemd does not run here: boot the host by systemd")
    elif not unit.runs:
        is_now = "has failed" if unit.active == "failed" else f"is {unit.active or 'not loaded'}"
        yield Told(FAILURE, f"{name} {is_now}: systemctl enable --now {name}, and see journalctl -u {name}")
    if not unit.enabled.startswith("enabled") and systemd:
        yield Told(FAILURE, f"{name} is {unit.enabled or 'not enabled'} at the next boot: systemctl enable {name}")


def agent(seen: Snapshot) -> Iterator[Told]:
    """The agent's timer runs, now and after a boot, and its last pass came to an end."""
    it = seen.agent
    if not it.installed:
        return
    before = list(_unit(AGENT_TIMER, it.timer, seen.helper.systemd))
    yield from before
    if it.service.active == "failed":
        yield Told(FAILURE, f"{AGENT_SERVICE} has failed: see journalctl -u {AGENT_SERVICE}")
    if it.says:
        yield Told(WARNING, f"the agent's last pass left something undone: {it.says}")
    if before:
        return
    works = it.service.runs or it.service.active == "activating"  # systemd forgets the last end when it starts anew
    if works or it.up <= LATE or (it.age is not None and it.age <= LATE):
        yield Told(OK, "bcd agent keeps what was applied")
        return
    made = "has made no pass in this boot" if it.age is None else f"made its last pass {it.age // 60} minutes ago"
    yield Told(
        WARNING,
        f"the agent {made}, and one is due every ten minutes: see systemctl list-timers {AGENT_TIMER}",
    )


def program(seen: Snapshot) -> Iterator[Told]:
    """The program of helper and agent is that of the collection that looks."""
    it = seen.program
    if it.installed and it.own and it.installed.partition("+")[0] != it.own:
        yield Told(
            WARNING,
            f"the program bcd on this host has version {it.installed}, and this is {it.own}: bring them to one version "
            "(the role bcd_helper)",
        )
    if not it.installed and (seen.helper.installed or seen.agent.installed):
        yield Told(FAILURE, f"{SCRIPT} is not there, and helper or agent need it: {ENROLL}")


def gpu_binding(seen: Snapshot) -> Iterator[Told]:
    """Passes on a host with GPUs can hold them."""
    if not seen.gpus.number:
        return
    if not seen.root and not seen.helper.listens:
        yield Told(
            WARNING,
            f"this host has {seen.gpus.number} GPUs, and a pass by this account, which runs without root and without a "
            "helper, can hold none of them (node-unprivileged): set become: true, or enroll the host with its helper",
        )
    else:
        how = "as root" if seen.root else "through the helper"
        yield Told(OK, f"passes that run {how} can hold this host's GPUs ({seen.gpus.number})")


TRUST_CHECKS: dict[str, Callable[[Snapshot], Iterable[Told]]] = {
    "config": config,
    "signed-intent": signed_intent,
    "node-binding": node_binding,
    "cryptography": cryptography,
    "helper": helper,
    "agent": agent,
    "program": program,
    "gpu-binding": gpu_binding,
}
