# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signed specs by the real playbooks, roles and modules, on simulated hosts whose root pins a signer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import pki
from tests.sim import controller, fleet
from tests.sim.host import SimulatedHost
from tests.sim.test_role_converge import HOST, Ran, states
from tests.sim.tree import PROFILES

newest_core = pytest.mark.newest_core
CONFIG = "/etc/bcd/config.toml"
MEMORY = "/var/lib/bcd-hostconfig/helper-intent.json"
SYSCTL_FILE = "/etc/sysctl.d/90-bcd.conf"
SECTION = {"kernel-modules": {"load": ["tun"]}, "sysctl": {"vm.swappiness": 10}}
PLANE = pki.ControlPlane()
CONVERGE, PLAN = "bettercompute.bcd.converge", "bettercompute.bcd.plan"


class Site:
    """A host whose root pins the root of PLANE, and another without a pin, in one inventory."""

    def __init__(self, scratch: Path, profile: str = "debian", config: str | None = None) -> None:
        self.scratch = scratch
        kinds = [fleet.Hosts("one", PROFILES[profile])]
        self.inventory = Path(fleet.make(str(scratch / "fleet"), kinds))
        self.host = SimulatedHost(str(scratch / "fleet" / "trees" / HOST))
        self.host.run("true")  # the first entry leaves what a later one mounts upon
        self.host.write(CONFIG, PLANE.config() if config is None else config, 0o640)
        self.host.forget_calls()

    def run(self, what: Any, *arguments: str, as_json: bool = True, **variables: Any) -> controller.Played:
        """Run a playbook by its name, or tasks, with the variables of the host, which may be template text."""
        inventory = json.loads(self.inventory.read_text("utf-8"))
        host = inventory["all"]["children"]["one"]["hosts"][HOST]
        inventory["all"]["children"]["one"]["hosts"][HOST] = {
            **{name: value for name, value in host.items() if not name.startswith("bcd_")},
            **variables,
        }
        self.inventory.write_text(json.dumps(inventory), encoding="utf-8")
        book = what
        if not isinstance(what, str):
            book = str(self.scratch / "play.yml")
            play = {"hosts": "all", "gather_facts": False, "tasks": what}
            Path(book).write_text(json.dumps([play]), encoding="utf-8")
        return controller.playbook(str(self.scratch), str(self.inventory), book, *arguments, as_json=as_json)

    def play(self, what: Any, *arguments: str, **variables: Any) -> Ran:
        """The same, as what it left."""
        return Ran(self.run(what, *arguments, **variables))

    def module(self, name: str, *arguments: str, **options: Any) -> dict[str, Any]:
        """The result of one module."""
        task = {f"bettercompute.bcd.{name}": options, "ignore_errors": True}
        (result,) = self.play([task], *arguments).results(f".{name}")
        return result


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def spec(generation: int = 1, host: Any = SECTION, **more: Any) -> dict[str, Any]:
    return PLANE.desired_state(generation=generation, host=host, **more)


def test_a_signed_spec_alone_converges_a_host_and_the_second_run_costs_one_task(site: Site) -> None:
    signed = spec(generation=7)
    first = site.play(CONVERGE, bcd_converge_signed_spec=signed)
    assert (first.rc, first.recap) == (0, {"ok": 1, "changed": 1}), first.text
    assert states(first.status) == {"kernel-modules": "converged", "sysctl": "converged"}
    assert first.status["section"]["observed_generation"] == 7
    assert site.host.read("/proc/sys/vm/swappiness") == "10\n"
    second = site.play(CONVERGE, bcd_converge_signed_spec=signed)
    assert (second.rc, second.recap) == (0, {"ok": 1}), second.text
