# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose specs root takes: roots and their rotation, the node, generations, and what is remembered of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.acceptance import (
    accept,
    demand,
    join_record,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.body import JoinResponse, TrustBundle
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.envelope import envelope
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.memory import (
    MEMORY,
    RECORD,
    Memory,
    parse,
    render,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.pins import Pins
from tests import pki
from tests.pki import Certified, ControlPlane

NOTHING = Memory()
NOW = 1_800_000_000
DAY = 86_400
PLANE = ControlPlane()
OLD, NEW = PLANE.root, pki.root("bcd root 2")
NEW_WORKER = NEW.worker()
BY_ROOT = Pins(frozenset({OLD.digest}))
BY_KEY = Pins(join_key=PLANE.join.pin)
BOTH = Pins(frozenset({OLD.digest, NEW.digest}), PLANE.join.pin)


def take(
    spec: dict[str, Any], pins: Pins = BY_ROOT, memory: Memory = NOTHING, record: Any = None, now: int = NOW
) -> Memory:
    """What root remembers once it has taken the spec; read again from its file."""
    text = record if record is None or isinstance(record, str) else json.dumps(record)
    return parse(render(accept(envelope(spec), pins, text, memory, now).memory))


def refused(*given: Any, **named: Any) -> str:
    with pytest.raises(Refused) as raised:
        take(*given, **named)
    return raised.value.message


def spec(generation: int = 1, node_id: str = "node-1", **said: Any) -> dict[str, Any]:
    return PLANE.desired_state(node_id=node_id, generation=generation, host={"sysctl": {"a.b": generation}}, **said)


def record(node_id: str = "node-1", version: int = 1, roots: Iterable[Certified] = (OLD,)) -> dict[str, Any]:
    return PLANE.join_response(node_id, version, roots)


def bundle(version: int, *roots: Certified) -> dict[str, Any]:
    return PLANE.trust_bundle(version, roots)


# -- roots


def test_a_pinned_root() -> None:
    made = spec(3)
    accepted = accept(envelope(made), BY_ROOT, None, Memory(), NOW)
    assert accepted.spec.host == {"sysctl": {"a.b": 3}}
    memory = accepted.memory
    assert (memory.node_id, memory.generation, memory.envelope) == ("node-1", 3, made)
    assert (memory.bundle_version, memory.bundle_key, memory.signed) == (-1, "", False)


def test_without_the_join_key_a_bundle_says_nothing() -> None:
    """Whoever signed it is not known; the pinned roots count alone, and more than they do nobody can say."""
    memory = take(spec(bundle=bundle(9, NEW)))
    assert (memory.bundle_version, memory.signed) == (-1, False)
    forged = PLANE.trust_bundle(9, [NEW], signer=pki.root("join"))
    assert "is no root that this host trusts" in refused(spec(signer=NEW_WORKER, bundle=forged))


def test_the_roots_of_the_join_record() -> None:
    assert take(spec(), BY_KEY, record=record()).node_id == "node-1"
    assert "is no root that this host trusts" in refused(spec(signer=NEW_WORKER), BY_KEY, record=record())


def test_with_the_key_alone_a_spec_needs_a_bundle() -> None:
    assert refused(spec(), BY_KEY) == (
        "no root counts for signed_spec (it has no trust_bundle, and no join record here names one): give it with a "
        "trust_bundle that has the signer's root"
    )
    assert take(spec(bundle=bundle(1, OLD)), BY_KEY).bundle_version == 1


@pytest.mark.parametrize("joined", [None, record(), record(roots=())])
def test_a_bundle_without_roots(joined: Any) -> None:
    for pins in (BY_KEY, BOTH):
        assert refused(spec(bundle=bundle(2)), pins, record=joined) == (
            "no root counts for signed_spec (its trust_bundle names none): give it with a trust_bundle that has the "
            "signer's root"
        )


def test_a_rotation_adds_a_root_switches_to_it_and_drops_the_old_one() -> None:
    joined = record()
    memory = take(spec(1), BY_KEY, record=joined)
    memory = take(spec(2, bundle=bundle(2, OLD, NEW)), BY_KEY, memory, joined)  # added
    assert (memory.bundle_version, memory.signed) == (2, True)
    memory = take(spec(3, signer=NEW_WORKER, bundle=bundle(2, OLD, NEW)), BY_KEY, memory, joined)  # switched
    memory = take(spec(4, signer=NEW_WORKER, bundle=bundle(3, NEW)), BY_KEY, memory, joined)  # dropped
    assert "is no root that this host trusts" in refused(spec(5, bundle=bundle(3, NEW)), BY_KEY, memory, joined)
    assert refused(spec(5, bundle=bundle(2, OLD, NEW)), BY_KEY, memory, joined) == (
        "the trust bundle has version 2, and this host has accepted 3: an older one is a rollback: give the newest"
    )
    for signer in (PLANE.worker, NEW_WORKER):  # nor does the record bring its root back
        assert refused(spec(5, signer=signer), BY_KEY, memory, joined) == (
            "signed_spec has no trust_bundle, and this host has accepted version 3, which may have changed the roots: "
            "give the spec with the current bundle"
        )
    assert take(spec(5, signer=NEW_WORKER, bundle=bundle(3, NEW)), BY_KEY, memory, joined).generation == 5


def test_a_bundle_older_than_the_join_record_is_a_rollback_too() -> None:
    joined = record(version=5, roots=[NEW])
    assert refused(spec(bundle=bundle(4, OLD)), BY_KEY, record=joined) == (
        "the trust bundle has version 4, and this host has accepted 5: an older one is a rollback: give the newest"
    )


def test_a_newer_record_counts_again_without_a_bundle() -> None:
    memory = take(spec(1, bundle=bundle(2, OLD)), BY_KEY, record=record())
    joined = record(version=3, roots=[NEW])
    assert take(spec(2, signer=NEW_WORKER), BY_KEY, memory, joined).generation == 2
    assert "is no root that this host trusts" in refused(spec(2), BY_KEY, memory, joined)


def test_one_version_has_one_content() -> None:
    told = "which this host knows with other roots: have what changed issued under a higher version"
    memory = take(spec(1, bundle=bundle(2, OLD)), BY_KEY)
    assert told in refused(spec(2, bundle=bundle(2, OLD, NEW)), BY_KEY, memory)
    assert told in refused(spec(1, bundle=bundle(1, OLD, NEW)), BY_KEY, record=record())
    assert take(spec(1, bundle=bundle(1, OLD)), BY_KEY, record=record()).bundle_version == 1


def test_a_bundle_from_another_key() -> None:
    forged = PLANE.trust_bundle(9, [NEW], signer=pki.root("join"))
    assert "and root's config.toml pins" in refused(spec(signer=NEW_WORKER, bundle=forged), BY_KEY)
    worker = PLANE.trust_bundle(9, [NEW], signer=PLANE.worker)
    assert "and root's config.toml pins" in refused(spec(signer=NEW_WORKER, bundle=worker), BY_KEY)


def test_a_join_response_is_no_bundle_and_the_other_way_round() -> None:
    message = refused(spec(bundle=record()), BY_KEY)
    assert "did not sign this body as a trust-bundle" in message
    assert "did not sign this body as a join-response" in refused(spec(), BY_KEY, record=bundle(1, OLD))


def test_pinned_roots_are_the_most_that_count() -> None:
    """With both pins a bundle takes roots away, and brings none."""
    third = pki.root("bcd root 3")
    told = "is no root that this host trusts"
    assert take(spec(bundle=bundle(2, OLD, third)), BOTH).bundle_version == 2
    assert told in refused(spec(signer=third.worker(), bundle=bundle(2, OLD, third)), BOTH)
    assert told in refused(spec(signer=NEW_WORKER, bundle=bundle(2, OLD, third)), BOTH)
    assert take(spec(signer=NEW_WORKER), BOTH).node_id == "node-1"
    memory = take(spec(bundle=bundle(2, OLD, third)), BOTH)
    assert "has no trust_bundle, and this host has accepted version 2" in refused(spec(2), BOTH, memory)


def test_another_pinned_key_has_versions_of_its_own() -> None:
    memory = take(spec(1, bundle=bundle(7, OLD)), BY_KEY)
    other = ControlPlane()
    pins = Pins(join_key=other.join.pin)
    made = other.desired_state(generation=2, host={}, bundle=other.trust_bundle(1, [other.root]))
    moved = take(made, pins, memory)
    assert (moved.bundle_version, moved.bundle_key) == (1, other.join.pin)


def test_what_another_pinned_key_signed_demands_nothing_under_this_one() -> None:
    """Its join record had roots once, and has none now: no bundle of its own has said otherwise."""
    memory = take(spec(1, bundle=bundle(7, OLD)), BY_KEY)
    other = ControlPlane()
    pins = Pins(join_key=other.join.pin)
    made = other.desired_state(generation=2, host={})
    moved = take(made, pins, memory, other.join_response("node-1", 1, [other.root]))
    assert (moved.bundle_version, moved.bundle_key, moved.signed) == (-1, other.join.pin, False)
    assert demand(pins, json.dumps(other.join_response("node-1", 2, [])), moved) == ""


# -- the node

ANOTHER = (
    "the signed spec is for the node node-2, and this host is node-1: give the one that is signed for node-1 (where "
    "the host is to be node-2, enroll it with that node's join record, or where it has none have root move "
    f"{MEMORY} away)"
)


def test_the_first_spec_binds_where_no_record_does() -> None:
    memory = take(spec(1))
    assert refused(spec(2, "node-2"), memory=memory) == ANOTHER


def test_the_record_binds_from_the_first_spec_on() -> None:
    assert refused(spec(1, "node-2"), BY_KEY, record=record()) == ANOTHER


def test_another_record_moves_the_node_and_the_generations_start_over() -> None:
    memory = take(spec(9), BY_KEY, record=record())
    joined = record("node-2")
    assert "is for the node node-1, and this host is node-2" in refused(spec(10), BY_KEY, memory, joined)
    moved = take(spec(1, "node-2"), BY_KEY, memory, joined)
    assert (moved.node_id, moved.generation) == ("node-2", 1)
    assert "is for the node node-2, and this host is node-1" in refused(spec(2, "node-2"), BY_KEY, moved, record())


def test_a_record_after_the_first_accepted_spec_of_another_node_moves_it() -> None:
    memory = take(spec(9, "node-2", bundle=bundle(3, OLD)), BY_KEY)
    moved = take(spec(1, bundle=bundle(3, OLD)), BY_KEY, memory, record(version=3))
    assert (moved.node_id, moved.generation, moved.bundle_version, moved.signed) == ("node-1", 1, 3, True)


def test_a_record_that_the_pinned_key_did_not_sign_refuses_everything() -> None:
    forged = PLANE.join_response("node-1", 1, [OLD], signer=pki.root("join"))
    for pins in (BY_KEY, BOTH):
        assert "the join record is signed with the key" in refused(spec(), pins, record=forged)
        message = refused(spec(bundle=bundle(2, OLD)), pins, record=forged)
        assert "the join record is signed with the key" in message


def test_a_record_without_the_pin_refuses_everything() -> None:
    assert refused(spec(), BY_ROOT, record=record()) == (
        "the join record is there, and root's config.toml has no join_signing_key_pin to verify it by: pin the key, or "
        f"move {RECORD} away"
    )


TWICE = '{"signature":"AAAA",' + json.dumps(record())[1:]  # the second one is the right one


@pytest.mark.parametrize(
    "text",
    ["", "{", "[" * 100_000, "{}", "null", '{"body":"","body":""}', TWICE, "\udc80"],
    ids=["empty", "cut", "deep", "no envelope", "nothing", "a field twice", "a key twice", "a byte"],
)
def test_a_damaged_record_refuses_everything(text: str) -> None:
    assert refused(spec(), BY_KEY, record=text) == (
        f"{RECORD} is no join record: have the control plane sign for this host again (the playbook enroll), or move "
        "it away"
    )


@pytest.mark.parametrize("value", [None, [], {}, {"body": "e30="}])
def test_a_record_of_another_form(value: Any) -> None:
    with pytest.raises(Refused, match=r"^the join record (is no mapping|has no )"):
        join_record(value, BY_KEY)


def test_a_join_record_read_by_itself() -> None:
    assert join_record(record(version=4), BY_KEY) == JoinResponse("node-1", TrustBundle(4, frozenset({OLD.digest})))


# -- generations, and what stays good


def test_generations_rise() -> None:
    memory = take(spec(5))
    assert refused(spec(4), memory=memory) == (
        "the signed spec has generation 4, and this host has accepted 5: an older one is a rollback: give the newest "
        f"(where the control plane started over, enroll this host as a new node, or have root move {MEMORY} away)"
    )
    assert take(spec(5), memory=memory) == memory
    assert take(spec(6), memory=memory).generation == 6


def test_generations_rise_on_a_node_that_a_record_names_too() -> None:
    memory = take(spec(5), BY_KEY, record=record())
    told = "the signed spec has generation 4, and this host has accepted 5"
    assert refused(spec(4), BY_KEY, memory, record()).startswith(told)
    assert refused(spec(4), BY_KEY, memory, record(version=2)).startswith(told)  # enrolled again as the same node


def test_one_generation_has_one_content() -> None:
    memory = take(spec(5))
    other = PLANE.desired_state(generation=5, host={})
    assert refused(other, memory=memory) == (
        "the signed spec has generation 5, which this host has accepted with another content: have what changed "
        "signed with a higher generation"
    )


def test_an_accepted_body_stays_good_after_its_certificate_and_a_new_one_does_not() -> None:
    brief = OLD.worker(end=NOW + DAY)
    made = spec(1, signer=brief)
    memory = take(made)
    late = NOW + 30 * DAY
    assert take(made, memory=memory, now=late) == memory
    assert "ended at 2027-01-16T08:00:00Z, and this host's clock says 2027-02-14T08:00:00Z" in refused(
        spec(2, signer=brief), memory=memory, now=late
    )
    assert "ended at" in refused(made, now=late)  # to a host that has not seen it, it is new
    assert "is no root that this host trusts" in refused(made, Pins(frozenset({NEW.digest})), memory, now=late)
    assert "does not have the role" in refused(spec(1, signer=OLD.worker(roles=())), memory=memory, now=late)
    damaged = {**made, "signature": spec(2)["signature"]}
    assert "does not verify" in refused(damaged, memory=memory, now=late)


def test_the_same_body_is_signed_again() -> None:
    memory = take(spec(1, signer=OLD.worker(end=NOW + DAY)))
    again = spec(1, signer=OLD.worker("the next worker"))
    assert take(again, memory=memory) == memory._replace(envelope=again)


def test_a_clock_that_was_set_back() -> None:
    early = spec(1, signer=OLD.worker(begin=NOW))
    assert "counts from 2027-01-15T08:00:00Z on, and this host's clock says 1970-01-01T00:00:00Z" in refused(
        early, now=0
    )
    assert "clock says -99999999999999 seconds since 1970" in refused(early, now=-99999999999999)
    assert take(early, memory=take(early), now=0).generation == 1


# -- what demands a signature


@pytest.mark.parametrize(
    ("pins", "joined", "memory", "why"),
    [
        (BY_ROOT, None, Memory(), "command_root_sha256 in root's config.toml demands"),
        (BOTH, record(roots=()), Memory(), "command_root_sha256 in root's config.toml demands"),
        (BY_KEY, None, Memory(), "join_signing_key_pin in root's config.toml demands"),
        (BY_KEY, record(), Memory(), "the join record of this host has roots and demands"),
        (BY_KEY, record(roots=()), Memory(), ""),
        (BY_KEY, record(roots=()), Memory("node-1", 7, bundle_key=PLANE.join.pin), ""),  # by a record that had roots
        (
            BY_KEY,
            record(roots=()),
            Memory(bundle_version=3, bundle_key=PLANE.join.pin, signed=True),
            "trust bundle 3, which this host accepted, has roots and demands",
        ),
        (BY_KEY, record(roots=()), Memory(bundle_version=3, bundle_key="sha256/other", signed=True), ""),
    ],
)
def test_what_demands_a_signature(pins: Pins, joined: Any, memory: Memory, why: str) -> None:
    assert demand(pins, None if joined is None else json.dumps(joined), memory) == why


def test_from_the_first_bundle_with_roots_on_a_signature_is_demanded() -> None:
    joined = record(roots=())
    assert demand(BY_KEY, json.dumps(joined), Memory()) == ""
    assert "no root counts for signed_spec" in refused(spec(), BY_KEY, record=joined)
    memory = take(spec(1, bundle=bundle(2, OLD)), BY_KEY, record=joined)
    told = "trust bundle 2, which this host accepted, has roots and demands"
    assert demand(BY_KEY, json.dumps(joined), memory) == told
    assert "its trust_bundle names none" in refused(spec(2, bundle=bundle(3)), BY_KEY, memory, joined)
    moved = take(spec(1, "node-2", bundle=bundle(2, OLD)), BY_KEY, memory, record("node-2", roots=()))
    assert demand(BY_KEY, json.dumps(record("node-2", roots=())), moved) == told


def test_a_forged_record_does_not_lift_the_demand() -> None:
    forged = PLANE.join_response("node-1", 1, [], signer=pki.root("join"))
    with pytest.raises(Refused, match="the join record is signed with the key"):
        demand(BY_KEY, json.dumps(forged), Memory())
