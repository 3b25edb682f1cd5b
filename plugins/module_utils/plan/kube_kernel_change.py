# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker's kernel that is not as it should be, or may not be after a boot; and what goes with the worker."""

from __future__ import annotations

from ..core.plan import Past, Todo
from ..core.step import Effect, Step, fail, run, set_value
from ..core.unknown import is_known
from .files import drop, keep
from .kernel_parameter_rivals import rival_notes
from .kernel_parameters import Key, Live, same
from .kube_kernel import (
    ALIAS,
    BRIDGE,
    CALL_IP6TABLES,
    KEYS,
    MODULES,
    MODULES_FILE,
    MODULES_TEXT,
    SYSCTL_FILE,
    UNIT,
    Kernel,
    sysctl_text,
)

STAYS = "the modules overlay and br_netfilter, and the live values of their parameters, stay until a reboot"


def change(todo: Todo, now: Kernel) -> None:
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
