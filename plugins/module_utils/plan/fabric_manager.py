# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fabric-manager: NVIDIA's Fabric Manager at the loaded driver's exact version, running, and the fabric up.

A service that runs proves nothing: from Hopper on each GPU says whether it has joined the fabric.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.errors import NotReady, Refused, StepFailed
from ..core.plan import Field, Past, Plan, Todo
from ..core.step import Effect, File, Step, fail, run
from . import smi
from .files import HEADER, keep

if TYPE_CHECKING:  # a host without NVSwitches does without
    from .gpu import App
    from .packages import Packages

UNIT = "fabric-manager"
FIELDS: tuple[Field, ...] = ()
SERVICE = "nvidia-fabricmanager.service"
SHOW = ("systemctl", "show", SERVICE, "--property=LoadState,ActiveState,UnitFileState")
UMAD = "ib_umad"  # Fabric Manager speaks to the switches of NVLink 5 through it
LOAD = "/etc/modules-load.d/bcd-fabric-manager.conf"
RESTART = "restart nvidia-fabricmanager"  # the debt of a package that changed under a running service
SETTLE = 120.0  # seconds in which GPUs join the fabric
DOWN = "FabricManagerDown"
RACKS = frozenset(("GB200", "GB300"))
JOINED = ("Completed", "Success")


class Settings(NamedTuple):
    """There are none."""


class Board(NamedTuple):
    """What connects the GPUs. `switches` are NVSwitches by PCI address, `managers` the InfiniBand devices through which
    the switches of NVLink 5 are managed, `products` the GPUs' product names where the driver is loaded."""

    switches: tuple[str, ...] = ()
    managers: tuple[str, ...] = ()
    products: tuple[str, ...] = ()

    @property
    def racks(self) -> tuple[str, ...]:
        """Products of racks whose switches are managed from outside; whole words, since GH200 is no H200."""
        words = (set(name.replace("-", " ").split()) for name in self.products)
        return tuple(sorted(RACKS & set().union(*words)))

    @property
    def is_switched(self) -> bool:
        """Whether this host's GPUs need a Fabric Manager of its own."""
        return bool(self.switches or self.managers) and not self.racks


class Service(NamedTuple):
    """What systemd says of the service: LoadState, ActiveState and UnitFileState."""

    load: str = "not-found"
    active: str = "inactive"
    file: str = ""

    @property
    def runs(self) -> bool:
        """Whether it is up."""
        return self.active == "active"


class Joined(NamedTuple):
    """A GPU's place in the fabric; None where it has none or does not say, as before Hopper."""

    uuid: str
    state: str | None
    status: str | None


class Now(NamedTuple):
    """What the host shows; the rest is looked at where the board needs a Fabric Manager.

    `driver` is the loaded driver's full version, `library` that of its library on the disk. `fabric` may be a value
    that raises when it is used. `holds` are the allocations that have GPUs here. `umad`: the module is there. `apps`,
    which may raise too, are the processes that compute, looked at where the service that runs may have to restart.
    """

    board: Board = Board()
    driver: str | None = None
    library: str | None = None
    packages: Packages | None = None
    service: Service = Service()
    fabric: tuple[Joined, ...] = ()
    holds: tuple[str, ...] = ()
    apps: tuple[App, ...] = ()
    umad: bool = False
    load_file: File | None = None


def check(given: Mapping[str, Any]) -> Settings:
    """There is nothing to set; raises Refused for any key."""
    if given:
        raise Refused(f"{UNIT} takes no settings, and got {', '.join(sorted(given))}: take them out")
    return Settings()


def parse_service(text: str) -> Service:
    """`systemctl show`: `Name=value` a line."""
    given = dict(line.partition("=")[::2] for line in text.splitlines())
    return Service(given.get("LoadState", "not-found"), given.get("ActiveState", ""), given.get("UnitFileState", ""))


def plan(_settings: Settings, now: Now, past: Past) -> Plan:
    """The packages first, since all stands on them; then the service and the fabric in a lane of their own."""
    todo = Todo()
    racks = now.board.racks
    if racks:
        todo.note(
            f"the NVLink switches of a {' and '.join(racks)} rack are managed from outside the host: Fabric Manager is "
            "not installed here, and nvidia-imex is left as it is"
        )
    if not now.board.is_switched:
        return todo.plan()
    if not now.service.runs:
        todo.condition(DOWN, "NotRunning", _down(now))
    if now.driver is None or now.packages is None:
        todo.wait("NotReady", f"{UNIT}: the NVIDIA driver is not loaded yet (the unit nvidia-driver)")
        return todo.plan()
    from .fabric_manager_packages import Need, keep_packages

    need = Need(now.driver, now.library, bool(now.board.managers), now.service.runs, RESTART, _appears(now.service))
    changes = keep_packages(todo, now.packages, past, need, lambda: _users(now))
    if changes is None:
        return todo.plan()
    if now.board.managers:
        _load_umad(todo, now)
    with todo.lane(SERVICE):
        _plan_service(todo, now, past, changes)
    return todo.plan()


def absent(_now: Now, _past: Past) -> Plan:
    """Nothing goes: the GPUs that are in use need it."""
    todo = Todo()
    todo.note("Fabric Manager, where it is installed, keeps running, and its package stays held")
    return todo.plan()


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
    return (_shows(Service("loaded", "inactive", "disabled")),)


def _shows(service: Service) -> Effect:
    text = f"LoadState={service.load}\nActiveState={service.active}\nUnitFileState={service.file}\n"
    return Effect("answers", " ".join(SHOW), text)


def _users(now: Now) -> str:
    """Who would lose their GPUs' links at a restart: live holds and computing processes; "" for nobody."""
    if now.holds:
        return f"the allocations {', '.join(now.holds)} hold GPUs"
    try:
        pids = [str(app.pid) for app in now.apps]
    except (NotReady, StepFailed) as fault:
        return f"nvidia-smi does not say who computes ({fault.message})"
    return f"processes compute on GPUs ({', '.join(pids)})" if pids else ""


def _load_umad(todo: Todo, now: Now) -> None:
    """The module at every boot, before Fabric Manager starts, and now."""
    keep(todo, LOAD, f"{HEADER}{UMAD}\n", now.load_file)
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
    if service.file == "masked":
        message = f"{SERVICE} is masked: run systemctl unmask {SERVICE} if Fabric Manager is to run here"
        todo.add(fail(f"start {SERVICE}", f"{UNIT}: {message}"))
        return
    up = Service("loaded", "active", "enabled")
    started = (_shows(up), Effect("program", smi.query_line(smi.FABRIC), "Fabric Manager has started"))
    if service.file != "enabled":
        todo.add(
            run(
                ("systemctl", "enable", "--no-reload", SERVICE),
                f"enable {SERVICE}",
                effects=(_shows(Service("loaded", service.active if service.runs else "inactive", "enabled")),),
            )
        )
    if not service.runs:
        todo.add(_run("start", started))
    elif changes or RESTART in past.owed:
        users = "" if changes else _users(now)  # a package does not change under anyone
        if users:
            todo.wait(
                "Busy",
                f"{UNIT}: Fabric Manager was installed anew under its running service, which is restarted later, since "
                f"{users}",
            )
            return
        todo.add(_run("restart", started)._replace(disruption="gpu"))
    else:
        _plan_fabric(todo, now)


def _run(verb: str, effects: tuple[Effect, ...]) -> Step:
    return run(
        ("systemctl", verb, SERVICE),
        f"{verb} {SERVICE}",
        effects=effects,
        pays=(RESTART,),
        barrier=True,
        settle=SETTLE,
    )


def _plan_fabric(todo: Todo, now: Now) -> None:
    """Wait for the GPUs that have not joined the fabric; those that say nothing of one, as before Hopper, count not."""
    apart = [f"{uuid} ({state}, {status})" for uuid, state, status in now.fabric if state and (state, status) != JOINED]
    if not apart:
        return
    todo.condition(DOWN, "NotRunning", f"Fabric Manager runs, and the fabric is not up: {', '.join(apart)}")
    todo.wait(
        "NotReady",
        f"{UNIT}: these GPUs have not joined the NVLink fabric: {', '.join(apart)}: if it stays so, see journalctl -u "
        f"{SERVICE}",
    )
