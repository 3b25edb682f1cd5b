# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API server answers about a Node: where it is asked, and the few fields that matter here, as plain values."""

from __future__ import annotations

from ..core.json_text import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TIMEOUT = 10.0  # seconds for an answer of the API server
TAINT = ("key", "value", "effect")


def address(server: str, node: str) -> str:
    """Where the Node is, also as effects name it ("GET <address>"); `server` as kubelet.conf has it."""
    return f"{server.rstrip('/')}/api/v1/nodes/{node}"


def facts(text: str) -> dict[str, Any]:
    """The Node in an answer: its name, uid, labels, taints (key, value and effect each), and whether it is ready and
    unschedulable; raises ValueError for what is none."""
    found = mapping(loaded(text), "it is no object")
    metadata = mapping(found.get("metadata"), "it has no metadata")
    spec = mapping(found.get("spec") or {}, "its spec is no object")
    status = mapping(found.get("status") or {}, "its status is no object")
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError("it has no name")
    labels = mapping(metadata.get("labels") or {}, "its labels are none")
    conditions = {str(one.get("type")): one.get("status") for one in listed(status.get("conditions"))}
    return {
        "name": name,
        "labels": {str(key): str(value) for key, value in labels.items()},
        "taints": [[str(one.get(part) or "") for part in TAINT] for one in listed(spec.get("taints"))],
        "ready": conditions.get("Ready") == "True",
        "unschedulable": spec.get("unschedulable") is True,
        "uid": str(metadata.get("uid") or ""),
    }


def is_absent(text: str) -> bool:
    """Whether an answer with 404 is the API server's word that there is no such Node, not another's about a page."""
    try:
        found = mapping(loaded(text), "it is no object")
    except ValueError:
        return False
    details = found.get("details")
    return found.get("kind") == "Status" and isinstance(details, dict) and details.get("kind") == "nodes"


def loaded(text: str) -> Any:
    """JSON of an answer; raises ValueError."""
    try:
        return loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def mapping(found: Any, fault: str) -> dict[str, Any]:
    """What is found, if it is an object; raises ValueError with the fault otherwise."""
    if not isinstance(found, dict):
        raise ValueError(fault)
    return found


def listed(found: Any) -> list[dict[str, Any]]:
    """The objects of a list; none of what is no list."""
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
