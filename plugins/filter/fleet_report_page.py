# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter fleet_report_page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ..plugin_utils.report import KIND, VERSION
from ..plugin_utils.report_page import render_page

DOCUMENTATION = r"""
name: fleet_report_page
short_description: The drift report as one HTML page
version_added: 0.1.0
description:
  - Renders a document of P(bettercompute.bcd.fleet_report#filter) as one HTML page that needs nothing else, neither
    network nor scripts.
options:
  _input:
    description: The document.
    type: dict
    required: true
  at:
    description: The time that the page shows.
    type: str
    default: ""
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Keep the drift report
  ansible.builtin.copy:
    content: "{{ document | bettercompute.bcd.fleet_report_page(at=now(utc=true) | string) }}"
    dest: fleet.html
    mode: "0644"
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
_value:
  description: The page.
  type: str
"""


def fleet_report_page(document: Any, at: str = "") -> str:
    """The page of a fleet document."""
    if not isinstance(document, Mapping) or (document.get("kind"), document.get("version")) != (KIND, VERSION):
        raise AnsibleFilterError(f"fleet_report_page takes a {KIND} of version {VERSION}, as fleet_report gives it")
    return render_page(document, at)


class FilterModule:
    """The filter fleet_report_page."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Its name."""
        return {"fleet_report_page": fleet_report_page}
