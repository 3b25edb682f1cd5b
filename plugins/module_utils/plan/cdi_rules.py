# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every rule of the reference library about a CDI specification, and what a broken one is refused for.

`cdi` knows what nvidia-ctk writes by itself, and asks here about what is more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .cdi import HOOKS, NAME, VERSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .cdi import Spec

DEVICE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.:-]*[A-Za-z0-9])?")
NODE_TYPES = ("", "b", "c", "u", "p")
UINT32 = (0, 2**32 - 1)
INT64 = (-(2**63), 2**63 - 1)

# The keys of each object and the kinds of their values; ! before a kind: it must be there.
SPEC = {"cdiVersion": "!str", "kind": "!str", "annotations": "texts", "devices": "!list", "containerEdits": "dict"}
OF_DEVICE = {"name": "!str", "annotations": "texts", "containerEdits": "!dict"}
OF_EDITS = {
    "env": "strings",
    "deviceNodes": "dicts",
    "netDevices": "dicts",
    "hooks": "dicts",
    "mounts": "dicts",
    "intelRdt": "dict",
    "additionalGids": "uint32s",
}
OF_NODE = {
    "path": "!str",
    "hostPath": "str",
    "type": "str",
    "major": "int64",
    "minor": "int64",
    "fileMode": "uint32",
    "permissions": "str",
    "uid": "uint32",
    "gid": "uint32",
}
OF_NET = {"hostInterfaceName": "!str", "name": "!str"}
OF_MOUNT = {"hostPath": "!str", "containerPath": "!str", "options": "strings", "type": "str"}
OF_HOOK = {"hookName": "!str", "path": "!str", "args": "strings", "env": "strings", "timeout": "int64"}
OF_RDT = {
    "closID": "str",
    "l3CacheSchema": "str",
    "memBwSchema": "str",
    "enableCMT": "bool",
    "enableMBM": "bool",
    "schemata": "strings",
    "enableMonitoring": "bool",
}


def faults(spec: Any) -> list[str]:
    """What the reference library would refuse the specification for, a clause each; empty for a sound one."""
    if not isinstance(spec, Mapping):
        return ["it is no mapping"]
    found = list(_shape("it", spec, SPEC))
    if found:
        return found
    found += _kind(spec["kind"])
    names: set[str] = set()
    for at, device in enumerate(spec["devices"]):
        if not isinstance(device, Mapping):
            found.append(f"device {at} is no mapping")
            continue
        found += _device(at, device)
        name = device.get("name")
        if isinstance(name, str) and name in names:
            found.append(f"the device {name} is there twice")
        names.add(str(name))
    if not spec["devices"]:
        found.append("it has no device")
    found += _edits("all devices", spec.get("containerEdits", {}))
    return found or _version(spec)


def minimum_version(spec: Spec) -> str:
    """The lowest cdiVersion that says what the (sound) specification says."""
    devices = spec["devices"]
    every = [spec.get("containerEdits") or {}, *(device.get("containerEdits") or {} for device in devices)]
    rdts = [edits.get("intelRdt") or {} for edits in every]
    if any(edits.get("netDevices") for edits in every) or any("schemata" in r or "enableMonitoring" in r for r in rdts):
        return "1.1.0"
    if any(edits.get("intelRdt") or edits.get("additionalGids") for edits in every):
        return "0.7.0"
    if spec.get("annotations") or any(device.get("annotations") for device in devices):
        return "0.6.0"
    if "." in spec["kind"].partition("/")[2]:
        return "0.6.0"
    nodes = [node for edits in every for node in edits.get("deviceNodes") or ()]
    if any(node.get("hostPath") for node in nodes) or any(device["name"][:1].isdigit() for device in devices):
        return "0.5.0"
    if any(mount.get("type") for edits in every for mount in edits.get("mounts") or ()):
        return "0.4.0"
    return "0.3.0"


def _kind(kind: str) -> Iterator[str]:
    vendor, slash, name = kind.partition("/")
    if not slash or not NAME.fullmatch(vendor) or not NAME.fullmatch(name):
        yield f"its kind {kind!r} is no vendor/class"


def _version(spec: Spec) -> list[str]:
    given, needed = spec["cdiVersion"], minimum_version(spec)
    if given not in VERSIONS:
        return [f"its cdiVersion {given!r} is not known"]
    if VERSIONS.index(given) < VERSIONS.index(needed):
        return [f"its cdiVersion is {given}, and what it says needs {needed}"]
    return []


def _device(at: int, device: Mapping[str, Any]) -> list[str]:
    found = list(_shape(f"device {at}", device, OF_DEVICE))
    if found:
        return found
    name = device["name"]
    if not DEVICE.fullmatch(name):
        found.append(f"device {at} has the name {name!r}, which is none")
    if not any(device["containerEdits"].values()):
        found.append(f"the device {name} has no edit")
    return found + _edits(f"the device {name}", device["containerEdits"])


def _edits(where: str, edits: Mapping[str, Any]) -> list[str]:
    found = list(_shape(where, edits, OF_EDITS))
    if found:
        return found
    found += _environment(where, edits.get("env", ()))
    for node in edits.get("deviceNodes", ()):
        found += _node(where, node)
    for mount in edits.get("mounts", ()):
        found += _shape(f"a mount of {where}", mount, OF_MOUNT)
    for hook in edits.get("hooks", ()):
        found += _hook(where, hook)
    for net in edits.get("netDevices", ()):
        found += _shape(f"a network device of {where}", net, OF_NET)
    for key in OF_NET:
        names = [str(net.get(key)) for net in edits.get("netDevices", ())]
        found += [f"the {key} {name} is there twice in {where}" for name in sorted(set(names)) if names.count(name) > 1]
    if "intelRdt" in edits:
        found += _shape(f"intelRdt of {where}", edits["intelRdt"], OF_RDT)
        closid = edits["intelRdt"].get("closID", "")
        if isinstance(closid, str) and (closid in (".", "..") or len(closid) >= 4096 or set(closid) & {"/", "\n"}):
            found.append(f"the closID {closid[:40]!r} of {where} is none")
    return found


def _environment(where: str, lines: Any) -> Iterator[str]:
    for line in lines:
        if line.find("=") < 1:
            yield f"{line!r} in the environment of {where} is no NAME=value"


def _node(where: str, node: Mapping[str, Any]) -> list[str]:
    found = list(_shape(f"a device node of {where}", node, OF_NODE))
    if not found and node.get("type", "") not in NODE_TYPES:
        found.append(f"the device node {node['path']} of {where} has the type {node['type']!r}")
    if not found and set(node.get("permissions", "")) - set("rwm"):
        found.append(f"the device node {node['path']} of {where} has the permissions {node['permissions']!r}")
    return found


def _hook(where: str, hook: Mapping[str, Any]) -> list[str]:
    found = list(_shape(f"a hook of {where}", hook, OF_HOOK))
    if not found and hook["hookName"] not in HOOKS:
        found.append(f"a hook of {where} has the name {hook['hookName']!r}")
    return found or list(_environment(f"a hook of {where}", hook.get("env", ())))


def _shape(where: str, given: Mapping[str, Any], fields: Mapping[str, str]) -> Iterator[str]:
    """The keys that are not known or missing, and the values of another kind than theirs."""
    for key in given:
        if key not in fields:
            yield f"{where} has {key!r}, which no CDI specification has"
    for key, wanted in fields.items():
        kind = wanted.lstrip("!")
        if key not in given:
            if wanted != kind:
                yield f"{where} has no {key}"
        elif not _is(given[key], kind):
            yield f"{key} of {where} is of another kind than {kind}"
        elif wanted == "!str" and not given[key]:
            yield f"{key} of {where} is empty"


def _is(value: Any, kind: str) -> bool:
    if kind == "texts":
        return isinstance(value, Mapping) and all(_is(text, "str") for text in (*value, *value.values()))
    if kind.endswith("s"):
        return isinstance(value, list) and all(_is(element, kind[:-1].replace("string", "str")) for element in value)
    if kind in ("uint32", "int64"):
        low, high = UINT32 if kind == "uint32" else INT64
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
    return isinstance(value, {"str": str, "dict": Mapping, "list": list, "bool": bool}[kind])
