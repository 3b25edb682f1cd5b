# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether root takes a signed spec: whose roots count, which node it is for, and whether it is older than another.

Pure: what root's files say comes in, and what root is to remember goes out.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

from ..core.errors import Refused
from ..plan.pins import JOIN_KEY, ROOTS, Pins
from . import body
from .envelope import Envelope, envelope, rendered
from .memory import MEMORY, RECORD, Memory

OLDER = "an older one is a rollback: give the newest"
AGAIN = "have the control plane sign for this host"
OVER = f"where the control plane started over, enroll this host as a new node, or have root move {MEMORY} away"
JOINED = "the join record"
NO_BUNDLE = body.TrustBundle(-1, frozenset())


class Accepted(NamedTuple):
    """A spec that root takes, and what root remembers from then on."""

    spec: body.DesiredState
    memory: Memory


def accept(signed: Envelope, pins: Pins, record: str | None, memory: Memory, now: int) -> Accepted:
    """Take the spec, or raise Refused. `record`: the text of the join record; `now`: unix time.

    A body that was accepted before stays good when its signer's certificate has ended since, and in nothing else: its
    signature, its chain and the roots are held to what counts now.
    """
    from .verify import verify_chain

    joined = recorded(pins, record)
    memory = _of_this_node(memory, joined)
    roots, memory = _roots(signed, pins, joined, memory)
    digest = hashlib.sha256(signed.body).hexdigest()
    verify_chain(signed, body.DESIRED_STATE, roots, body.WORKER, None if digest == memory.body_sha256 else now)
    spec = body.desired_state(signed.body)
    _refuse_another_node(spec, memory)
    _refuse_an_older(spec, digest, memory)
    return Accepted(
        spec,
        memory._replace(
            node_id=spec.node_id, generation=spec.generation, body_sha256=digest, envelope=rendered(signed)
        ),
    )


def demand(pins: Pins, record: str | None, memory: Memory) -> str:
    """What demands that a spec is signed, as the beginning of a sentence ("the join record names roots, and demands").

    "" where root's own join record says that this control plane signs nothing, and no bundle has said otherwise since.
    """
    if pins.roots:
        return f"{ROOTS} in root's config.toml demands"
    joined = recorded(pins, record)
    if memory.signed and memory.bundle_key == pins.join_key:
        return f"trust bundle {memory.bundle_version}, which this host accepted, has roots and demands"
    if joined is None:
        return f"{JOIN_KEY} in root's config.toml demands"
    return "the join record of this host has roots and demands" if joined.trust_bundle.command_roots else ""


def join_record(value: Any, pins: Pins) -> body.JoinResponse:
    """The response of the control plane to a join, in its envelope; Refused unless the pinned key signed it."""
    from .verify import verify_pinned

    signed = envelope(value, JOINED)
    if not pins.join_key:
        raise Refused(
            f"the join record is there, and root's config.toml has no {JOIN_KEY} to verify it by: pin the key, or move "
            f"{RECORD} away"
        )
    verify_pinned(signed, body.JOIN_RESPONSE, pins.join_key, JOINED)
    return body.join_response(signed.body)


def recorded(pins: Pins, record: str | None) -> body.JoinResponse | None:
    """What the text of root's join record says, None where there is none; raises Refused, and names the file."""
    if record is None:
        return None
    from ..plan.wire import once

    try:
        value = json.loads(record, object_pairs_hook=once)
        envelope(value, JOINED)
    except (ValueError, RecursionError, Refused):
        raise Refused(f"{RECORD} is no join record: {AGAIN} again (the playbook enroll), or move it away") from None
    return join_record(value, pins)


def _of_this_node(memory: Memory, joined: body.JoinResponse | None) -> Memory:
    """The memory of the node that the join record names: joined as another one, the machine starts over."""
    if joined is None or memory.node_id == joined.node_id:
        return memory
    return memory._replace(node_id=joined.node_id, generation=-1, body_sha256="", envelope=None)


def _roots(
    signed: Envelope, pins: Pins, joined: body.JoinResponse | None, memory: Memory
) -> tuple[frozenset[str], Memory]:
    """The digests of the roots that count, and the memory with the bundle that says so.

    Pinned roots are the most that can count: a bundle beside them can only take some away.
    """
    if not pins.join_key:  # whoever signed a bundle is not known here: the pinned roots alone count
        return pins.roots, memory
    if memory.bundle_key != pins.join_key:  # of another control plane, whose versions say nothing
        memory = memory._replace(bundle_version=-1, bundle_sha256="", bundle_key=pins.join_key, signed=False)
    known = NO_BUNDLE if joined is None else joined.trust_bundle
    if signed.trust_bundle is not None:
        bundle, memory = _with_bundle(signed.trust_bundle, pins, known, memory)
        roots, why = bundle.command_roots, "its trust_bundle names none"
    elif memory.bundle_version > known.version:
        raise Refused(
            f"signed_spec has no trust_bundle, and this host has accepted version {memory.bundle_version}, which may "
            "have changed the roots: give the spec with the current bundle"
        )
    else:
        roots, why = pins.roots or known.command_roots, "it has no trust_bundle, and no join record here names one"
    if not roots:
        raise Refused(f"no root counts for signed_spec ({why}): give it with a trust_bundle that has the signer's root")
    return (roots & pins.roots if pins.roots else roots), memory


def _with_bundle(
    signed: Envelope, pins: Pins, known: body.TrustBundle, memory: Memory
) -> tuple[body.TrustBundle, Memory]:
    """The bundle, and the memory with it; `known` is the join record's."""
    from .verify import verify_pinned

    verify_pinned(signed, body.TRUST_BUNDLE, pins.join_key, "the trust bundle")
    bundle = body.trust_bundle(signed.body)
    newest = max(known.version, memory.bundle_version)
    if bundle.version < newest:
        raise Refused(f"the trust bundle has version {bundle.version}, and this host has accepted {newest}: {OLDER}")
    digest = hashlib.sha256(signed.body).hexdigest()
    if (bundle.version == known.version and bundle != known) or (
        bundle.version == memory.bundle_version and digest != memory.bundle_sha256
    ):
        raise Refused(
            f"the trust bundle has version {bundle.version}, which this host knows with other roots: have what changed "
            "issued under a higher version"
        )
    return bundle, memory._replace(
        bundle_version=bundle.version,
        bundle_sha256=digest,
        signed=True,  # one without roots is refused behind this, and remembered by nobody
    )


def _refuse_another_node(spec: body.DesiredState, memory: Memory) -> None:
    if memory.node_id not in ("", spec.node_id):
        raise Refused(
            f"the signed spec is for the node {spec.node_id}, and this host is {memory.node_id}: give "
            f"the one that is signed for {memory.node_id} (where the host is to be {spec.node_id}, enroll it with that "
            f"node's join record, or where it has none have root move {MEMORY} away)"
        )


def _refuse_an_older(spec: body.DesiredState, digest: str, memory: Memory) -> None:
    if spec.generation < memory.generation:
        raise Refused(
            f"the signed spec has generation {spec.generation}, and this host has accepted {memory.generation}: "
            f"{OLDER} ({OVER})"
        )
    if spec.generation == memory.generation and memory.body_sha256 != digest:
        raise Refused(
            f"the signed spec has generation {spec.generation}, which this host has accepted with another content: "
            "have what changed signed with a higher generation"
        )
