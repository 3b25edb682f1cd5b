# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What modprobe.d says of modules, in files other than ours."""

from __future__ import annotations

from ..core.errors import Unreadable
from ..core.host import Host
from ..plan.modprobe_lines import PROBE, Rival, parse_modprobe


def _readable(host: Host, path: str) -> str:
    """A file's text; what kmod passes over too, a directory say, has none."""
    try:
        return host.read(path) or ""
    except Unreadable:
        return ""


def modprobe_rivals(host: Host, modules: frozenset[str]) -> tuple[Rival, ...]:
    """What modprobe.d files other than ours say about the modules; a file in /etc hides its namesake below it."""
    paths: dict[str, str] = {}
    for folder in ("/usr/lib/modprobe.d", "/usr/local/lib/modprobe.d", "/run/modprobe.d", "/etc/modprobe.d"):
        paths.update({name: f"{folder}/{name}" for name in host.names(folder) if name.endswith(".conf")})
    found = []
    for _name, path in sorted(paths.items()) if modules else ():
        if path != PROBE:
            found += [line for line in parse_modprobe(path, _readable(host, path)) if line.module in modules]
    return tuple(found)
