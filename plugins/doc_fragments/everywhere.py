# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What modules that are no units document of the options that every module takes."""

from __future__ import annotations


class ModuleDocFragment:
    """The options of the action group C(all), where they mean nothing."""

    DOCUMENTATION = r"""
options:
  max_disruption:
    description: Accepted, so that defaults for the action group C(all) fit; it means nothing here.
    type: str
    choices: [none, service, gpu]
    default: gpu
  signed_spec:
    description: Accepted, so that defaults for the action group C(all) fit; it means nothing here.
    type: dict
"""
