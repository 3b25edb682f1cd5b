# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""container-toolkit where the section names it no more: nothing is taken away, and what is half done is finished."""

from __future__ import annotations

from ..core.plan import Plan, Todo
from .container_devices import RULE
from .container_runtime_change import debt, restart
from .container_toolkit_config import CONFIG, OUTPUT
from .unit_names import CONTAINER_TOOLKIT as UNIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..core.plan import Past
    from .container_toolkit import Now

SERVICES = {"containerd": "containerd", "docker": "docker", "crio": "crio"}  # podman runs no service


def plan(now: Now, past: Past) -> Plan:
    """Nothing is undone; a restart that a killed pass owes is made, and what it left half installed is finished."""
    todo = Todo()
    if now.packages is not None:
        from .container_toolkit_install import finish_install

        finish_install(todo, now.packages, past)
    for name, service in SERVICES.items():
        with todo.lane(name):
            if name in now.runtimes:
                _finish_change(todo, now.runtimes[name], past)
            elif debt(service) in past.owed:
                restart(todo, service, True, past)
    todo.note(
        "nvidia-container-toolkit stays installed, and the runtimes configured with it",
        f"{OUTPUT}, {RULE} and the settings in {CONFIG} stay as they are",
    )
    return todo.plan()


def _finish_change(todo: Todo, seen: Any, past: Past) -> None:
    """See a change of containerd's files through that a killed pass left."""
    from .containerd_drop_in import finish, go_on

    if go_on(todo, UNIT, seen, past):
        finish(todo, UNIT, seen, past)
