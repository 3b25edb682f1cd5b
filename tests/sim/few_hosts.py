# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A few simulated hosts, one a name or more, each with its section, and what tests of playbooks ask of them."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from pathlib import Path
from typing import Any, NamedTuple

from tests.sim import controller, fleet
from tests.sim.controller import Played
from tests.sim.host import SimulatedHost
from tests.sim.machine import Machine, put, read
from tests.sim.tree import PROFILES, copy

BOOT_ID = "/proc/sys/kernel/random/boot_id"
RECORDS = "/var/lib/bcd-hostconfig"
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


def twin(source: str, target: str, name: str) -> None:
    """A host like another in all but its name and its boot id, which its records of the boot have too."""
    copy(source, target)
    put(target, "/etc/hostname", name + "\n")
    put(target, "/etc/machine-id", uuid.uuid4().hex + "\n", 0o444)
    before, after = (read(target, BOOT_ID) or "").strip(), str(uuid.uuid4())
    put(target, BOOT_ID, after + "\n", 0o444)
    for folder, _unused, files in os.walk(target + RECORDS):
        for one in files:
            path = os.path.join(folder, one)[len(target) :]
            put(target, path, (read(target, path) or "").replace(before, after))


class Converged:
    """Hosts that the playbook has converged, one of each section: a fleet of their twins costs no run."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.trees: dict[str, str] = {}

    def build(
        self, scratch: Path, sections: dict[str, Any], variables: dict[str, dict[str, Any]] | None = None
    ) -> Fleet:
        """A fleet as `build` makes it, converged."""
        hosts = build(scratch, sections, variables=variables)
        for name, units in sections.items():
            key = json.dumps(units)
            if key not in self.trees:
                seed = build(self.scratch / str(len(self.trees)), {name: units})
                played = seed.play("converge")
                if played.rc:
                    raise RuntimeError(played.out + played.err)
                self.trees[key] = seed.host(name).tree
            tree = hosts.host(name).tree
            shutil.rmtree(tree)
            twin(self.trees[key], tree, f"{name}-01")
        return hosts


def of_task(played: Played, task: str, host: str) -> list[dict[str, Any]]:
    """The results of a task on a host."""
    return [
        event["result"] for event in played.events()["tasks"] if event["task"].endswith(task) and event["host"] == host
    ]


def state_of(host: SimulatedHost) -> dict[str, str]:
    """Every file of the tree that is not the simulator's own, nor what quiet turns asked, with its text."""
    others = ("/dev", "/var/log/sim", "/run/sim", "/var/lib/sim", "/run/bcd-hostconfig")
    found = {}
    for folder, _unused, files in os.walk(host.tree):
        for name in files:
            path = os.path.join(folder, name)
            inside = path[len(host.tree) :]
            if not inside.startswith(others) and not os.path.islink(path):
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
