# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvidia-ctk and nvidia-cuda-mps-control over a simulated machine."""

from __future__ import annotations

import json
import re
from typing import Any

from . import nodes
from .model import Machine
from .not_played import NotPlayed

Answer = tuple[int, str, str]
NO_DEVICES = (
    'level=error msg="failed to write CDI spec to STDOUT: failed to write spec: invalid CDI Spec: '
    'failed add device \\"all\\": invalid device, empty device edits"\n'
)
NO_NVML = (
    'level=error msg="failed to generate CDI spec: failed to create device CDI specs: failed to construct device spec '
    'generators: failed to initialize NVML: {}"\n'
)
HOOK = "/usr/bin/nvidia-cdi-hook"
RO = ["ro", "nosuid", "nodev", "rbind", "rprivate"]
MIB = re.compile(r"0*([1-9]\d*)([Gg])?")


def ctk(machine: Machine, words: tuple[str, ...], folder: str = nodes.LIBRARY_FOLDER, hook: str = HOOK) -> Answer:
    """nvidia-ctk, its spec on standard output: `--output` is the caller's to follow, with `output_of`."""
    if words[:1] in (("--version",), ("-v",)):
        return 0, f"NVIDIA Container Toolkit CLI version {machine.toolkit}\ncommit: 0000000000000000\n", ""
    if words == ("system", "create-dev-char-symlinks", "--create-all"):
        return _char_links(machine)
    if words[:2] != ("cdi", "generate"):
        raise NotPlayed("nvidia-ctk " + " ".join(words))
    strategies = [
        word.partition("=")[2] or words[at + 1]
        for at, word in enumerate(words)
        if word.partition("=")[0] == "--device-name-strategy"
    ] or ["index", "uuid"]
    if machine.loaded is None:
        return 1, "", NO_NVML.format("ERROR_DRIVER_NOT_LOADED")
    if machine.loaded != machine.library:
        return 1, "", NO_NVML.format("ERROR_LIB_RM_VERSION_MISMATCH")
    devices = _devices(machine, strategies)
    if not devices:
        return 1, "", NO_DEVICES
    if "--no-all-device" not in words:
        every = {node["path"]: node for device in devices for node in device["containerEdits"]["deviceNodes"]}
        devices.append({"name": "all", "containerEdits": {"deviceNodes": list(every.values())}})
    indexed = any(device["name"][0].isdigit() for device in devices)
    spec = {
        "cdiVersion": "0.5.0" if indexed else "0.3.0",
        "kind": "nvidia.com/gpu",
        "devices": devices,
        "containerEdits": _common(machine, folder, hook),
    }
    return 0, json.dumps(spec, separators=(",", ":")) + "\n", ""


def _char_links(machine: Machine) -> Answer:
    """What create-dev-char-symlinks answers; the links are the caller's to make, with `char_links`."""
    if machine.loaded is None or not machine.uvm:
        which = "nvidia-uvm" if machine.loaded else "nvidia"
        said = "failed to create symlink creator: failed to create all possible device lister"
        return 1, "", f'level=error msg="{said}: missing required device major {which}"\n'
    made = "".join(f'level=info msg="Creating link {link} => {node}"\n' for link, node in char_links(machine).items())
    return 0, "", made


def char_links(machine: Machine) -> dict[str, str]:
    """The links that it makes where there are none: to the nodes of GPUs, and of all MIG devices that there can be."""
    found = {f"/dev/char/195:{card.minor}": f"/dev/nvidia{card.minor}" for card in machine.cards}
    found.update({"/dev/char/195:254": "/dev/nvidia-modeset", "/dev/char/195:255": "/dev/nvidiactl"})
    found.update({"/dev/char/510:0": "/dev/nvidia-uvm", "/dev/char/510:1": "/dev/nvidia-uvm-tools"})
    for card in machine.cards:
        for gi in range(15) if card.kind.profiles else ():
            for ci in (None, *range(8)):
                minor = nodes.capability(card, gi, ci)
                found[f"/dev/char/511:{minor}"] = f"/dev/nvidia-caps/nvidia-cap{minor}"
    return found


def output_of(words: tuple[str, ...]) -> str:
    """The file that the spec goes to, "" for standard output."""
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == "--output":
            return value if equals else words[at + 1]
    return ""


def _node(path: str, major: int, minor: int, mode: int = 438) -> dict[str, Any]:
    """A device node as the toolkit writes it: a minor of 0 is left out."""
    return {
        "path": path,
        "major": major,
        **({"minor": minor} if minor else {}),
        "fileMode": mode,
        "permissions": "rwm",
    }


def _devices(machine: Machine, strategies: list[str]) -> list[dict[str, Any]]:
    """GPUs by name; a GPU in MIG mode only by its MIG devices."""
    found: list[tuple[str, list[dict[str, Any]]]] = []
    for index, card in enumerate(machine.cards):
        if card.dead == "handle":
            continue
        whole = _node(f"/dev/nvidia{card.minor}", 195, card.minor)
        if not card.mig:
            found += [(str(index) if one == "index" else card.uuid, [whole]) for one in strategies]
            continue
        for number, (gi, ci) in enumerate(card.devices()):
            minors = (nodes.capability(card, gi.id), nodes.capability(card, gi.id, ci.id))
            parts = [whole, *(_node(f"/dev/nvidia-caps/nvidia-cap{minor}", 511, minor, 292) for minor in minors)]
            which = card.device_uuid(gi, ci, machine.branch)
            found += [(f"{index}:{number}" if one == "index" else which, parts) for one in strategies]
    return [{"name": name, "containerEdits": {"deviceNodes": parts}} for name, parts in sorted(found)]


def _common(machine: Machine, folder: str, hook: str) -> dict[str, Any]:
    shown = nodes.files(machine)
    every = [("/dev/nvidia-modeset", 195, 254), ("/dev/nvidia-uvm", 510, 0), ("/dev/nvidia-uvm-tools", 510, 1)]
    every.append(("/dev/nvidiactl", 195, 255))
    paths = [*(f"{folder}/{name}.{machine.library}" for name in nodes.LIBRARIES)]
    return {
        "env": [f"NVIDIA_CTK_LIBCUDA_DIR={folder}", "NVIDIA_VISIBLE_DEVICES=void"],
        "deviceNodes": [_node(*one) for one in every if one[0] in shown],
        "hooks": [
            {
                "hookName": "createContainer",
                "path": hook,
                "args": ["nvidia-cdi-hook", "update-ldcache", "--folder", folder],
                "env": ["NVIDIA_CTK_DEBUG=false"],
            }
        ],
        "mounts": [{"hostPath": path, "containerPath": path, "options": RO} for path in paths],
    }


def mps(machine: Machine, words: tuple[str, ...], stdin: str, environment: dict[str, str]) -> Answer:
    """nvidia-cuda-mps-control: -d or -f starts the daemon of a pipe directory, without them stdin has its commands."""
    pipe = environment.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")
    if words[:1] in (("-d",), ("-f",)):
        if pipe in machine.mps:
            return 1, "An instance of this daemon is already running\n", ""
        visible = environment.get("CUDA_VISIBLE_DEVICES", "")
        machine.mps[pipe] = {"percentage": "100.0", "limits": {}, "visible": visible.split(",") if visible else []}
        return 0, "", ""
    text = ""
    for line in stdin.splitlines():
        daemon = machine.mps.get(pipe)
        if daemon is None:
            return 1, text + "Cannot find MPS control daemon process\n", ""
        if line.split()[:1] == ["quit"]:
            del machine.mps[pipe]
            continue
        text += _mps_command(machine, daemon, line.split())
    return 0, text, ""


def _mps_command(machine: Machine, daemon: dict[str, Any], words: list[str]) -> str:
    """What a command prints. What it does not take is passed over, and the value in force printed."""
    verb, given = (words[0], words[1:]) if words else ("", [])
    if verb == "set_default_active_thread_percentage":
        try:
            wanted = float(given[0])
        except (ValueError, IndexError):
            wanted = 0.0
        if 0 < wanted <= 100:
            daemon["percentage"] = f"{wanted:.1f}"
        return f"{daemon['percentage']}\n"
    if verb == "get_default_active_thread_percentage":
        return f"{daemon['percentage']}\n"
    if verb == "set_default_device_pinned_mem_limit":
        # A device is a number, whether it is there or not; a UUID reads as device 0, and takes its limit away.
        size = MIB.match(given[1]) if len(given) == 2 and given[0].isdigit() else None
        daemon["limits"][given[0] if given and given[0].isdigit() else "0"] = given[1] if size else ""
        return ""
    if verb == "get_default_device_pinned_mem_limit":
        return _size(daemon["limits"].get(given[0] if given else "", ""))
    if verb == "get_server_status":
        return f"Server {given[0]} not found\n"
    if verb in ("get_server_list", "get_device_client_list", "start_server"):
        return ""
    return {"ps": "Server not found\n", "get_default_client_priority": "0\n"}.get(verb, f'Unknown command "{verb}"\n')


def _size(limit: str) -> str:
    """A limit as it is printed: whole GiB from 1024 MiB on, without the rest."""
    found = MIB.match(limit)
    if not found:
        return ""
    mebibytes = int(found.group(1)) * (1024 if found.group(2) else 1)
    return f"{mebibytes // 1024}G\n" if mebibytes >= 1024 else f"{mebibytes}M\n"
