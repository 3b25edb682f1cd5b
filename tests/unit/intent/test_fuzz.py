# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever comes in is refused in a sentence or read; and what is taken is what was signed, byte for byte."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Fault, Refused, StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent import body
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.acceptance import accept, demand, join_record
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.certificates import load, pin_of
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.envelope import envelope, rendered
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.memory import Memory, parse, render
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import canonical
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.pins import Pins
from tests import pki
from tests.pki import ControlPlane

NOW = 1_800_000_000
PLANE = ControlPlane()
PINS = Pins(frozenset({PLANE.root.digest}), PLANE.join.pin)
RECORD = PLANE.join_response("node-1", 1, [PLANE.root])
SPEC = PLANE.desired_state(
    generation=7,
    host={"sysctl": {"vm.swappiness": 10}, "cpu": {}},
    devices=[{"allocation_id": "a", "binding": "cdi", "devices": ["GPU-1"]}],
    bundle=PLANE.trust_bundle(3, [PLANE.root]),
)
BODY = base64.b64decode(SPEC["body"])

TEXTS = st.text(max_size=20) | st.sampled_from(["DesiredState", "TrustBundle", "node-1", "e30=", "{}", "\udc80", "\0"])
NUMBERS = st.integers() | st.floats() | st.sampled_from([2**63, -(2**63), 10**300])
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | st.binary(max_size=8),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(TEXTS | st.integers(), inside, max_size=4),
    max_leaves=12,
)
NAMES = (
    "kind node_id generation host devices version command_roots trust_bundle unit settings body signature certificates"
).split()
FORMED = st.recursive(
    ANYTHING,
    lambda inside: st.dictionaries(st.sampled_from(NAMES), inside, max_size=7) | st.lists(inside, max_size=3),
    max_leaves=10,
)


def take(spec: Any, record: Any = RECORD, memory: Memory = Memory("", -1)) -> Any:  # noqa: B008
    return accept(envelope(spec), PINS, json.dumps(record), memory, NOW)


# -- no crash


@given(FORMED)
def test_any_value_for_an_envelope(value: Any) -> None:
    try:
        read = envelope(value)
    except Refused as fault:
        assert len(fault.message) < 1_000  # noqa: PT017
    else:
        assert envelope(rendered(read)) == read


@given(FORMED, st.sampled_from([body.desired_state, body.trust_bundle, body.join_response]))
def test_any_value_for_a_body(value: Any, read: Any) -> None:
    try:
        text = canonical.canonical(value)
    except ValueError:
        text = json.dumps(str(value))
    try:
        read(text.encode("utf-8", "surrogatepass"))
    except Refused as fault:
        assert len(fault.message) < 1_000  # noqa: PT017


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_for_canonical_json(data: bytes) -> None:
    try:
        value = canonical.parse(data)
    except ValueError:
        return
    assert canonical.canonical(value).encode() == data


@given(st.text(st.sampled_from('{}[]",:0123456789-+.eEtrufalsn\\ \n"ab'), max_size=60))
def test_what_is_nearly_canonical_json_has_one_form(text: str) -> None:
    try:
        value = canonical.parse(text.encode())
    except ValueError:
        return
    assert json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False) == text


@given(st.text(max_size=200) | FORMED.map(lambda value: json.dumps(value, default=str, skipkeys=True)))
def test_any_text_for_the_memory_and_the_record(text: str) -> None:
    with pytest.raises((Refused, StepFailed)):
        parse(text)
    with pytest.raises(Refused):
        demand(Pins(join_key=PLANE.join.pin), text, Memory())


@given(st.fixed_dictionaries({name: st.none() | TEXTS | NUMBERS | st.booleans() for name in Memory._fields}))
def test_any_fields_for_the_memory(fields: dict[str, Any]) -> None:
    text = json.dumps({"version": 1, **fields})
    try:
        memory = parse(text)
    except StepFailed:
        return
    assert parse(render(memory)) == memory
    assert {memory.generation.__class__, memory.bundle_version.__class__} == {int}  # a bool is an int, too
    assert isinstance(memory.signed, bool)


@given(st.binary(max_size=60), st.integers(0, 400), st.integers(0, 40))
@settings(max_examples=300)
def test_any_bytes_for_a_certificate(data: bytes, at: int, cut: int) -> None:
    """Put into one, in the place of as many of its own: what the library thinks of it differs with its version."""
    der = base64.b64decode("".join(SPEC["certificates"][0].splitlines()[1:-1]))
    changed = der[: at % len(der)] + data + der[at % len(der) + cut :]
    text = f"-----BEGIN CERTIFICATE-----\n{base64.encodebytes(changed).decode()}-----END CERTIFICATE-----\n"
    changes = changed != der
    for spec in (
        {**SPEC, "certificates": [text, *SPEC["certificates"][1:]]},
        {**SPEC, "certificates": [SPEC["certificates"][0], text]},
    ):
        if changes:
            with pytest.raises(Refused):
                take(spec)


# -- nothing is taken that was not signed


def strings(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the texts are in an envelope."""
    if isinstance(value, str):
        yield path
    for key, inside in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from strings(inside, (*path, key))


def put(value: Any, path: tuple[Any, ...], text: Any) -> Any:
    changed = copy.deepcopy(value)
    inside = changed
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = text
    return changed


def get(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


JOIN_CERTIFICATE = ("trust_bundle", "certificates", 0)
PLACES = sorted(strings(SPEC), key=str)


def test_the_spec_that_is_mutated_is_a_good_one() -> None:
    assert take(SPEC).spec.generation == 7
    assert len(PLACES) == 2 + 2 + 2 + 1  # bodies, signatures, two certificates, and the join key's


@given(
    st.sampled_from(PLACES), st.integers(0, 2_000), st.sampled_from("Aa0+/=-\n "), st.sampled_from(["put", "in", "out"])
)
@settings(max_examples=400)
def test_one_character_of_any_text(place: tuple[Any, ...], at: int, character: str, how: str) -> None:
    text = get(SPEC, place)
    at %= len(text)
    changed = text[:at] + ("" if how == "out" else character) + text[at + (how != "in") :]
    try:
        accepted = take(put(SPEC, place, changed))
    except Fault:
        return
    # A certificate's line breaks may be others: its DER is what its issuer signed. Of the one that brings the pinned
    # key, the key alone counts.
    if place == JOIN_CERTIFICATE:
        assert pin_of(load(changed, "it")) == PLANE.join.pin
    else:
        assert changed.replace("\n", "") == text.replace("\n", "")
    assert (accepted.spec.generation, accepted.memory.node_id) == (7, "node-1")


@given(st.integers(0, 8 * len(BODY) - 1))
@settings(max_examples=300)
def test_one_bit_of_the_body(bit: int) -> None:
    changed = bytearray(BODY)
    changed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(Refused, match="the signature of signed_spec does not verify"):
        take({**SPEC, "body": base64.b64encode(changed).decode()})


@pytest.mark.parametrize("kind", ["ed25519", "p256", "rsa2048"])
@given(data=st.data())
@settings(max_examples=100)
def test_one_bit_of_the_signature(kind: str, data: st.DataObject) -> None:
    spec = signed_by(kind)
    signature = bytearray(base64.b64decode(spec["signature"]))
    bit = data.draw(st.integers(0, 8 * len(signature) - 1))
    signature[bit // 8] ^= 1 << bit % 8
    with pytest.raises(Refused, match="the signature of signed_spec does not verify"):
        take({**spec, "signature": base64.b64encode(signature).decode()})


SIGNED: dict[str, Any] = {}


def signed_by(kind: str) -> Any:
    if kind not in SIGNED:
        worker = PLANE.root.worker(key=pki.private_key(kind))
        SIGNED[kind] = PLANE.desired_state(generation=7, host={}, signer=worker)
        take(SIGNED[kind])
    return SIGNED[kind]


@given(FORMED, st.sampled_from(["body", "signature", "certificates", "trust_bundle", "more"]))
def test_any_value_in_a_field(value: Any, name: str) -> None:
    changed = {**SPEC, name: value}
    if changed != SPEC and not (name == "trust_bundle" and value is None):
        with pytest.raises(Refused):
            take(changed)


@given(FORMED)
def test_any_value_that_the_worker_signed(value: Any) -> None:
    """Rightly signed, and still no desired state unless it has its form."""
    try:
        text = canonical.canonical({"kind": "DesiredState", "node_id": "node-1", "generation": 8, "host": value})
    except ValueError:
        return
    try:
        accepted = take(pki.envelope(text, pki.DESIRED_STATE, PLANE.worker))
    except Refused:
        return
    assert accepted.spec.host == {entry["unit"]: json.loads(entry["settings"]) for entry in value}


@given(st.sampled_from(sorted(strings(RECORD), key=str)), st.integers(0, 2_000), st.sampled_from("Aa0+/=-\n "))
def test_one_character_of_the_join_record(place: tuple[Any, ...], at: int, character: str) -> None:
    text = get(RECORD, place)
    at %= len(text)
    changed = put(RECORD, place, text[:at] + character + text[at + 1 :])
    try:
        joined = join_record(changed, PINS)
    except Refused:
        return
    assert (joined.node_id, place[0]) == ("node-1", "certificates") or changed == RECORD
