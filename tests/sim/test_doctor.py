# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Status and doctor by the real playbooks, on simulated hosts: true of their GPUs and holds, and changing nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.sim import controller, fleet
from tests.sim.host import SimulatedHost
from tests.sim.tree import PROFILES

UNITS: dict[str, Any] = {"sysctl": {"vm.swappiness": 10}, "cpu": {"isolate": "1"}}
UNSIGNED = "bcd helper applies host units unsigned unless the node itself presents a trust bundle"
STATE = "/var/lib/bcd-hostconfig"


class Fleet:
    """A plain host, and one with two H100 of which an allocation has the first."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = str(scratch)
        kinds = [fleet.Hosts("plain", PROFILES["debian"]), fleet.Hosts("gpu", PROFILES["h100"])]
        self.inventory = fleet.make(self.scratch, kinds)
        self.plain, self.gpu = (SimulatedHost(str(scratch / "trees" / f"{name}-01")) for name in ("plain", "gpu"))
        with self.gpu.gpus() as gpus:
            self.uuids = [card.uuid for card in gpus.cards]
        self.give("plain", bcd_converge_units=UNITS)
        held = {"allocation_id": "a1", "binding": "BINDING_HOLD"}
        devices = [{"id": self.uuids[0], "device_class": "gpu"}]
        self.give("gpu", bcd_converge_units={"sysctl": {"vm.swappiness": 10}, "container-toolkit": {}})
        self.give("gpu", bcd_devices_assignments=[{**held, "devices": devices}], bcd_devices_generation=5)

    def give(self, name: str, **variables: Any) -> None:
        inventory = json.loads(Path(self.inventory).read_text(encoding="utf-8"))
        inventory["all"]["children"][name]["hosts"][f"{name}-01"].update(variables)
        Path(self.inventory).write_text(json.dumps(inventory), encoding="utf-8")

    def play(self, name: str, *arguments: str) -> controller.Played:
        what = f"bettercompute.bcd.{name}"
        return controller.playbook(self.scratch, self.inventory, what, *arguments, as_json=True)

    def asked(self, name: str, task: str, *arguments: str) -> dict[str, dict[str, Any]]:
        """The results of a task by host, of a playbook that succeeds, changes nothing, and shows no change."""
        before = [host.changes() for host in (self.plain, self.gpu)]
        played = self.play(name, *arguments)
        assert played.rc == 0, played.out + played.err
        assert [host.changes() for host in (self.plain, self.gpu)] == before
        assert {stats["changed"] for stats in played.events()["stats"].values()} == {0}
        tasks = played.events()["tasks"]
        return {each["host"].removesuffix("-01"): each["result"] for each in tasks if each["task"] == task}


def test_status_and_doctor_by_their_playbooks(tmp_path: Path) -> None:
    hosts = Fleet(tmp_path / "fleet")
    done = hosts.play("converge")
    assert done.rc == 0, done.out + done.err

    # What the hosts are, and what they wait for.
    told = hosts.asked("status", "Ask the host")
    assert (told["plain"]["state"], told["gpu"]["state"]) == ("progressing", "converged"), told["gpu"]["report"]
    assert {unit["unit"]: unit["state"] for unit in told["plain"]["units"]} == {
        "sysctl": "converged",
        "cpu": "progressing",
    }
    assert list(told["plain"]["reboot"]["reasons"]) == ["cpu"]
    assert [gpu["allocations"] for gpu in told["gpu"]["gpus"]] == [["a1"], []]
    assert told["gpu"]["devices"]["state"] == "CONVERGED"
    assert [(hold["allocation_id"], hold["generation"]) for hold in told["gpu"]["holds"]] == [("a1", 5)]

    # True now: a process on the free GPU, a value changed by hand, a hold whose specification went.
    hosts.plain.set("/proc/sys/vm/swappiness", "60")
    with hosts.gpu.gpus() as gpus:
        gpus.occupy(1, pid=4242)
    (Path(hosts.gpu.tree) / "etc/cdi/bcd-a1.json").unlink()
    told = hosts.asked("status", "Ask the host", "--check")
    assert told["plain"]["units"][0]["state"] == "progressing"
    assert [one["pid"] for one in told["gpu"]["gpus"][1]["processes"]] == [4242]
    assert (told["gpu"]["state"], told["gpu"]["devices"]["state"]) == ("progressing", "PROGRESSING")

    # The doctor: a hold to be mended is a warning, a helper that takes what is unsigned a failure.
    found = hosts.asked("doctor", "Look at the host", "-e", "bcd_doctor_fail_on=never")
    assert _bad(found["gpu"], "holds") == ["the hold a1 has no CDI specification: converge its devices, which mends it"]
    hosts.plain.write("/etc/systemd/system/bcd-helper.socket", "[Socket]\nListenStream=/run/bcd/helper.sock\n")
    hosts.plain.write(f"{STATE}/owed.json", "{")
    found = hosts.asked("doctor", "Look at the host", "-e", "bcd_doctor_fail_on=never")
    assert found["plain"]["state"] == "failure"
    assert _bad(found["plain"], "signed-intent")[0].startswith(UNSIGNED)
    assert _bad(found["plain"], "records")[0].startswith(f"{STATE}/owed.json is not a record of version 1")

    # What fails whom: by default the host with a failure alone, after all were asked.
    played = hosts.play("doctor", "-e", "bcd_hosts=plain,gpu")
    stats = played.events()["stats"]
    assert (played.rc, stats["plain-01"]["failures"], stats["gpu-01"]["failures"]) == (2, 1, 0), played.out
    (failed,) = [each for each in played.events()["tasks"] if each["status"] == "failed"]
    assert f"signed-intent: {UNSIGNED}" in failed["result"]["msg"]
    (summary,) = [each for each in played.events()["tasks"] if each["task"] == "Say what was found of all"]
    assert sorted(summary["result"]["msg"]) == ["gpu-01: warning", "plain-01: failure"]
    played = hosts.play("doctor", "-e", "bcd_doctor_fail_on=warning", "--limit", "gpu")
    assert played.rc == 2, played.out


def test_what_is_no_level_is_refused_before_a_host_is_asked(tmp_path: Path) -> None:
    inventory = fleet.make(str(tmp_path), [fleet.Hosts("plain", PROFILES["debian"])])
    play = ("bettercompute.bcd.doctor", "-e")
    played = controller.playbook(str(tmp_path), inventory, *play, '{"bcd_doctor_fail_on": "fatal"}', as_json=True)
    (failed,) = played.events()["tasks"]
    assert (played.rc, failed["result"]["msg"]) == (
        2,
        "bcd_doctor_fail_on is fatal: it is failure, warning or never",
    )
    for unsaid in ('{"bcd_doctor_fail_on": null}', "{}"):
        played = controller.playbook(str(tmp_path), inventory, *play, unsaid, as_json=True)
        assert played.rc == 0, played.out + played.err


def _bad(result: dict[str, Any], check: str) -> list[str]:
    return [one["message"] for one in result["findings"] if one["check"] == check and one["level"] != "ok"]
