# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemctl of a simulated host, with the verbs that the collection and its tests use."""

from __future__ import annotations

import fnmatch

from . import gpu, kubernetes
from .machine import names, there
from .systemd import Manager
from .units import PLACES, SUFFIXES, Failed, disable, enable, enabled, full, mask, masked, path_of, texts

Answer = tuple[int, str, str]


def systemctl(root: str, argv: list[str]) -> Answer:
    """systemctl, with the verbs that the collection and its tests use."""
    flags, words, wanted = _words(argv)
    if "--version" in flags:
        return 0, "systemd 252 (252.22-1~deb12u1)\n", ""
    if not there(root, "/run/systemd/system"):
        return 1, "", "System has not been booted with systemd as init system (PID 1). Can't operate.\n"
    manager = Manager(root)
    verb, units = (words[0] if words else "list-units"), [full(word) for word in words[1:]]
    try:
        answer = _verb(root, manager, verb, units, flags, wanted)
    except Failed as fault:
        answer = (fault.rc, "", f"{fault}\n")
    manager.save()
    gpu.settle(root)
    kubernetes.turn(root)
    return answer


def _words(argv: list[str]) -> tuple[set[str], list[str], list[str]]:
    flags, words, wanted = set(), [], []
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word in ("-p", "--property", "-t", "--type") and rest:
            wanted += rest.pop(0).split(",") if word in ("-p", "--property") else []
        elif word.startswith("--property="):
            wanted += word.partition("=")[2].split(",")
        elif word.startswith("-p") and len(word) > 2:
            wanted += word[2:].split(",")
        elif word.startswith("-") and word != "--":
            flags.add({"-q": "--quiet"}.get(word, word))
        elif word != "--":
            words.append(word)
    return flags, words, wanted


def _verb(root: str, manager: Manager, verb: str, units: list[str], flags: set[str], wanted: list[str]) -> Answer:
    if verb in ("daemon-reload", "daemon-reexec"):
        manager.reload()
        return 0, "", ""
    if verb in ("is-active", "is-failed", "is-enabled"):
        return _question(root, manager, verb, units, "--quiet" in flags)
    if verb == "is-system-running":
        bad = "failed" in manager.active.values()
        return (1, "degraded\n", "") if bad else (0, "running\n", "")
    if verb == "show":
        return 0, _show(root, manager, units, wanted, "--value" in flags), ""
    if verb in ("list-units", "list-unit-files"):
        return 0, _list(root, manager, verb, units), ""
    if verb in ("cat", "status"):
        return _print(root, manager, verb, units)
    if verb in ("reboot", "poweroff", "halt"):
        from . import boot as machine_boot

        machine_boot.reboot(root)
        return 0, "", ""
    return _change(root, manager, verb, units, flags)


def _change(root: str, manager: Manager, verb: str, units: list[str], flags: set[str]) -> Answer:
    printed: list[str] = []
    warned = [
        f"Warning: The unit file, source configuration file or drop-ins of {unit} changed on disk. "
        "Run 'systemctl daemon-reload' to reload units."
        for unit in units
        if verb in ("start", "restart", "try-restart", "reload-or-restart") and manager.stale(unit)
    ]
    for unit in units:
        if verb in ("enable", "disable", "reenable"):
            printed += disable(root, unit) if verb != "enable" else []
            printed += enable(root, unit) if verb != "disable" else []
        elif verb in ("mask", "unmask"):
            mask(root, unit, verb == "mask")
        elif verb in ("try-restart", "condrestart", "reload", "reload-or-restart") and manager.state(unit) != "active":
            if verb in ("reload", "reload-or-restart"):
                manager.start(unit)
            continue
        elif verb in ("restart", "try-restart", "condrestart", "reload-or-restart"):
            if path_of(root, unit) is None:
                raise Failed(5, f"Failed to restart {unit}: Unit {unit} not found.")
            if manager.state(unit) == "active":
                manager.stop(unit)
            manager.start(unit)
        elif verb == "start":
            manager.start(unit)
        elif verb == "stop":
            manager.stop(unit)
        elif verb == "reset-failed":
            manager.active.pop(unit, None)
        elif verb not in ("reload", "preset", "set-property", "kill"):
            raise Failed(1, f"Unknown command verb {verb}.")
        if "--now" in flags and verb in ("enable", "disable", "mask"):
            if verb == "enable":
                manager.start(unit)
            elif manager.state(unit) == "active":
                manager.stop(unit)
    if verb in ("enable", "disable", "reenable", "mask", "unmask", "preset") and "--no-reload" not in flags:
        manager.reload()
    said = "" if "--quiet" in flags else "\n".join([*printed, *warned])
    return 0, "", said + "\n" if said else ""


def _question(root: str, manager: Manager, verb: str, units: list[str], quiet: bool) -> Answer:
    out, err, good, missing = [], [], False, False
    for unit in units:
        if verb == "is-enabled":
            shown = enabled(root, unit)
            good = good or shown in ("enabled", "static")
            if not shown:
                err.append(f"Failed to get unit file state for {unit}: No such file or directory")
                continue
        else:
            shown = manager.state(unit)
            missing = path_of(root, unit) is None and shown != "active"
            good = good or shown == ("failed" if verb == "is-failed" else "active")
        out.append(shown)
    rc = 0 if good else 1 if verb != "is-active" else 4 if missing else 3
    return rc, "" if quiet else "".join(line + "\n" for line in out), "".join(line + "\n" for line in err)


def _show(root: str, manager: Manager, units: list[str], wanted: list[str], bare: bool) -> str:
    blocks = []
    for unit in units or [""]:
        if unit:
            manager.look(unit)
        path, state_now = path_of(root, unit) if unit else None, manager.state(unit) if unit else "active"
        load = "masked" if unit and masked(root, unit) else "loaded" if path else "not-found"
        sub = {"active": "running", "failed": "failed", "activating": "auto-restart"}.get(state_now, "dead")
        values = {
            "Id": unit,
            "Names": unit,
            "LoadState": load,
            "ActiveState": state_now,
            "SubState": "mounted" if unit.endswith(".mount") and state_now == "active" else sub,
            "FragmentPath": path or "",
            "UnitFileState": enabled(root, unit) if unit else "",
            "NeedDaemonReload": "yes" if unit and manager.stale(unit) else "no",
            "Result": "exit-code" if state_now == "failed" else "success",
            "Version": "252",
        }
        chosen = wanted or [name for name in values if name != "Version"]
        blocks.append(
            "".join((values[name] if bare else f"{name}={values[name]}") + "\n" for name in chosen if name in values)
        )
    return "\n".join(blocks)


def _list(root: str, manager: Manager, verb: str, patterns: list[str]) -> str:
    units = sorted({name for place in PLACES for name in names(root, place) if name.endswith(SUFFIXES)})
    chosen = [unit for unit in units if not patterns or any(fnmatch.fnmatch(unit, pattern) for pattern in patterns)]
    if verb == "list-unit-files":
        return "".join(f"{unit} {enabled(root, unit)} -\n" for unit in chosen)
    return "".join(
        f"{unit} loaded {manager.state(unit)} - {unit}\n" for unit in chosen if manager.state(unit) != "inactive"
    )


def _print(root: str, manager: Manager, verb: str, units: list[str]) -> Answer:
    out = ""
    for unit in units:
        path = path_of(root, unit)
        if path is None:
            if verb == "cat":
                return 1, out, f"No files found for {unit}.\n"
            return 4, out, f"Unit {unit} could not be found.\n"
        if verb == "cat":
            out += "\n".join(f"# {place}\n{text}" for place, text in texts(root, unit))
        else:
            out += (
                f"● {unit}\n     Loaded: loaded ({path}; {enabled(root, unit)})\n     Active: {manager.state(unit)}\n"
            )
    rc = 0 if verb == "cat" or all(manager.state(unit) == "active" for unit in units) else 3
    return rc, out, ""
