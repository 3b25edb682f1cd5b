# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever is sent to bcd helper, it answers; and where signing is demanded, it applies nothing that was not signed."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.front import helper_service as helper
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import request
from tests.pki import ControlPlane
from tests.unit.fake_host import FakeHost

from .helped import CONFIG, DEVICES, PEER, SECTION, UNIT, stand_in

SWAPPINESS = "/proc/sys/vm/swappiness"
DROP_IN = "/etc/sysctl.d/90-bcd.conf"
MEMORY = "/var/lib/bcd-hostconfig/helper-intent.json"
TOKEN_FILE = "/var/lib/bcd-hostconfig/k8s/bootstrap-token"
PLANE = ControlPlane()
STRANGER = ControlPlane()
BODY: dict[str, Any] = {"node_id": "node-1", "generation": 3, "host": {"sysctl": {"vm.swappiness": 10}}}
SPEC = PLANE.desired_state(**BODY)
FORGED = STRANGER.desired_state(**{**BODY, "host": {"sysctl": {"vm.swappiness": 11}}})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12) | st.sampled_from(["sysctl", "k8s-join", "gpu"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
SETTINGS = st.sampled_from([{}, None, {"vm.swappiness": 10}, {"vm.swappiness": 11}, {"vm.swappiness": "10"}]) | JSON
SPECS = st.sampled_from([None, SPEC, FORGED])
VALUES = {
    "unit": st.sampled_from(["sysctl", "kernel-modules", "k8s-join", "../etc", ""]),
    "units": st.none() | st.dictionaries(st.sampled_from(["sysctl", "cpu", "x"]), SETTINGS, max_size=2),
    "settings": SETTINGS,
    "signed_spec": SPECS,
    "check": st.booleans(),
    "plans": st.booleans(),
    "kind": st.sampled_from(request.KINDS),
    "id": st.none() | st.sampled_from(["a", "alloc_1", "../a"]),
    "content": st.none() | st.text(max_size=20) | st.just("abcdef.0123456789abcdef"),
    "slice": st.sampled_from(["bcd-alloc-a.slice", "system.slice"]),
    "limits": st.sampled_from([{}, {"cpus": "0"}]) | st.dictionaries(st.text(max_size=8), JSON, max_size=2),
    "max_disruption": st.sampled_from(["none", "service", "gpu", "reboot"]),
    "assignments": st.none() | st.lists(JSON, max_size=2),
}
SENT = {
    "host.unit": UNIT,
    "host.section": {**SECTION, "units": {"sysctl": {"vm.swappiness": 10}}},
    "devices": {**DEVICES, "assignments": []},
    "host.intent": {"op": "host.intent", "signed_spec": SPEC, "check": False},
    "file.write": {"op": "file.write", "kind": "cdi", "id": "a", "content": None},
    "slice.apply": {"op": "slice.apply", "slice": "bcd-alloc-a.slice", "limits": {}},
    "slice.remove": {"op": "slice.remove", "slice": "bcd-alloc-a.slice"},
}


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """A request that could be one, with some fields of other values, and now and then one that it has not."""
    found = copy.deepcopy(SENT[draw(st.sampled_from(sorted(SENT)))])
    for name in draw(st.lists(st.sampled_from(sorted(found.keys() - {"op"}) or ["op"]), max_size=4, unique=True)):
        found[name] = draw(VALUES.get(name, JSON) if draw(st.integers(0, 5)) else JSON)
    if not draw(st.integers(0, 9)):
        found[draw(st.text(min_size=1, max_size=6))] = draw(JSON)
    return found


def tampered(draw: Any, spec: dict[str, Any]) -> dict[str, Any]:
    """The envelope with a character of one of its texts exchanged."""
    found = copy.deepcopy(spec)
    name = draw(st.sampled_from(["body", "signature", "certificates"]))
    text = found[name][0] if name == "certificates" else found[name]
    at = draw(st.integers(0, len(text) - 1))
    other = text[:at] + draw(st.sampled_from("ABCabc019+/=")) + text[at + 1 :]
    found[name] = [other, *found[name][1:]] if name == "certificates" else other
    return found


def answered(host: FakeHost, sent: dict[str, Any]) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        stand_in(patch, host)
        return json.loads(helper.answer(json.dumps(sent).encode(), PEER))


def machine() -> FakeHost:
    return FakeHost({SWAPPINESS: "60\n", CONFIG: PLANE.config(), DROP_IN: "vm.swappiness = 60\n"})


@settings(max_examples=200, deadline=None)
@given(requests())
def test_nothing_is_applied_that_was_not_signed(sent: dict[str, Any]) -> None:
    host = machine()
    told = answered(host, sent)
    assert isinstance(told.get("changed"), bool)
    assert "fault of the collection" not in json.dumps(told)
    written = {call.split()[1] for call in host.calls if call.split()[0] in ("write", "set", "remove")}
    programs = [call for call in host.calls if call.split()[0] not in ("write", "set", "remove")]
    if sent.get("signed_spec") == SPEC and sent["op"] in ("host.unit", "host.section", "devices"):
        assert host.text(SWAPPINESS) in ("60\n", "10\n")
        records = {path for path in written if path.startswith("/var/lib/bcd-hostconfig/")}
        assert written - records <= {SWAPPINESS, DROP_IN}
    elif sent["op"] == "file.write":
        assert written <= {TOKEN_FILE}
    else:
        assert written == set()
    assert programs == []


@settings(max_examples=100, deadline=None)
@given(st.data(), st.sampled_from(["host.unit", "host.section", "devices", "host.intent"]))
def test_a_spec_with_another_character_is_none(data: st.DataObject, op: str) -> None:
    """Or the same spec, where base64 and PEM have more than one text for the same bytes."""
    spec = tampered(data.draw, SPEC)
    host = machine()
    told = answered(host, {**SENT[op], "signed_spec": spec, **({"units": None} if op == "host.section" else {})})
    if host.text(MEMORY) is None and "msg" in told:
        assert host.text(SWAPPINESS) == "60\n"
        assert host.text(DROP_IN) == "vm.swappiness = 60\n"
        assert host.calls == []
    else:
        assert host.text(SWAPPINESS) in ("60\n", "10\n")
