# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root's own configuration, for the module host_config: run as a unit is, and no unit of a section."""

from __future__ import annotations

from ..core.host import Host
from ..core.plan import Past, Unit
from ..look.config import config
from ..plan import host_config as planner
from ..plan.installed import CONFIG, GROUP


def look(host: Host, settings: planner.Settings | None, _past: Past) -> planner.Now:
    """The configuration as root may believe it (see look.config), and who may read it."""
    group = GROUP if settings is None else settings.group
    return planner.Now(
        tables=config(host),
        file=host.file(CONFIG),
        record=host.file(planner.RECORD),
        folder_owner=host.ask(planner.asks_owner(planner.FOLDER)).out.strip(),
        file_owner=host.ask(planner.asks_owner(CONFIG)).out.strip(),
        has_group=host.ask(planner.asks_group(group)).rc == 0,
    )


UNIT = Unit(planner.NAME, planner.FIELDS, planner.check, look, planner.plan, planner.absent, recorded=False)
