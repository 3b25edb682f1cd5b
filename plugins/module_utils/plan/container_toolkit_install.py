# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages of NVIDIA's container toolkit. Imported only where one is missing, or a killed pass left one half."""

from __future__ import annotations

from ..core.errors import StepFailed
from ..core.step import Effect
from .container_toolkit import INSTALL, PROGRAM
from .container_toolkit_config import CONFIG, ENVIRONMENT, SERVICE, UNIT_FOLDERS
from .nvidia_names import TOOLKIT
from .packages import Wanted, is_there
from .packages_index import not_offered, offers, refresh
from .packages_install import install as install_packages
from .unit_names import CONTAINER_TOOLKIT as UNIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.plan import Past, Todo
    from .packages_seen import Packages

INSTALLED = "nvidia-container-toolkit is installed"  # a clause


def is_whole(packages: Packages) -> bool:
    """Whether all of the toolkit is installed and configured."""
    return all(is_there(packages, Wanted(name)) for name in TOOLKIT)


def finish_install(todo: Todo, packages: Packages, past: Past) -> None:
    """Have what was unpacked configured."""
    half = tuple(Wanted(name) for name, package in packages.installed.items() if not package.whole)
    if half:
        install_packages(todo, packages, past, half, pays=(INSTALL,))


def install(todo: Todo, packages: Packages, past: Past) -> None:
    """All that is missing of the toolkit; what is half configured needs no index."""
    absent = tuple(name for name in TOOLKIT if name not in packages.installed)
    refreshed = refresh(todo, packages, past) if absent else ""
    offered = {offer.name for offer in offers(packages, past, absent)} if absent else set()
    missing = [name for name in absent if name not in offered]
    if missing:
        not_offered(
            todo,
            f"install {', '.join(TOOLKIT)}",
            f"no repository of this host offers {', '.join(missing)}: add the repository of NVIDIA's toolkit, "
            "and run again",
            refreshed,
        )
        return
    brings = [CONFIG, ENVIRONMENT, *(f"{folder}/{SERVICE}" for folder in UNIT_FOLDERS)]
    effects = (
        Effect("file", PROGRAM),
        Effect("program", "nvidia-ctk", INSTALLED),
        *(Effect("appears", path, INSTALLED) for path in brings),
    )
    if is_whole(packages):
        raise StepFailed(f"{UNIT}: {', '.join(TOOLKIT)} is installed, and {PROGRAM} is not there: install it again")
    wanted = tuple(Wanted(name) for name in TOOLKIT)
    install_packages(todo, packages, past, wanted, effects=effects, owes=(INSTALL,), pays=(INSTALL,))
