# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host is and shows, for the module host_info and for the inventory after a pass.

Each fact is asked for by a function of its own, which imports its look: a host pays for what it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

from ..core.errors import Fault
from ..core.host import Host
from ..core.records import Records
from ..core.unknown import later


class Looking:
    """One look at a host: what several facts need is asked for once."""

    def __init__(self, host: Host, records: Records) -> None:
        self.host = host
        self.records = records
        self._rows: list[Any] = []

    def rows(self) -> Any:
        """Every GPU with its row of nvidia-smi (see look.gpu_facts.rows), or a value that raises why not."""
        if not self._rows:
            from ..look.gpu_facts import rows

            self._rows.append(later(rows, self.host))
        return self._rows[0]


Ask = Callable[[Looking], Any]


def run_info(argument_spec: dict[str, Any]) -> None:
    """Return the host's facts; changes nothing, takes no lock, and needs no root."""
    from .module import leave, start  # Ansible: the inventory below is made without it too

    module = start(argument_spec)
    leave(module, info_result(module.params["availability"]))


def info_result(availability: bool = False) -> dict[str, Any]:
    """The facts as root sees them, where this process is root or a helper is there; else as this account does.

    `availability`: with those of AVAILABILITY too, for which no helper is asked.
    """
    from .opening import asks_helper

    host = Host()
    records = Records(host)
    unheard: list[str] = []
    try:
        if asks_helper():
            from .through_helper import asked_of_helper

            facts = asked_of_helper("host.info")["ansible_facts"]["bcd"]
            return _result(facts, inventory(host, records, AVAILABILITY) if availability else {})
    except Fault as fault:  # what needs no root is told all the same
        unheard = [f"as root: {fault.message}"]
    facts = inventory(host, records, {**FACTS, **AVAILABILITY} if availability else FACTS)
    return _result({**facts, "unreadable": unheard + facts["unreadable"]}, {})


def _result(facts: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    unreadable = [*facts["unreadable"], *more.get("unreadable", ())]
    return {"changed": False, "ansible_facts": {"bcd": {**facts, **more, "unreadable": unreadable}}}


def inventory(host: Host, records: Records, asked: Mapping[str, Ask] | None = None) -> dict[str, Any]:
    """The facts by name. What cannot be read is None, a fact or a part of one; `unreadable` has a sentence on each."""
    seen = Looking(host, records)
    facts: dict[str, Any] = {}
    unreadable: list[str] = []
    for name, ask in (FACTS if asked is None else asked).items():
        try:
            found = ask(seen)
            facts[name], parts = found if name in PARTLY else (found, ())
            unreadable += parts
        except Fault as fault:
            facts[name] = None
            unreadable.append(f"{name}: {fault.message}")
    return {**facts, "unreadable": unreadable}


def _kernel(seen: Looking) -> str:
    from ..look.kernel import release

    return release(seen.host)


def _cpu(seen: Looking) -> dict[str, Any]:
    from ..look.machine import cpu

    return cpu(seen.host)


def _numa(seen: Looking) -> list[dict[str, Any]]:
    from ..look.machine import numa

    return numa(seen.host)


def _hugepages(seen: Looking) -> dict[str, dict[str, int]]:
    from ..look.machine import hugepages

    return hugepages(seen.host)


def _iommu(seen: Looking) -> dict[str, Any]:
    from ..look.machine import iommu

    return iommu(seen.host)


def _boot_loader(seen: Looking) -> str:
    from ..look.boot import loader

    return loader(seen.host).kind


def _driver(seen: Looking) -> dict[str, Any]:
    from ..look.gpu_facts import driver

    return driver(seen.host)


def _fabric(seen: Looking) -> dict[str, Any]:
    from ..look.gpu_facts import fabric

    return fabric(seen.host, seen.rows())


def _gpus(seen: Looking) -> Any:
    from ..look.gpu_facts import gpus

    return gpus(seen.host, seen.rows(), seen.records.applied)


def _holds(seen: Looking) -> list[dict[str, Any]]:
    from ..look.hold_facts import hold_facts

    return hold_facts(seen.host)


def _runtimes(seen: Looking) -> dict[str, Any]:
    from ..look.gpu_facts import runtimes

    return runtimes(seen.host)


def _kubelet(seen: Looking) -> Any:
    from ..look.kubelet_facts import kubelet

    return kubelet(seen.host)


def _going_down(seen: Looking) -> str:
    from ..look.availability import going_down

    return going_down(seen.host)


def _node(seen: Looking) -> dict[str, Any]:
    from ..look.availability import node

    return node(seen.host)


def _capabilities(seen: Looking) -> list[str]:
    """What the host can do for reservations; without an answer of nvidia-smi, which `gpus` tells of, nothing."""
    from ..look.gpu_facts import capabilities

    try:
        return capabilities(seen.host, seen.rows())
    except Fault:
        return []


FACTS: dict[str, Ask] = {
    "kernel": _kernel,
    "boot_id": lambda seen: seen.host.boot_id(),
    "cpu": _cpu,
    "numa": _numa,
    "hugepages": _hugepages,
    "iommu": _iommu,
    "boot_loader": _boot_loader,
    "driver": _driver,
    "fabric": _fabric,
    "gpus": _gpus,
    "holds": _holds,
    "runtimes": _runtimes,
    "kubelet": _kubelet,
    "capabilities": _capabilities,
    "applied": lambda seen: sorted(seen.records.applied()),
    "reboot_required": lambda seen: bool(seen.records.reboot_reasons()),
    "reboot_reasons": lambda seen: seen.records.reboot_reasons(),
    "rebooted_for": lambda seen: seen.records.rebooted_for(),
}
AVAILABILITY: dict[str, Ask] = {
    "going_down": _going_down,
    "node": _node,
}  # asked for by itself: the last costs a request
PARTLY = frozenset(("gpus", "kubelet"))  # facts that come with a sentence on each part that could not be read
