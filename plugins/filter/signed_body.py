# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter signed_body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

DOCUMENTATION = r"""
name: signed_body
short_description: What a signed spec asks for
version_added: 0.1.0
description:
  - Reads the body of an envelope of M(bettercompute.bcd.sign_spec). It verifies nothing, which hosts do.
options:
  _input:
    description: The envelope.
    type: dict
    required: true
seealso:
  - module: bettercompute.bcd.host_intent
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Say which generation is about to be applied
  ansible.builtin.debug:
    msg: "{{ (bcd_converge_signed_spec | bettercompute.bcd.signed_body).generation }}"
"""

RETURN = r"""
_value:
  description:
    - Its C(node_id) and C(generation), and where it manages them C(units), the section in wire form, and C(devices),
      the assignments.
    - V({}) where the body cannot be made out. A host then says why.
  type: dict
"""


def signed_body(spec: Any) -> dict[str, Any]:
    """What the spec asks for, or {}."""
    if not spec:  # every host without a spec comes by here, in a process of its own
        return {}
    from ..plugin_utils.signed import said

    return said(spec)


class FilterModule:
    """The filter signed_body."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Its name."""
        return {"signed_body": signed_body}
