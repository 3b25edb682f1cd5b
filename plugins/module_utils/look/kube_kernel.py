# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a worker needs of the kernel, as it shows it, and who else has a say at a boot."""

from __future__ import annotations

from ..core.errors import NotKnownYet
from ..core.host import Host
from ..core.unknown import later
from ..plan.kube_kernel import ALIAS, BELOW, BRIDGE, IPV6, KEYS, MODULES, MODULES_FILE, SYSCTL_FILE, Kernel
from .kernel import release
from .modprobe import modprobe_rivals
from .sysctl import live, rivals


def kernel(host: Host) -> Kernel:
    """Our files, the modules and the parameters, and who has another say of them at a boot."""
    shown = release(host)
    modules = {name: _module(host, name, shown) for name in MODULES}
    return Kernel(
        modules_file=host.file(MODULES_FILE),
        sysctl_file=host.file(SYSCTL_FILE),
        modules=modules,
        live={key.path: later(live, host, key.path) for key in KEYS},
        rivals=rivals(host, frozenset(key.path for key in (*KEYS, ALIAS)), SYSCTL_FILE),
        blocked=_blocked(host),
        ipv6=host.exists(IPV6),
        release=shown,
        extra=_extra(host, shown) if "missing" in modules.values() else "",
    )


def _module(host: Host, name: str, release_: str) -> str:
    """Of a module: "there", "loadable", "missing", or "gone" with all modules of this release (see Kernel)."""
    if host.exists(f"/sys/module/{name}") or (name == "br_netfilter" and _has_bridge(host)):
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
    from .os_release import distribution

    found = distribution(host)
    if found.family in ("rhel", "fedora"):
        return f"kernel-modules-extra-{release_}"
    return f"linux-modules-extra-{release_}" if found.is_ubuntu else ""


def _blocked(host: Host) -> tuple[str, ...]:
    """Lines of modprobe.d that keep one of the modules, or what it stands on, from loading at a boot."""
    found = modprobe_rivals(host, frozenset((*MODULES, *BELOW)))
    return tuple(f"{line.path} says {line.command} {line.module}" for line in found if line.command != "options")
