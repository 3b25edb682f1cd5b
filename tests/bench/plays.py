# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plays that are measured, written below a scratch directory as people have them in a project."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.unit_checks import CHECKED
from tests.bench import work
from tests.sim.controller import CHECKOUT

TRIVIAL = """from ansible.module_utils.basic import AnsibleModule

module = AnsibleModule({})
module.exit_json(changed=False)
"""
SETTINGS = """[defaults]
forks = {forks}
host_key_checking = false
retry_files_enabled = false
nocows = true
interpreter_python = auto_silent
[connection]
pipelining = true
"""


class Plays:
    """Plays below `scratch`, where a copy of the collection lies already (tests.sim.controller.freeze)."""

    def __init__(self, scratch: Path, peers: str = "") -> None:
        self.scratch, self.peers = scratch, peers
        (scratch / "library").mkdir()
        (scratch / "library" / "trivial.py").write_text(TRIVIAL, encoding="utf-8")
        self._write("empty", [])
        self._write("trivial", [{"name": "Do nothing", "trivial": {}}])
        self._write("ping", [{"name": "Ping", "ansible.builtin.ping": {}}])
        self._write("sysctls", [{"name": "Set them", "bettercompute.bcd.sysctl": {"values": work.WANTED}}])
        self._write("peer_sysctls", work.sysctl_tasks())
        self._write("peer_work", work.peer_tasks())
        self._write("peer_argument", work.argument_tasks())

    def _write(self, name: str, tasks: list[dict[str, Any]], **more: Any) -> str:
        path = self.scratch / f"{name}.yml"
        play = {"name": name, "hosts": "all", "gather_facts": False, "tasks": tasks, **more}
        path.write_text(json.dumps([play], indent=1), encoding="utf-8")
        return str(path)

    def units(self, name: str, units: dict[str, dict[str, Any]], order: tuple[str, ...]) -> str:
        """A play that has each unit's module for a task; its path."""
        tasks = []
        for unit in order:
            if unit in units:
                module = "bettercompute.bcd." + unit.replace("-", "_")
                tasks.append({"name": f"Keep {unit}", module: options(unit, units[unit])})
        return self._write(name, tasks)

    def role(self, name: str, role: str, variables: dict[str, Any]) -> str:
        """A play of a role; its path."""
        return self._write(name, [{"ansible.builtin.import_role": {"name": role}}], vars=variables)

    def path(self, name: str) -> str:
        """A play of these, or a playbook of the collection by its whole name."""
        return name if "." in name else str(self.scratch / f"{name}.yml")

    def environment(self, clean: dict[str, str], forks: int = 20, with_peers: bool = False) -> dict[str, str]:
        """The variables for ansible-playbook: stock, but for the way into the hosts."""
        collections = [str(self.scratch / "collections"), *([self.peers] if with_peers else [])]
        settings = self.scratch / f"ansible-{forks}.cfg"
        if not settings.exists():
            settings.write_text(SETTINGS.format(forks=forks), encoding="utf-8")
        return {
            **clean,
            "ANSIBLE_CONFIG": str(settings),
            "ANSIBLE_COLLECTIONS_PATH": os.pathsep.join(collections),
            "ANSIBLE_CONNECTION_PLUGINS": os.path.join(CHECKOUT, "tests", "bench", "connection_plugins"),
            "ANSIBLE_HOME": str(self.scratch / "home"),
            "ANSIBLE_LOCAL_TEMP": str(self.scratch / "home" / "tmp"),
            "LC_ALL": "C.UTF-8",
        }


def options(unit: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The options of a unit's module for settings on the wire."""
    fields = CHECKED[unit].fields
    if len(fields) == 1 and not fields[0].wire:
        return {fields[0].option: settings}
    return {field.option: inner(field, settings[field.wire]) for field in fields if field.wire in settings}


def inner(field: Any, value: Any) -> Any:
    """What an option has inside, where the setting is a mapping, or a list of them, with a table of its own."""
    if not field.fields:
        return value
    if isinstance(value, list):
        return [inner(field, one) for one in value]
    if len(field.fields) == 1 and not field.fields[0].wire:
        return value
    return {one.option: inner(one, value[one.wire]) for one in field.fields if one.wire in value}
