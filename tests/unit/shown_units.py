# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`systemctl show` of several units, for hosts in memory that tell the state of one."""

from __future__ import annotations

from collections.abc import Callable

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer


def shown_units(
    argv: tuple[str, ...], state: Callable[[str], str], behind: Callable[[str], bool] = lambda name: False
) -> Answer:
    """As systemctl(1) prints properties: a line each, `Name=value`, and an empty line between two units."""
    (wanted,) = (word.partition("=")[2].split(",") for word in argv if word.startswith("--property="))
    assert set(wanted) <= {"ActiveState", "NeedDaemonReload"}, argv
    blocks = []
    for name in argv[argv.index("--") + 1 :]:
        known = {"ActiveState": state(name), "NeedDaemonReload": "yes" if behind(name) else "no"}
        blocks.append("".join(f"{key}={known[key]}\n" for key in wanted))
    return Answer(0, "\n".join(blocks))
