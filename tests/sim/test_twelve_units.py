# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All twelve units on simulated hosts, by the real playbook: what the benches take for converged hosts is converged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.units import catalog
from tests.bench import whole
from tests.sim.host import SimulatedHost
from tests.sim.marks import in_namespace

pytestmark = [in_namespace, pytest.mark.newest_core]
NAMES = ["node-01", "node-002"]


def result(hosts: whole.Hosts, name: str) -> dict[str, Any]:
    """What one more pass over all says of the host."""
    played = hosts.converge("--limit", name)
    assert played.rc == 0, played.out + played.err
    [found] = [task["result"] for task in played.events()["tasks"] if "units" in task["result"]]
    return dict(found)


def test_twins_of_a_converged_host_are_converged_and_each_is_itself(tmp_path: Path) -> None:
    with whole.build(tmp_path / "whole", NAMES) as hosts:
        for name in NAMES:
            host, asked = SimulatedHost(hosts.trees[name]), len(hosts.cluster.requests)
            quiet = result(hosts, name)
            assert [unit["unit"] for unit in quiet["units"]] == list(catalog.SHIPPED)
            assert {unit["state"] for unit in quiet["units"]} == {"converged"}
            assert (quiet["changed"], quiet["section"]["state"], host.changes()) == (False, "CONVERGED", [])
            assert f"GET /api/v1/nodes/{name}" in hosts.cluster.requests[asked:]
            with host.gpus() as gpus:
                assert [gpus.instances(at) for at in (0, 1)] == [["2g.20gb", "2g.20gb", "3g.40gb"], []]
                assert (len(gpus.mps), [card.power for card in gpus.cards]) == (1, [500, 500])

        # A label that somebody changed on the Node of one is put right there, and on no other.
        first, second = (hosts.cluster.nodes[name]["metadata"]["labels"] for name in NAMES)
        first["tier"] = second["tier"] = "another"
        drifted = result(hosts, NAMES[0])
        assert [unit["unit"] for unit in drifted["units"] if unit["changed"]] == ["k8s-join"]
        tiers = [hosts.cluster.nodes[name]["metadata"]["labels"]["tier"] for name in NAMES]
        assert (drifted["section"]["state"], tiers) == ("CONVERGED", ["gpu", "another"])
