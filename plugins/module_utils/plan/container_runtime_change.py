# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a change of a container runtime takes: files of someone else's, the restart of its daemon, what is too old."""

from __future__ import annotations

from ..core.errors import Refused
from .debts import debt as debt_of
from .unit_names import CONTAINER_TOOLKIT as UNIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.plan import Past, Todo
    from ..core.seen import File


def debt(service: str) -> str:
    """The follow-up that a changed configuration owes."""
    return debt_of("restart", service)


def restart(todo: Todo, service: str, due: bool, past: Past) -> None:
    """Plan a restart after a change, or one that a killed pass owes; what does not run is not started."""
    if not due and debt(service) not in past.owed:
        return
    from . import systemd, systemd_asks

    unit = f"{service}.service"
    if past.ask(systemd_asks.asks_active(unit)).rc == 0:
        action = f"restart {service}, which reads its configuration only then"
        todo.add(systemd.control("restart", unit, action, pays=(debt(service),)))


def edit(todo: Todo, path: str, text: str, file: File | None, action: str, owes: tuple[str, ...] = ()) -> None:
    """Plan a change in a file of someone else's, which keeps its mode."""
    from ..core.step import write

    refuse_link(path, file)
    todo.add(write(path, text, action, mode=file.mode if file else 0o644, owes=owes))


def refuse_link(path: str, file: File | None, unit: str = UNIT) -> None:
    """Refuse to write in the place of what is no regular file."""
    if file is not None and not file.regular:
        raise Refused(f"{unit}: {path} is a link or no regular file, and bcd replaces neither: put a file there")


def without_cdi(todo: Todo, runtime: str, since: str, named: bool) -> None:
    """Say that a runtime is too old for CDI: refused where the settings name it, a note else."""
    message = f"this {runtime} has no CDI, which came with {since}"
    if named:
        raise Refused(f"{UNIT}: {message}: install a newer one, or take {runtime} off runtimes")
    todo.note(f"{message}: it is left as it is")
