# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What root remembers of signed specs, `/var/lib/bcd-hostconfig/helper-intent.json`, with its copy of the last one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core import state

MEMORY = f"{state.STATE}/helper-intent.json"
RECORD = state.JOIN_RECORD
LOST = "without it a spec of an older generation, and where no join record names the node one of another node, could "
LOST += "be applied: converge with the newest signed spec right after"


class Memory(NamedTuple):
    """`node_id`: the node that the accepted specs name, "" before the first; `generation`: the newest accepted.

    `body_sha256`: the digest of the last accepted body, which stays good when its signer's certificate has ended.
    `bundle_version`, `bundle_sha256`: the newest trust bundle accepted under the pinned key `bundle_key` and the digest
    of its body, -1 and "" before the first; `signed`: a bundle with roots was accepted under it, and from then on
    nothing unsigned is. `envelope`: the last accepted spec as it came, which the agent applies again.
    """

    node_id: str = ""
    generation: int = -1
    body_sha256: str = ""
    bundle_version: int = -1
    bundle_sha256: str = ""
    bundle_key: str = ""
    signed: bool = False
    envelope: Mapping[str, Any] | None = None


def parse(text: str | None) -> Memory:
    """The memory in the text of its file (None: there is none); raises StepFailed, not retryable, for a damaged one."""
    if text is None:
        return Memory()
    found = state.parse(MEMORY, text, _is_whole, LOST)
    return Memory(**{name: found[name] for name in Memory._fields})


def render(memory: Memory) -> str:
    """The text of its file."""
    return state.render(memory._asdict())


def _is_whole(found: Mapping[str, Any]) -> bool:
    texts = dict.fromkeys(("node_id", "body_sha256", "bundle_sha256", "bundle_key"), str)
    kinds: dict[str, Any] = {**texts, "signed": bool}
    return (
        all(isinstance(found.get(name), kind) for name, kind in kinds.items())
        and all(
            isinstance(found.get(name), int) and not isinstance(found.get(name), bool)
            for name in ("generation", "bundle_version")
        )
        and "envelope" in found
        and (found["envelope"] is None or isinstance(found["envelope"], dict))
    )
