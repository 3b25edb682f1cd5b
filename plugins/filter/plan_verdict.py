# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter plan_verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError

DOCUMENTATION = r"""
name: plan_verdict
short_description: Why a host's plan should fail the run
version_added: 0.1.0
description:
  - Says which of a plan's findings are failures. Drift alone never is.
  - A host that could not be reached or planned fails in any case.
positional: fail_on
options:
  _input:
    description:
      - The registered result of M(bettercompute.bcd.host_plan), of M(bettercompute.bcd.cdi_holds), or of
        M(bettercompute.bcd.host_status), of which only that there is none is a failure.
    type: dict
    required: true
  fail_on:
    description:
      - V(terminal), a unit is refused; V(failed), or one could not be planned; V(progressing), or one waits for
        something; V(never), none of these.
    type: str
    default: failed
    choices: [terminal, failed, progressing, never]
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Fail where a setting is refused
  ansible.builtin.assert:
    that: verdict == ''
    fail_msg: "{{ verdict }}"
  vars:
    verdict: "{{ plan | bettercompute.bcd.plan_verdict('terminal') }}"
"""

RETURN = r"""
_value:
  description: One line that names each failure, or an empty string.
  type: str
"""


def plan_verdict(result: Any, fail_on: str = "failed") -> str:
    """Why the plan fails the run, or ""."""
    from ..plugin_utils.report import verdict

    try:
        return verdict(result, fail_on)
    except ValueError as fault:
        raise AnsibleFilterError(str(fault)) from fault


class FilterModule:
    """The filter plan_verdict."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Its name."""
        return {"plan_verdict": plan_verdict}
