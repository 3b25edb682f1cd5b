# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit fabric-manager."""

from __future__ import annotations

from ..core.host import Host
from ..core.plan import Past, Unit
from ..core.unknown import later
from ..look import fabric
from ..plan import fabric_manager as planner
from ..plan.unit_names import FABRIC_MANAGER as NAME


def look(host: Host, settings: planner.Settings | None, past: Past) -> planner.Now:
    """The board first: where it has no NVSwitches, nothing else is looked at."""
    if settings is None:
        return planner.Now()
    board = fabric.board(host)
    if not board.is_switched:
        return planner.Now(board)
    from ..look.driver import library, loaded
    from ..look.packages import packages
    from ..look.systemd import service
    from ..plan.fabric_manager_packages import PACKAGES, whole_at

    driver = loaded(host)
    manager = service(host, planner.SERVICE)
    shelf = packages(host, PACKAGES, NAME)
    now = planner.Now(
        board=board,
        driver=driver.version if driver else None,
        library=library(host) if driver else None,
        packages=shelf,
        service=manager,
        fabric=later(fabric.joined, host) if manager.runs and driver else (),
        umad=fabric.umad(host) if board.managers else False,
        load_file=host.file(planner.LOAD),
    )
    if driver and manager.runs and (planner.RESTART in past.owed or not whole_at(shelf, driver.version)):
        from ..look.clients import users

        return now._replace(users=later(users, host))
    return now


UNIT = Unit(NAME, planner.FIELDS, planner.check, look, planner.plan, planner.absent)
