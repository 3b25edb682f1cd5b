# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which distribution a host runs, from its os-release."""

from __future__ import annotations

from ..core.host import Host
from ..plan.distribution import Distribution, parse_os_release

OSTREE = "/run/ostree-booted"
TRANSACTIONAL = "transactional-update"


def distribution(host: Host) -> Distribution:
    """The host's distribution; one without an os-release has the id "linux" and no family."""
    text = host.read("/etc/os-release") or host.read("/usr/lib/os-release") or ""
    return parse_os_release(text, arch(host), image(host))


def arch(host: Host) -> str:
    """The kernel's name of the architecture, "x86_64" or "aarch64"."""
    shown = host.read("/proc/sys/kernel/arch")  # from Linux 6.1 on
    return (shown or host.follows(("uname", "-m"), ("/usr/bin/uname",)).out).strip() or "x86_64"


def image(host: Host) -> str:
    """What changes the packages of a host whose system is an image: "rpm-ostree", "transactional-update", or ""."""
    if host.exists(OSTREE):
        return "rpm-ostree"
    # Leap and SLES may have the tool installed while their root is writable: only a read-only root needs it.
    return TRANSACTIONAL if host.which(TRANSACTIONAL) and _has_read_only_root(host) else ""


def _has_read_only_root(host: Host) -> bool:
    from .read_only_root import root_is_read_only

    return bool(host.sight(root_is_read_only))
