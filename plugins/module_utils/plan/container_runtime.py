# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the container runtimes have in common: their programs, the runtime named nvidia, and where CDI is read."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RUNTIMES = ("containerd", "docker", "crio", "podman")
PROGRAMS = {"containerd": "containerd", "docker": "dockerd", "crio": "crio", "podman": "podman"}
NVIDIA = "nvidia"  # the runtime's name
BINARY = "/usr/bin/nvidia-container-runtime"
SPEC_FOLDER = "/etc/cdi"


def runs_nvidia(path: Any) -> bool:
    """Whether the path of a runtime's program is NVIDIA's."""
    return isinstance(path, str) and path.rpartition("/")[2] == BINARY.rpartition("/")[2]


def with_spec_folder(folders: Any) -> list[str] | None:
    """The folders with the one that holds our specification; None where it is among them."""
    given = [folder for folder in folders if isinstance(folder, str)] if isinstance(folders, list) else []
    return None if SPEC_FOLDER in given else [*given, SPEC_FOLDER]
