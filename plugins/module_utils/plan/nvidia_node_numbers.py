# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which numbers a device node of NVIDIA's modules has to have, by its name and by what the kernel says of majors."""

from __future__ import annotations

import re

from .nvidia_nodes import CONTROL, CONTROL_MINOR, GPU_NAMES, MODESET, MODESET_MINOR, UVM_NAME, UVM_NODES, major_of

CAPS_NAME = "nvidia-caps"
# Nodes whose number is in their name, and whose major it is.
NUMBERED = (
    (re.compile(r"/dev/nvidia(\d+)"), GPU_NAMES),
    (re.compile(r"/dev/nvidia-caps/nvidia-cap(\d+)"), (CAPS_NAME,)),
    (re.compile(r"/dev/nvidia-caps-imex-channels/channel(\d+)"), ("nvidia-caps-imex-channels",)),
    (re.compile(r"/dev/nvidia-nvswitch(\d+)"), ("nvidia-nvswitch",)),
)
NAMED = {
    CONTROL: (GPU_NAMES, CONTROL_MINOR),
    MODESET: (GPU_NAMES, MODESET_MINOR),
    **{path: ((UVM_NAME,), minor) for path, minor in UVM_NODES},
    "/dev/nvidia-nvswitchctl": (("nvidia-nvswitch",), 255),
    "/dev/nvidia-nvlink": (("nvidia-nvlink",), 0),
}


def number_of(path: str, majors: dict[str, int]) -> tuple[int, int] | None:
    """A node's major and minor; None for what is no node of ours, or whose module is not loaded."""
    names, minor = NAMED.get(path, ((), -1))
    for pattern, whose in NUMBERED:
        found = pattern.fullmatch(path)
        if found:
            names, minor = whose, int(found.group(1))
    major = major_of(majors, names)
    return None if major is None else (major, minor)
