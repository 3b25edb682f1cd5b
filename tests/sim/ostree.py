# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""rpm-ostree of a simulated host."""

from __future__ import annotations

import json

from . import bls
from .machine import load, put, read

Answer = tuple[int, str, str]
OVERLAY = "/boot/ostree/initramfs-overlays/etc.img"  # the next deployment's: each tracked file with its text, as JSON
STAGED = 'Staging deployment...done\nRun "systemctl reboot" to start a reboot\n'


def rpm_ostree(root: str, argv: list[str]) -> Answer:
    """rpm-ostree status, kargs [--append[-if-missing]=A] [--delete[-if-present]=A] [--replace=A], initramfs-etc."""
    entry = next(iter(bls.entries(root, bls.ENTRIES)), None)
    if load(root).loader != "ostree" or entry is None:
        return 1, "", "error: This system was not booted via libostree.\n"
    if argv[:1] == ["status"]:
        return 0, "State: idle\nDeployments:\n● fedora:fedora/x86_64/coreos/stable\n", ""
    if argv[:1] == ["initramfs-etc"]:
        return _initramfs_etc(root, argv[1:])
    if argv[:1] != ["kargs"]:
        return 1, "", f"error: Unknown command '{argv[0] if argv else ''}'\n"
    if any(word.startswith("--") and word not in ("--lock-finalization", "--unchanged-exit-77") for word in argv[1:]):
        return _kargs(root, entry, argv[1:])
    return 0, bls.value(root, entry, "options") + "\n", ""


def _initramfs_etc(root: str, argv: list[str]) -> Answer:
    """initramfs-etc [--track=FILE] [--untrack=FILE] [--untrack-all] [--force-sync] [--unchanged-exit-77].

    Every tracked file is put into an overlay of the initramfs as it is now; one that is not there fails it all.
    """
    before: dict[str, str] = json.loads(read(root, OVERLAY) or "{}")
    tracked = set(before)
    rest = list(argv)
    while rest:
        name, equals, path = rest.pop(0).partition("=")
        if name in ("--track", "--untrack") and not equals:
            path = rest.pop(0) if rest else ""
        if name == "--track" and not path.startswith("/etc/"):
            return 1, "", f"error: Path outside /etc forbidden: {path}\n"
        if name == "--track":
            tracked.add(path)
        elif name == "--untrack":
            tracked.discard(path)
        elif name == "--untrack-all":
            tracked.clear()
        elif name not in ("--force-sync", "--unchanged-exit-77"):
            return 1, "", f"error: Unknown option {name}\n"
    if not argv:
        return 0, "".join(f"  {path}\n" for path in sorted(tracked)) or "No tracked files.\n", ""
    if tracked == set(before) and "--force-sync" not in argv:
        return (77 if "--unchanged-exit-77" in argv else 0), "No changes.\n", ""
    texts = {path: read(root, path) for path in sorted(tracked)}
    for path, text in texts.items():
        if text is None:
            return 1, "", f"error: fstatat({path[1:]}): No such file or directory\n"
    put(root, OVERLAY, json.dumps(texts, indent=1) + "\n", 0o600)
    return 0, STAGED, ""


def _kargs(root: str, entry: str, argv: list[str]) -> Answer:
    before = bls.value(root, entry, "options").split()
    words = list(before)
    for flag in argv:
        name, _unused, argument = flag.partition("=")
        if name == "--append" or (name == "--append-if-missing" and argument not in words):
            words.append(argument)
        elif name in ("--delete", "--delete-if-present"):
            match = [
                word for word in words if word == argument or ("=" not in argument and word.startswith(argument + "="))
            ]
            if match:
                words.remove(match[0])
            elif name == "--delete":
                return 1, "", f"error: No karg '{argument}' found\n"
        elif name == "--replace":
            key = argument.partition("=")[0]
            words = [argument if word == key or word.startswith(key + "=") else word for word in words]
    if words == before:
        return (77 if "--unchanged-exit-77" in argv else 0), "No changes.\n", ""
    bls.set_options(root, entry, " ".join(words))
    return 0, 'Staging deployment...done\nKernel arguments updated.\nRun "systemctl reboot" to start a reboot\n', ""
