# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The library of NVIDIA's driver that programs of this host load."""

from __future__ import annotations

from ..core.host import Host
from ..plan.nvidia_driver_version import LIBRARY_FOLDERS, SONAME, by_number, version_in

LINKS = 8  # how many symbolic links one library may go through


def library(host: Host) -> str | None:
    """The version of the libnvidia-ml that programs of this host load, None when there is none.

    The name that programs ask for is a link to a file that carries the version.
    """
    for folder in LIBRARY_FOLDERS:
        soname = f"{folder}/{SONAME}"
        if host.exists(soname):
            return _followed(host, soname) or _newest(host, folder)
    return None


def _followed(host: Host, path: str) -> str | None:
    """The version in the name of the file that a chain of links ends at."""
    for _link in range(LINKS):
        target = host.link(path)
        if target is None:
            return None
        path = target if target.startswith("/") else f"{path.rpartition('/')[0]}/{target}"
        version = version_in(path)
        if version:
            return version
    return None


def _newest(host: Host, folder: str) -> str | None:
    """The newest version that a file's name in the folder carries: where the name without one is no link."""
    versions = [version for version in map(version_in, host.names(folder)) if version]
    return max(versions, key=by_number, default=None)
