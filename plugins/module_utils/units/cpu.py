# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit cpu."""

from __future__ import annotations

from ..core.host import Host
from ..core.plan import Past, Unit
from ..look.boot import boot, running_line
from ..look.cpu import cpus, policies, rivals, shown
from ..plan import cpu as planner
from ..plan.bootargs import record_path
from ..plan.unit_names import CPU as NAME


def look(host: Host, settings: planner.Settings | None, _past: Past) -> planner.Now:
    """Governors where one is managed; the boot loader where CPUs are isolated, or were by us."""
    governor = settings.governor if settings else ""
    isolate = settings.isolate if settings else ""
    concerned = bool(isolate) or host.exists(record_path(NAME))
    return planner.Now(
        policies=policies(host, governor) if governor else (),
        present=cpus(host, "present") if isolate else (),
        online=cpus(host, "online") if isolate else (),
        isolated=shown(host, "isolated") or "",
        nohz_full=shown(host, "nohz_full"),
        rivals=rivals(host) if governor else (),
        running=running_line(host),
        boot=boot(host, NAME) if concerned else None,
        at_boot=host.file(planner.AT_BOOT),
        systemd=host.exists("/run/systemd/system"),
    )


UNIT = Unit(NAME, planner.FIELDS, planner.check, look, planner.plan, planner.absent)
