# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory plugin fleet."""

from __future__ import annotations

DOCUMENTATION = r"""
name: fleet
short_description: The pools of a FleetConfig as groups, with what each host is to be
version_added: 0.1.0
description:
  - Reads a FleetConfig, in JSON or YAML, as the control plane has it. Its pools become groups, and what a pool and its
    profile ask of a host becomes its C(bcd_converge_units), by which the collection's playbooks converge it.
  - A file is taken for one by its name, which ends in C(fleet.yml), C(fleet.yaml) or C(fleet.json).
  - The hosts of a pool are those that it names under C(hosts), those whose variable C(bcd_pool) names it, and with
    C(select) those whose C(bcd_labels) it holds for. Hosts of other sources join only where their source is read before
    this one, so give it first, or in a directory of sources a name that sorts before the FleetConfig's.
  - Groups are C(bcd_pool_<name>), C(bcd_site_<site>) and C(bcd_class_<class>), with C(_) for what no word has, and
    C(bcd_mig_gate) with the hosts that are to have the MIG layout of their pool.
  - Each host of a pool has C(bcd_pool), C(bcd_site), C(bcd_class), C(bcd_pool_config), C(bcd_profile_config),
    C(bcd_fleet_labels), C(bcd_converge_units) and C(bcd_converge_site). A variable of the host's own wins over each.
  - What a pool or a profile says is taken as it stands and never as a template. Variables of hosts are Ansible's.
  - A FleetConfig with faults ends the run before anything is done, with every fault and its path, so that no command
    goes on with a part of the fleet, or with none.
options:
  plugin:
    description:
      - Where the plugin is not among C(enable_plugins), this key at the top of a FleetConfig in C(.yml) or C(.yaml)
        says that it is one. No other file needs it.
    type: str
    choices: [bettercompute.bcd.fleet]
notes:
  - To read files without that key, have it before C(yaml) in C(enable_plugins), which would take them for inventories
    of its own. The collection's C(ansible.cfg) does.
  - Nothing is cached.
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
# fleet.yml: two pools, of which one has its hosts from another inventory
version: 1
profiles:
  - name: deploy
    hostConfig:
      nvidia-driver: {branch: "580", open: true}
      mig-layout: {from: pool}
pools:
  - name: gpu-fra
    site: fra
    class: gpu-host
    profile: deploy
    select: gpu.model == 'h100' and rack in ['r1', 'r2']
    policy:
      migLayout: all-1g.10gb
  - name: sandbox-fra
    site: fra
    class: vps-host
    hosts:
      node-1: {ansible_host: 10.0.0.11}
      node-2: {ansible_host: 10.0.0.12}
    policy:
      hugepages: {size: 1Gi, count: 64, perNuma: true}
      cpu: {governor: performance, isolate: 4-63}
"""

import os
from typing import Any

from ansible.errors import AnsibleError, AnsibleParserError
from ansible.inventory.helpers import get_group_vars
from ansible.plugins.inventory import BaseInventoryPlugin
from ansible.utils.vars import combine_vars
from ansible.vars.plugins import get_vars_from_inventory_sources

from ..plugin_utils import fleet_inventory
from ..plugin_utils.fleet_config import LABELS, fleet_faults
from ..plugin_utils.fleet_inventory import Seen
from ..plugin_utils.fleet_text import repeated_keys
from ..plugin_utils.input_faults import Fault, said
from ..plugin_utils.template_trust import as_data, as_template, text_of, values_of

ENDINGS = ("fleet.yml", "fleet.yaml", "fleet.json")
PARSER_ERROR = 4  # Ansible's own exit status of what it cannot read


class InventoryModule(BaseInventoryPlugin):
    """Reads a FleetConfig."""

    NAME = "bettercompute.bcd.fleet"

    def verify_file(self, path: str) -> bool:
        """Whether the file is named as a FleetConfig."""
        return bool(super().verify_file(path)) and path.endswith(ENDINGS)

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Add the groups and hosts of a FleetConfig; ends the run where it has faults."""
        super().parse(inventory, loader, path, cache)
        document, faults = self._read(path)
        if not fleet_inventory.is_fleet(document):
            raise AnsibleParserError(f"{path} is no FleetConfig: it has neither version nor pools nor profiles")
        try:
            self._take(path, document, faults)
        except Exception as fault:  # noqa: BLE001  # of any kind: see _end
            self._end(path, [*faults, Fault("$", f"{type(fault).__name__}: {fault}")])

    def _take(self, path: str, document: Any, faults: list[Fault]) -> None:
        """Add what a FleetConfig has, unless something is wrong with it."""
        faults += fleet_faults(document) if not faults or document is not None else []
        earlier = frozenset(self.inventory.hosts)
        self._add_hosts(document)
        seen = {name: self._seen(name, earlier, faults) for name in self.inventory.hosts}
        before = self._before()
        known = {"", *(pool.name for pool in fleet_inventory.pools_of(document)), *before}
        is_whole = all(host.pool in known for host in seen.values() if isinstance(host.pool, str))
        placed, misplaced = fleet_inventory.place(document, seen, before, {} if is_whole else self._beside(path))
        faults += misplaced
        if faults:
            self._end(path, faults)
        self._add_groups(path, fleet_inventory.fleet_of(document, seen, placed))

    def _read(self, path: str) -> tuple[Any, list[Fault]]:
        """The document as Ansible reads it, None where it cannot; and what is wrong with its text."""
        faults: list[Fault] = []
        try:
            faults = repeated_keys(text_of(self.loader, path))
            if any(fault.path == "$" for fault in faults):
                return None, faults  # of the text as a whole: Ansible's loader is not to try it
            return values_of(self.loader, path), faults
        except AnsibleError as fault:
            return None, faults or [Fault("$", str(fault))]
        except ValueError as fault:  # of a number of thousands of digits, which no loader expects
            return None, faults or [Fault("$", f"{fault}: correct it")]

    def _end(self, path: str, faults: list[Fault]) -> None:
        """End the run. An exception of Ansible's is a warning to it, and it goes on with the plugin yaml.

        That one skips what it does not know and calls the source read, so that a play, or AWX's import, finds an
        inventory without hosts, and all that is wrong with it in a warning.
        """
        lines = "\n".join(map(said, dict.fromkeys(faults)))
        self.display.error(f"{path} is a FleetConfig with faults:\n{lines}", wrap_text=False)
        raise SystemExit(PARSER_ERROR)

    def _add_hosts(self, document: Any) -> None:
        """Add the hosts that the document names, with their variables."""
        for pool in fleet_inventory.pools_of(document):
            for name, variables in fleet_inventory.hosts_of(pool).items():
                self.inventory.add_host(name)
                for key, value in variables.items():
                    self.inventory.set_variable(name, key, value)

    def _seen(self, name: str, earlier: frozenset[str], faults: list[Fault]) -> Seen:
        """A host with what its variables say so far, those in files beside the sources so far too."""
        host = self.inventory.hosts[name]
        own = self._variables(host)
        self.templar.available_variables = own
        found: dict[str, Any] = {}
        for key in ("bcd_pool", LABELS):
            try:
                found[key] = as_data(self.templar.template(own[key])) if key in own else None
            except AnsibleError as fault:
                text = f"the {key} of the host {name} cannot be told while inventories are read: {fault}: give a value"
                faults.append(Fault("$.pools", text))
        groups = frozenset(group.name for group in host.get_groups())
        return Seen(name in earlier, found.get("bcd_pool"), found.get(LABELS), groups)

    def _variables(self, host: Any) -> dict[str, Any]:
        sources = [*self.inventory.processed_sources, self.inventory.current_source]
        groups = host.get_groups()
        found = get_group_vars(groups)
        for more in (
            get_vars_from_inventory_sources(self.loader, sources, groups, "all"),
            host.get_vars(),
            get_vars_from_inventory_sources(self.loader, sources, [host], "all"),
        ):
            found = combine_vars(found, more)
        return dict(found)

    def _before(self) -> dict[str, str]:
        """The pools of the documents that were read before this one."""
        return {
            group.vars["bcd_pool"]: "a document before"
            for group in self.inventory.groups.values()
            if "bcd_pool_config" in group.vars
        }

    def _beside(self, path: str) -> dict[str, str]:
        """The pools of documents in files beside this one, which may be sources or not, and are large: read at need."""
        folder, own = os.path.split(path)
        found: dict[str, str] = {}
        for name in sorted(os.listdir(folder or ".")):
            if name != own and name.endswith(ENDINGS):
                document, _faults = self._read(os.path.join(folder, name))  # they are told where it is a source
                found.update({pool.name: name for pool in fleet_inventory.pools_of(document)})
        return found

    def _add_groups(self, path: str, fleet: fleet_inventory.Fleet) -> None:
        for group, hosts in fleet.members.items():
            self.inventory.add_group(group)
            for host in hosts:
                self.inventory.add_host(host, group=group)
        for group, variables in fleet.variables.items():
            for key, value in as_data(variables).items():
                self.inventory.set_variable(group, key, value)
            for key, text in fleet_inventory.TEMPLATES.items():
                self.inventory.set_variable(group, key, as_template(text))
        if fleet.empty:
            self.display.warning(f"{path}: {', '.join(fleet.empty)} has no host: {fleet_inventory.TO_BE_FIRST}")
