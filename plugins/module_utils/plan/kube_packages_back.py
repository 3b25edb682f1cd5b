# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes of a worker's packages when the machine is handed back: our repository, its key and our holds."""

from __future__ import annotations

from ..core.plan import Past, Todo
from ..core.step import remove
from .files import drop
from .kube_packages import CONTAINERD, HELD, KEY, KUBE, REPO, SOURCE, Software
from .unit_names import K8S_JOIN as UNIT


def absent(todo: Todo, now: Software, past: Past) -> None:
    """Plan that our repository, its key and our holds go; the packages stay, which is noted."""
    if now.held and now.packages.manager:
        from .packages_install import release

        release(todo, now.packages, now.held)
    if now.held:
        todo.add(remove(HELD, f"remove {HELD}"))
    for path, file in ((SOURCE, now.source), (KEY, now.key), (REPO, now.repo)):
        drop(todo, path, file)
    stay = [name for name in (*KUBE, *CONTAINERD) if name in now.packages.installed]
    if stay:
        todo.note(f"{UNIT}: the packages {', '.join(stay)} stay installed: remove them by hand if nothing needs them")
