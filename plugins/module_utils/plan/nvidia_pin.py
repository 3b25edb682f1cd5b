# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The package that pins a branch of the driver in apt's preferences.

What it puts there is a configuration file, which dpkg leaves when the package goes: two branches would be pinned.
"""

from __future__ import annotations

import re

from ..core.plan import Past, Todo
from ..core.step import Effect, command_line, run
from .package_rows import asks_dpkg
from .packages import Wanted
from .packages_apt import LOCK
from .packages_install import install
from .packages_seen import Packages, Work

PINS = "nvidia-driver-pinning-*"
ASK = asks_dpkg((PINS,))
ROW = re.compile(r"^[uihrp]([ncHUFWti])[ R]?\|([^|\s]+)\|", re.MULTILINE)
LEFT, UNKNOWN = (
    "c",
    "n",
)  # dpkg's states of a package of which only configuration files are there, and of one that is not


def pin_branch(todo: Todo, now: Packages, past: Past, name: str) -> Work:
    """Plan the package of this name; other branches' go with it, and with them what they leave in the preferences."""
    rows = [row.groups() for row in ROW.finditer(past.ask(ASK).out)]
    others = {other: state for state, other in rows if other != name and state != UNKNOWN}
    mine = f"ii |{name}|0\n"
    left_then = Effect("answers", command_line(ASK), mine + "".join(f"rc |{other}|0\n" for other in others))
    work = install(todo, now, past, (Wanted(name),), may_go=(PINS,), effects=(left_then,), barrier=True)
    # Behind the installation, at whose barrier the runner asks again, those that it takes away are left so too.
    left = [other for other, state in others.items() if work.planned or state == LEFT]
    if work.stuck or not left:
        return work
    done = Effect("answers", command_line(ASK), mine)
    action = f"purge {', '.join(left)}, whose pin stays in apt's preferences when the package goes"
    argv = ("apt-get", "-y", "-q", *LOCK, "purge", *left)
    todo.add(run(argv, action, effects=(done,), barrier=True))
    return Work(planned=True)
