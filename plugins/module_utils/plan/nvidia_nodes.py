# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The device nodes of NVIDIA's modules, and their numbers: a name and what the kernel says of majors tell them."""

from __future__ import annotations

CONTROL, CONTROL_MINOR = "/dev/nvidiactl", 255
MODESET, MODESET_MINOR = "/dev/nvidia-modeset", 254  # without it containers have no Vulkan
UVM_NODES = (("/dev/nvidia-uvm", 0), ("/dev/nvidia-uvm-tools", 1))
GPU_NAMES = ("nvidia", "nvidia-frontend", "nvidiactl")  # of the major, by the driver's age
UVM_NAME = "nvidia-uvm"


def parse_majors(text: str) -> dict[str, int]:
    """/proc/devices: character devices, `195 nvidia` a line, up to the block devices."""
    lines = [line.split() for line in text.partition("Block")[0].splitlines()]
    return {line[1]: int(line[0]) for line in lines if len(line) == 2 and line[0].isdecimal()}


def major_of(majors: dict[str, int], names: tuple[str, ...]) -> int | None:
    """The major of the first of the names that the kernel knows."""
    return next((majors[name] for name in names if name in majors), None)
