# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps huge pages over a boot: a service that sets the pools early, and the mount of the 1 GiB pages.

The service runs the shell alone, so that it works without Ansible or Python, and stays when the unit leaves the
settings. It carries the transparent policy too: a boot argument would take a reboot to come and another to go.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..core.plan import Todo
from ..core.step import Effect, File, run
from . import pages
from .files import HEADER
from .pages import SIZES, Wanted
from .systemd_seen import UnitFile

SERVICE = "bcd-hugepages.service"
MOUNT = "dev-hugepages1G.mount"
WANTED_BY = "sysinit.target"
POINT = "/dev/hugepages1G"
MOUNTS = "/proc/mounts"
KIND = "hugetlbfs"
SHOWN = f"{KIND} {POINT} {KIND} rw,relatime,pagesize=1024M 0 0\n"
TRANSPARENT = "transparent_hugepage"

# A line of our own service: a count or a policy, and the kernel file that it goes to. Nothing else is taken over.
LINE = re.compile(
    r"ExecStart=-/bin/sh -c 'echo (?:\d+|always|madvise|never) >"
    r"(/sys/(?:kernel/mm/hugepages/|devices/system/node/node\d+/hugepages/)(hugepages-\d+kB)/nr_hugepages"
    rf"|/sys/kernel/mm/({TRANSPARENT})/enabled)'"
)

MOUNT_TEXT = (
    HEADER
    + f"""\
[Unit]
Description=Huge pages of 1 GiB
DefaultDependencies=no
Before=sysinit.target

[Mount]
What={KIND}
Where={POINT}
Type={KIND}
Options=pagesize=1G

[Install]
WantedBy={WANTED_BY}
"""
)


class Mount(NamedTuple):
    """What /proc/mounts shows at /dev/hugepages1G ("" for nothing), and whether it is ours in kind.

    `text` is the whole of it, seen only where the mount is to come or to go.
    """

    shown: str = ""
    right: bool = False
    text: str = ""


def parse_mount(line: str) -> Mount:
    """A line of /proc/mounts, "" for none; the kernel shows 1 GiB as 1024M."""
    fields = line.split(" ")
    return Mount(line, bool(line) and fields[2] == KIND and "pagesize=1024M" in fields[3].split(","))


# -- the service


def lines(wanted: Wanted, policy: str, now: File | None) -> tuple[str, ...]:
    """The service's commands: the larger pages first. What is not managed keeps the commands that it had.

    No pages at all need none; beside other nodes' pages a node's 0 is set, since the boot loader spreads its total.
    """
    kept = _parse(now.text if now is not None and now.regular else "")
    found: list[str] = []
    for size in SIZES:
        by_node = wanted.get(size)
        if by_node is None:
            found += kept.get(size.folder, ())
        elif any(by_node.values()):
            found += [_echo(str(count), pages.count_file(size, node)) for node, count in by_node.items()]
    if policy:
        found.append(_echo(policy, f"/sys/kernel/mm/{TRANSPARENT}/enabled"))
    else:
        found += kept.get(TRANSPARENT, ())
    return tuple(found)


def _echo(value: str, path: str) -> str:
    """A command that may fail without keeping the others from their turn."""
    return f"ExecStart=-/bin/sh -c 'echo {value} >{path}'"


def _parse(text: str) -> dict[str, list[str]]:
    """Our commands in a service's text, by what they set."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        match = LINE.fullmatch(line)
        if match:
            found.setdefault(match.group(2) or match.group(3), []).append(line)
    return found


def render_service(commands: tuple[str, ...]) -> str:
    """The service: once, before anything that could take the memory, and after what sets vm.nr_hugepages."""
    return HEADER + "\n".join(
        (
            "[Unit]",
            "Description=Pools of huge pages",
            "DefaultDependencies=no",
            "After=systemd-modules-load.service systemd-sysctl.service",
            f"Before={WANTED_BY}",
            "",
            "[Service]",
            "Type=oneshot",
            *commands,
            "",
            "[Install]",
            f"WantedBy={WANTED_BY}",
            "",
        )
    )


def keep_service(todo: Todo, seen: UnitFile, commands: tuple[str, ...]) -> bool:
    """Plan the service, or its removal where nothing is left for it; whether a daemon-reload has to follow."""
    text = render_service(commands) if commands else ""
    if seen.is_kept(text) if text else _is_gone(seen):
        return False
    from . import systemd

    return systemd.keep_unit(todo, seen, text) if text else systemd.drop_unit(todo, seen)


def _is_gone(seen: UnitFile) -> bool:
    return seen.file is None and not seen.enabled


# -- the mount


def keep_mount(todo: Todo, seen: UnitFile, now: Mount, wanted: bool, in_use: bool) -> bool:
    """Plan the mount unit, or, where no 1 GiB pages are wanted, the end of ours; whether a daemon-reload has to follow.

    A mount whose pages are in use is not pulled: it goes in the pass after the last of them was given back.
    """
    if seen.is_kept(MOUNT_TEXT) if wanted else _is_gone(seen):
        return False
    from . import systemd

    if wanted:
        return systemd.keep_unit(todo, seen, MOUNT_TEXT)
    ours = seen.file is not None and seen.file.text.startswith(HEADER)
    if in_use or not (ours or seen.file is None):
        return False
    if ours and now.right:
        rest = "".join(f"{line}\n" for line in now.text.splitlines() if line != now.shown)
        todo.add(systemd.control("stop", MOUNT, effects=(Effect("file", MOUNTS, rest),)))
    return systemd.drop_unit(todo, seen)


def start_mount(todo: Todo, now: Mount) -> None:
    """Plan the start of the mount when it is not there."""
    if _free_for_us(todo, now):
        from . import systemd

        todo.add(systemd.control("start", MOUNT, effects=(Effect("file", MOUNTS, now.text + SHOWN),)))


def mount_by_hand(todo: Todo, now: Mount) -> None:
    """Plan the mount on a host without systemd, which needs it again after each boot."""
    if not _free_for_us(todo, now):
        return
    todo.add(run(("mkdir", "-p", POINT), f"make the directory {POINT} if it is not there"))
    argv = ("mount", "-t", KIND, "-o", "pagesize=1G", KIND, POINT)
    todo.add(run(argv, f"mount the 1 GiB pages at {POINT}", effects=(Effect("file", MOUNTS, now.text + SHOWN),)))


def _free_for_us(todo: Todo, now: Mount) -> bool:
    if now.shown and not now.right:
        todo.wait("NotReady", f"hugepages: {POINT} has another mount than one of 1 GiB pages ({now.shown}): unmount it")
    return not now.shown
