# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A chosen set of driver packages, installed: its pinning package and its module stream first."""

from __future__ import annotations

from ..core.plan import Past, Todo
from ..core.step import Effect
from .module_streams import enable
from .nvidia_packages import MAY_GO, Choice
from .nvidia_pin import pin_branch
from .package_rows import Package
from .packages import is_there, settle_holds
from .packages_install import install, refuse_image
from .packages_seen import Packages, Work

MODULE = "nvidia-driver"  # of dnf


def install_choice(
    todo: Todo,
    now: Packages,
    past: Past,
    choice: Choice,
    *,
    refreshed: str = "",
    hold: bool = False,
    effects: tuple[Effect, ...] = (),
    disruption: str = "none",
    owes: tuple[str, ...] = (),
    pays: tuple[str, ...] = (),
    barrier: bool = False,
) -> Work:
    """Plan the packages of a choice at their versions, held where asked or where nothing else keeps the branch.

    What is installed as chosen stays as it is, whatever stream is enabled.
    `refreshed` is what `packages.refresh` returned; the other arguments are those of `packages_install.install`.
    """
    one, names = choice.set, tuple(want.name for want in choice.wanted if want.version)
    if all(is_there(now, want) for want in choice.wanted):
        settle_holds(todo, now, past, names, hold or one.hold, pays)
        return Work()
    refuse_image(now, [want.name for want in choice.wanted])
    if one.stream and not enable(todo, past, MODULE, one.stream, refreshed):
        return Work(stuck=True)
    pin = pin_branch(todo, now, past, one.first) if one.first else Work()
    if pin.stuck:
        return pin
    if pin.planned:
        now = now._replace(installed={one.first: Package(one.first, "0"), **now.installed})
    return install(
        todo,
        now,
        past,
        choice.wanted,
        hold=hold or one.hold,
        may_go=MAY_GO,
        instead_of=one.rivals,
        effects=effects,
        disruption=disruption,
        owes=owes,
        pays=pays,
        barrier=barrier,
        simulate=not pin.planned,  # what apt would do is known behind the pin
    )
