# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A few simulated hosts, one a name or more, each with its section, and what tests of playbooks ask of them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from tests.sim import controller, fleet
from tests.sim.controller import Played
from tests.sim.host import SimulatedHost
from tests.sim.machine import Machine
from tests.sim.tree import PROFILES

SYSCTL = {"sysctl": {"vm.swappiness": 10}}
ISOLATED = {"cpu": {"isolate": "2-3"}}


class Fleet(NamedTuple):
    """A fleet in a scratch directory."""

    scratch: Path
    inventory: str

    def play(self, name: str, *arguments: str, **more: Any) -> Played:
        """Run a shipped playbook."""
        return controller.playbook(str(self.scratch), self.inventory, f"bettercompute.bcd.{name}", *arguments, **more)

    def host(self, name: str) -> SimulatedHost:
        """One of its hosts."""
        return SimulatedHost(str(self.scratch / "trees" / f"{name}-01"))

    def report(self, folder: str = "bcd-report") -> dict[str, Any]:
        """The drift report that `plan` wrote."""
        document: dict[str, Any] = json.loads((self.scratch / folder / "fleet.json").read_text(encoding="utf-8"))
        return document


def build(
    scratch: Path,
    sections: dict[str, Any],
    profiles: dict[str, Machine] | None = None,
    variables: dict[str, dict[str, Any]] | None = None,
) -> Fleet:
    """A fleet of one host a name ("one" is one-01), with the section of each, None for none, and further variables."""
    kinds = [fleet.Hosts(name, (profiles or {}).get(name, PROFILES["debian"])) for name in sections]
    own = {name: {} if units is None else {"bcd_converge_units": units} for name, units in sections.items()}
    given = {f"{name}-01": {**units, **(variables or {}).get(name, {})} for name, units in own.items()}
    return Fleet(scratch, fleet.make(str(scratch), kinds, hostvars=given))


def of_task(played: Played, task: str, host: str) -> list[dict[str, Any]]:
    """The results of a task on a host."""
    return [
        event["result"] for event in played.events()["tasks"] if event["task"].endswith(task) and event["host"] == host
    ]


def state_of(host: SimulatedHost) -> dict[str, str]:
    """Every file of the tree that is not the simulator's own, with its text."""
    found = {}
    for folder, _unused, files in os.walk(host.tree):
        for name in files:
            path = os.path.join(folder, name)
            inside = path[len(host.tree) :]
            if not inside.startswith(("/dev", "/var/log/sim", "/run/sim", "/var/lib/sim")) and not os.path.islink(path):
                found[inside] = Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    return found


def record(host: SimulatedHost) -> dict[str, Any]:
    """Root's record of what waits for a reboot."""
    found: dict[str, Any] = json.loads(host.read("/var/lib/bcd-hostconfig/reboot.json") or "{}")
    return found


def waiting(host: SimulatedHost) -> dict[str, str]:
    """What each unit that waits for a reboot says, by root's record."""
    return dict(record(host).get("units", {}))


def put_down(host: SimulatedHost) -> None:
    """Let no connection reach the host."""
    host.change(misboot="never-back")
    host.reboot()
