# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kernel-modules: loaded now and at every boot, with their options; or kept out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core.errors import Refused
from ..core.plan import Field, Past, Plan, Todo
from ..core.step import Effect, File, Step, run
from . import initramfs
from .files import HEADER, drop, is_as, keep
from .initramfs import Initramfs
from .modprobe import Rival, parse_options, same_value
from .settings import strict

UNIT = "kernel-modules"
LOAD = "/etc/modules-load.d/bcd.conf"
PROBE = "/etc/modprobe.d/bcd.conf"
FIELDS = (
    Field("load", "load", (list,)),
    Field("options", "options", (dict,)),
    Field("blacklist", "blacklist", (list,)),
)

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
# They let a passed-through device reach the host's memory.
FORBIDDEN = {"vfio": "enable_unsafe_noiommu_mode", "vfio_iommu_type1": "allow_unsafe_interrupts"}


class Settings(NamedTuple):
    """Names are with underscores, sorted; options map a module to its line for modprobe."""

    load: tuple[str, ...]
    options: Mapping[str, str]
    blacklist: tuple[str, ...]


class Module(NamedTuple):
    """A module as the kernel shows it; a parameter that it does not show is None."""

    name: str
    loaded: bool
    builtin: bool = False
    refcnt: int = 0
    holders: tuple[str, ...] = ()
    parameters: Mapping[str, str | None] = {}


class Now(NamedTuple):
    """What the host shows: our files, the modules that the settings name, their rivals, how the initramfs is made."""

    load_file: File | None
    probe_file: File | None
    modules: Mapping[str, Module]
    initramfs: Initramfs
    rivals: tuple[Rival, ...] = ()


# -- settings


def check(given: dict[str, Any]) -> Settings:
    """Settings in wire form as values; raises Refused for a name, an option or a pair that is never applied."""
    wire = strict(UNIT, FIELDS, given)
    load = _names("load", wire.get("load", []))
    blacklist = _names("blacklist", wire.get("blacklist", []))
    options: dict[str, str] = {}
    for name, line in wire.get("options", {}).items():
        module = _name("options", name)
        if module in options:
            raise Refused(f"{UNIT}: options names the module {module} twice (- and _ count alike): keep one")
        options[module] = _option_line(module, line)
    both = sorted(set(load) & set(blacklist))
    if both:
        raise Refused(f"{UNIT}: {', '.join(both)} is in load and in blacklist: keep it in one of them")
    return Settings(load, options, blacklist)


def _names(field: str, names: list[Any]) -> tuple[str, ...]:
    return tuple(sorted({_name(field, name) for name in names}))


def _name(field: str, name: Any) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise Refused(f"{UNIT}: {field}: {name!r} is no module name (letters, digits, - and _, at most 64): correct it")
    return name.replace("-", "_")


def _option_line(module: str, line: Any) -> str:
    if not isinstance(line, str) or not line.strip() or not line.isprintable() or "\\" in line or "#" in line:
        raise Refused(f"{UNIT}: the options of {module} are {line!r}: give one printable line such as nested=1")
    clean = " ".join(line.split())
    forbidden = FORBIDDEN.get(module)
    if forbidden and any(key.replace("-", "_") == forbidden for key, _value in parse_options(clean)):
        raise Refused(f"{UNIT}: {module} {forbidden} is refused: it lets a passed-through device reach host memory")
    return clean


def parameters_of(settings: Settings, module: str) -> tuple[str, ...]:
    """The parameters that the settings give a module: what a look reads."""
    return tuple(dict.fromkeys(key for key, _value in parse_options(settings.options.get(module, ""))))


def named(settings: Settings) -> tuple[str, ...]:
    """Every module that the settings name."""
    return tuple(sorted({*settings.load, *settings.options, *settings.blacklist}))


# -- files


def render_load(settings: Settings) -> str:
    """modules-load.d: one name a line."""
    return HEADER + "".join(f"{name}\n" for name in settings.load)


def render_probe(settings: Settings) -> str:
    """modprobe.d: options lines, then what keeps a module out, also from a modprobe by name."""
    lines = [f"options {name} {line}" for name, line in sorted(settings.options.items())]
    for name in settings.blacklist:
        lines += [f"blacklist {name}", f"install {name} /bin/false"]
    return HEADER + "".join(f"{line}\n" for line in lines)


def _lines(text: str) -> frozenset[str]:
    return frozenset(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))


def _touched(before: File | None, after: str) -> tuple[bool, tuple[str, ...]]:
    """Whether lines that keep a module out differ, and the modules whose options differ."""
    moved = _lines(before.text if before else "") ^ _lines(after)
    keeps_out = any(line.startswith(("blacklist ", "install ")) for line in moved)
    modules = {line.split()[1] for line in moved if line.startswith("options ") and len(line.split()) > 1}
    return keeps_out, tuple(sorted(modules))


# -- the plan


def plan(settings: Settings, now: Now, past: Past) -> Plan:
    """Our files, the initramfs where they reach into it, then each module in a lane of its own."""
    todo = Todo()
    _refuse_built_in(settings, now)
    probe = render_probe(settings) if settings.options or settings.blacklist else ""
    _plan_probe(todo, probe, now, past)
    if settings.load:
        keep(todo, LOAD, render_load(settings), now.load_file, lane=LOAD)
    else:
        drop(todo, LOAD, now.load_file, lane=LOAD)
    for name in sorted({*settings.load, *settings.options}):
        with todo.lane(name):
            _plan_module(todo, name, settings, now, past)
    for name in settings.blacklist:
        if now.modules[name].loaded:
            with todo.lane(name):
                _plan_unload(todo, now.modules[name])
    todo.note(*_rival_notes(settings, now))
    return todo.plan()


def absent(now: Now, past: Past) -> Plan:
    """Remove our drop-ins; loaded modules stay."""
    todo = Todo()
    _plan_probe(todo, "", now, past)
    drop(todo, LOAD, now.load_file, lane=LOAD)
    todo.note("modules that are loaded stay loaded until a reboot")
    return todo.plan()


def _refuse_built_in(settings: Settings, now: Now) -> None:
    for name in settings.blacklist:
        if now.modules[name].builtin:
            raise Refused(f"{UNIT}: {name} is built into this kernel and cannot be kept out: take it off blacklist")
    for name in settings.options:
        module = now.modules[name]
        if module.builtin and _differing(settings.options[name], module):
            raise Refused(
                f"{UNIT}: {name} is built into this kernel, where options of modprobe.d do not reach it: "
                f"set {name}.{settings.options[name].split()[0]} on the kernel command line and take them off"
            )


def _plan_probe(todo: Todo, text: str, now: Now, past: Past) -> None:
    """The modprobe.d file is the trunk: a module is never loaded without the options that belong to it."""
    rebuild = initramfs.rebuild(now.initramfs, PROBE)
    due = initramfs.DEBT in past.owed
    differs = not is_as(now.probe_file, text) if text else now.probe_file is not None
    if differs and rebuild:
        keeps_out, modules = _touched(now.probe_file, text)
        due = due or keeps_out or initramfs.carries(now.initramfs, modules, past)
    owes = (initramfs.DEBT,) if due else ()
    if text:
        keep(todo, PROBE, text, now.probe_file, owes=owes)
    else:
        drop(todo, PROBE, now.probe_file, owes=owes)
    if due and rebuild:
        todo.add(rebuild)


def _load(name: str, settings: Settings) -> Step:
    """modprobe, with what it will have brought: the module, its options' values, and whatever it registers."""
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
        effects=(Effect("file", f"{folder}/refcnt", "0\n"), *shown, *brings),
    )


def _plan_module(todo: Todo, name: str, settings: Settings, now: Now, past: Past) -> None:
    """Load what is not loaded; a loaded module takes new options by being loaded again, never while it is in use."""
    module = now.modules[name]
    reload = f"load {name}"  # a pass that dies between unloading and loading still owes the loading
    if module.builtin or (not module.loaded and name not in settings.load and reload not in past.owed):
        return
    if not module.loaded:
        todo.add(_load(name, settings)._replace(pays=(reload,)))
        return
    differing = _differing(settings.options.get(name, ""), module)
    if not differing:
        return
    if module.refcnt or module.holders:
        todo.wait(
            "RebootRequired",
            f"{UNIT}: {name} is in use ({_users(module)}), and its options {' '.join(differing)} take effect "
            "when it is loaded again: end its use and run again, or reboot the node",
        )
        return
    unload = run(
        ("modprobe", "-r", "--", name),
        f"unload the module {name}, to load it with {' '.join(differing)}",
        disruption="service",
        owes=(reload,),
        effects=(Effect("gone", f"/sys/module/{name}"),),
    )
    todo.add(unload, _load(name, settings)._replace(disruption="service", pays=(reload,)))


def _plan_unload(todo: Todo, module: Module) -> None:
    if module.refcnt or module.holders:
        todo.wait(
            "RebootRequired",
            f"{UNIT}: {module.name} is kept out from the next boot and is in use now "
            f"({_users(module)}): end its use and run again, or reboot the node",
        )
        return
    todo.add(
        run(
            ("modprobe", "-r", "--", module.name),
            f"unload the module {module.name}, which is kept out",
            disruption="service",
            effects=(Effect("gone", f"/sys/module/{module.name}"),),
        )
    )


def _users(module: Module) -> str:
    holders = f", held by {', '.join(module.holders)}" if module.holders else ""
    return f"refcnt {module.refcnt}{holders}"


def _differing(line: str, module: Module) -> list[str]:
    """The options, as given, that the loaded module does not show; a parameter that it hides cannot be compared."""
    wanted = dict(parse_options(line))
    shown = module.parameters
    return [
        f"{key}={value}"
        for key, value in wanted.items()
        if shown.get(key) is not None and not same_value(value, shown[key] or "")
    ]


def _rival_notes(settings: Settings, now: Now) -> list[str]:
    """Who else has a say: an option given another value, and what keeps a module of ours from loading at boot."""
    notes = []
    for path, command, module, rest in now.rivals:
        ours = dict(parse_options(settings.options.get(module, "")))
        for key, value in parse_options(rest) if command == "options" else ():
            if key in ours and not same_value(ours[key], value):
                notes.append(f"{path} gives {module} {key}={value} as well: remove it there")
        if command != "options" and module in settings.load:
            notes.append(f"{path} says {command} {module}, which can keep it from loading at boot: remove it there")
    return notes
