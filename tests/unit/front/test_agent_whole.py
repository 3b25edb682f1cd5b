# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent over whole machines: what drifts of each unit is repaired from root's copy, a join is ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import agent, repairs, section
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.staged import FILE
from tests.cluster.control_plane import Cluster
from tests.unit.fake_host import FakeHost
from tests.unit.front.test_whole_host import go, shown
from tests.unit.kube_host import KubeHost
from tests.unit.kube_passes import REFERENCE
from tests.unit.whole_host import CPUS, POOLS, UNITS, WholeHost

pytestmark = pytest.mark.exhaustive

Drift = Callable[[WholeHost], object]


def kept(host: FakeHost) -> tuple[int, list[str]]:
    """A pass of the agent: its exit status, and what it said."""
    said: list[str] = []
    return agent.keep(host, Records(host), said.append), said


def fewer_pages(host: WholeHost) -> None:
    for pool in POOLS:
        host.put(f"{pool}/nr_hugepages", "3\n")


def less_power(host: WholeHost) -> None:
    for card in host.machine.cards:
        card.power = 350.0


def no_instances(host: WholeHost) -> None:
    for what in ("-dci", "-dgi"):
        rc, said = host.machine.smi(("nvidia-smi", "mig", what, "-i", "0"))
        assert rc == 0, said
    host.sync()


def stopped(unit: str) -> Drift:
    def stop(host: WholeHost) -> None:
        assert host.play(("systemctl", "stop", unit)).rc == 0

    return stop


DRIFTS: dict[str, Drift] = {
    "kernel-modules": lambda host: host.files.pop("/etc/modules-load.d/bcd.conf"),
    "sysctl": lambda host: host.put("/proc/sys/vm/swappiness", "60\n"),
    "hugepages": fewer_pages,
    "cpu": lambda host: host.put(f"{CPUS}/cpu3/cpufreq/scaling_governor", "powersave\n"),
    "iommu": lambda host: host.files.pop("/etc/default/grub.d/90-bcd-iommu.cfg"),
    "nvidia-driver": stopped("nvidia-persistenced.service"),
    "fabric-manager": stopped("nvidia-fabricmanager.service"),
    "gpu-settings": less_power,
    "mig-layout": no_instances,
    "gpu-sharing": stopped("bcd-mps.service"),
    "container-toolkit": lambda host: host.files.pop("/etc/cdi/nvidia.json"),
}


def test_there_is_a_drift_of_every_unit() -> None:
    assert list(DRIFTS) == list(UNITS)


@pytest.mark.parametrize("unit", DRIFTS)
def test_what_drifts_of_a_unit_is_repaired(unit: str) -> None:
    host = WholeHost()
    assert go(host)["unconverged"] == []
    want = shown(host)
    DRIFTS[unit](host)
    assert shown(host) != want
    rc, said = kept(host)
    assert (rc, said[-1]) == (0, "host CONVERGED"), said
    assert shown(host) == want
    assert unit in {repair["unit"] for repair in repairs.seen(host)["repairs"]}
    host.calls.clear()
    assert kept(host) == (0, ["host CONVERGED"])
    assert host.calls == []


def test_a_boot_that_a_pass_waited_for_is_followed_by_the_rest() -> None:
    """A unit that had to wait before its first step was asked as well: no controller has to come back for it."""
    host = WholeHost(fresh=True)
    wanted = {"gpu-settings": UNITS["gpu-settings"]}
    waiting = go(host, wanted)
    assert waiting["unconverged"] == ["gpu-settings"]
    go(host, {**wanted, "nvidia-driver": UNITS["nvidia-driver"]})
    assert kept(host)[0] == 0
    assert [card.power for card in host.machine.cards] == [500.0, 500.0]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        yield made


def ask(host: KubeHost) -> dict[str, Any]:
    """A run of Ansible that has no token yet: all is ready, and the join waits."""
    params = {
        **dict.fromkeys(("units", "wire_units", "known", "generation", "signed_spec", "secrets", "node_id", "site")),
        **dict.fromkeys(("only", "label")),
        "units": {"k8s-join": host.settings()},
        "max_disruption": "gpu",
        "fail_on": "failed",
    }
    return section.report(section.converge_section(params, host, Records(host)), "failed")


def test_a_staged_token_ends_the_join_and_is_removed_then(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    token = cluster.token()
    assert ask(host)["secrets_needed"] == [REFERENCE]
    rc, said = kept(host)
    assert (rc, host.text(FILE)) == (0, None), "without its secret no pass that follows soon comes further"
    assert said[-1].startswith("host PROGRESSING: ")
    host.put(FILE, f"{token}\n")
    rc, said = kept(host)
    assert (rc, said[-1]) == (0, "host CONVERGED"), said
    assert host.text(FILE) is None
    told = [*said, *(file.text for path, file in host.files.items() if path.startswith("/var/lib/bcd-hostconfig/"))]
    assert [text for text in told if token.rpartition(".")[2] in text] == []
    assert kept(host) == (0, ["host CONVERGED"])
