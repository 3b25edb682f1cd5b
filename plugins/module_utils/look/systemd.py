# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether systemd manages this host, and unit files of ours."""

from __future__ import annotations

from ..core.host import Host
from ..plan.systemd_asks import FOLDER, RUNNING
from ..plan.systemd_seen import Systemd, UnitFile
from . import held


def systemd(host: Host) -> Systemd:
    """Whether systemd is PID 1 here, and whether holds exist."""
    return Systemd(host.exists(RUNNING), bool(host.sight(held.has_holds)))


def unit_file(host: Host, name: str, wanted_by: str, ask: bool = False) -> UnitFile:
    """One unit file of ours; `ask` also asks the manager whether it is behind, which costs a program."""
    bare = UnitFile(name, wanted_by)
    return bare._replace(
        file=host.file(f"{FOLDER}/{name}"),
        enabled=host.file(bare.link) is not None,
        behind=ask and _is_behind(host, name),
    )


def _is_behind(host: Host, name: str) -> bool:
    from ..plan.systemd_asks import asks_reload
    from . import service_state

    question = asks_reload(name)
    if host.foretells(question):
        return host.ask(question).out.strip() == "yes"
    return bool(host.sight(service_state.is_behind, name))
