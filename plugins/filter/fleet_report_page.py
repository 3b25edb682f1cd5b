# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter fleet_report_page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

DOCUMENTATION = r"""
name: fleet_report_page
short_description: The drift report as one HTML page
version_added: 0.1.0
description:
  - Renders a document of P(bettercompute.bcd.fleet_report#filter) as one HTML page that needs nothing else, and whose
    own policy keeps it from reaching anything else.
  - Its script filters, sorts and shows hosts one by one. Without scripts it is the same page, to be read from top to
    bottom.
options:
  _input:
    description: The document.
    type: dict
    required: true
  at:
    description: The time that the page shows.
    type: str
    default: ""
  history:
    description:
      - The runs that are kept, the oldest first and this one the last, each with its C(at), C(source), C(summary) and
        C(hosts), as the files in the folder C(history) of a report have them.
      - With fewer than two the page shows no history.
    type: list
    elements: dict
    default: []
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


def fleet_report_page(document: Any, at: str = "", history: Any = ()) -> str:
    """The page of a fleet document."""
    from ..plugin_utils.report import KIND, VERSION
    from ..plugin_utils.report_page import render_page

    if not isinstance(document, Mapping) or (document.get("kind"), document.get("version")) != (KIND, VERSION):
        raise AnsibleFilterError(f"fleet_report_page takes a {KIND} of version {VERSION}, as fleet_report gives it")
    if not isinstance(history, Sequence) or not all(isinstance(run, Mapping) for run in history):
        raise AnsibleFilterError(
            "fleet_report_page takes history as a list of runs, as a report's folder history has them"
        )
    return render_page(document, at, history)


class FilterModule:
    """The filter fleet_report_page."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Its name."""
        return {"fleet_report_page": fleet_report_page}
