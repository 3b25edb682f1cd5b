# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kernel-modules: loaded now and at every boot, with their options; or kept out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..core.errors import Refused
from ..core.plan import Past, Plan, Todo
from ..core.step import File
from ..core.unknown import later
from . import initramfs
from .debts import debt
from .files import HEADER, drop, is_as, keep
from .initramfs import Initramfs
from .modprobe import parse_options, same_value
from .modprobe_lines import PROBE, Rival, options_in
from .module_settings import Settings, named
from .reload import LoadedWith, parse_record, record_path, render_record
from .unit_names import KERNEL_MODULES as UNIT

LOAD = "/etc/modules-load.d/bcd.conf"


class Module(NamedTuple):
    """A module as the kernel shows it; a parameter that it does not show is None. `record`: see `reload`.

    Who uses it, `refcnt` and `holders`, is seen only where a module may have to be unloaded.
    """

    name: str
    loaded: bool
    builtin: bool = False
    refcnt: int = 0
    holders: tuple[str, ...] = ()
    parameters: Mapping[str, str | None] = {}
    record: File | None = None


class Now(NamedTuple):
    """What the host shows: our files, the modules that the settings or a record name, their rivals, the initramfs."""

    load_file: File | None
    probe_file: File | None
    modules: Mapping[str, Module]
    initramfs: Initramfs
    rivals: tuple[Rival, ...] = ()


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
    """Our files, the initramfs where they reach into it, then each module in a lane of its own.

    What is loaded comes first: a module that is loaded on top of another would keep it in use.
    """
    todo = Todo()
    _refuse_built_in(settings, now)
    stale = {name: _unshown(name, settings, now, past) for name in settings.options}
    for name, differing in stale.items():
        if differing:
            keep(todo, record_path(name), _record(name, now, past), now.modules[name].record)
    _plan_probe(todo, render_probe(settings) if settings.options or settings.blacklist else "", now, past)
    if settings.load:
        keep(todo, LOAD, render_load(settings), now.load_file, lane=LOAD)
    else:
        drop(todo, LOAD, now.load_file, lane=LOAD)
    gone: set[str] = set()
    for name in settings.blacklist:
        with todo.lane(name):
            _plan_unload(todo, now, name, past, gone)
    ours = {*settings.load, *settings.options} - {*settings.blacklist}
    for name in sorted(ours, key=lambda name: (not now.modules[name].loaded, name)):
        with todo.lane(name):
            _plan_module(todo, name, settings, now, past, stale.get(name, []))
    for name in sorted(now.modules.keys() - {*named(settings)}):
        with todo.lane(name):
            _forget(todo, now.modules[name], past)
    todo.note(*_built_in_notes(settings, now), *_rival_notes(settings, now))
    return todo.plan()


def absent(now: Now, past: Past) -> Plan:
    """Remove our drop-ins and records; loaded modules stay."""
    todo = Todo()
    _plan_probe(todo, "", now, past)
    drop(todo, LOAD, now.load_file, lane=LOAD)
    for name, module in sorted(now.modules.items()):
        drop(todo, record_path(name), module.record, lane=name)
    todo.note("modules that are loaded stay loaded until a reboot")
    return todo.plan()


def _refuse_built_in(settings: Settings, now: Now) -> None:
    for name in settings.blacklist:
        if now.modules[name].builtin:
            raise Refused(f"{UNIT}: {name} is built into this kernel and cannot be kept out: take it off blacklist")
    for name in settings.options:
        module = now.modules[name]
        differing = _differing(settings.options[name], module) if module.builtin else []
        if differing:
            raise Refused(
                f"{UNIT}: {name} is built into this kernel, where options of modprobe.d do not reach it: "
                f"set {name}.{differing[0]} on the kernel command line and take them off"
            )


def _plan_probe(todo: Todo, text: str, now: Now, past: Past) -> None:
    """The modprobe.d file is the trunk: a module is never loaded without the options that belong to it."""
    due: bool = later(_rebuild_is_due, text, now, past)
    known = isinstance(due, bool)
    owes = (initramfs.DEBT,) if known and due else ()
    if text:
        keep(todo, PROBE, text, now.probe_file, owes=owes)
    else:
        drop(todo, PROBE, now.probe_file, owes=owes)
    if not now.initramfs.is_known:
        if due or text:
            from .initramfs_change import missing

            todo.note(missing(PROBE))
        return
    with todo.lane(initramfs.DEBT):
        if due:  # raises where it is not known
            from .initramfs_change import rebuild

            todo.add(rebuild(now.initramfs, PROBE, kept=bool(text)))


def _rebuild_is_due(text: str, now: Now, past: Past) -> bool:
    """Whether the file's new lines reach into the initramfs, or a pass that died still owes a rebuild."""
    if initramfs.DEBT in past.owed:
        return True
    differs = not is_as(now.probe_file, text) if text else now.probe_file is not None
    if not differs:
        return False
    from .initramfs_change import carries

    keeps_out, modules = _touched(now.probe_file, text)
    return keeps_out or carries(now.initramfs, modules, past)


# -- modules


def needs_no_unloading(settings: Settings, now: Now, past: Past) -> bool:
    """Whether each module is out where it is kept out, and has its options where it is loaded."""
    if any(now.modules[name].loaded for name in settings.blacklist):
        return False
    return not any(
        now.modules[name].loaded and (_differing(line, now.modules[name]) or _unshown(name, settings, now, past))
        for name, line in settings.options.items()
    )


def _loaded_with(name: str, now: Now, past: Past) -> str:
    """Our options line that the running module was loaded with: as recorded in this boot, else as our file has it."""
    record = _recorded(now.modules[name], past)
    return record.options if record else options_in(now.probe_file.text if now.probe_file else "", name)


def _recorded(module: Module, past: Past) -> LoadedWith | None:
    """The module's record, if it is of this boot."""
    record = parse_record(record_path(module.name), module.record.text) if module.record else None
    return record if record and record.boot_id == past.boot_id else None


def _record(name: str, now: Now, past: Past) -> str:
    return render_record(LoadedWith(past.boot_id, _loaded_with(name, now, past)))


def _unshown(name: str, settings: Settings, now: Now, past: Past) -> list[str]:
    """The options that the kernel does not show and that the loaded module was not given when it was loaded."""
    module = now.modules[name]
    if not module.loaded or name in settings.blacklist:
        return []
    given = dict(parse_options(_loaded_with(name, now, past)))
    return [
        f"{key}={value}"
        for key, value in parse_options(settings.options[name])
        if module.parameters.get(key) is None and not (key in given and same_value(value, given[key]))
    ]


def _forget(todo: Todo, module: Module, past: Past) -> None:
    """Remove the record of a module that is as it should be; one of an earlier boot says nothing and stays."""
    if _recorded(module, past):
        from .kernel_modules_change import forget

        todo.add(forget(module.name))


def _plan_module(todo: Todo, name: str, settings: Settings, now: Now, past: Past, unshown: list[str]) -> None:
    """Load what is not loaded; a loaded module takes new options by being loaded again, never while it is in use."""
    module = now.modules[name]
    reload = debt("load", name)  # a pass that dies between unloading and loading still owes the loading
    if module.builtin:
        return
    if not module.loaded:
        _forget(todo, module, past)
        if name in settings.load or reload in past.owed:
            from .kernel_modules_change import load

            todo.add(load(name, settings))
        return
    differing = [*_differing(settings.options.get(name, ""), module), *unshown]
    if not differing:
        _forget(todo, module, past)
        return
    from .kernel_modules_change import load_again

    load_again(todo, name, settings, module, differing, past, recorded=bool(unshown or _recorded(module, past)))


def _plan_unload(todo: Todo, now: Now, name: str, past: Past, gone: set[str]) -> None:
    """Unload a module that is kept out; `gone` collects those that this plan unloads."""
    module = now.modules[name]
    if not module.loaded:
        _forget(todo, module, past)
        return
    from .kernel_modules_change import take_out

    if take_out(todo, module, now, gone):
        _forget(todo, module, past)


def _differing(line: str, module: Module) -> list[str]:
    """The options, as given, that the loaded module shows with another value."""
    shown = module.parameters
    return [
        f"{key}={value}"
        for key, value in parse_options(line)
        if shown.get(key) is not None and not same_value(value, shown[key] or "")
    ]


def _built_in_notes(settings: Settings, now: Now) -> list[str]:
    """Options that nothing shows and that modprobe.d does not bring to what is built in."""
    notes = []
    for name, line in sorted(settings.options.items()):
        module = now.modules[name]
        keys = [key for key, _value in parse_options(line) if module.parameters.get(key) is None]
        if module.builtin and keys:
            notes.append(
                f"{name} is built into this kernel and does not show {', '.join(keys)}: options of modprobe.d do not "
                f"reach it, set {name}.{keys[0]}= on the kernel command line"
            )
    return notes


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
