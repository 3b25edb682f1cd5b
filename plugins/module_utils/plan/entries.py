# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd-boot and unified kernel images: /etc/kernel/cmdline, and what is made of it.

Entries of systemd-boot are edited themselves, since kernel-install would write them anew with all that they say. A
unified image carries its command line inside and is made again; Proxmox refreshes its partitions by its own tool.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ..core.step import Effect, Step, fail, remove, run
from .cmdline import Group, groups, lacking, rivals, words
from .kernel_cmdline import PATH, beginning, command_line, with_arguments
from .loader import Boot, Change, Work, edit, edited_lines

DEBT = "boot image"
LIST = "bootctl list --json=short"
OPTIONS = re.compile(r"^(options[ \t]+)(.*)$", re.MULTILINE)


def entry_line(text: str) -> str:
    """The command line of a loader entry: its options lines, joined."""
    return " ".join(line for _key, line in OPTIONS.findall(text))


def entry_with(text: str, drop: tuple[Group, ...], add: tuple[Group, ...]) -> str:
    """The entry with its options edited."""
    after = iter(edited_lines(tuple(line for _key, line in OPTIONS.findall(text)), drop, add))
    return OPTIONS.sub(lambda found: found.group(1) + next(after), text)


def work(boot: Boot, change: Change) -> Work:
    """The file for future kernels, then what the machine boots by now.

    A file that we made goes at once beside entries, which are edited themselves, and last where a tool makes images of
    it: without the file the tools take the running command line, which still has our arguments.
    """
    entries = {path: file for path, file in boot.files.items() if path.endswith(".conf") and file}
    now = boot.files.get(PATH)
    by_tool = boot.loader.tool != "entries"
    booted = tuple(entry_line(file.text) for file in entries.values()) or _listed(boot)
    created = change.created
    text = now.text if now else ""
    foreign = change.foreign(booted or ((command_line(text),) if now else ()))
    if now is None and change.wanted:
        ours = (*change.stale, *(group for group in change.wanted if group not in foreign))
        text = created = beginning(boot, booted, ours)
    after = with_arguments(text, change.stale, change.wanted)
    leaving = created if not change.wanted and boot.beginning is None else None  # another unit's record keeps the file
    steps: tuple[Step, ...] = ()
    if now is not None or change.wanted:
        steps = edit(PATH, now, after, None if by_tool else leaving, (DEBT,) if by_tool else ())
    for path, file in entries.items():
        steps += edit(path, file, entry_with(file.text, change.stale, change.wanted))
    if by_tool:
        steps += _made(boot, change, after, bool(steps))
        if not steps and now and leaving == now.text:
            steps = (remove(PATH, f"remove {PATH}, which held our arguments"),)
    return Work(steps, foreign, created, _rivals([command_line(text), *booted], change))


def _listed(boot: Boot) -> tuple[str, ...]:
    """The command lines inside this system's unified images, where bootctl tells them."""
    said = boot.answers.get(LIST)
    return parse_list(said.out, boot.machine_id) if said and said.rc == 0 else ()


def _made(boot: Boot, change: Change, text: str, changed: bool) -> tuple[Step, ...]:
    """The tool that makes images, or entries that we cannot read, from the file."""
    said = boot.answers.get(LIST)
    listed = _listed(boot)
    differs = any(
        lacking(line, change.wanted) or any(group in groups(words(line)) for group in change.stale) for line in listed
    )
    if not (changed or differs or DEBT in change.owed):
        return ()
    calls = _calls(boot, command_line(text))
    if not calls:
        message = f"{change.unit}: no kernel with its image is under /lib/modules or /boot to make a unified image of"
        return (fail("make the unified kernel images", f"{message}: install one, and run again"),)
    effects: tuple[Effect, ...] = ()
    if said and said.rc == 0:
        effects = (Effect("answers", LIST, predicted_list(said.out, boot.machine_id, change)),)
    argv, action = calls[-1]
    return (*(run(*call) for call in calls[:-1]), run(argv, action, pays=(DEBT,), effects=effects))


def _calls(boot: Boot, line: str) -> list[tuple[tuple[str, ...], str]]:
    tool = boot.loader.tool
    if tool == "proxmox-boot-tool":
        return [((tool, "refresh"), "refresh the boot partitions with proxmox-boot-tool")]
    if tool == "mkinitcpio":
        return [((tool, "-P"), "make the unified kernel images with mkinitcpio")]
    made = []
    for release, image in sorted(boot.kernels.items()):
        argv: tuple[str, ...] = (tool, "add", release, image)
        if tool == "dracut":
            argv = (tool, "--force", "--uefi", "--kver", release, "--kernel-cmdline", line)
        made.append((argv, f"make the unified image of the kernel {release} with {tool}"))
    return made


def _images(said: str, machine_id: str) -> tuple[list[Any], list[dict[str, Any]]]:
    """All that bootctl lists, and of it the unified images of this system."""
    try:
        listed = json.loads(said)
    except ValueError:
        return [], []
    found = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    mine = [
        entry
        for entry in found
        if str(entry.get("type")) == "type2"
        and isinstance(entry.get("options"), str)
        and entry.get("machineId", machine_id) == machine_id
    ]
    return found, mine


def parse_list(said: str, machine_id: str) -> tuple[str, ...]:
    """The command lines inside this system's unified images, as bootctl lists them."""
    return tuple(entry["options"] for entry in _images(said, machine_id)[1])


def predicted_list(said: str, machine_id: str, change: Change) -> str:
    """The list as it will be."""
    found, mine = _images(said, machine_id)
    for entry in mine:
        entry["options"] = edited_lines((entry["options"],), change.stale, change.wanted)[0]
    return json.dumps(found)


def _rivals(lines: list[str], change: Change) -> tuple[str, ...]:
    found = dict.fromkeys(group for line in lines for group in rivals(line, change.wanted) if group not in change.stale)
    return tuple(
        f"{change.unit}: {' '.join(group)} is in {PATH} or a loader entry too and is not ours: "
        "only one of the two counts, so take it out there"
        for group in found
    )
