# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container runtimes of this host."""

from __future__ import annotations

from ..plan.container_runtime import PROGRAMS, RUNTIMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.host import Host


def programs(host: Host) -> dict[str, str]:
    """The path of each installed runtime's program, by name: containerd, docker, crio, podman."""
    return {name: path for name in RUNTIMES if (path := host.which(PROGRAMS[name])) is not None}


def installed(host: Host) -> tuple[str, ...]:
    """The names of the runtimes whose program is there."""
    return tuple(programs(host))


def versions(host: Host) -> dict[str, str]:
    """The version of each installed runtime, "" where it does not say one; a program each is asked."""
    from ..plan.program_version import version_in

    return {name: version_in(host.ask((PROGRAMS[name], "--version")).out) for name in installed(host)}
