# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A section that names k8s-join, over a machine and a cluster: what it needs, and when."""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import section
from tests.cluster.control_plane import TOKEN, Cluster
from tests.unit.kube_host import KubeHost

NAMES = ("wire_units", "known", "generation", "signed_spec", "secrets", "node_id", "site", "only", "label")


def converge(host: Host, units: dict[str, Any], **given: Any) -> dict[str, Any]:
    """The result of a pass."""
    params = {**dict.fromkeys(NAMES), "units": units, "max_disruption": "gpu", "fail_on": "failed", **given}
    return section.report(section.converge_section(params, host, Records(host)), "failed")


def left(result: dict[str, Any]) -> list[str]:
    """The steps that were not taken."""
    return [step["action"] for unit in result["units"] for step in unit["steps"] if not step["done"]]


def test_a_bare_machine_needs_its_token_when_all_else_is_done_and_none_afterwards() -> None:
    with Cluster() as cluster:
        cluster.token()
        host = KubeHost(cluster, installed=False, containerd="")
        units = {"k8s-join": host.settings()}  # whose reference is join-token
        planned = converge(PredictedHost(host), units)
        join = f"join {cluster.url} as gpu-01"
        assert (planned["secrets_needed"], join in left(planned)) == (["join-token"], True)
        assert host.calls == []

        first, second = (converge(host, units) for _pass in range(2))
        for waits in (first, second):
            assert (waits["secrets_needed"], left(waits), "msg" in waits) == (["join-token"], [join], False)
        assert (first["changed"], second["changed"]) == (True, False)

        names = {"node_id": "node_01", "site": "fra"}
        joins = converge(host, units, secrets={"join-token": TOKEN}, **names)
        assert (joins["section"]["state"], joins["secrets_needed"]) == ("CONVERGED", []), joins["section"]["message"]
        labels = cluster.labels("gpu-01")
        assert (labels["bcd.dev/node-id"], labels["bcd.dev/site"]) == ("node_01", "fra")
        secret = TOKEN.rpartition(".")[2]
        assert (secret in json.dumps(joins), host.holds(secret)) == (False, [])

        quiet = converge(host, units, **names)
        assert (quiet["section"]["state"], quiet["changed"], quiet["secrets_needed"]) == ("CONVERGED", False, [])


def test_the_wrong_token_is_masked_where_it_is_said_why_it_is() -> None:
    with Cluster() as cluster:
        cluster.token()
        wrong = f"{TOKEN.partition('.')[0]}.fedcba9876543210"
        host = KubeHost(cluster)
        result = converge(host, {"k8s-join": host.settings()}, secrets={"join-token": wrong})
        assert result["section"]["state"] != "CONVERGED"
        assert ("fedcba9876543210" in json.dumps(result), host.holds("fedcba9876543210")) == (False, [])
