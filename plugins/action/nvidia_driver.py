# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action nvidia_driver: the module of that name, by way of the program bcd (see plugin_utils)."""

from __future__ import annotations

from ..modules.nvidia_driver import OPTIONS
from ..plugin_utils.through_program import ThroughProgram


class ActionModule(ThroughProgram):
    """Its options."""

    MODULE = "nvidia_driver"
    OPTIONS = OPTIONS
