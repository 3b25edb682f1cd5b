# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller makes of a signed spec: what it says, without a word on whether it is to be believed."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.report import fleet_document, verdict
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.signed import holders, said
from tests import pki

PLANE = pki.ControlPlane()
SECTION = {"sysctl": {"vm.swappiness": 10}}
HOLD = {"allocation_id": "alloc_1", "binding": "BINDING_HOLD", "devices": [{"id": "GPU-1"}]}
SPEC = PLANE.desired_state("node-1", 3, SECTION, [HOLD])


def test_a_spec_says_its_node_its_generation_and_what_it_manages() -> None:
    whole = {"node_id": "node-1", "generation": 3, "units": SECTION, "devices": [HOLD]}
    assert said(SPEC) == whole
    assert said(json.dumps(SPEC)) == whole  # as the command line gives it
    assert said(PLANE.desired_state(host={})) == {"node_id": "node-1", "generation": 1, "units": {}}
    assert said(PLANE.desired_state(devices=[])) == {"node_id": "node-1", "generation": 1, "devices": []}


def of(text: str) -> dict[str, Any]:
    return {**SPEC, "body": base64.b64encode(text.encode()).decode()}


@pytest.mark.parametrize(
    "spec",
    [
        None,
        "",
        "no JSON",
        "[]",
        5,
        {},
        {"body": 5},
        {"body": "AAAA"},
        {"body": "a"},
        of("{}"),
        of("[]"),
        of("5"),
        of('{"generation":1,"node_id":"n", "host":[]}'),
        of('{"generation":1,"host":5,"node_id":"n"}'),
        of('{"generation":1,"host":[5],"node_id":"n"}'),
        of('{"generation":1,"host":[{"settings":{},"unit":"sysctl"}],"node_id":"n"}'),
        of('{"generation":1,"host":[{"settings":"[5]","unit":"sysctl"}],"node_id":"n"}'),
        of('{"devices":[5],"generation":1,"node_id":"n"}'),
        of("[" * 5000),
    ],
)
def test_what_cannot_be_made_out_says_nothing_and_is_left_to_the_host(spec: Any) -> None:
    assert said(spec) == {}


class Variables(Mapping[str, Any]):
    """Variables that are templated when they are asked for, as those of Ansible."""

    def __init__(self, **known: Any) -> None:
        self.known = known
        self.asked: list[str] = []

    def __getitem__(self, name: str) -> Any:
        self.asked.append(name)
        if isinstance(self.known[name], Exception):
            raise self.known[name]
        return self.known[name]

    def __contains__(self, name: object) -> bool:
        return name in self.known

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)


def test_hosts_hold_what_is_assigned_or_signed_and_no_other_variable_is_looked_at() -> None:
    hosts = {
        "assigned": Variables(bcd_devices_assignments=[], bcd_converge_join_token="secret"),
        "signed": Variables(bcd_converge_signed_spec=SPEC, bcd_converge_join_token="secret"),
        "apart": Variables(bcd_devices_signed_spec=SPEC, bcd_converge_signed_spec=PLANE.desired_state(host={})),
        "host": Variables(bcd_converge_signed_spec=PLANE.desired_state(host={}), bcd_converge_join_token="secret"),
        "own": Variables(bcd_devices_signed_spec=PLANE.desired_state(host={}), bcd_converge_signed_spec=SPEC),
        "none": Variables(bcd_converge_units=SECTION),
        "broken": Variables(bcd_converge_signed_spec=RuntimeError("its lookup fails")),
        "nonsense": Variables(bcd_converge_signed_spec="nonsense"),
    }
    assert holders(hosts, hosts) == ["assigned", "signed", "apart"]
    assert {name for host in hosts.values() for name in host.asked} == {
        "bcd_devices_assignments",
        "bcd_devices_signed_spec",
        "bcd_converge_signed_spec",
    }


def test_a_host_whose_spec_manages_no_unit_is_in_the_report_and_fails_nothing() -> None:
    skipped = {"changed": False, "skipped": True, "skip_reason": "Conditional result was False"}
    host = fleet_document({"a": skipped})["hosts"]["a"]
    assert (host["state"], host["units"], host["message"]) == ("converged", [], "")
    assert verdict(skipped, "progressing") == ""
