#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: save_report
short_description: Write the report of all hosts on the controller
version_added: 0.1.0
description:
  - Makes one document of what was registered on every host of the play, and writes it on the controller, C(fleet.json),
    the page C(fleet.html), a document a host in C(hosts), and what is kept of the run in C(history).
  - The document is that of the filter P(bettercompute.bcd.fleet_report#filter). Hosts without an answer are in it too.
  - It is one task for the whole fleet, for which C(run_once) is meant. The playbooks C(plan) and C(status) use it.
  - The statistics of the run get C(bcd_fleet_summary), C(bcd_report), which is the page's path, and of a status
    C(bcd_converge_reboot_required).
extends_documentation_fragment: bettercompute.bcd.everywhere
options:
  source:
    description: What was registered, results of M(bettercompute.bcd.host_plan) or of M(bettercompute.bcd.host_status).
    type: str
    choices: [plan, status]
    required: true
  results:
    description: The name of the variable in which each host has its result.
    type: str
    required: true
  devices:
    description: Beside plans, the name of the variable with the result of M(bettercompute.bcd.cdi_holds).
    type: str
  facts:
    description: Beside plans, the name of the variable with the result of M(bettercompute.bcd.host_info).
    type: str
  path:
    description: The directory to write below. It is made where it is not there. Empty writes no file.
    type: str
    default: ""
  keep:
    description: How many runs are kept in the history, this one among them.
    type: int
    default: 30
attributes:
  action:
    description: Runs on the controller.
    support: full
  check_mode:
    description: Writes the report in check mode too, since a plan is reported then.
    support: none
  diff_mode:
    description: There is nothing to show.
    support: none
author:
  - bettercompute (@bettercompute)
seealso:
  - module: bettercompute.bcd.host_plan
  - module: bettercompute.bcd.host_status
"""

EXAMPLES = r"""
- name: Look at every host
  bettercompute.bcd.host_status:
  register: status
  ignore_errors: true
  ignore_unreachable: true

- name: Write the report
  bettercompute.bcd.save_report:
    source: status
    results: status
    path: /srv/reports/fra
  run_once: true
"""

RETURN = r"""
page:
  description: The page's path, null where no file was written.
  returned: success
  type: str
  sample: /srv/reports/fra/fleet.html
summary:
  description: Counts of hosts, as the filter P(bettercompute.bcd.fleet_report#filter) has them.
  returned: success
  type: dict
states:
  description: Each host's state.
  returned: success
  type: dict
  sample: {"gpu-01": "converged", "gpu-02": "unreachable"}
"""
