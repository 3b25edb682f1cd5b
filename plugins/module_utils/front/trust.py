# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the control plane signed for this host: verified, remembered by root, and demanded where root pins a signer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, NamedTuple, TypeVar

from ..core.errors import NotKnownYet, Refused, StepFailed
from ..core.host import Host, advice
from ..look.config import pinned
from ..plan.pins import CONFIG, JOIN_KEY, ROOTS, Pins

Agreed = TypeVar("Agreed")
UNPINNED = (
    f"signed_spec is given, and root pins no signer on this host: pin one in {CONFIG} ({ROOTS} or {JOIN_KEY}; the "
    "playbook enroll does), or leave signed_spec out"
)


class Intent(NamedTuple):
    """A signed spec. `host` and `devices` are None where it does not manage them (see intent.body.DesiredState).

    `verified` is false where this account cannot see what root pins: what was read is not believed, only planned.
    """

    node_id: str
    generation: int
    host: Mapping[str, Mapping[str, Any]] | None
    devices: tuple[Mapping[str, Any], ...] | None
    verified: bool = True


def intend(host: Host, signed_spec: Mapping[str, Any] | None) -> Intent | None:
    """What is signed for this host; None where nothing is, and nothing needs to be.

    Raises Refused for what does not verify, and where a signature is demanded and none is given. On a real host an
    accepted spec is remembered before it returns, so that what is older is refused from then on.
    """
    return agreed(host, signed_spec, lambda intent: intent)


def agreed(host: Host, signed_spec: Mapping[str, Any] | None, agree: Callable[[Intent], Agreed]) -> Agreed | None:
    """As `intend`, and what `agree` makes of the spec beside the options.

    What `agree` raises is raised before anything is remembered: a request that is refused writes nothing.
    """
    try:
        root = pinned(host)
    except NotKnownYet:  # root sees it
        return None if signed_spec is None else agree(_unverified(signed_spec))
    if signed_spec is not None:
        return _accepted(host, root, signed_spec, agree)
    if root:
        _refuse_unsigned(host, root)
    return None


def _accepted(host: Host, root: Pins, signed_spec: Mapping[str, Any], agree: Callable[[Intent], Agreed]) -> Agreed:
    from ..intent.acceptance import accept
    from ..intent.envelope import envelope
    from ..intent.memory import MEMORY, RECORD, parse, render
    from ..look.root_files import root_text

    if not root:
        raise Refused(UNPINNED)
    signed = envelope(signed_spec)
    try:
        record, memory = root_text(host, RECORD), parse(root_text(host, MEMORY))
    except NotKnownYet:  # the pins may be read by the account's group, root's records by root alone
        return agree(_unverified(signed_spec))
    accepted = accept(signed, root, record, memory, host.time())
    spec = accepted.spec
    result = agree(Intent(spec.node_id, spec.generation, spec.host, spec.devices))
    if accepted.memory != memory and not host.predicted:
        try:
            host.write(MEMORY, render(accepted.memory), 0o600)
        except OSError as fault:
            raise StepFailed(f"cannot remember the signed spec in {MEMORY}: {fault.strerror}{advice(fault)}") from None
    return result


def _unverified(signed_spec: Mapping[str, Any]) -> Intent:
    from ..intent.body import desired_state
    from ..intent.envelope import envelope

    spec = desired_state(envelope(signed_spec).body)
    return Intent(spec.node_id, spec.generation, spec.host, spec.devices, verified=False)


def _refuse_unsigned(host: Host, root: Pins) -> None:
    """Raise Refused where root's pins, its join record, or a bundle that it accepted demand a signature."""
    from ..intent.acceptance import demand
    from ..intent.memory import MEMORY, RECORD, Memory, parse
    from ..look.root_files import root_text

    if root.roots:  # nothing else counts then, nor needs to be read
        why = demand(root, None, Memory())
    else:
        try:
            why = demand(root, root_text(host, RECORD), parse(root_text(host, MEMORY)))
        except NotKnownYet:
            return
    if why:
        raise Refused(f"{why} a signed spec, and none is given: nothing unsigned is applied: give signed_spec")
