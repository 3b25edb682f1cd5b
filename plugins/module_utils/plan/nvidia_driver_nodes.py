# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The device nodes that a loaded driver needs."""

from __future__ import annotations

from typing import NamedTuple

from .nvidia_nodes import CONTROL, CONTROL_MINOR, GPU_NAMES, MODESET, MODESET_MINOR, UVM_NAME, UVM_NODES, major_of


class Node(NamedTuple):
    """A device node that the driver's programs need."""

    path: str
    major: int
    minor: int


class Permissions(NamedTuple):
    """Who may open the nodes, by the driver's own parameters."""

    mode: int = 0o666
    uid: int = 0
    gid: int = 0


class Nodes(NamedTuple):
    """The nodes that are missing, whether NVIDIA's program makes them, and how; None: that is left to others."""

    missing: tuple[Node, ...] = ()
    nvidia_modprobe: bool = False
    permissions: Permissions | None = Permissions()


def needed(majors: dict[str, int], minors: tuple[int, ...], modeset: bool = False) -> tuple[Node, ...]:
    """The nodes that a loaded driver needs: its own, one a GPU, and those of unified memory, which CUDA asks for.

    `modeset`: the module nvidia_modeset is loaded too, and has one of its own.
    """
    found = []
    major = major_of(majors, GPU_NAMES)
    if major is not None:
        found = [Node(CONTROL, major, CONTROL_MINOR), *(Node(f"/dev/nvidia{minor}", major, minor) for minor in minors)]
        found += [Node(MODESET, major, MODESET_MINOR)] if modeset else []
    if UVM_NAME in majors:
        found += [Node(path, majors[UVM_NAME], minor) for path, minor in UVM_NODES]
    return tuple(found)
