# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel of a worker: overlay and br_netfilter, then bridged traffic through iptables, and forwarding.

Modules come before parameters, at a boot too: net.bridge.* is there only once br_netfilter is loaded, and systemd sets
parameters after it has loaded modules. What is built in is seen by what it brings: /proc/filesystems, the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..core.plan import Past, Todo
from ..core.step import File
from ..core.unknown import is_known
from .files import HEADER, is_as
from .kernel_parameters import Key, Live, Rival, render, same
from .unit_names import KERNEL_MODULES, SYSCTL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from ..core.named import NamedTuple

UNIT = "k8s-join"
MODULES_FILE = "/etc/modules-load.d/90-bcd-k8s.conf"
SYSCTL_FILE = "/etc/sysctl.d/90-bcd-k8s.conf"
MODULES = ("overlay", "br_netfilter")
BELOW = ("bridge", "llc", "stp")  # br_netfilter stands on them: one that is kept out keeps it out
BRIDGE = "/proc/sys/net/bridge"
IPV6 = "/proc/sys/net/ipv6"
CALL_IP6TABLES = Key("net.bridge.bridge-nf-call-ip6tables", f"{BRIDGE}/bridge-nf-call-ip6tables", "1")
KEYS = (
    CALL_IP6TABLES,
    Key("net.bridge.bridge-nf-call-iptables", f"{BRIDGE}/bridge-nf-call-iptables", "1"),
    Key("net.ipv4.ip_forward", "/proc/sys/net/ipv4/ip_forward", "1"),
)
# The kernel keeps one switch under two names.
ALIAS = Key("net.ipv4.conf.all.forwarding", "/proc/sys/net/ipv4/conf/all/forwarding", "1")
MODULES_TEXT = HEADER + "".join(f"{name}\n" for name in MODULES)


class Kernel(NamedTuple):
    """Our two files, the modules, the live values by path (None: the kernel has no such parameter), and who else sets
    them at a boot, in reading order.

    `modules` says of each module whether it is "there" (loaded or built in), "loadable", or "missing" among the modules
    of this `release` of the kernel; "gone" where this release has no modules on disk at all. `extra` names the package
    with more modules for it, as far as the distribution has one. Both are looked at only where something is missing.
    """

    modules_file: File | None
    sysctl_file: File | None
    modules: Mapping[str, str]
    live: Mapping[str, Live | None]
    rivals: tuple[Rival, ...] = ()
    blocked: tuple[str, ...] = ()  # "/etc/modprobe.d/x.conf says blacklist br_netfilter"
    ipv6: bool = True
    release: str = ""
    extra: str = ""


def refuse_rivals(past: Past) -> None:
    """Refuse a host whose other units ask for the opposite: they and this one would set it back and forth."""
    if past.applied.get(SYSCTL) or past.applied.get(KERNEL_MODULES):
        from .kube_kernel_rivals import refuse

        refuse(past)


def plan(todo: Todo, now: Kernel, past: Past) -> None:
    """Both files, the modules, and the live values; and who can undo them at a boot."""
    if not is_as_needed(now) or now.rivals or now.blocked:
        from .kube_kernel_change import change

        change(todo, now)


def is_as_needed(now: Kernel) -> bool:
    """Whether our files, the modules and the live values are as a worker needs them."""
    return (
        is_as(now.modules_file, MODULES_TEXT)
        and is_as(now.sysctl_file, sysctl_text())
        and all(now.modules[name] == "there" for name in MODULES)
        and all(_is_set(key, now.live[key.path]) for key in KEYS)
    )


def _is_set(key: Key, live: Live | None) -> bool:
    return (
        is_known(live) and live is not None and live.text is not None and not live.fault and same(key.value, live.text)
    )


def sysctl_text() -> str:
    """The sysctl.d file."""
    return render(KEYS)
