# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit fabric-manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.host import Host
from ..core.plan import Past, Unit
from ..core.unknown import later
from ..look import fabric
from ..plan import fabric_manager as planner
from ..plan.unit_names import FABRIC_MANAGER as NAME

if TYPE_CHECKING:
    from ..plan.packages_seen import Packages


def look(host: Host, settings: planner.Settings | None, past: Past) -> planner.Now:
    """The board first: where it has no NVSwitches, nothing else is looked at."""
    if settings is None:
        return planner.Now()
    board = fabric.board(host)
    if not board.is_switched:
        return planner.Now(board)
    from ..look.driver import loaded
    from ..look.driver_library import library
    from ..look.fabric_packages import installed
    from ..look.services import service
    from ..plan.fabric_manager_installed import as_needed, whole_at

    driver = loaded(host)
    manager = service(host, planner.SERVICE)
    packages = installed(host)
    now = planner.Now(
        board=board,
        driver=driver.version if driver else None,
        library=library(host) if driver else None,
        service=manager,
        fabric=later(fabric.joined, host) if manager.runs and driver else (),
        umad=fabric.umad(host) if board.managers else False,
        load_file=host.file(planner.LOAD),
    )
    if driver and not as_needed(packages, driver.version, bool(board.managers), past):
        now = now._replace(packages=_shelf(host))
    if driver and manager.runs and (planner.RESTART in past.owed or not whole_at(packages, driver.version)):
        from ..look.clients import users

        return now._replace(users=later(users, host))
    return now


def _shelf(host: Host) -> Packages:
    """All that is needed to change them."""
    from ..look.packages import packages
    from ..plan.fabric_manager_installed import PACKAGES

    return packages(host, PACKAGES, NAME)


UNIT = Unit(NAME, planner.FIELDS, planner.check, look, planner.plan, planner.absent)
