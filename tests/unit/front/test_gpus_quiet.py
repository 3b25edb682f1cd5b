# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Eight GPUs, half divided by MIG and half shared by MPS, that are as they should be and in use.

A pass starts nvidia-smi four times at most, and sees the same whoever comes and goes; what matters is a difference.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Past
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.watched import Beside, Watched
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import section, turns
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.recall import Recall
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.section import Turn
from ansible_collections.bettercompute.bcd.plugins.module_utils.units import catalog
from tests.gpu.model import Process
from tests.unit.noting_host import NotingHost
from tests.unit.whole_host import UNITS, WholeHost

pytestmark = pytest.mark.exhaustive

OPTIONS = ("units", "wire_units", "known", "generation", "signed_spec", "secrets", "node_id", "site", "only", "label")
LAYOUTS = ("3g.40gb,2g.20gb:2", "all-1g.10gb", "3g.40gb:2", "7g.80gb")
MOST = 4  # processes of nvidia-smi in a pass
HALF = {
    **UNITS,
    "mig-layout": {"layout": "off", "gpus": [{"select": {"index": at}, "layout": LAYOUTS[at]} for at in range(4)]},
}
OURS = ("gpu-settings", "mig-layout", "gpu-sharing")


def go(host: Host, units: dict[str, Any], records: Records | None = None) -> dict[str, Any]:
    """A pass over the section."""
    params = {**dict.fromkeys(OPTIONS), "units": units, "max_disruption": "gpu", "fail_on": "failed"}
    return section.report(section.converge_section(params, host, records or Records(host)), "failed")


@cache
def _ended() -> WholeHost:
    host = WholeHost(gpus=8)
    result = go(host, HALF)
    assert result["unconverged"] == [], result["unconverged"]
    return host


def converged() -> WholeHost:
    """A host of its own on which all units have converged."""
    return copy.deepcopy(_ended())


def work(host: WholeHost) -> None:
    """Jobs on both halves, a client of the MPS daemon, a process that has nothing to do with GPUs, and a hold."""
    host.machine.cards[0].processes.append(
        Process(4242, "/usr/bin/python3", 4096, gi=host.machine.cards[0].instances[0].id)
    )
    host.machine.cards[6].processes.append(Process(4243, "nvidia-cuda-mps-server", 29))
    host.put("/proc/4244/comm", "python3\n")
    host.links["/proc/4244/exe"] = "/usr/bin/python3"
    for number, node in enumerate(("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia6")):
        host.links[f"/proc/4244/fd/{number}"] = node
    host.put("/proc/4245/comm", "bash\n")
    hold(host, "alloc_1", 6)


def hold(host: WholeHost, allocation: str, at: int) -> None:
    """A live hold of a slot of a GPU."""
    device = {"name": "0", "annotations": {"bcd.dev/device-id": f"{host.machine.cards[at].uuid}::7"}}
    spec = {"cdiVersion": "0.6.0", "kind": "bcd.dev/gpu", "devices": [device]}
    host.put(f"/etc/cdi/bcd-{allocation}.json", json.dumps(spec))


def started(host: WholeHost) -> set[tuple[str, ...]]:
    """Each command line of nvidia-smi that was asked; a pass asks each once (core.watched)."""
    return {argv for argv in host.asked if argv[0] == "nvidia-smi"}


def test_a_pass_over_eight_gpus_starts_nvidia_smi_four_times_at_most() -> None:
    host = converged()
    work(host)
    for seen in (host, PredictedHost(host)):
        host.asked.clear()
        result = go(seen, HALF)
        assert (result["changed"], result["unconverged"]) == (False, [])
        assert len(started(host)) <= MOST, started(host)
    assert sum("--query-gpu" in argv[1] for argv in started(host)) == 1


@pytest.mark.parametrize(
    ("layout", "most"),
    [
        ("off", 2),  # all of them, and the listing that a CDI specification is held to
        ("1c.3g.40gb:3,2g.20gb", 4),
    ],
)
def test_it_is_started_no_oftener_than_the_layouts_need(layout: str, most: int) -> None:
    host = converged()
    units = {**UNITS, "mig-layout": {"layout": layout}, "gpu-sharing": {"mode": "timeslice"}}
    assert go(host, units)["unconverged"] == []
    host.asked.clear()
    assert go(host, units)["changed"] is False
    assert len(started(host)) <= most, started(host)


class Passes:
    """Passes over a host as they are opened: each thing is asked once, and quiet turns are remembered.

    `made` are the units of the last one whose turn was made.
    """

    def __init__(self, host: WholeHost, monkeypatch: pytest.MonkeyPatch) -> None:
        self.host = host
        self.watched = Watched(host)
        self.watched.recall = Recall(self.watched, "the code of this test")
        self.made: list[str] = []
        made = turns._made

        def noted(turn: Turn, *given: Any) -> Outcome:
            self.made.append(turn.unit)
            return made(turn, *given)

        monkeypatch.setattr(turns, "_made", noted)

    def go(self) -> dict[str, Any]:
        """One more pass."""
        self.made.clear()
        self.host.asked.clear()
        self.watched.begin_anew()
        return go(self.watched, HALF, Records(Beside(self.host, self.watched)))


def test_a_pass_over_gpus_in_use_makes_no_turn_and_starts_nvidia_smi_four_times_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = converged()
    hold(host, "alloc_0", 7)
    passes = Passes(host, monkeypatch)
    for which in ("made", "recalled"):
        result = passes.go()
        assert (result["changed"], result["unconverged"]) == (False, [])
        assert sum(argv[0] == "nvidia-smi" for argv in host.asked) <= MOST, (which, host.asked)
        assert set(OURS) & {*passes.made} == (set(OURS) if which == "made" else set()), which
        work(host)
    limit(host)
    passes.go()
    assert "gpu-settings" in passes.made
    assert not {"mig-layout"} & {*passes.made}


def seen(host: WholeHost, unit: str) -> list[tuple[Any, ...]]:
    """What a unit's look asked, with the answers."""
    noting = NotingHost(host)
    of = catalog.unit(unit)
    of.look(noting, of.check(HALF[unit]), Past(applied=HALF))
    return noting.notes


@pytest.mark.parametrize("unit", OURS)
def test_who_uses_gpus_is_no_difference_where_nothing_is_to_be_changed(unit: str) -> None:
    host = converged()
    hold(host, "alloc_0", 7)  # that there are any, is seen: services are reloaded otherwise then
    before = seen(host, unit)
    work(host)
    assert seen(host, unit) == before
    assert not any("--query-compute-apps" in str(note) for note in before)


def limit(host: WholeHost) -> None:
    host.machine.cards[2].power = 450.0


def instance(host: WholeHost) -> None:
    host.machine.cards[1].instances.pop()


def part(host: WholeHost) -> None:
    host.machine.cards[2].instances[0].cis.clear()


def pending(host: WholeHost) -> None:
    host.machine.cards[5].mig_pending = True


def compute_mode(host: WholeHost) -> None:
    host.machine.cards[6].compute_mode = "DEFAULT"


def share(host: WholeHost) -> None:
    host.machine.mps["/run/nvidia-mps"]["percentage"] = "100.0"


def memory(host: WholeHost) -> None:
    host.machine.mps["/run/nvidia-mps"]["limits"]["1"] = "1G"


def rival(host: WholeHost) -> None:
    host.put("/proc/905/comm", "nvidia-cuda-mps\n")
    host.put("/proc/905/cmdline", "/usr/bin/nvidia-cuda-mps-control\0-d\0")
    host.put("/proc/905/cgroup", "0::/system.slice/nvidia-mps.service\n")


def unit_file(host: WholeHost) -> None:
    path = "/etc/systemd/system/bcd-mps.service"
    host.put(path, (host.text(path) or "").replace("Restart=on-failure", "Restart=no"))


def another_driver(host: WholeHost) -> None:
    host.machine.loaded = host.machine.library = "550.200.01"


@pytest.mark.parametrize(
    ("unit", "change"),
    [
        ("gpu-settings", limit),
        ("mig-layout", instance),
        ("mig-layout", part),
        ("mig-layout", pending),
        ("mig-layout", another_driver),
        ("gpu-sharing", compute_mode),
        ("gpu-sharing", share),
        ("gpu-sharing", memory),
        ("gpu-sharing", rival),
        ("gpu-sharing", unit_file),
    ],
)
def test_what_matters_is_a_difference(unit: str, change: Callable[[WholeHost], None]) -> None:
    host = converged()
    before = seen(host, unit)
    change(host)
    assert seen(host, unit) != before
