# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host is and shows, for the module host_info and for the inventory after a pass.

Each fact is asked for by a function of its own, which imports its look: a host pays for what it has.
"""

from __future__ import annotations

from typing import Any, Callable

from ..core.errors import Fault
from ..core.host import Host
from ..core.records import Records

Ask = Callable[[Host, Records], Any]


def run_info(argument_spec: dict[str, Any]) -> None:
    """Return the host's facts; changes nothing, takes no lock, and needs no root."""
    from .module import leave, start  # Ansible: the inventory below is made without it too

    module = start(argument_spec)
    host = Host()
    leave(module, {"changed": False, "ansible_facts": {"bcd": inventory(host, Records(host))}})


def inventory(host: Host, records: Records) -> dict[str, Any]:
    """The facts by name. One that cannot be read is None, and `unreadable` has a sentence on each."""
    facts: dict[str, Any] = {}
    unreadable: list[str] = []
    for name, ask in FACTS.items():
        try:
            facts[name] = ask(host, records)
        except Fault as fault:
            facts[name] = None
            unreadable.append(f"{name}: {fault.message}")
    return {**facts, "unreadable": unreadable}


def _kernel(host: Host, _records: Records) -> str:
    from ..look.kernel import release

    return release(host)


def _cpu(host: Host, _records: Records) -> dict[str, Any]:
    from ..look.machine import cpu

    return cpu(host)


def _numa(host: Host, _records: Records) -> list[dict[str, Any]]:
    from ..look.machine import numa

    return numa(host)


def _hugepages(host: Host, _records: Records) -> dict[str, dict[str, int]]:
    from ..look.machine import hugepages

    return hugepages(host)


def _iommu(host: Host, _records: Records) -> dict[str, Any]:
    from ..look.machine import iommu

    return iommu(host)


def _boot_loader(host: Host, _records: Records) -> str:
    from ..look.boot import loader

    return loader(host).kind


def _capabilities(_host: Host, _records: Records) -> list[str]:
    """What the host can do for reservations; all that there is needs a GPU, and no unit here manages one."""
    return []


FACTS: dict[str, Ask] = {
    "kernel": _kernel,
    "boot_id": lambda host, _records: host.boot_id(),
    "cpu": _cpu,
    "numa": _numa,
    "hugepages": _hugepages,
    "iommu": _iommu,
    "boot_loader": _boot_loader,
    "capabilities": _capabilities,
    "applied": lambda _host, records: sorted(records.applied()),
    "reboot_required": lambda _host, records: bool(records.reboot_reasons()),
    "reboot_reasons": lambda _host, records: records.reboot_reasons(),
    "rebooted_for": lambda _host, records: records.rebooted_for(),
}
