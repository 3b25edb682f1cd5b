# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shipped playbooks, run by the real ansible-playbook on the lab's machine, as an ordinary user with become.

Or as another account, without.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from labvm.machine import Machine

from tests.sim import controller

HOST = "lab"
WHOLE_HOST = ("bettercompute.bcd.host_section", "bettercompute.bcd.host_plan")
LATER = ": known after "


class Pass(NamedTuple):
    """What one run of a playbook said: its exit status, each task's result, the recap of the machine, its output."""

    rc: int
    tasks: tuple[dict[str, Any], ...]
    recap: dict[str, int]
    statistics: dict[str, Any]
    said: str

    @property
    def whole(self) -> dict[str, Any]:
        """The last result of the whole host, whether its task failed or not."""
        found = [task["result"] for task in self.tasks if task["action"] in WHOLE_HOST]
        assert found, self.said
        last: dict[str, Any] = found[-1]
        return last

    @property
    def state(self) -> str:
        """The section's state."""
        return str(self.whole["section"]["state"])

    @property
    def message(self) -> str:
        """The one report: what every unit that is not converged says."""
        return str(self.whole["section"]["message"])

    @property
    def units(self) -> dict[str, dict[str, Any]]:
        """Each unit's result by its name."""
        return {unit["unit"]: unit for unit in self.whole["units"]}

    def steps(self, unit: str) -> list[str]:
        """What the unit did, or would do, a sentence each."""
        return [step["action"] for step in self.units[unit]["steps"]]

    def all_steps(self) -> dict[str, list[str]]:
        """The steps of every unit that has some."""
        return {unit: self.steps(unit) for unit in self.units if self.steps(unit)}

    def waits(self, unit: str) -> dict[str, str]:
        """What the unit waits for: message by reason."""
        return {wait["reason"]: wait["message"] for wait in self.units[unit]["pending"]}

    def differences(self) -> dict[str, tuple[str, str]]:
        """The diff: what each path has and what is wanted there."""
        every = [entry for unit in self.units.values() for entry in unit["diff"]]
        return {entry["after_header"]: (entry["before"], entry["after"]) for entry in every}


class Stage(NamedTuple):
    """The machine and a directory for what a run leaves on this side; `account` logs in and stays what it is."""

    machine: Machine
    scratch: Path
    account: str = ""

    def play(self, name: str, section: dict[str, Any] | None, *arguments: str, **variables: Any) -> Pass:
        """Run a shipped playbook; `section` are the units in wire form, `variables` those of the playbook."""
        given = dict(variables)
        if section is not None:
            given["bcd_converge_units"] = section
        extra = self.scratch / "variables.json"
        extra.write_text(json.dumps(given), encoding="utf-8")
        played = controller.playbook(
            str(self.scratch),
            str(self._inventory()),
            f"bettercompute.bcd.{name}",
            *(() if self.account else ("--become",)),
            "--extra-vars",
            f"@{extra}",
            *arguments,
            as_json=True,
            timeout=900,
            variables={"ANSIBLE_TIMEOUT": "120"},  # an emulated machine on a busy one is slow
        )
        assert "{" in played.out, played.out + played.err
        events = played.events()
        said = "\n".join(str(task["result"].get("msg", "")) for task in events["tasks"]) + played.err
        return Pass(played.rc, tuple(events["tasks"]), events["stats"][HOST], events["custom"], said)

    def _inventory(self) -> Path:
        if not self.account:
            return self.machine.ansible_inventory
        found = yaml.safe_load(self.machine.ansible_inventory.read_text(encoding="utf-8"))
        found["all"]["hosts"][HOST]["ansible_user"] = self.account
        place = self.scratch / f"{self.account}.yml"
        place.write_text(yaml.safe_dump(found), encoding="utf-8")
        return place

    def converge(self, section: dict[str, Any] | None, *arguments: str, **variables: Any) -> Pass:
        """One pass."""
        return self.play("converge", section, *arguments, **variables)

    def plan(self, section: dict[str, Any], **variables: Any) -> Pass:
        """The drift, as the playbook `plan` finds it; its report is in `report()`."""
        return self.play("plan", section, bcd_report_dir=str(self.scratch / "report"), **variables)

    def report(self) -> dict[str, Any]:
        """The drift report that the last plan wrote."""
        found: dict[str, Any] = json.loads((self.scratch / "report" / "fleet.json").read_text(encoding="utf-8"))
        return found
