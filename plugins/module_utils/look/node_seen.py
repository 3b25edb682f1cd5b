# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API server says of this machine's Node, as far as our units depend on it: a sight.

Its kubelet reports every few seconds, and controllers label and taint it: none of that is a change that concerns us.
"""

from __future__ import annotations

from ..plan.node_answer import TIMEOUT, facts, is_absent, loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..core.host import Host

LONGEST = 300  # characters of what a server says of its refusal


def node_seen(
    host: Host, url: str, ca: str, certificate: str, labels: list[str] | None, taints: list[list[str]], flags: str
) -> dict[str, Any]:
    """The answer's status as `rc`, and with 200 what `facts` has of the Node, or as `fault` why it is none.

    Labels are narrowed to those of these names (one that ends in "/" is the beginning of some), taints to those of
    these keys and effects, and both to those that `flags`, the kubelet's arguments, have too; None for all of both.
    With another status there is what was `said`, and whether that is that the Node `is_absent`.
    """
    answer = host.get(url, TIMEOUT, ca=ca, certificate=certificate)
    if answer.rc != 200:
        said = _said(answer.out) or answer.err
        return {"rc": answer.rc, "said": said, "is_absent": answer.rc == 404 and is_absent(answer.out)}
    try:
        found = facts(answer.out)
    except ValueError as fault:
        return {"rc": 200, "fault": str(fault)}
    if labels is not None:
        found["labels"] = _named(found["labels"], labels, flags)
        found["taints"] = [one for one in found["taints"] if one[::2] in taints or _words(*one) in flags]
    return {"rc": 200, **found}


def _named(shown: dict[str, str], labels: list[str], flags: str) -> dict[str, str]:
    begins = tuple(name for name in labels if name.endswith("/"))
    return {
        key: value
        for key, value in sorted(shown.items())
        if key in labels or key.startswith(begins) or f"{key}=" in flags
    }


def _words(key: str, value: str, effect: str) -> str:
    return f"{key}{'=' if value else ''}{value}:{effect}"


def _said(text: str) -> str:
    """The message of a Status object."""
    try:
        return " ".join(str(loaded(text)["message"]).split())[:LONGEST]
    except (ValueError, KeyError, TypeError):
        return ""
