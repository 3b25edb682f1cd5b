# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd says of a unit, and what lies in /etc, after a verb that decides what the next boot starts.

Where the manager has to know of a mask now, who masks owes a daemon-reload: none comes by itself.
"""

from __future__ import annotations

from ..core.step import Effect, command_line
from .systemd_asks import FOLDER, asks_enabled


def then(verb: str, name: str) -> tuple[Effect, ...]:
    """The effects of enable, disable, mask or unmask; what an unmasked unit is, only systemd can say."""
    question, path = command_line(asks_enabled(name)), f"{FOLDER}/{name}"
    if verb == "mask":  # an empty unit file says the same as a link to /dev/null
        return (Effect("fails", question, "masked\n"), Effect("file", path))
    if verb == "unmask":
        return (Effect("program", question, f"{name} is unmasked"), Effect("gone", path))
    if verb == "disable":
        return (Effect("fails", question, "disabled\n"),)
    return (Effect("answers", question, "enabled\n"),)
