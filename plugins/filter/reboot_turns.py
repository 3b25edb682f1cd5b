# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter reboot_turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

DOCUMENTATION = r"""
name: reboot_turns
short_description: What each host of a wave may do now
version_added: 0.1.0
description:
  - Counts the budget of each pool again, by what the waves before came to, which each host's variable
    C(bcd_reboot_outcome) says.
  - Once a host of a pool has failed, no further host of that pool is rebooted.
positional: variables, batch
options:
  _input:
    description: The plan that P(bettercompute.bcd.reboot_plan#filter) made.
    type: dict
    required: true
  variables:
    description: The variables of all hosts, by name.
    type: dict
    required: true
  batch:
    description: The hosts of the wave.
    type: list
    elements: str
    required: true
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Count the budget again
  ansible.builtin.set_fact:
    turns: "{{ plan | bettercompute.bcd.reboot_turns(hostvars, ansible_play_batch) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description:
    - By host its RV(ignore:turn), V(reboot), V(prove), V(release) or empty, and the RV(ignore:reason) where it is left
      out.
  type: dict
"""


def reboot_turns(
    plan: Mapping[str, Any], variables: Mapping[str, Any], batch: Iterable[str]
) -> dict[str, dict[str, str]]:
    """The turns by host of the wave that has the batch's hosts; none where no wave has one."""
    from ..plugin_utils.reboot_seen import outcomes
    from ..plugin_utils.reboot_waves import turns
    from ..plugin_utils.template_trust import inert

    members = set(batch)
    at = next((at for at, wave in enumerate(plan["waves"]) if members & set(wave)), None)
    if at is None:
        return {}
    before = [host for wave in plan["waves"][:at] for host in wave]
    found = turns(plan, outcomes(before, variables), at)
    return {host: inert(turn._asdict()) for host, turn in found.items()}


class FilterModule:
    """The filter reboot_turns."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Its name."""
        return {"reboot_turns": reboot_turns}
