# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which GPUs of a host are shared, for its facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from ..core.host import Host
from ..plan.unit_names import GPU_SHARING

SERVICE = "/etc/systemd/system/bcd-mps.service"  # without the imports of those who write it

Share = Callable[[str, bool], Any]


def shares(host: Host, applied: Callable[[], Mapping[str, Any]]) -> Share:
    """What tells of a GPU's UUID, and of whether MIG divides it, how it is shared (see plan.gpu_shares).

    `applied` reads root's record of the wire settings; raises what that raises.
    """
    recorded, service = applied().get(GPU_SHARING), host.file(SERVICE)
    if recorded is None and service is None:
        return lambda gpu, divided: None
    from ..plan.gpu_shares import settings_of, share_of

    settings = settings_of(recorded)
    return lambda gpu, divided: share_of(settings, service, gpu, divided)
