# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that Docker and CRI-O read; containerd's are in `containerd`."""

from __future__ import annotations

from ..plan import crio, docker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.host import Host


def docker_files(host: Host) -> docker.Docker:
    """Docker's configuration."""
    return docker.Docker(host.file(docker.CONFIG), host.read(docker.CONFIG) or "")


def crio_files(host: Host) -> crio.Crio:
    """CRI-O's configuration: its file, then its drop-ins by name."""
    paths = [crio.CONFIG, *(f"{crio.FOLDER}/{name}" for name in host.names(crio.FOLDER))]
    texts = [(path, host.read(path)) for path in paths if path != crio.PATH]
    return crio.Crio(tuple((path, text) for path, text in texts if text is not None), host.file(crio.PATH))
