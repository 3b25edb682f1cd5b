# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fabric-manager: NVIDIA's Fabric Manager at the loaded driver's exact version, running, and the fabric up.

A service that runs proves nothing: from Hopper on each GPU says whether it has joined the fabric.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.errors import Refused
from ..core.plan import Field, Past, Plan, Todo
from ..core.step import File
from ..core.unknown import is_known
from .debts import debt
from .service_seen import Service
from .unit_names import FABRIC_MANAGER as UNIT

if TYPE_CHECKING:  # a host without NVSwitches does without
    from .packages_seen import Packages

FIELDS: tuple[Field, ...] = ()
SERVICE = "nvidia-fabricmanager.service"
UMAD = "ib_umad"  # Fabric Manager speaks to the switches of NVLink 5 through it
LOAD = "/etc/modules-load.d/bcd-fabric-manager.conf"
RESTART = debt("restart", "nvidia-fabricmanager")  # the debt of a package that changed under a running service
RACKS = frozenset(("GB200", "GB300"))
PLACED = (("Completed", "Success"), (None, None))  # joined; without a fabric of its own, as before Hopper


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


class Joined(NamedTuple):
    """A GPU's place in the fabric; None where it has none or does not say, as before Hopper."""

    uuid: str
    state: str | None
    status: str | None


class Now(NamedTuple):
    """What the host shows; the rest is looked at where the board needs a Fabric Manager.

    `driver` is the loaded driver's full version, `library` that of its library on the disk. `packages` is looked at
    where those that are installed are not as needed. `fabric` may be a value that raises when it is used. `umad`: the
    module is there. `users`, which may raise too, are clauses on who uses the GPUs, looked at where the service that
    runs may have to restart.
    """

    board: Board = Board()
    driver: str | None = None
    library: str | None = None
    packages: Packages | None = None
    service: Service = Service()
    fabric: tuple[Joined, ...] = ()
    users: tuple[str, ...] = ()
    umad: bool = False
    load_file: File | None = None


def check(given: Mapping[str, Any]) -> Settings:
    """There is nothing to set; raises Refused for any key."""
    if given:
        raise Refused(f"{UNIT} takes no settings, and got {', '.join(sorted(given))}: take them out")
    return Settings()


def plan(_settings: Settings, now: Now, past: Past) -> Plan:
    """What a switched board needs; nothing for any other host."""
    todo = Todo()
    racks = now.board.racks
    if racks:
        todo.note(
            f"the NVLink switches of a {' and '.join(racks)} rack are managed from outside the host: Fabric Manager is "
            "not installed here, and nvidia-imex is left as it is"
        )
    if not now.board.is_switched or _is_up(now, past):
        return todo.plan()
    from .fabric_manager_service import plan_switched

    plan_switched(todo, now, past)
    return todo.plan()


def _is_up(now: Now, past: Past) -> bool:
    """Whether all is as it should be: the packages, the service now and at each boot, and the fabric."""
    service = now.service
    if now.driver is None or now.packages is not None or RESTART in past.owed:
        return False
    if not service.runs or service.enabled != "enabled":
        return False
    if now.board.managers:
        from .files import is_as

        if not (now.umad and is_as(now.load_file, load_text())):
            return False
    return is_known(now.fabric) and all((one.state, one.status) in PLACED for one in now.fabric)


def load_text() -> str:
    """modules-load.d: the module, before Fabric Manager starts."""
    from .files import HEADER

    return f"{HEADER}{UMAD}\n"


def absent(_now: Now, _past: Past) -> Plan:
    """Nothing goes: the GPUs that are in use need it."""
    todo = Todo()
    todo.note("Fabric Manager, where it is installed, keeps running, and its package stays held")
    return todo.plan()
