# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""This machine's Node around a reboot, for the module kube_node: run as a unit is, and no unit of a section."""

from __future__ import annotations

from ..core.host import Host
from ..core.plan import Past, Unit
from ..look.kube_cordon import look as seen
from ..plan import kube_cordon as planner


def look(host: Host, settings: planner.Settings | None, _past: Past) -> planner.Now:
    """The Node and our record of it."""
    return seen(host, settings)


UNIT = Unit(planner.NAME, (), planner.check, look, planner.plan, planner.absent, recorded=False)
