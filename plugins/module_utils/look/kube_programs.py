# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kubeadm, kubectl and kubelet say of their versions, where no package of the name tells it."""

from __future__ import annotations

from ..core.host import Host
from ..plan.program_version import version_in

SIZE = 2  # where a stamp has it
LEAST = 4 * 1024 * 1024  # bytes: each of these programs has tens of millions
VERSIONS = {
    "kubeadm": ("kubeadm", "version", "-o", "short"),
    "kubectl": ("kubectl", "version", "--client", "-o", "yaml"),
    "kubelet": ("kubelet", "--version"),
}


def version(host: Host, name: str, path: str) -> str:
    """What the program says; it follows from its file alone where that is no script, which may start another."""
    stamp = host.stamp(path)
    is_itself = stamp is not None and stamp[SIZE] >= LEAST
    answer = host.follows(VERSIONS[name], (path,)) if is_itself else host.ask(VERSIONS[name])
    if answer.rc and is_itself:  # that it failed follows from no file
        answer = host.ask(VERSIONS[name])
    return version_in(answer.out) if answer.rc == 0 else ""
