# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules that a worker needs and the kernel has not loaded: built in, on disk, or in a package of more of them."""

from __future__ import annotations

from ..core.errors import NotKnownYet
from ..core.host import Host
from ..plan.kube_kernel import BRIDGE, MODULES, Kernel
from .kernel import release
from .os_release import distribution


def with_release(host: Host, now: Kernel) -> Kernel:
    """The snapshot with the running kernel's release, and what that has of the modules that are not loaded."""
    shown = release(host)
    modules = {name: now.modules.get(name) or _module(host, name, shown) for name in MODULES}
    extra = _extra(host, shown) if "missing" in modules.values() else ""
    return now._replace(modules=modules, release=shown, extra=extra)


def _module(host: Host, name: str, release_: str) -> str:
    """Of a module that is not loaded: "there" where it is built in, "loadable", "missing", or "gone" with all modules
    of this release (see Kernel)."""
    if name == "br_netfilter" and _has_bridge(host):
        return "there"
    if name == "overlay" and parse_filesystems(host.read("/proc/filesystems") or "", name):
        return "there"
    folder = f"/lib/modules/{release_}"
    listed = host.read(f"{folder}/modules.dep")
    if listed is None:
        return "gone"
    return "loadable" if _lists(listed, name) else "missing"


def _has_bridge(host: Host) -> bool:
    """Whether the parameters are there that br_netfilter brings; what another module would bring are not these."""
    try:
        return host.exists(f"{BRIDGE}/bridge-nf-call-iptables")
    except NotKnownYet:
        return False


def parse_filesystems(text: str, name: str) -> bool:
    """Whether /proc/filesystems has it: `nodev\\toverlay` a line, or `\\text4`."""
    return any(line.split()[-1:] == [name] for line in text.splitlines())


def _lists(dependencies: str, name: str) -> bool:
    """Whether modules.dep has the module: `kernel/net/bridge/br_netfilter.ko.xz: ...` a line."""
    paths = (line.partition(":")[0] for line in dependencies.splitlines())
    return any(path.rpartition("/")[2].partition(".ko")[0].replace("-", "_") == name for path in paths)


def _extra(host: Host, release_: str) -> str:
    """The package with more modules for the running kernel: Red Hat's and Fedora's, Ubuntu's; Debian has all in one."""
    found = distribution(host)
    if found.family in ("rhel", "fedora"):
        return f"kernel-modules-extra-{release_}"
    return f"linux-modules-extra-{release_}" if found.is_ubuntu else ""
