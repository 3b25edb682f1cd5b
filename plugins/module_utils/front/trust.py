# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate of all that is applied: what is signed for this host, and nothing else where root pins a signer."""

from __future__ import annotations

from ..core.errors import NotKnownYet
from ..look.config import pinned, says_nothing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Callable, NamedTuple, TypeVar

    from ..core.host import Host

    Agreed = TypeVar("Agreed")
else:
    from ..core.named import NamedTuple


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
        if signed_spec is None and says_nothing(host):
            return None
        root = pinned(host)
    except NotKnownYet:  # root sees it
        root = None
    if signed_spec is None and not root:
        return None
    from .verified import accepted, refuse_unsigned, unverified

    if root is None:
        return agree(unverified(signed_spec))
    if signed_spec is not None:
        return accepted(host, root, signed_spec, agree)
    refuse_unsigned(host, root)
    return None
