# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter reboot_stays_up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

DOCUMENTATION = r"""
name: reboot_stays_up
short_description: Why a host is not rebooted although its turn has come
version_added: 0.1.0
description:
  - Decides once more, just before a host would be cordoned and rebooted, since the plan may be hours old by then.
options:
  _input:
    description:
      - The registered result of M(bettercompute.bcd.host_info) with
        O(bettercompute.bcd.host_info#module:availability).
    type: dict
    required: true
  again:
    description: Whether a host is rebooted again where the last reboot was in vain.
    type: bool
    default: false
  with_holds:
    description: Whether a host is rebooted while allocations hold its devices.
    type: bool
    default: false
  cordon:
    description: Whether the Nodes of workers are cordoned or drained, so that one that cannot be asked for stays up.
    type: bool
    default: true
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Say what keeps the host up
  ansible.builtin.debug:
    msg: "{{ (look | bettercompute.bcd.reboot_stays_up(with_holds=true)).reason }}"
"""

RETURN = r"""
_value:
  description: Why, and what follows from it.
  type: dict
  contains:
    reason:
      description: Why it stays up, empty where it does not.
      type: str
    state:
      description: V(left out), or V(failed) where it ends its pool's rollout.
      type: str
    away:
      description: Whether its pool has to do without it.
      type: bool
    ours:
      description: Whether its Node was cordoned by an earlier run, and is to be let go.
      type: bool
"""


def reboot_stays_up(look: Any, again: bool = False, with_holds: bool = False, cordon: bool = True) -> dict[str, Any]:
    """Why (see plugin_utils.reboot_seen)."""
    from ..plugin_utils.reboot_seen import stays_up
    from ..plugin_utils.reboot_wishes import Wishes
    from ..plugin_utils.template_trust import inert

    found: dict[str, Any] = inert(stays_up(look, Wishes(again, with_holds, cordon)))
    return found


class FilterModule:
    """The filter reboot_stays_up."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Its name."""
        return {"reboot_stays_up": reboot_stays_up}
