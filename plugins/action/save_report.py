# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action save_report, on the controller: the report of all hosts, made and written in one task."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..plugin_utils.places import places
from ..plugin_utils.report import PLAN, STATUS, fleet_document, reboot_reasons
from ..plugin_utils.report_files import Unwritten, write_report
from ..plugin_utils.signed import value_of

WAITS = "bcd_layout_waits"  # the playbooks set it on hosts whose GPUs are in use
OPTIONS: dict[str, dict[str, Any]] = {
    "source": {"type": "str", "choices": [PLAN, STATUS], "required": True},
    "results": {"type": "str", "required": True},
    "devices": {"type": "str"},
    "facts": {"type": "str"},
    "path": {"type": "str", "default": ""},
    "keep": {"type": "int", "default": 30},
    # Defaults for the action group fit every module.
    "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
    "signed_spec": {"type": "dict"},
}


class ActionModule(ActionBase):
    """Needs no connection: hosts that could not be reached are in the report too."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result."""
        super().run(tmp, task_vars)
        _unused, given = self.validate_argument_spec(argument_spec=OPTIONS)
        if given["keep"] < 0:
            raise AnsibleActionFail(f"keep is {given['keep']}: give how many runs to keep, 0 for none")
        variables = task_vars or {}
        document = _document(given, list(variables["ansible_play_hosts_all"]), variables["hostvars"])
        page = None
        if given["path"]:
            folder = Path(os.path.realpath(os.path.expanduser(given["path"])))
            try:
                page = str(write_report(folder, document, datetime.now(timezone.utc), given["keep"]))
            except Unwritten as fault:
                raise AnsibleActionFail(str(fault)) from None  # Ansible says a cause again
        stats = {"bcd_fleet_summary": document["summary"], "bcd_report": page}
        if given["source"] == STATUS:  # plans have told it themselves
            stats["bcd_converge_reboot_required"] = reboot_reasons(document)
        return {
            "changed": False,
            "page": page,
            "summary": document["summary"],
            "states": {name: host["state"] for name, host in document["hosts"].items()},
            "ansible_stats": {"data": stats, "per_host": False, "aggregate": True},
        }


def _document(given: Mapping[str, Any], hosts: list[str], variables: Mapping[str, Any]) -> dict[str, Any]:
    """The document of what the hosts have in the variables that are named."""
    found = {
        what: {host: _registered(variables[host], given[what]) for host in hosts}
        for what in ("results", "devices", "facts")
    }
    where = places(hosts, variables)
    waits = {host: value_of(variables[host], WAITS) for host in hosts} if given["source"] == PLAN else None
    return fleet_document(found["results"], found["devices"], found["facts"], where, given["source"], waits)


def _registered(variables: Mapping[str, Any], name: str | None) -> Any:
    return variables[name] if name and name in variables else {}
