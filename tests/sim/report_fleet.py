# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small fleet of which a report has everything to say: `python -m tests.sim.report_fleet` makes the samples anew.

MIG devices and slots that are held, a layout that waits, page pools of two NUMA nodes, drift, a reboot that is due, a
refused setting, a host without a pool, one that is down.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.sim import controller, fleet
from tests.sim.controller import Played
from tests.sim.host import SimulatedHost
from tests.sim.tree import PROFILES

SAMPLES = Path(__file__).resolve().parents[1] / "unit" / "filter" / "samples"
DRIVER: dict[str, Any] = {"nvidia-driver": {"branch": "580"}}
LAYOUT = {"mig-layout": {"layout": "3g.40gb,2g.20gb,1g.10gb:2"}}
MPS = {"gpu-sharing": {"mode": "mps", "replicas": 4}}
REFUSED = {"sysctl": {"kernel.core_pattern": "|/tmp/x"}}
PAGES = {"hugepages": {"pages2m": 64, "perNuma": True}, "cpu": {"isolate": "2-3"}, "sysctl": {"vm.swappiness": 10}}
UNITS: dict[str, dict[str, Any]] = {
    "mig": {**DRIVER, **LAYOUT, "container-toolkit": {}},
    "mps": {**DRIVER, **MPS, "container-toolkit": {}},
    "vm": PAGES,
    "odd": REFUSED,
    "down": {"sysctl": {"vm.swappiness": 10}},
}
KINDS = {"mig": "h100", "mps": "rtx", "vm": "debian", "odd": "debian", "down": "debian"}
PLACES = {
    "mig": {"bcd_pool": "gpu-fra", "bcd_site": "fra", "bcd_class": "gpu-host"},
    "mps": {"bcd_pool": "gpu-fra", "bcd_site": "fra", "bcd_class": "gpu-host"},
    "vm": {"bcd_pool": "sandbox-ber", "bcd_site": "ber", "bcd_class": "vps-host"},
    "down": {"bcd_pool": "sandbox-ber", "bcd_site": "ber", "bcd_class": "vps-host"},
}


class Fleet:
    """Hosts by short names, all where none is named, each alone in the group of that name."""

    def __init__(self, scratch: Path, *given: str) -> None:
        self.scratch, names = scratch, given or tuple(KINDS)
        kinds = [fleet.Hosts(name, PROFILES[KINDS[name]]) for name in names]
        variables = {f"{name}-01": {"bcd_converge_units": UNITS[name], **PLACES.get(name, {})} for name in names}
        self.inventory = fleet.make(str(scratch), kinds, hostvars=variables)
        self.hosts = {name: SimulatedHost(str(scratch / "trees" / f"{name}-01")) for name in names}

    def give(self, name: str, **variables: Any) -> None:
        """Give a host variables in the inventory."""
        inventory = json.loads(Path(self.inventory).read_text(encoding="utf-8"))
        inventory["all"]["children"][name]["hosts"][f"{name}-01"].update(variables)
        Path(self.inventory).write_text(json.dumps(inventory), encoding="utf-8")

    def play(self, name: str, *arguments: str) -> Played:
        """Run a shipped playbook."""
        what = f"bettercompute.bcd.{name}"
        return controller.playbook(str(self.scratch), self.inventory, what, *arguments, as_json=True)

    def document(self, folder: str = "bcd-report") -> dict[str, Any]:
        """What the last run wrote."""
        found: dict[str, Any] = json.loads((self.scratch / folder / "fleet.json").read_text(encoding="utf-8"))
        return found

    def uuids(self, name: str) -> list[str]:
        """The host's GPUs."""
        with self.hosts[name].gpus() as gpus:
            return [card.uuid for card in gpus.cards]

    def prepare(self) -> None:
        """Converge all, hold a MIG device and two slots, then let things drift, wait, and one host be down."""
        self.play("converge", "-e", "bcd_hosts=all:!down:!odd")
        with self.hosts["mig"].gpus() as gpus:
            first = gpus.cards[0].instances[0].id
        part = {"id": f"{self.uuids('mig')[0]}/gi{first}/ci0", "device_class": "gpu.mig"}
        slots = [{"id": f"{self.uuids('mps')[0]}/s{slot}", "device_class": "gpu.slot"} for slot in (0, 2)]
        self.give("mig", bcd_devices_assignments=[hold("alloc_mig", part)], bcd_devices_generation=7)
        self.give("mps", bcd_devices_assignments=[hold(f"alloc_{n}", slot) for n, slot in enumerate(slots)])
        self.play("converge", "-e", "bcd_hosts=mig:mps")
        self.give("mig", bcd_converge_units={**UNITS["mig"], "mig-layout": {"layout": "all-1g.10gb"}})
        with self.hosts["mps"].gpus() as gpus:
            gpus.occupy(1, pid=4242)
        self.hosts["vm"].set("/proc/sys/vm/swappiness", "60")
        self.take_down("down")

    def take_down(self, name: str) -> None:
        """Let no connection reach the host."""
        self.hosts[name].change(misboot="never-back")
        self.hosts[name].reboot()


def hold(name: str, *devices: dict[str, str]) -> dict[str, Any]:
    """An assignment of these devices."""
    return {"allocation_id": name, "binding": "BINDING_HOLD", "devices": list(devices)}


def main() -> int:
    """Write the samples."""
    SAMPLES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        hosts = Fleet(Path(scratch) / "fleet")
        hosts.prepare()
        for source in ("plan", "status"):
            played = hosts.play(source)
            print(source, played.rc)
            text = (hosts.scratch / "bcd-report" / "fleet.json").read_text(encoding="utf-8")
            text = text.replace(str(hosts.scratch), "/srv/fleet")  # the simulator says which tree is down
            (SAMPLES / f"{source}.json").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
