# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the control plane signed for this host: verified, remembered by root, and demanded where root pins a signer."""

from __future__ import annotations

from ..core.errors import NotKnownYet, Refused, StepFailed
from ..core.host import Host, advice
from ..plan.installed import CONFIG
from ..plan.pins import JOIN_KEY, ROOTS, Pins
from .trust import Intent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Callable

    from .trust import Agreed

UNPINNED = (
    f"signed_spec is given, and root pins no signer on this host: pin one in {CONFIG} ({ROOTS} or {JOIN_KEY}; the "
    "playbook enroll does), or leave signed_spec out"
)


def accepted(host: Host, root: Pins, signed_spec: Mapping[str, Any], agree: Callable[[Intent], Agreed]) -> Agreed:
    """What `agree` makes of the spec, which is then remembered; raises Refused where it does not count here."""
    from ..intent.acceptance import accept
    from ..intent.envelope import envelope
    from ..intent.memory import MEMORY, RECORD, parse, render
    from ..look.config import root_text

    if not root:
        raise Refused(UNPINNED)
    signed = envelope(signed_spec)
    try:
        record, memory = root_text(host, RECORD), parse(root_text(host, MEMORY))
    except NotKnownYet:  # the pins may be read by the account's group, root's records by root alone
        return agree(unverified(signed_spec))
    taken = accept(signed, root, record, memory, host.time())
    spec = taken.spec
    result = agree(Intent(spec.node_id, spec.generation, spec.host, spec.devices))
    if taken.memory != memory and not host.predicted:
        try:
            host.write(MEMORY, render(taken.memory), 0o600)
        except OSError as fault:
            raise StepFailed(f"cannot remember the signed spec in {MEMORY}: {fault.strerror}{advice(fault)}") from None
    return result


def unverified(signed_spec: Any) -> Intent:
    """What a spec says, where this account cannot see whether it counts; raises Refused for what has no form."""
    from ..intent.body import desired_state
    from ..intent.envelope import envelope

    spec = desired_state(envelope(signed_spec).body)
    return Intent(spec.node_id, spec.generation, spec.host, spec.devices, verified=False)


def refuse_unsigned(host: Host, root: Pins) -> None:
    """Raise Refused where root's pins, its join record, or a bundle that it accepted demand a signature."""
    from ..intent.acceptance import demand
    from ..intent.memory import MEMORY, RECORD, Memory, parse
    from ..look.config import root_text

    if root.roots:  # nothing else counts then, nor needs to be read
        why = demand(root, None, Memory())
    else:
        try:
            why = demand(root, root_text(host, RECORD), parse(root_text(host, MEMORY)))
        except NotKnownYet:
            return
    if why:
        raise Refused(
            f"{why} a signed spec, and none is given: nothing unsigned is applied: give signed_spec, "
            "which the module sign_spec makes (as bcd_converge_signed_spec to the playbooks)"
        )
