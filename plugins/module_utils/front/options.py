# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of a pass over the whole host, and of one over its devices: what the program, the agent and bcd helper
hand on is what the modules take, so that an option which a module gains is named here.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


HIGHEST = "gpu"  # of max_disruption
# Of the modules host_section and cdi_holds, each with its value where it is not given.
HOST: Mapping[str, Any] = {
    "units": None,
    "wire_units": None,
    "known": None,
    "generation": None,
    "only": None,
    "fail_on": "failed",
    "fail_on_secrets": False,
    "label": None,
    "node_id": None,
    "site": None,
    "secrets": None,
    "signed_spec": None,
    "max_disruption": HIGHEST,
}
DEVICES: Mapping[str, Any] = {
    "assignments": None,
    "generation": None,
    "passthrough": None,
    "instances": None,
    "max_cdi_version": None,
    "slot_count": None,
    "acknowledge": None,
    "signing_key": None,
    "node_id": None,
    "signed_spec": None,
    "max_disruption": HIGHEST,
}
