# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has of a worker's packages: one question where nothing is missing (else see `kube_repository`).

A package counts before a program, so that what a step of check mode installs is seen.
"""

from __future__ import annotations

from typing import Any

from ..core.host import Host
from ..core.plan import Past
from ..core.state import parse
from ..plan.kube_packages import (
    CONTAINERD,
    HELD,
    KEY,
    KUBE,
    NAMES,
    OTHER_PROGRAMS,
    REPO,
    SOURCE,
    UNFINISHED,
    Software,
)
from ..plan.kube_seen import Settings
from ..plan.packages_seen import Packages
from ..plan.unit_names import K8S_JOIN as UNIT
from .os_release import distribution
from .packages import packages


def software(host: Host, want: Settings | None, past: Past) -> Software:
    """The snapshot; `want` is None for a removal. The key is fetched where the repository is to be set up."""
    seen = distribution(host)
    shelf = packages(host, NAMES, UNIT) if seen.is_known else Packages("", seen)
    now = Software(
        packages=shelf,
        source=host.file(SOURCE),
        key=host.file(KEY),
        repo=host.file(REPO),
        held=_held(host),
    )
    if want is None:
        return now
    now = now._replace(programs=_programs(host, shelf), runtimes=_runtimes(host, shelf))
    if now.missing or UNFINISHED in past.owed:
        from .kube_repository import tools

        now = now._replace(tools=tools(host, want, now))
    if not now.missing:
        return now
    from .kube_repository import repository

    return repository(host, want, now, past)


def _held(host: Host) -> tuple[str, ...]:
    text = host.read(HELD)
    if text is None:
        return ()
    return tuple(parse(HELD, text, _is_whole, "the holds of kubeadm, kubectl and kubelet then stay")["held"])


def _is_whole(record: dict[str, Any]) -> bool:
    held = record.get("held")
    return isinstance(held, list) and all(isinstance(name, str) for name in held)


def _programs(host: Host, shelf: Packages) -> dict[str, str]:
    """Those of KUBE without a package of the name, with what they say of their versions."""
    paths = {name: host.which(name) for name in KUBE if name not in shelf.installed}
    if not any(paths.values()):
        return {}
    from .kube_programs import version

    return {name: version(host, name, path) for name, path in paths.items() if path}


def _runtimes(host: Host, shelf: Packages) -> tuple[str, ...]:
    """Runtimes by their programs, looked for only where no package of containerd is there."""
    if any(name in shelf.installed for name in CONTAINERD):
        return ()
    return tuple(name for name in ("containerd", *OTHER_PROGRAMS) if host.which(name))
