# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of a worker that are of other versions than they should be."""

from __future__ import annotations

from ..core.errors import Refused
from ..core.plan import Todo
from .kube_packages import Software, minor_of
from .kube_seen import Settings
from .unit_names import K8S_JOIN as UNIT


def check_versions(todo: Todo, want: Settings, now: Software) -> None:
    """Refuse what is there of different minors, or of another minor than is asked for; note another patch."""
    known = {name: version for name, version in now.versions.items() if version}
    minors = {minor_of(version) for version in known.values()}
    words = ", ".join(f"{name} {version}" for name, version in sorted(known.items()))
    if len(minors) > 1:
        raise Refused(
            f"{UNIT}: {words} are installed, of different minor releases: bring them to one by the rules of a kubeadm "
            "upgrade, since nothing is upgraded here"
        )
    if minors and want.minor and minors != {want.minor}:
        raise Refused(
            f"{UNIT}: {words} {'are' if len(known) > 1 else 'is'} installed and kubernetesVersion asks for "
            f"{want.version or want.minor}: set it to {minors.pop()}, upgrade by the rules of kubeadm, or remove them "
            "where the machine is in no cluster, since nothing is upgraded here"
        )
    if want.version and any(version != want.version for version in known.values()):
        todo.note(
            f"{UNIT}: kubernetesVersion asks for {want.version}, and {words} stay as they are: a patch release is "
            "taken by hand, since nothing is upgraded here"
        )
