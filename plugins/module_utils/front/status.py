# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a host is, true now: units, GPUs and who has them, holds, trust, the agent; the module host_status, the program.

The states are those of a pass over a predicted host, which changes nothing, of what the agent would apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core import host as machine
from ..core.errors import SEEN_AS_ROOT, Fault, NotKnownYet, Refused
from ..core.records import Records
from ..core.state import STATE
from ..plan import section

HOSTNAME = "/proc/sys/kernel/hostname"
UNKNOWN = "unknown"
OF_DEVICES = (
    "bound", "kept", "released", "releasing", "holds", "failures", "steps", "pending", "notes", "reason", "retryable",
    "msg",
)  # fmt: skip
HIDDEN = ("changed", "diff", "reboot_required")  # of a unit: what a plan would change is in its steps


def run_status(argument_spec: dict[str, Any]) -> None:
    """Return how the host is; changes nothing, takes no lock, and needs no root."""
    from .module import leave, start  # Ansible: the status below is made without it too

    leave(start(argument_spec), status_result())


def status_result() -> dict[str, Any]:
    """As root sees the host, where this process is root or a helper is there; else as this account does."""
    from .opening import asks_helper

    unheard: list[str] = []
    try:
        if asks_helper():
            from .through_helper import asked_of_helper

            return asked_of_helper("host.status")
    except Fault as fault:  # what needs no root is told all the same
        unheard = [f"as root: {fault.message}"]
    return _status(unheard)


def status_text(result: Mapping[str, Any]) -> str:
    """The result for a person."""
    from ..plan.status_text import of_status

    return "\n".join(of_status(result)) + "\n"


def _status(unheard: list[str]) -> dict[str, Any]:
    from ..core.predict import PredictedHost
    from ..plan.host_shown import shown
    from ..plan.release import VERSION
    from ..plan.status_text import of_status
    from .info import inventory
    from .standing import seen as trust

    host = machine.Host()
    facts = inventory(host, Records(host))
    kept = _kept(PredictedHost(host))
    result: dict[str, Any] = {
        "changed": False,
        "hostname": (host.read(HOSTNAME) or "").strip() or "localhost",
        "version": VERSION,
        "root": host.uid() == 0,
        **kept,
        **shown(facts),
        "trust": trust(PredictedHost(host)),
        "agent": _agent(PredictedHost(host)),
    }
    result["unreadable"] = unheard + _unread(result, facts["unreadable"])
    return {**result, "report": of_status(result)}


# -- the sections


def _kept(host: machine.Host) -> dict[str, Any]:
    """`state`, `kept` (from where), and `units`, `section`, `devices`: None where not seen, or not kept."""
    told: dict[str, Any] = {"state": UNKNOWN, "kept": SEEN_AS_ROOT, "units": None, "section": None, "devices": None}
    from ..look.config import refuse_if_outside
    from .agent import sections

    try:
        for name in ("applied", "asked"):  # Records takes one that this account may not see for one that is not there
            host.read(f"{STATE}/{name}.json")
        refuse_if_outside(host)
        found = sections(host)
    except NotKnownYet:
        return told
    except Fault as fault:
        state = "failed" if isinstance(fault, Refused) and not _is_outside(fault) else UNKNOWN
        return {**told, "state": "converged" if _is_outside(fault) else state, "kept": fault.message, "units": []}
    told.update(kept=found.why, units=[])
    if found.host is not None:
        told.update(_host(found.host))
    if found.devices is not None:
        told["devices"] = _devices(found.devices)
    return {**told, "state": _worst([part for part in (told["section"], told["devices"]) if part is not None])}


def _is_outside(fault: Fault) -> bool:
    from ..look.config import OUTSIDE

    return fault.message == OUTSIDE


def _host(options: Mapping[str, Any]) -> dict[str, Any]:
    from .section import section_result

    result = section_result({**options, "fail_on": "never"}, True, plans=True)
    units = [{key: value for key, value in unit.items() if key not in HIDDEN} for unit in result["units"]]
    return {"units": units, "section": result["section"]}


def _devices(options: Mapping[str, Any]) -> dict[str, Any]:
    from .holds import holds_result

    result = holds_result(options, True)
    return {**result["section"], **{key: result[key] for key in OF_DEVICES if key in result}}


def _worst(parts: list[Mapping[str, Any]]) -> str:
    states = {part["state"] for part in parts}
    order = (section.FAILED, section.PROGRESSING)
    return next((state for state in order if state in states), section.CONVERGED).lower()


# -- what else is told of it


def _agent(host: machine.Host) -> dict[str, Any] | None:
    """What the agent remembers: how its last pass ended and its newest repairs; None where this account may not see."""
    from .repairs import AGENT, seen

    try:
        host.read(AGENT)
    except NotKnownYet:
        return None
    except Fault as fault:
        return {"last": None, "repairs": [], "fault": fault.message}
    found = seen(host)
    return {"last": found["last"], "repairs": found["repairs"], "fault": None}


def _unread(result: Mapping[str, Any], told: list[str]) -> list[str]:
    """What is null here, and why: of the facts those that a status has, and what only root sees."""
    from ..plan.host_shown import untold

    unseen = [f"{part}: {SEEN_AS_ROOT}" for part in ("units", "trust", "agent") if result[part] is None]
    return [*unseen, *untold(told)]
