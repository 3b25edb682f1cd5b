# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""rpm-ostree of a simulated host."""

from __future__ import annotations

from . import bls
from .machine import load

Answer = tuple[int, str, str]


def rpm_ostree(root: str, argv: list[str]) -> Answer:
    """rpm-ostree status, kargs [--append[-if-missing]=A] [--delete[-if-present]=A] [--replace=A]."""
    entry = next(iter(bls.entries(root, bls.ENTRIES)), None)
    if load(root).loader != "ostree" or entry is None:
        return 1, "", "error: This system was not booted via libostree.\n"
    if argv[:1] == ["status"]:
        return 0, "State: idle\nDeployments:\n● fedora:fedora/x86_64/coreos/stable\n", ""
    if argv[:1] != ["kargs"]:
        return 1, "", f"error: Unknown command '{argv[0] if argv else ''}'\n"
    if any(word.startswith("--") and word not in ("--lock-finalization", "--unchanged-exit-77") for word in argv[1:]):
        return _kargs(root, entry, argv[1:])
    return 0, bls.value(root, entry, "options") + "\n", ""


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
