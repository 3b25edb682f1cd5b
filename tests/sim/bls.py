# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot loader entries (/boot/loader/entries) of a simulated host, and grubby."""

from __future__ import annotations

import os
import re

from .machine import load, names, need, put, read

Answer = tuple[int, str, str]

ENTRIES = "/boot/loader/entries"


def entries(root: str, folder: str) -> list[str]:
    """Paths of the entries, the one that sorts first in the menu (the newest kernel) first."""
    found = [f"{folder}/{name}" for name in names(root, folder) if name.endswith(".conf")]
    return sorted(
        found, key=lambda path: [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", path)], reverse=True
    )


def value(root: str, entry: str, key: str) -> str:
    """A key of an entry; several lines of it are joined."""
    found = re.findall(rf"^{key}[ \t]+(.*)$", read(root, entry) or "", re.MULTILINE)
    return " ".join(line.strip() for line in found)


def set_options(root: str, entry: str, options: str) -> None:
    """Replace the options line of an entry."""
    lines = [line for line in need(root, entry).splitlines() if not re.match(r"options[ \t]", line)]
    put(root, entry, "\n".join([*lines, f"options {' '.join(options.split())}"]) + "\n")


def bls_entry(kernel: str, options: str) -> str:
    """An entry as Rocky Linux writes it."""
    return (
        f"title Rocky Linux ({kernel}) 9.4 (Blue Onyx)\nversion {kernel}\nlinux /vmlinuz-{kernel}\n"
        f"initrd /initramfs-{kernel}.img $tuned_initrd\noptions {options}\n"
        "grub_users $grub_users\ngrub_arg --unrestricted\ngrub_class rocky\n"
    )


def edited(arguments: str, removed: str, added: str) -> str:
    """How grubby changes a list of arguments.

    `name=value` takes out one such word, a bare name every word of that name with whatever value; what is added first
    takes out every word of its name and then stands at the end, several of one name one after the other.
    """
    for word in removed.split():
        if "=" in word:
            arguments = re.sub(rf"(^|\s){re.escape(word)}(\s|$)", " ", arguments, count=1)
        else:
            arguments = _without(arguments, word)
    for word in added.split():
        arguments = _without(arguments, word.rpartition("=")[0] or word)
    return " ".join([*arguments.split(), *added.split()])


def _without(arguments: str, name: str) -> str:
    return re.sub(rf"(^|\s){re.escape(name)}((\s|$)|=[^ ]*)", " ", arguments)


def grubby(root: str, argv: list[str]) -> Answer:
    """grubby --info, --default-kernel, -index and -title, --update-kernel with --args and --remove-args."""
    given: dict[str, str] = {}
    rest = list(argv)
    while rest:
        name, equals, text = rest.pop(0).partition("=")
        if name in ("--info", "--update-kernel", "--args", "--remove-args") and not equals:
            text = rest.pop(0) if rest else ""
        given[name] = text.strip("\"'") if equals else text
    found = entries(root, ENTRIES)
    if not argv:
        return 1, "", "no action specified\n"
    if not found:
        return 1, "", "The param ALL is incorrect\n" if "--default-kernel" not in given else ""
    default = default_entry(root, found)
    for name, key in (("--default-kernel", "linux"), ("--default-title", "title")):
        if name in given:
            return 0, ("/boot" if key == "linux" else "") + value(root, found[default], key) + "\n", ""
    if "--default-index" in given:
        return 0, f"{default}\n", ""
    target = given.get("--info", given.get("--update-kernel", ""))
    chosen = _chosen(root, found, default, target)
    if not chosen:
        return 1, "", f"The param {target} is incorrect\n"
    if "--info" in given:
        return 0, "".join(_info(root, found, number) for number in chosen), ""
    removed, added = given.get("--remove-args", ""), given.get("--args", "")
    for number in chosen:
        set_options(root, found[number], edited(expanded(root, found[number]), removed, added))
    if target == "ALL" and "--no-etc-grub-update" not in given and not load(root).old_grubby:
        _future_kernels(root, removed, added)
    return 0, "", ""


def _future_kernels(root: str, removed: str, added: str) -> None:
    """The files that a kernel installed later takes its arguments from."""
    text = read(root, "/etc/default/grub")
    if text is not None:
        put(
            root,
            "/etc/default/grub",
            re.sub(
                r"^GRUB_CMDLINE_LINUX=.*$",
                lambda line: (
                    'GRUB_CMDLINE_LINUX="' + edited(line.group(0).split("=", 1)[1].strip("\"'"), removed, added) + '"'
                ),
                text,
                flags=re.MULTILINE,
            ),
        )
    text = read(root, "/etc/kernel/cmdline")
    if text is not None:
        put(root, "/etc/kernel/cmdline", edited(text.strip(), removed, added) + "\n")


def default_entry(root: str, found: list[str]) -> int:
    """Which of the entries boots."""
    from . import grub

    saved = grub.environment(root).get("saved_entry", "0")
    ids = [os.path.basename(path)[: -len(".conf")] for path in found]
    if saved in ids:
        return ids.index(saved)
    return int(saved) if saved.isdigit() and int(saved) < len(found) else 0


def _chosen(root: str, found: list[str], default: int, target: str) -> list[int]:
    if target == "ALL":
        return list(range(len(found)))
    if target == "DEFAULT":
        return [default]
    wanted = "/" + target.rpartition("/")[2]
    return [
        number
        for number, entry in enumerate(found)
        if target == str(number)
        or value(root, entry, "linux") in (target, wanted)
        or target == "TITLE=" + value(root, entry, "title")
    ]


def expanded(root: str, entry: str) -> str:
    """The options of an entry, with what they take from GRUB's environment."""
    from . import grub

    held = grub.environment(root)
    return re.sub(r"\$(\w+)", lambda name: held.get(name.group(1), ""), value(root, entry, "options")).strip()


def _info(root: str, found: list[str], number: int) -> str:
    entry = found[number]
    words = expanded(root, entry).split()
    first = next((word for word in words if word.startswith("root=")), "")
    if first:
        words.remove(first)
    place = f'root="{first[len("root=") :]}"\n' if first else ""
    return (
        f'index={number}\nkernel="/boot{value(root, entry, "linux")}"\nargs="{" ".join(words)}"\n{place}'
        f'initrd="/boot{value(root, entry, "initrd")}"\ntitle="{value(root, entry, "title")}"\n'
        f'id="{os.path.basename(entry)[: -len(".conf")]}"\n'
    )
