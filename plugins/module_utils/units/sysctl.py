# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit sysctl."""

from __future__ import annotations

from ..core.host import Host
from ..core.plan import Past, Unit
from ..core.unknown import later
from ..look.sysctl import live, rivals
from ..plan import sysctl as planner
from ..plan.unit_names import SYSCTL as NAME


def look(host: Host, settings: planner.Settings | None, _past: Past) -> planner.Now:
    """Our file, the parameters that the settings name, and who else sets them."""
    paths = [key.path for key in settings.keys] if settings else []
    return planner.Now(
        file=host.file(planner.FILE),
        live={path: later(live, host, path) for path in paths},
        rivals=rivals(host, frozenset(paths), planner.FILE) if paths else (),
    )


UNIT = Unit(NAME, planner.FIELDS, planner.check, look, planner.plan, planner.absent)
