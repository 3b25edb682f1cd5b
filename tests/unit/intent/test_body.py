# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is signed, read: one canonical text of known fields with exact types, or nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.body import (
    DesiredState,
    JoinResponse,
    TrustBundle,
    desired_state,
    join_response,
    trust_bundle,
)
from tests.pki import desired_state_body, text

ROOT = "0f" * 32
SPEC: dict[str, Any] = desired_state_body("node-1", 7, {"sysctl": {"vm.swappiness": 10}}, [{"allocation_id": "a"}])
BUNDLE: dict[str, Any] = {"kind": "TrustBundle", "version": 3, "command_roots": [ROOT]}
JOIN: dict[str, Any] = {
    "kind": "JoinResponse",
    "node_id": "node-1",
    "trust_bundle": {"version": 3, "command_roots": [ROOT]},
}


def refused(read: Any, body: Any) -> str:
    with pytest.raises(Refused) as raised:
        read(body if isinstance(body, bytes) else text(body).encode())
    assert raised.value.__cause__ is None
    return raised.value.message


def test_a_desired_state() -> None:
    assert desired_state(text(SPEC).encode()) == DesiredState(
        "node-1", 7, {"sysctl": {"vm.swappiness": 10}}, ({"allocation_id": "a"},)
    )


def test_what_it_does_not_name_is_not_managed_and_what_is_empty_is() -> None:
    assert desired_state(text(desired_state_body("n", 0, host={})).encode()) == DesiredState("n", 0, {}, None)
    assert desired_state(text(desired_state_body("n", 0, devices=[])).encode()) == DesiredState("n", 0, None, ())
    assert refused(desired_state, desired_state_body("n", 0)) == (
        "the signed spec has neither host nor devices, and asks for nothing: have it signed again by sign_spec"
    )


def test_a_trust_bundle_and_a_join_response() -> None:
    assert trust_bundle(text(BUNDLE).encode()) == TrustBundle(3, frozenset({ROOT}))
    assert join_response(text(JOIN).encode()) == JoinResponse("node-1", TrustBundle(3, frozenset({ROOT})))
    assert trust_bundle(text({**BUNDLE, "command_roots": []}).encode()).command_roots == frozenset()


READERS: list[tuple[Any, dict[str, Any], str]] = [
    (desired_state, SPEC, "the signed spec"),
    (trust_bundle, BUNDLE, "the trust bundle"),
]
READERS += [(join_response, JOIN, "the join record")]


@pytest.mark.parametrize(("read", "body", "what"), READERS)
def test_every_other_text_of_the_same_value_is_refused(read: Any, body: dict[str, Any], what: str) -> None:
    whole = text(body)
    others = {
        "white space": json.dumps(body, sort_keys=True),
        "another order": json.dumps(dict(sorted(body.items(), reverse=True)), separators=(",", ":")),
        "a key twice": '{"kind":"x",' + whole[1:],
        "the same key twice": whole[:-1] + "," + whole[1:],
        "trailing data": whole + "{}",
        "a newline": whole + "\n",
        "an escape": whole.replace("node_id", "node\\u005fid").replace("version", "versio\\u006e"),
        "a byte order mark": "\ufeff" + whole,
    }
    for name, other in others.items():
        assert refused(read, other.encode()).startswith(f"{what} is no canonical JSON ("), name
    assert refused(read, whole.encode() + b"\xff").startswith(f"{what} is no canonical JSON (")
    assert refused(read, whole.encode("utf-16")).startswith(f"{what} is no canonical JSON (")


@pytest.mark.parametrize(("read", "body", "what"), READERS)
def test_another_kind_and_other_fields(read: Any, body: dict[str, Any], what: str) -> None:
    kind = body["kind"]
    for other in ({**body, "kind": "Other"}, {**body, "kind": None}, {**body, "kind": [kind]}, [body], None, 7, "x"):
        assert refused(read, other).startswith(f"{what} is no {kind}: ")
    for _read, another, _what in READERS:
        if another is not body:
            assert refused(read, another).startswith(f"{what} is no {kind}: ")
    assert refused(read, {**body, "nodeId": "x"}).startswith(f"{what} has 'nodeId', which is no field of a {kind}: ")
    for name in set(body) - {"kind", "host", "devices"}:
        less = {key: value for key, value in body.items() if key != name}
        assert refused(read, less).startswith(f"{what} has no {name}: ")


@pytest.mark.parametrize("value", [0, 2**63 - 1])
def test_the_smallest_number_and_the_largest(value: int) -> None:
    assert desired_state(text({**SPEC, "generation": value}).encode()).generation == value
    assert trust_bundle(text({**BUNDLE, "version": value}).encode()).version == value


@pytest.mark.parametrize("value", [-1, 2**63, True, "7", None, [7], 10**400])
def test_a_number_is_an_integer_of_63_bits(value: Any) -> None:
    assert refused(desired_state, {**SPEC, "generation": value}).startswith("the signed spec: generation is ")
    assert refused(trust_bundle, {**BUNDLE, "version": value}).startswith("the trust bundle: version is ")
    inside = {**JOIN, "trust_bundle": {**JOIN["trust_bundle"], "version": value}}
    assert refused(join_response, inside).startswith("the join record: version is ")


@pytest.mark.parametrize("number", ["7.0", "7e0", "-0", "07", "NaN", "Infinity", "1" * 5000, "0x7"])
def test_a_number_is_written_in_one_way(number: str) -> None:
    body = text(SPEC).replace('"generation":7', f'"generation":{number}')
    assert refused(desired_state, body.encode()).startswith(("the signed spec is no canonical JSON (", "the signed s"))


@pytest.mark.parametrize(
    "value", ["", "a" * 129, "../etc", "-a", ".a", "a b", "a/b", "nöde", "a\n", "\u0430bc", None, 7, ["a"], {"a": 1}]
)
def test_a_node_id_is_one(value: Any) -> None:
    assert "node_id is " in refused(desired_state, {**SPEC, "node_id": value})
    assert "node_id is " in refused(join_response, {**JOIN, "node_id": value})


@pytest.mark.parametrize(
    "value", ["", "a" * 65, "../etc", "Sysctl", "-a", "a_b", "a/b", "sysctl\n", "\u0455ysctl", None, 7]
)
def test_a_unit_has_a_name(value: Any) -> None:
    message = refused(desired_state, {**SPEC, "host": [{"unit": value, "settings": "{}"}]})
    assert message == (f"the signed spec: {value!r} is no name of a unit: have it signed again by sign_spec")


def test_a_unit_twice() -> None:
    twice = [{"unit": "sysctl", "settings": "{}"}] * 2
    assert refused(desired_state, {**SPEC, "host": twice}).startswith("the signed spec names sysctl twice: ")


@pytest.mark.parametrize("host", [None, {}, "x", 7])
def test_a_host_section_is_a_list(host: Any) -> None:
    assert refused(desired_state, {**SPEC, "host": host}).startswith("the signed spec: host is no list of units: ")


@pytest.mark.parametrize(
    "entry", [{}, {"unit": "sysctl"}, {"unit": "sysctl", "settings": "{}", "more": 1}, "sysctl", None, [], 7]
)
def test_an_entry_of_it_has_two_fields(entry: Any) -> None:
    message = refused(desired_state, {**SPEC, "host": [entry]})
    assert message.startswith("the signed spec: an entry of host is no mapping of unit and settings: ")


@pytest.mark.parametrize("settings", [None, {}, [], 7, True])
def test_settings_are_a_text(settings: Any) -> None:
    message = refused(desired_state, {**SPEC, "host": [{"unit": "sysctl", "settings": settings}]})
    assert message.startswith("the signed spec: the settings of sysctl are no text: ")


@pytest.mark.parametrize(
    "settings", ["", " {}", "{} ", '{"b":1,"a":1}', '{"a":1,"a":1}', '{"a":1.0}', '{"a":NaN}', "{}{}"]
)
def test_settings_are_canonical_too(settings: str) -> None:
    message = refused(desired_state, {**SPEC, "host": [{"unit": "sysctl", "settings": settings}]})
    assert message.startswith("the signed spec: the settings of sysctl are no canonical JSON (")


@pytest.mark.parametrize("settings", ["null", "[]", "7", '"{}"'])
def test_settings_are_a_mapping(settings: str) -> None:
    message = refused(desired_state, {**SPEC, "host": [{"unit": "sysctl", "settings": settings}]})
    assert message.startswith("the signed spec: the settings of sysctl are no mapping: ")


@pytest.mark.parametrize("devices", [None, {}, "x", ["x"], [None], [[]]])
def test_devices_are_a_list_of_mappings(devices: Any) -> None:
    message = refused(desired_state, {**SPEC, "devices": devices})
    assert message.startswith("the signed spec: devices is no list of assignments: ")


@pytest.mark.parametrize(
    "roots",
    [None, {}, ROOT, [ROOT.upper()], [ROOT[:-1]], [f"{ROOT}0"], [f"{ROOT}\n"], [f"sha256:{ROOT}"], [None], [[]]],
)
def test_roots_are_digests(roots: Any) -> None:
    message = refused(trust_bundle, {**BUNDLE, "command_roots": roots})
    assert message.startswith("the trust bundle: command_roots is no list of SHA-256 digests of 64 hex digits: ")


@pytest.mark.parametrize("inside", [None, [], {"version": 1}, {"version": 1, "command_roots": [], "more": 1}])
def test_a_join_response_has_a_bundle_in_it(inside: Any) -> None:
    message = refused(join_response, {**JOIN, "trust_bundle": inside})
    assert message.startswith("the join record: trust_bundle is no mapping of version and command_roots: ")


def test_what_is_not_taken_is_cut_in_messages() -> None:
    long = "x" * 100_000
    entries = [{"unit": long, "settings": "{}"}, {"unit": "cpu", "settings": '{"a":1.' + "0" * 100_000 + "}"}]
    for change in ({"node_id": long}, {"generation": long}, {long: 1}, {"host": entries[:1]}, {"host": entries[1:]}):
        assert len(refused(desired_state, {**SPEC, **change})) < 500
    twice = "".join(f'"{n}":1,"{n}":1,' for n in range(100_000))
    assert len(refused(desired_state, b"{" + twice.encode() + b'"a":1}')) < 500


@pytest.mark.parametrize("deep", [65, 1_000, 100_000])
def test_what_is_nested_deeply_is_no_canonical_text(deep: int) -> None:
    body = text(SPEC)[:-1] + ',"z":' + "[" * deep + "]" * deep + "}"
    assert "is no canonical JSON (it is nested deeper than 64 levels)" in refused(desired_state, body.encode())
