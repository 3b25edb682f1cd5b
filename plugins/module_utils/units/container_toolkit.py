# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit container-toolkit."""

from __future__ import annotations

from ..core.plan import Unit
from ..core.unknown import later
from ..plan import container_toolkit as planner
from ..plan.container_devices import RULE
from ..plan.container_toolkit_config import CONFIG, ENVIRONMENT, Kept
from ..plan.unit_names import CONTAINER_TOOLKIT as NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..core.host import Host
    from ..core.plan import Past


def look(host: Host, settings: planner.Settings | None, past: Past) -> planner.Now:
    """The toolkit, the runtimes that the settings are about, and what the vendor's specification depends on."""
    there = settings is None or host.exists(planner.PROGRAM) or host.which("nvidia-ctk") is not None
    packages = None
    if not there or planner.INSTALL in past.owed:
        from ..look.packages import packages as packages_of
        from ..plan.nvidia_names import TOOLKIT

        packages = packages_of(host, TOOLKIT, NAME)
    if settings is None:
        return planner.Now(there, packages, _changing(host))
    if not there:
        return planner.Now(there, packages, {})
    from ..look.container_toolkit import described, refresh_installed, unlinked

    programs = _programs(host, settings)
    now = planner.Now(
        True,
        packages,
        _runtimes(host, programs),
        rule=host.file(RULE),
        unlinked=later(unlinked, host),
        programs=programs,
    )
    if not settings.cdi:
        return now
    return now._replace(
        config=later(_kept, host, CONFIG),
        refresh=later(refresh_installed, host),
        environment=later(_kept, host, ENVIRONMENT),
        described=later(described, host),
    )


def _programs(host: Host, settings: planner.Settings) -> dict[str, str]:
    """Those of the installed runtimes that the settings are about."""
    from ..look.containers import programs

    found = programs(host)
    return {name: path for name, path in found.items() if settings.runtimes is None or name in settings.runtimes}


def _runtimes(host: Host, names: Iterable[str]) -> dict[str, Any]:
    looks = {"containerd": _containerd, "docker": _docker, "crio": _crio}
    return {name: later(looks[name], host) if name in looks else None for name in names}


def _containerd(host: Host) -> Any:
    from ..look.containerd import containerd_files

    return containerd_files(host, daemon=False)


def _docker(host: Host) -> Any:
    from ..look.container_files import docker_files

    return docker_files(host)


def _crio(host: Host) -> Any:
    from ..look.container_files import crio_files

    return crio_files(host)


def _changing(host: Host) -> dict[str, Any]:
    """containerd, where a change of its files is not through."""
    from ..plan.containerd_seen import RECORD

    return {"containerd": later(_containerd, host)} if host.exists(RECORD) else {}


def _kept(host: Host, path: str) -> Kept:
    return Kept(host.file(path), host.read(path) or "")


UNIT = Unit(NAME, planner.FIELDS, planner.check, look, planner.plan, planner.absent)
