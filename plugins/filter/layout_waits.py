# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter layout_waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

DOCUMENTATION = r"""
name: layout_waits
short_description: Which MIG layout waits for GPUs that are in use
version_added: 0.1.0
description:
  - Says of a host whose units P(bettercompute.bcd.host_units#filter) has rendered with the layout that its GPUs show,
    and not with its pool's, which layout waits and who has the GPUs.
positional: pool, profile, labels, gpus
options:
  _input:
    description: The units that the host is converged to.
    type: dict
    required: true
  pool:
    description: The pool, as in a FleetConfig.
    type: dict
    required: true
  profile:
    description: The profile, with its C(hostConfig).
    type: dict
  labels:
    description: The labels of the host.
    type: dict
  gpus:
    description: The GPUs of the host, as M(bettercompute.bcd.host_info) returns them.
    type: list
    elements: dict
seealso:
  - plugin: bettercompute.bcd.host_units
    plugin_type: filter
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Say what waits
  ansible.builtin.debug:
    msg: >-
      {{ bcd_converge_units | bettercompute.bcd.layout_waits(bcd_pool_config, profile=bcd_profile_config,
                                                             labels=bcd_fleet_labels, gpus=ansible_facts.bcd.gpus) }}
"""

RETURN = r"""
_value:
  description: One sentence, empty where no layout waits.
  type: str
"""


def layout_waits(units: Any, pool: Any, profile: Any = None, labels: Any = None, gpus: Any = None) -> str:
    """What waits, in one sentence."""
    from ..plugin_utils.layout_waits import layout_waits as waits

    try:
        return waits(units, pool, profile, labels, gpus)
    except ValueError as fault:
        raise AnsibleFilterError(str(fault)) from fault


class FilterModule:
    """The filter layout_waits."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Its name."""
        return {"layout_waits": layout_waits}
