# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""modprobe, rmmod, lsmod and modinfo of a simulated host."""

from __future__ import annotations

from . import gpu
from .machine import names, read, there
from .modules import (
    CATALOGUE,
    Module,
    Refused,
    available,
    builtin,
    directory,
    insert,
    plain,
    release,
    remove,
    rules,
    users,
    vanish,
)

Answer = tuple[int, str, str]


def modprobe(root: str, argv: list[str]) -> Answer:
    """modprobe [-r] [-a] [-q] [-b] [-n] [--] NAME [PARAMETER=VALUE ...]."""
    flags, words = set(), []
    for at_word, word in enumerate(argv):
        if word == "--":
            words += argv[at_word + 1 :]
            break
        if word.startswith("-") and not words:
            flags.update([word] if word.startswith("--") else ["-" + letter for letter in word[1:]])
        else:
            words.append(word)
    if not words:
        return 1, "", "modprobe: ERROR: missing parameters. See -h.\n"
    several = flags & {"-r", "--remove", "-a", "--all"}
    targets = words if several else words[:1]
    if flags & {"-n", "--dry-run", "--show"}:
        return 0, "", ""
    said = rules(root)
    try:
        for name in targets:
            if flags & {"-r", "--remove"}:
                remove(root, name)
            elif not (flags & {"-b", "--use-blacklist"} and plain(name) in said.blacklist):
                insert(root, name, () if several else tuple(words[1:]), said)
    except Refused as fault:
        return 1, "", "" if flags & {"-q", "--quiet"} else f"{fault}\n"
    return 0, "", ""


def rmmod(root: str, argv: list[str]) -> Answer:
    """rmmod NAME ..."""
    for word in [word for word in argv if not word.startswith("-")]:
        name = plain(word)
        if not there(root, f"/sys/module/{name}/refcnt"):
            return 1, "", f"rmmod: ERROR: Module {name} is not currently loaded\n"
        holders = names(root, f"/sys/module/{name}/holders")
        if holders:
            return 1, "", f"rmmod: ERROR: Module {name} is in use by: {' '.join(holders)}\n"
        if users(root, name):
            return 1, "", f"rmmod: ERROR: Module {name} is in use\n"
        vanish(root, name)
    return 0, "", ""


def lsmod(root: str, argv: list[str]) -> Answer:
    """lsmod."""
    lines = ["Module                  Size  Used by"]
    for line in (read(root, "/proc/modules") or "").splitlines():
        name, size, count, holders = line.split()[:4]
        lines.append(f"{name:<19} {size:>8}  {count} {'' if holders == '-' else holders.rstrip(',')}".rstrip())
    return 0, "\n".join(lines) + "\n", ""


def modinfo(root: str, argv: list[str]) -> Answer:
    """modinfo [-F FIELD] [-k RELEASE] NAME; only the running kernel has modules."""
    field = argv[argv.index("-F") + 1] if "-F" in argv else ""
    kernel = argv[argv.index("-k") + 1] if "-k" in argv else release(root)
    words = [word for word in argv if not word.startswith("-") and word not in (field, kernel)]
    name = plain(words[0]) if words else ""
    fields: list[tuple[str, str]] = []
    if kernel != release(root):
        return 1, "", f"modinfo: ERROR: Module alias {words[0] if words else ''} not found.\n"
    if name in gpu.MODULES:
        fields = gpu.modinfo(root, name)
    elif builtin(root, name):
        fields = [("name", name), ("filename", "(builtin)")]
    elif name in available(root):
        module = CATALOGUE.get(name, Module("extra"))
        path = f"{directory(root)}/kernel/{module.place}/{name.replace('_', '-')}.ko"
        fields = [("filename", path), ("license", "GPL"), ("depends", ",".join(module.needs)), ("name", name)]
        fields += [("vermagic", f"{release(root)} SMP preempt mod_unload modversions")]
        fields += [("version", module.version)] if module.version else []
        fields += [("parm", f"{parameter}:{parameter} ({kind})") for parameter, kind, _unused in module.parameters]
    if not fields:
        return 1, "", f"modinfo: ERROR: Module {words[0] if words else ''} not found.\n"
    if field:
        return 0, "".join(value + "\n" for key, value in fields if key == field), ""
    return 0, "".join(f"{key + ':':<16}{value}\n" for key, value in fields), ""
