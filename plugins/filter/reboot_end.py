# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter reboot_end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

DOCUMENTATION = r"""
name: reboot_end
short_description: What a rolling reboot came to
version_added: 0.1.0
description:
  - Puts together how the turns of all hosts ended, by each host's variable C(bcd_reboot_outcome).
positional: variables
options:
  _input:
    description: The plan that P(bettercompute.bcd.reboot_plan#filter) made.
    type: dict
    required: true
  variables:
    description: The variables of all hosts, by name.
    type: dict
    required: true
  planned:
    description: Whether no wave was begun, since the run was to say only what it would do.
    type: bool
    default: false
  limit:
    description: The value of O(ignore:--limit), for the advice how to leave a host out.
    type: str
    default: ""
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Say which hosts were left out
  ansible.builtin.debug:
    msg: "{{ (plan | bettercompute.bcd.reboot_end(hostvars)).stats.left_out }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: The end.
  type: dict
  contains:
    stats:
      description:
        - Names in RV(ignore:rebooted) and RV(ignore:proved), reasons by host in RV(ignore:left_out) and
          RV(ignore:failed), and the RV(ignore:waves).
      type: dict
    failed:
      description: By host that failed, the whole message with what to do next.
      type: dict
    lines:
      description: The end in sentences.
      type: list
      elements: str
"""


def reboot_end(
    plan: Mapping[str, Any], variables: Mapping[str, Any], planned: bool = False, limit: str = ""
) -> dict[str, Any]:
    """The end (see plugin_utils.reboot_waves), as stats and in sentences."""
    from ..plugin_utils.reboot_said import end
    from ..plugin_utils.reboot_seen import outcomes
    from ..plugin_utils.reboot_waves import ending
    from ..plugin_utils.template_trust import inert

    found = outcomes(plan["queue"], variables)
    shown = {**plan, "waves": [], "turns": {}} if planned else plan
    made: dict[str, Any] = inert(end(plan, ending(shown, found), limit))
    return made


class FilterModule:
    """The filter reboot_end."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Its name."""
        return {"reboot_end": reboot_end}
