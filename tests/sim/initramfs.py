# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Initial RAM disks of a simulated host: text files that say which modules and which modprobe.d files are in them."""

from __future__ import annotations

import json
import re

from . import modules
from .machine import Machine, load, names, put, read

Answer = tuple[int, str, str]


def content(root: str, machine: Machine) -> str:
    """What an image made now holds: {"modules": [...], "files": {path: text}} as JSON."""
    extra = []
    for line in (read(root, "/etc/initramfs-tools/modules") or "").splitlines():
        if line.strip() and not line.startswith("#"):
            extra.append(modules.plain(line.split()[0]))
    files = {
        f"{folder[1:]}/{name}": read(root, f"{folder}/{name}") or ""
        for folder in ("/usr/lib/modprobe.d", "/etc/modprobe.d")
        for name in names(root, folder)
        if name.endswith(".conf")
    }
    return json.dumps(
        {"modules": sorted({*machine.initramfs_modules, *extra}), "files": files}, indent=1, sort_keys=True
    )


def build(root: str, machine: Machine, path: str) -> None:
    """Write an image."""
    put(root, path, content(root, machine) + "\n", 0o600)


def rules(text: str) -> modules.Rules:
    """What the modprobe.d files in an image say."""
    files: dict[str, str] = json.loads(text)["files"]
    return modules.parse_rules("\n".join(files[name] for name in sorted(files)))


def listing(root: str, text: str) -> list[str]:
    """The paths in an image."""
    held = json.loads(text)
    paths = list(held["files"])
    for name in held["modules"]:
        place = modules.CATALOGUE.get(name, modules.Module("extra")).place
        paths.append(f"usr/lib/modules/{modules.release(root)}/kernel/{place}/{name.replace('_', '-')}.ko")
    return sorted([*paths, "init", "usr/bin/kmod"])


def _images(root: str) -> list[str]:
    return [f"/boot/{name}" for name in names(root, "/boot") if re.match(r"init(rd|ramfs)[.-]", name)]


def update_initramfs(root: str, argv: list[str]) -> Answer:
    """update-initramfs -u | -c [-k VERSION | all]."""
    chosen = argv[argv.index("-k") + 1] if "-k" in argv else ""
    images = [image for image in _images(root) if chosen in ("", "all") or image.endswith(chosen)]
    if not images or not {"-u", "-c"} & set(argv):
        return (
            1,
            "",
            "Usage: update-initramfs {-c|-d|-u} [-k version] [-v] [-b directory]\n"
            if images
            else "Cannot find image\n",
        )
    for image in images if chosen == "all" else images[-1:]:
        build(root, load(root), image)
    return (
        0,
        "".join(f"update-initramfs: Generating {image}\n" for image in (images if chosen == "all" else images[-1:])),
        "",
    )


def dracut(root: str, argv: list[str]) -> Answer:
    """dracut -f [--regenerate-all] [IMAGE [VERSION]]; a machine of unified images gets those."""
    from . import sdboot

    machine = load(root)
    if machine.loader == "uki":
        sdboot.regenerate(root)
        return 0, "", ""
    if not {"-f", "--force"} & set(argv) and "--regenerate-all" not in argv:
        return 1, "", "dracut: Will not override existing initramfs without --force\n"
    named = [word for word in argv if word.startswith("/")]
    for image in named[:1] or _images(root):
        build(root, machine, image)
    return 0, "", ""


def lsinitramfs(root: str, argv: list[str]) -> Answer:
    """lsinitramfs IMAGE, lsinitrd [IMAGE]: one path a line."""
    words = [word for word in argv if word.startswith("/")] or _images(root)[-1:]
    text = read(root, words[0]) if words else None
    if text is None:
        return 1, "", f"{words[0] if words else 'the image'}: No such file or directory\n"
    return 0, "".join(path + "\n" for path in listing(root, text)), ""
