# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel of a worker: overlay and br_netfilter, then bridged traffic through iptables, and forwarding.

Modules come before parameters, at a boot too: net.bridge.* is there only once br_netfilter is loaded, and systemd sets
parameters after it has loaded modules. What is built in is seen by what it brings: /proc/filesystems, the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..core.plan import Past, Todo
from ..core.step import Effect, File, Step, fail, run, set_value
from ..core.unknown import is_known
from .files import HEADER, drop, keep
from .kernel_parameters import Key, Live, Rival, render, rival_notes, same
from .unit_names import KERNEL_MODULES, SYSCTL

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
STAYS = "the modules overlay and br_netfilter, and the live values of their parameters, stay until a reboot"
MODULES_TEXT = HEADER + "".join(f"{name}\n" for name in MODULES)


class Kernel(NamedTuple):
    """Our two files, the modules, the live values by path (None: the kernel has no such parameter), and who else sets
    them at a boot, in reading order.

    `modules` says of each module whether it is "there" (loaded or built in), "loadable", or "missing" among the modules
    of this `release` of the kernel; "gone" where this release has no modules on disk at all. `extra` names the package
    with more modules for it, as far as the distribution has one.
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
    """Both files, the modules, then the live values; what the kernel shows only with a module has a lane of its own."""
    keep(todo, MODULES_FILE, MODULES_TEXT, now.modules_file)
    for name in MODULES:
        if now.modules[name] != "there":
            todo.add(_load(name, now))
    for key in KEYS:
        _plan_value(todo, key, now)
    keep(todo, SYSCTL_FILE, sysctl_text(), now.sysctl_file)
    todo.note(*rival_notes((*KEYS, ALIAS), now.rivals, SYSCTL_FILE))
    todo.note(*(f"{line}, which can keep it from loading at boot: remove it there" for line in now.blocked))


def absent(todo: Todo, now: Kernel, past: Past) -> None:
    """Remove both files."""
    drop(todo, MODULES_FILE, now.modules_file)
    drop(todo, SYSCTL_FILE, now.sysctl_file)
    todo.note(STAYS)


def sysctl_text() -> str:
    """The sysctl.d file."""
    return render(KEYS)


def _load(name: str, now: Kernel) -> Step:
    """modprobe, with what it brings; or why it cannot."""
    if now.modules[name] in ("missing", "gone"):
        from .kube_kernel_rivals import why_missing

        return fail(f"load the module {name}", why_missing(name, now))
    effects = [Effect("file", f"/sys/module/{name}/refcnt", "0\n")]
    if name == "br_netfilter":
        effects.append(Effect("appears", BRIDGE, f"the module {name} is loaded"))
    barrier = name == "br_netfilter"  # what it brings is set before anything else, which may be held back or fail
    return run(("modprobe", "--", name), f"load the module {name}", effects=tuple(effects), barrier=barrier)


def _plan_value(todo: Todo, key: Key, now: Kernel) -> None:
    live = now.live[key.path]
    if not is_known(live):
        with todo.lane(key.name):  # not in the trunk, where the line would end all that follows
            bool(live)  # raises when it is known
        return
    if live is None:
        if key == CALL_IP6TABLES and not now.ipv6:
            todo.note(f"this kernel has neither IPv6 nor {key.name}: there is nothing to set")
        elif now.modules["br_netfilter"] == "there":
            message = f"{UNIT}: the running kernel, {now.release}, has no {key.name}: boot one that has it"
            todo.add(fail(f"set {key.name} to {key.value}", message))
        return
    if live.fault or live.text is None or not same(key.value, live.text):
        todo.add(set_value(key.path, key.value, f"set {key.name} to {key.value} (now: {_shown(live)})"))


def _shown(live: Live) -> str:
    return live.fault or " ".join((live.text or "").split()) or "empty"
