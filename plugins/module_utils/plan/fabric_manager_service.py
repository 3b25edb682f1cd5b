# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fabric-manager on a switched board that is not as it should be: packages, service, and the fabric's own word."""

from __future__ import annotations

from ..core.plan import Past, Todo
from ..core.step import Effect, Step, command_line, fail, run
from . import smi
from .fabric_manager import LOAD, PLACED, RESTART, SERVICE, UMAD, Now, load_text
from .files import keep
from .service_seen import Service
from .systemd import control
from .systemd_asks import PACKAGED, asks_active, asks_enabled
from .unit_names import FABRIC_MANAGER as UNIT

SETTLE = 120.0  # seconds in which GPUs join the fabric
DOWN = "FabricManagerDown"


def plan_switched(todo: Todo, now: Now, past: Past) -> None:
    """The packages first, since all stands on them; then the service and the fabric in a lane of their own."""
    if not now.service.runs:
        todo.condition(DOWN, "NotRunning", _down(now))
    if now.driver is None:
        todo.wait("NotReady", f"{UNIT}: the NVIDIA driver is not loaded yet (the unit nvidia-driver)")
        return
    changes = False
    if now.packages is not None:
        from .fabric_manager_packages import Need, keep_packages

        need = Need(now.driver, now.library, bool(now.board.managers), now.service.runs, RESTART, _appears(now.service))
        work = keep_packages(todo, now.packages, past, need, lambda: _users(now))
        if work.stuck:
            return
        changes = work.planned
    if now.board.managers:
        _load_umad(todo, now)
    with todo.lane(SERVICE):
        _plan_service(todo, now, past, changes)


def _down(now: Now) -> str:
    state = "not installed" if now.service.load == "not-found" else now.service.active
    return (
        f"NVLink between the GPUs of this NVSwitch host is down, since nvidia-fabricmanager is {state}: CUDA fails to "
        "start jobs on several GPUs"
    )


def _appears(service: Service) -> tuple[Effect, ...]:
    """What systemd says once the package is there."""
    if service.load != "not-found":
        return ()
    return (
        Effect("file", f"{PACKAGED}/{SERVICE}"),
        Effect("fails", command_line(asks_active(SERVICE)), "inactive\n"),
        Effect("fails", command_line(asks_enabled(SERVICE)), "disabled\n"),
    )


def _users(now: Now) -> str:
    """Who would lose their GPUs' links at a restart, in words; "" for nobody."""
    return "; ".join(now.users)


def _load_umad(todo: Todo, now: Now) -> None:
    """The module at every boot, before Fabric Manager starts, and now."""
    keep(todo, LOAD, load_text(), now.load_file)
    if not now.umad:
        todo.add(
            run(
                ("modprobe", "--", UMAD),
                f"load the module {UMAD}, through which the NVLink switches are managed",
                effects=(Effect("file", f"/sys/module/{UMAD}/refcnt", "0\n"),),
            )
        )


def _plan_service(todo: Todo, now: Now, past: Past, changes: bool) -> None:
    """Enabled, running, restarted where its package changed under it; then the fabric's own word."""
    service = now.service
    if service.is_masked:
        message = f"{SERVICE} is masked: run systemctl unmask {SERVICE} if Fabric Manager is to run here"
        todo.add(fail(f"start {SERVICE}", f"{UNIT}: {message}"))
        return
    if service.enabled != "enabled":
        todo.add(control("enable", SERVICE))
    if not service.runs:
        todo.add(_run("start", "none"))
    elif changes or RESTART in past.owed:
        users = "" if changes else _users(now)  # a package does not change under anyone
        if users:
            todo.wait(
                "Busy",
                f"{UNIT}: Fabric Manager was installed anew under its running service, which is restarted later, since "
                f"{users}",
            )
            return
        todo.add(_run("restart", "gpu"))
    else:
        _plan_fabric(todo, now)


def _run(verb: str, disruption: str) -> Step:
    joins = Effect("program", smi.query_line(smi.FABRIC), "Fabric Manager has started")
    return control(verb, SERVICE, disruption=disruption, pays=(RESTART,), barrier=True, settle=SETTLE, effects=(joins,))


def _plan_fabric(todo: Todo, now: Now) -> None:
    """Wait for the GPUs that have not joined the fabric, or fail to tell; those that have none count not."""
    apart = [f"{uuid} ({state}, {status})" for uuid, state, status in now.fabric if (state, status) not in PLACED]
    if not apart:
        return
    todo.condition(DOWN, "NotRunning", f"Fabric Manager runs, and the fabric is not up: {', '.join(apart)}")
    todo.wait(
        "NotReady",
        f"{UNIT}: these GPUs have not joined the NVLink fabric: {', '.join(apart)}: if it stays so, see journalctl -u "
        f"{SERVICE}",
    )
