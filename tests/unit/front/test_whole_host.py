# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All units on one host: they converge together, check mode says how, a kill loses nothing, and it imports little."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import section
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.unit_names import K8S_JOIN
from ansible_collections.bettercompute.bcd.plugins.module_utils.units import catalog
from tests.unit.boot_machines import next_line
from tests.unit.fake_host import Killed
from tests.unit.import_weight import Recorder, replayed
from tests.unit.whole_host import CPUS, POOLS, UNITS, VERSION, WholeHost

pytestmark = pytest.mark.exhaustive

TOP = Path(__file__).resolve().parents[3]
MOST_CHANGES = 150  # of one pass
PARTS = 4  # of the places to kill a pass at, so that they run beside each other
OPTIONS = ("units", "wire_units", "known", "generation", "signed_spec", "secrets", "node_id", "site", "only", "label")
# Bytes of the project's files that a quiet pass over a converged host imports: "" whatever the section names, "a turn"
# for the first that is made in full, and each unit beside that, were it alone. A little above what is measured: raise
# one for a reason, lower it with what is won.
BUDGET = {
    "": 75500,
    "a turn": 33000,
    "kernel-modules": 34250,
    "sysctl": 19700,
    "hugepages": 49500,
    "cpu": 50250,
    "iommu": 47250,
    "nvidia-driver": 75000,
    "fabric-manager": 54750,
    "gpu-settings": 27500,
    "mig-layout": 65500,
    "gpu-sharing": 60000,
    "container-toolkit": 95000,
}
# All together, on the host of these tests; and on one without NVSwitches whose GPUs are shared by time. Among it is the
# gate of signed specs (front.trust, and root's configuration), which has to be asked where nothing is signed, too.
WHOLE, PLAIN = 526000, 507000
# All together where each unit's turn is known again (front.recall): what every pass imports, and the sights.
RECALLED = 143000


def go(host: Host, units: dict[str, Any] = UNITS) -> dict[str, Any]:
    """A pass over the section."""
    params = {**dict.fromkeys(OPTIONS), "units": units, "max_disruption": "gpu", "fail_on": "failed"}
    return section.report(section.converge_section(params, host, Records(host)), "failed")


def states(result: dict[str, Any]) -> dict[str, str]:
    return {unit["unit"]: unit["state"] for unit in result["units"]}


def lines(result: dict[str, Any]) -> dict[str, list[str]]:
    """The sentences of each unit's steps, without what is known only later."""
    later = re.compile(": known after ")
    return {
        unit["unit"]: [step["action"] for step in unit["steps"] if not later.search(step["action"])]
        for unit in result["units"]
    }


def shown(host: WholeHost) -> dict[str, Any]:
    """What the host is in the end, in terms of the host and not of our records."""
    machine, services = host.machine, host.services
    return {
        "tun": host.text("/sys/module/tun/parameters/debug"),
        "swappiness": host.text("/proc/sys/vm/swappiness"),
        "pages": [host.text(f"{pool}/nr_hugepages") for pool in POOLS],
        "governors": {host.text(f"{CPUS}/cpu{cpu}/cpufreq/scaling_governor") for cpu in range(8)},
        "next boot": "iommu=pt" in next_line(host).split(),
        "driver": (machine.loaded, machine.library, machine.disk, machine.flavour, machine.uvm),
        "packages": host.apt.shelf.installed,
        "held": host.apt.shelf.held,
        "active": {unit for unit, state in services.state.items() if state == "active"},
        "enabled": {link.rpartition("/")[2] for link in host.links if ".wants/" in link},
        "stale": [unit for unit in services.loaded if services.stale(unit)],
        "power": [card.power for card in machine.cards],
        "mig": [(card.mig, machine.instances(at)) for at, card in enumerate(machine.cards)],
        "mps": [(daemon["visible"], daemon["percentage"]) for daemon in machine.mps.values()],
        "compute mode": [card.compute_mode for card in machine.cards],
        "described": sorted(device["name"] for device in host.spec()["devices"]) if host.spec() else [],
        "cdi": host.cri().get("enable_cdi"),
        "containerd": (host.running, host.restarts[-1:]),
        "initramfs": "blacklist nouveau" in (host.text("/boot/initrd.img-6.8.0-88-generic") or ""),
        "files": {path: file.text for path, file in host.files.items() if path.startswith("/etc/")},
    }


@cache
def ended() -> tuple[WholeHost, dict[str, Any]]:
    """A host after one pass, and what the pass said."""
    host = WholeHost()
    return host, go(host)


def test_one_pass_makes_a_fresh_host_what_the_section_says() -> None:
    host, result = ended()
    assert [*UNITS, K8S_JOIN] == list(catalog.SHIPPED)  # which test_whole_worker adds
    assert states(result) == dict.fromkeys(UNITS, "converged"), [unit.get("msg") for unit in result["units"]]
    assert (result["section"]["state"], result["unconverged"], result["reboot_required"]) == ("CONVERGED", [], False)
    assert {unit["unit"] for unit in result["units"] if unit["changed"]} == set(UNITS)
    _first, second = host.machine.cards
    build = f"{VERSION}-0ubuntu0.24.04.1"
    seen = shown(host)
    names = seen.pop("described")
    assert [name for name in names if name.startswith("GPU-")] == [second.uuid]
    assert len([name for name in names if name.startswith("MIG-")]) == 3
    del seen["files"]
    assert seen == {
        "tun": "1\n",
        "swappiness": "10\n",
        "pages": ["512\n", "512\n"],
        "governors": {"performance\n"},
        "next boot": True,
        "driver": (VERSION, VERSION, VERSION, "proprietary", True),
        "packages": {
            "nvidia-headless-550-server": build,
            "nvidia-utils-550-server": build,
            "nvidia-compute-utils-550-server": build,
            "nvidia-fabricmanager-550": build,
            "nvidia-container-toolkit": "1.18.1-1",
        },
        "held": {"nvidia-fabricmanager-550"},
        "active": {"nvidia-persistenced.service", "nvidia-fabricmanager.service", "bcd-mps.service"},
        "enabled": {
            "nvidia-persistenced.service",
            "nvidia-fabricmanager.service",
            "bcd-hugepages.service",
            "bcd-mig.service",
            "bcd-mps.service",
        },
        "stale": [],
        "power": [500.0, 500.0],
        "mig": [(True, ["2g.20gb", "2g.20gb", "3g.40gb"]), (False, [])],
        "mps": [([second.uuid], "25.0")],
        "compute mode": ["DEFAULT", "EXCLUSIVE_PROCESS"],
        "cdi": True,
        "containerd": ({"containerd"}, ["containerd"]),
        "initramfs": True,
    }


def test_a_second_pass_is_quiet() -> None:
    host, _result = ended()
    calls = len(host.calls)
    again = go(host)
    assert again["changed"] is False
    assert [unit["steps"] for unit in again["units"] if unit["steps"]] == []
    assert host.calls[calls:] == []
    assert states(again) == dict.fromkeys(UNITS, "converged")


@pytest.mark.parametrize("fresh", [False, True], ids=["index to refresh", "index there"])
def test_check_mode_says_what_the_pass_then_does(fresh: bool) -> None:
    host = WholeHost(fresh)
    before = dict(host.files), dict(host.links), host.machine.dump()
    planned = go(PredictedHost(host))
    assert (dict(host.files), dict(host.links), host.machine.dump()) == before
    assert host.calls == []
    assert planned["changed"] is True
    real = go(host)
    done = lines(real)
    for unit, actions in lines(planned).items():
        taken = iter(done[unit])
        assert [action for action in actions if action not in taken] == [], unit
    whole = [unit for unit, result in zip(UNITS, planned["units"]) if not says_later(result) and not result["pending"]]
    assert {unit: lines(planned)[unit] for unit in whole} == {unit: done[unit] for unit in whole}
    # what nothing on this host has to wait for is said to the last step; the driver as far as the index tells
    assert {"kernel-modules", "sysctl", "hugepages", "cpu", "iommu"} <= {*whole}
    named = " ".join(lines(planned)["nvidia-driver"])
    assert ("install nvidia-headless-550-server" if fresh else "refresh the package index") in named


def says_later(result: dict[str, Any]) -> bool:
    return any(": known after " in step["action"] for step in result["steps"])


@cache
def changes() -> int:
    """How many changes the undisturbed pass makes."""
    return len(ended()[0].calls)


@pytest.mark.parametrize("part", range(PARTS))
def test_killed_at_any_change_the_next_pass_converges(part: int) -> None:
    host, _result = ended()
    want = shown(host)
    assert 20 < changes() < MOST_CHANGES
    for at in range(1 + part, changes() + 1, PARTS):
        host = WholeHost()
        host.kill_at = at
        with pytest.raises(Killed):
            go(host)
        host.kill_at = 0
        told = f"killed before change {at}: {host.calls[at - 1]}"
        after = go(host)
        assert states(after) == dict.fromkeys(UNITS, "converged"), (told, [unit.get("msg") for unit in after["units"]])
        assert shown(host) == want, told
        assert go(host)["changed"] is False, told


def test_a_quiet_pass_imports_little() -> None:
    host, _result = ended()
    told = quiet(host, UNITS)
    weight = {unit: sum(files.values()) for unit, files in told["alone"].items()}
    assert set(weight) == set(BUDGET)
    heavier = {
        unit: f"{size} bytes, budget {BUDGET[unit]}: {json.dumps(told['alone'][unit])}"
        for unit, size in weight.items()
        if size > BUDGET[unit]
    }
    assert not heavier, heavier
    assert sum(told["files"].values()) <= WHOLE


def test_a_quiet_pass_over_a_plain_host_imports_less() -> None:
    units = {**UNITS, "gpu-sharing": {"mode": "timeslice"}}
    host = WholeHost(switched=False)
    assert go(host, units)["unconverged"] == []
    told = quiet(host, units)
    assert sum(told["files"].values()) <= PLAIN
    for_others = {"plan.gpu_sharing_daemon", "plan.fabric_manager_service", "plan.packages", "core.predict"}
    for_others |= {"front.asked", "front.repairs", "front.verified", "plan.pins", "plan.agreement", "intent.acceptance"}
    assert for_others & {*told["files"]} == set()


def test_a_quiet_pass_that_is_known_again_imports_no_unit() -> None:
    host, _result = ended()
    told = quiet(host, UNITS)
    first, again = told["first"], told["again"]
    assert again["result"] == first["result"]
    assert again["kept"] == first["kept"]
    rooms = {room: [name for name in again["files"] if name.startswith(f"{room}.")] for room in ("units", "plan")}
    assert rooms["units"] == ["units.catalog"]
    named = {name.replace("-", "_") for name in catalog.SHIPPED}
    assert [name for name in rooms["plan"] if name.partition(".")[2].startswith((*named,))] == []
    assert "core.runner" not in again["files"]
    assert sum(again["files"].values()) <= RECALLED, json.dumps(again["files"])


def test_no_unit_says_of_itself_that_it_is_known_after_its_own_steps() -> None:
    """Where the driver runs and the GPUs are not as they should be, each unit is looked at twice."""
    host = WholeHost()
    gpus = {"gpu-settings", "mig-layout", "gpu-sharing", "container-toolkit"}
    go(host, {name: settings for name, settings in UNITS.items() if name not in gpus})
    planned = {unit["unit"]: unit["steps"] for unit in go(PredictedHost(host), UNITS)["units"]}
    told = [step["action"] for name in ("gpu-settings", "mig-layout") for step in planned[name]]
    assert any(line.startswith("set the power limit of GPU 1") for line in told)
    assert any(line.startswith("create ") for line in told)
    assert [line for line in told if "known after" in line] == []


def quiet(host: WholeHost, units: dict[str, Any]) -> dict[str, Any]:
    """What another pass imports, by a fresh interpreter."""
    recorder = Recorder(host)
    assert go(host, units)["changed"] is False
    told = replayed(recorder.tape(), units)
    assert (told["changed"], told["unconverged"], told["calls"]) == (False, {}, [])
    return told


def test_contributing_tells_the_weight() -> None:
    text = " ".join((TOP / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    assert f"at most {WHOLE // 1000} kB on a switched host with MPS, {PLAIN // 1000} kB on one with neither" in text
