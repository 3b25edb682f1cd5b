# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel parameters as /proc/sys shows them, and the files that set them at a boot."""

from __future__ import annotations

from collections.abc import Collection

from ..core.errors import NotKnownYet, Unreadable
from ..core.host import Host
from ..plan.kernel_parameters import Live, Rival, parse_file

# A file hides those of its name in the directories after it; then names decide the order.
DIRECTORIES = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d")
PLAIN_FILE = "/etc/sysctl.conf"


def live(host: Host, path: str) -> Live | None:
    """A parameter's value, None when this kernel lacks it; a fault of one parameter is its own."""
    try:
        text = host.read(path)
    except Unreadable as fault:
        return Live(None) if fault.denied else Live(None, fault.message)
    return None if text is None else Live(text)


def rivals(host: Host, paths: Collection[str], ours: str) -> tuple[Rival, ...]:
    """The files that are read after `ours` and set one of the paths, in the order in which they are read."""
    files = {}
    for directory in reversed(DIRECTORIES):
        for name in host.names(directory):
            if name.endswith(".conf") and name > ours.rpartition("/")[2]:
                files[name] = f"{directory}/{name}"
    ordered = [files[name] for name in sorted(files)]
    # Debian links it into sysctl.d, where systemd reads it; procps reads it by itself, last of all.
    if not any((host.link(file) or "").rpartition("/")[2] == "sysctl.conf" for file in ordered):
        ordered.append(PLAIN_FILE)
    found = (_rival(host, file, paths) for file in ordered)
    return tuple(rival for rival in found if rival is not None)


def _rival(host: Host, file: str, paths: Collection[str]) -> Rival | None:
    try:
        values = parse_file(host.read(file) or "")
    except (Unreadable, NotKnownYet):
        return Rival(file, None)
    ours = {path: value for path, value in values.items() if path in paths}
    return Rival(file, ours) if ours else None
