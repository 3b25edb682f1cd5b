# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is signed, as values: desired states, trust bundles, join responses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core.errors import Refused
from ..plan import canonical

# The purpose stands before the text in what is signed, so that a signature made for one is none for another.
DESIRED_STATE, TRUST_BUNDLE, JOIN_RESPONSE = "desired-state", "trust-bundle", "join-response"
WORKER = "bcd://role/worker"  # the role, a URI among the subject's alternative names, whose holder signs desired states

SHA256 = re.compile(r"[0-9a-f]{64}")
UNIT_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
NODE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
MOST = 2**63 - 1
LONGEST = 200  # characters of what is not taken, in a message
AGAIN = "have it signed again by sign_spec"


class DesiredState(NamedTuple):
    """What a node is to be. `host`: settings by unit, `devices`: assignments; None where the spec does not manage them.

    An empty one is managed: no unit, no hold.
    """

    node_id: str
    generation: int
    host: Mapping[str, Mapping[str, Any]] | None = None
    devices: tuple[Mapping[str, Any], ...] | None = None


class TrustBundle(NamedTuple):
    """Which roots count from this version on: SHA-256 digests of their DER; none where nothing is signed."""

    version: int
    command_roots: frozenset[str]


class JoinResponse(NamedTuple):
    """Which node a machine is, and what counted when it joined."""

    node_id: str
    trust_bundle: TrustBundle


def desired_state(body: bytes) -> DesiredState:
    """Of `{kind: "DesiredState", node_id, generation, host?: [{unit, settings: text}], devices?: [...]}`.

    Raises Refused, as the two below do, for a text that is not canonical, a field too many or too few, or another type.
    """
    found = _object("the signed spec", body, "DesiredState", ("node_id", "generation"), ("host", "devices"))
    if "host" not in found and "devices" not in found:
        raise Refused(f"the signed spec has neither host nor devices, and asks for nothing: {AGAIN}")
    return DesiredState(
        _node_id("the signed spec", found["node_id"]),
        _number("the signed spec: generation", found["generation"]),
        _host(found["host"]) if "host" in found else None,
        _devices(found["devices"]) if "devices" in found else None,
    )


def trust_bundle(body: bytes) -> TrustBundle:
    """Of `{kind: "TrustBundle", version, command_roots: [digest]}`."""
    found = _object("the trust bundle", body, "TrustBundle", ("version", "command_roots"))
    return _bundle("the trust bundle", found)


def join_response(body: bytes) -> JoinResponse:
    """Of `{kind: "JoinResponse", node_id, trust_bundle: {version, command_roots}}`."""
    found = _object("the join record", body, "JoinResponse", ("node_id", "trust_bundle"))
    inside = found["trust_bundle"]
    if not isinstance(inside, dict) or set(inside) != {"version", "command_roots"}:
        raise Refused(f"the join record: trust_bundle is no mapping of version and command_roots: {AGAIN}")
    return JoinResponse(_node_id("the join record", found["node_id"]), _bundle("the join record", inside))


def _object(
    what: str, body: bytes, kind: str, needed: tuple[str, ...], optional: tuple[str, ...] = ()
) -> dict[str, Any]:
    try:
        found = canonical.parse(body)
    except ValueError as fault:
        raise Refused(f"{what} is no canonical JSON ({_cut(fault)}): {AGAIN}") from None
    if not isinstance(found, dict) or found.get("kind") != kind:
        raise Refused(f"{what} is no {kind}: {AGAIN}")
    unknown = sorted(set(found) - {"kind", *needed, *optional})
    missing = [name for name in needed if name not in found]
    if unknown or missing:
        fault_is = f"has {_cut(repr(unknown[0]))}, which is no field of a {kind}" if unknown else f"has no {missing[0]}"
        raise Refused(f"{what} {fault_is}: {AGAIN}, in the version that this host has")
    return found


def _cut(text: Any) -> str:
    return str(text)[:LONGEST]


def _node_id(what: str, value: Any) -> str:
    if not isinstance(value, str) or not NODE_ID.fullmatch(value):
        raise Refused(
            f"{what}: node_id is {_cut(repr(value))}, and takes 1 to 128 letters, digits and _ . : -: {AGAIN}"
        )
    return value


def _number(at: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST:
        raise Refused(f"{at} is {_cut(repr(value))}, and takes an integer from 0: {AGAIN}")
    return value


def _bundle(what: str, found: Mapping[str, Any]) -> TrustBundle:
    roots = found["command_roots"]
    if not isinstance(roots, list) or not all(isinstance(root, str) and SHA256.fullmatch(root) for root in roots):
        raise Refused(f"{what}: command_roots is no list of SHA-256 digests of 64 hex digits: {AGAIN}")
    return TrustBundle(_number(f"{what}: version", found["version"]), frozenset(roots))


def _host(value: Any) -> dict[str, Mapping[str, Any]]:
    if not isinstance(value, list):
        raise Refused(f"the signed spec: host is no list of units: {AGAIN}")
    found: dict[str, Mapping[str, Any]] = {}
    for entry in value:
        if not isinstance(entry, dict) or set(entry) != {"unit", "settings"}:
            raise Refused(f"the signed spec: an entry of host is no mapping of unit and settings: {AGAIN}")
        unit = entry["unit"]
        if not isinstance(unit, str) or not UNIT_NAME.fullmatch(unit):
            raise Refused(f"the signed spec: {_cut(repr(unit))} is no name of a unit: {AGAIN}")
        if unit in found:
            raise Refused(f"the signed spec names {unit} twice: {AGAIN}")
        found[unit] = _settings(unit, entry["settings"])
    return found


def _settings(unit: str, text: Any) -> Mapping[str, Any]:
    if not isinstance(text, str):
        raise Refused(f"the signed spec: the settings of {unit} are no text: {AGAIN}")
    try:
        found = canonical.parse(text.encode())
    except ValueError as fault:
        raise Refused(
            f"the signed spec: the settings of {unit} are no canonical JSON ({_cut(fault)}): {AGAIN}"
        ) from None
    if not isinstance(found, dict):
        raise Refused(f"the signed spec: the settings of {unit} are no mapping: {AGAIN}")
    return found


def _devices(value: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise Refused(f"the signed spec: devices is no list of assignments: {AGAIN}")
    return tuple(value)
