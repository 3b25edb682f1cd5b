# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CDI specifications by the rules of the reference library, for NVIDIA's and for ours.

Runtimes drop a file that breaks one of them, and with it every device in it: an unknown key, a device without edits, a
version below what the content needs. So a specification is checked here before it is put in place: what nvidia-ctk
writes on most hosts is known to be sound, and `cdi_rules` has the rules for all else.
"""

# The very type of a value decides here.
# pylint: disable=unidiomatic-typecheck

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Spec = Mapping[str, Any]

VENDOR_KIND = "nvidia.com/gpu"
VERSIONS = ("0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0")
ABOVE_EVERYONE = VERSIONS[3:]  # what is not above 0.5.0 is read by all runtimes but the oldest

NAME = re.compile(r"[A-Za-z](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")  # of a vendor and of a class; most devices have one, too
HOOKS = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")
KEYS = {"cdiVersion", "kind", "devices", "containerEdits"}
# The keys that nvidia-ctk gives each kind of edit, none of which needs a later version of CDI; first those that have to
# be there, and to say something.
PLAIN: dict[str, tuple[tuple[str, ...], dict[str, type]]] = {
    "deviceNodes": (
        ("path",),
        {"path": str, "major": int, "minor": int, "fileMode": int, "permissions": str, "uid": int, "gid": int},
    ),
    "mounts": (("hostPath", "containerPath"), {"hostPath": str, "containerPath": str, "options": list}),
    "hooks": (("hookName", "path"), {"hookName": str, "path": str, "args": list, "env": list}),
}


def faults(spec: Any) -> list[str]:
    """What the reference library would refuse the specification for, a clause each; empty for a sound one."""
    if is_plain(spec):
        return []
    from .cdi_rules import faults as broken_rules

    return broken_rules(spec)


def is_plain(spec: Any) -> bool:
    """Whether it is NVIDIA's, has nothing but what every version of CDI knows, and is sound."""
    if not isinstance(spec, dict) or not {"cdiVersion", "kind", "devices"} <= spec.keys() <= KEYS:
        return False
    names: set[str] = set()
    for device in spec["devices"] if isinstance(spec["devices"], list) else ():
        if not isinstance(device, dict) or device.keys() != {"name", "containerEdits"}:
            return False
        name, edits = device["name"], device["containerEdits"]
        if not isinstance(name, str) or name in names or not NAME.fullmatch(name):
            return False
        if not _are_plain(edits) or not any(edits.values()):
            return False
        names.add(name)
    is_ours = spec["kind"] == VENDOR_KIND and spec["cdiVersion"] in VERSIONS
    return is_ours and bool(names) and _are_plain(spec.get("containerEdits", {}))


def _are_plain(edits: Any) -> bool:
    """Whether the edits are lists by their kinds, and each element of them is plain."""
    if not isinstance(edits, dict) or not edits.keys() <= {"env", *PLAIN}:
        return False
    if not all(isinstance(parts, list) for parts in edits.values()):
        return False
    plain = all(_assigns(line) for line in edits.get("env", ()))
    return plain and all(_is_part(part, *PLAIN[key]) for key in PLAIN for part in edits.get(key, ()))


def _is_part(part: Any, needed: tuple[str, ...], kinds: dict[str, type]) -> bool:
    """Whether it is a mapping with the keys that are needed, and no key or value of another kind."""
    if not isinstance(part, dict) or not all(part.get(key) for key in needed):
        return False
    return all(type(value) is kinds.get(key) and _may_be(key, value) for key, value in part.items())


def _may_be(key: str, value: Any) -> bool:
    """Whether a value of its kind is one that the key may have."""
    if isinstance(value, int):
        return 0 <= value < 2**32
    if isinstance(value, list):
        return all(_assigns(word) if key == "env" else isinstance(word, str) for word in value)
    return not set(value) - set("rwm") if key == "permissions" else key != "hookName" or value in HOOKS


def _assigns(line: Any) -> bool:
    return isinstance(line, str) and line.find("=") > 0


def device_names(spec: Spec) -> tuple[str, ...]:
    """The devices of a sound specification, in order."""
    return tuple(device["name"] for device in spec["devices"])


def host_paths(spec: Spec) -> tuple[str, ...]:
    """What a sound specification needs on the host: what it mounts, its device nodes and hooks; sorted."""
    found: set[str] = set()
    for edits in (spec.get("containerEdits") or {}, *(device["containerEdits"] for device in spec["devices"])):
        found.update(mount["hostPath"] for mount in edits.get("mounts") or ())
        found.update(node.get("hostPath") or node["path"] for node in edits.get("deviceNodes") or ())
        found.update(hook["path"] for hook in edits.get("hooks") or ())
    return tuple(sorted(found))
