# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether containerd's daemon answers, and how far a change of its files is that is not through."""

from __future__ import annotations

from ..core.errors import StepFailed, Unreadable
from ..core.host import Host
from ..core.unknown import later
from ..plan.containerd_daemon import VERSION, Daemon
from ..plan.containerd_seen import UNIT_FILE, Containerd
from ..plan.systemd_asks import RUNS
from .services import service, state

PATIENCE = 20.0  # seconds for a daemon that starts to answer
EVERY = 0.5  # seconds between two calls
CALL_TIMEOUT = 5.0
STAYS = 3.0  # seconds after which one that was restarted has to answer still: some die only then of what they read
NO_CRI = "unknown service"  # what gRPC says where the plugin is not loaded: no call later finds it


def with_daemon(host: Host, seen: Containerd) -> Containerd:
    """With what the daemon says, and what is now at the paths of the record of a change, where there is one.

    A daemon that a change has restarted has to go on answering.
    """
    if seen.record is None:
        return seen._replace(daemon=later(daemon, host, seen.address))
    from ..plan.containerd_change import CHANGING, parse_record

    former = {name: host.file(name) for name in parse_record(seen.record).files}
    stays = STAYS if parse_record(seen.record).phase == CHANGING else 0.0
    return seen._replace(former=former, daemon=later(daemon, host, seen.address, stays))


def daemon(host: Host, address: str, stays: float = 0.0) -> Daemon:
    """The service; one that runs, or comes up, is given time to answer.

    `stays`: one that answers is asked once more after these seconds.
    """
    seen = service(host, UNIT_FILE)
    left, asked = PATIENCE, None
    while True:
        silent = _silent(host, seen.active, address)
        if not silent and stays:
            host.sleep(stays)
            seen = seen._replace(active=state(host, UNIT_FILE))
            silent = _silent(host, seen.active, address)
        comes = seen.active in RUNS or seen.active == "activating"
        if not silent or not comes or NO_CRI in silent or left <= 0:
            return Daemon(seen.load, seen.active, seen.enabled, silent)
        before = host.clock() if asked is None else asked  # not for one that answers at once: see front.recall
        host.sleep(EVERY)
        asked = host.clock()
        left -= max(EVERY, asked - before)
        seen = seen._replace(active=state(host, UNIT_FILE))


def _silent(host: Host, active: str, address: str) -> str:
    """What keeps the CRI from answering; "" where it answers."""
    if active not in RUNS:
        return f"its service is {active or 'not run by systemd'}"
    try:
        host.unary(address, VERSION, timeout=CALL_TIMEOUT)
    except Unreadable:
        raise
    except StepFailed as fault:
        return fault.message.partition(": see ")[0]
    return ""
