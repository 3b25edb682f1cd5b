# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every runtime wants of a specification of NVIDIA's whole devices and MIG devices, named by UUID."""

from __future__ import annotations

import re
from typing import Any

NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?")
EDITS = {"env", "deviceNodes", "mounts", "hooks"}  # later versions of CDI know more
HOOKS = {"prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"}


def is_taken(spec: Any) -> bool:
    """Asserts each rule; True, so that it can be asserted itself."""
    assert set(spec) <= {"cdiVersion", "kind", "devices", "containerEdits"}
    assert spec["kind"] == "nvidia.com/gpu"
    names = [device["name"] for device in spec["devices"]]
    assert names
    assert len(names) == len(set(names))
    for device in spec["devices"]:
        assert set(device) == {"name", "containerEdits"}
        assert NAME.fullmatch(device["name"])
        assert any(device["containerEdits"].values()), "a device without an edit is refused"
        _edits_are_taken(device["containerEdits"])
    _edits_are_taken(spec.get("containerEdits", {}))
    # A name that begins with a digit, and the path of a node on the host, came with 0.5.0.
    nodes = [
        node for part in (spec, *spec["devices"]) for node in part.get("containerEdits", {}).get("deviceNodes", ())
    ]
    needs = any(name[0].isdecimal() for name in names) or any("hostPath" in node for node in nodes)
    assert spec["cdiVersion"] >= ("0.5.0" if needs else "0.3.0")
    return True


def _edits_are_taken(edits: dict[str, Any]) -> None:
    assert set(edits) <= EDITS
    assert all(isinstance(value, list) for value in edits.values()), "null is no list"
    assert all(re.fullmatch(r"[^=]+=.*", line) for line in edits.get("env", ()))
    assert all(node["path"].startswith("/") for node in edits.get("deviceNodes", ()))
    for mount in edits.get("mounts", ()):
        assert mount["hostPath"].startswith("/")
        assert mount["containerPath"].startswith("/")
    for hook in edits.get("hooks", ()):
        assert hook["hookName"] in HOOKS
        assert hook["path"].startswith("/")
