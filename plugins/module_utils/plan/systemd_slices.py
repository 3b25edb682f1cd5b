# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemctl's command lines for slices and their properties, which a host without holds does not import."""

from __future__ import annotations


def asks_slices(pattern: str) -> tuple[str, ...]:
    """The question for the active slices whose names fit the pattern, a line each."""
    return ("systemctl", "list-units", "--type=slice", "--state=active", "--plain", "--no-legend", pattern)


def sets_until_boot(name: str, properties: tuple[str, ...]) -> tuple[str, ...]:
    """Sets properties of a unit that runs, such as "MemoryMax=1G", until the next boot."""
    return ("systemctl", "set-property", "--runtime", name, *properties)


def reverts(name: str) -> tuple[str, ...]:
    """Removes what was set of a unit, without the daemon-reload that systemctl would add."""
    return ("systemctl", "--no-reload", "revert", name)
