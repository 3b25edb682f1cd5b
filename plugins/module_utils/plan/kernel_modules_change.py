# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of kernel-modules on modules: load one, load it again for its options, take it out."""

from __future__ import annotations

from ..core.plan import Past, Todo
from ..core.step import Effect, Step, remove, run
from .debts import debt
from .kernel_modules import Module, Now
from .modprobe import parse_options
from .module_settings import Settings
from .reload import record_path
from .unit_names import KERNEL_MODULES as UNIT


def load(name: str, settings: Settings, disruption: str = "none") -> Step:
    """modprobe, with what it will have brought: the module, its options' values, and whatever it registers.

    It settles what a pass owes that unloaded the module.
    """
    folder = f"/sys/module/{name}"
    after = f"the module {name} is loaded"
    shown = tuple(
        Effect("file", f"{folder}/parameters/{key}", value + "\n")
        for key, value in parse_options(settings.options.get(name, ""))
    )
    brings = tuple(Effect("appears", place, after) for place in ("/proc/sys", "/sys/class", "/dev"))
    return run(
        ("modprobe", "--", name),
        f"load the module {name}",
        lane=name,
        disruption=disruption,
        pays=(debt("load", name),),
        effects=(Effect("file", f"{folder}/refcnt", "0\n"), *shown, *brings),
    )


def forget(name: str) -> Step:
    """Remove the record of a module (see `reload`)."""
    return remove(record_path(name), f"remove {record_path(name)}")


def load_again(
    todo: Todo, name: str, settings: Settings, module: Module, differing: list[str], past: Past, *, recorded: bool
) -> None:
    """A loaded module takes new options by being loaded again, never while it is in use; `recorded`: its record goes.

    A pass that dies between unloading and loading still owes the loading.
    """
    if module.refcnt or module.holders:
        todo.wait(
            "RebootRequired",
            f"{UNIT}: {name} waits for reload: it is in use ({_users(module)}), and its options {' '.join(differing)} "
            "take effect when it is loaded again: end its use and run again, or reboot the node",
        )
        return
    again = f"load {name} with {' '.join(differing)}"
    said = past.tried.get(again)
    if said == "":
        todo.note(f"{name} was loaded with {' '.join(differing)} in this boot, and the kernel shows a value of its own")
        return
    if said:
        todo.wait("RebootRequired", f"{UNIT}: {said}: end what uses {name}, or reboot the node")
        return
    action = f"unload the module {name}, to load it with {' '.join(differing)}"
    todo.add(_unload(name, action, (Effect("gone", f"/sys/module/{name}"),), owes=(debt("load", name),), tries=again))
    if recorded:
        todo.add(forget(name))
    todo.add(load(name, settings, "service"))


def _unload(name: str, action: str, effects: tuple[Effect, ...], owes: tuple[str, ...] = (), tries: str = "") -> Step:
    """rmmod takes out the one module; modprobe -r would take what only it needs along, ours among it."""
    return run(("rmmod", "--", name), action, disruption="service", effects=effects, owes=owes, tries=tries)


def take_out(todo: Todo, module: Module, now: Now, gone: set[str]) -> bool:
    """Unload a module that is kept out, unless it is in use; whether it goes. `gone` collects those that go."""
    if module.refcnt or module.holders:
        todo.wait(
            "RebootRequired",
            f"{UNIT}: {module.name} is kept out from the next boot and is in use now "
            f"({_users(module)}): end its use and run again, or reboot the node",
        )
        return False
    gone.add(module.name)
    effects = [Effect("gone", f"/sys/module/{module.name}")]
    for below in now.modules.values():
        if module.name in below.holders:
            left = below.refcnt - len(gone & {*below.holders})
            effects.append(Effect("gone", f"/sys/module/{below.name}/holders/{module.name}"))
            effects.append(Effect("file", f"/sys/module/{below.name}/refcnt", f"{left}\n"))
    todo.add(_unload(module.name, f"unload the module {module.name}, which is kept out", tuple(effects)))
    return True


def _users(module: Module) -> str:
    holders = f", held by {', '.join(module.holders)}" if module.holders else ""
    return f"refcnt {module.refcnt}{holders}"
