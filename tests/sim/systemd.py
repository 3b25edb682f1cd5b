# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd of a simulated host: unit files, what is enabled and active, and the program systemctl.

What the manager has in memory (active units, the digest of each loaded unit file) stands in /run/sim/units.json, so a
reboot forgets it; what is enabled or masked stands as links in /etc/systemd/system, as in the real one.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import shlex
import subprocess
from typing import Any

from . import kernel
from .machine import at, drop, keep, names, need, put, read, state, there

MEMORY = "/run/sim/units.json"
PLACES = ("/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system")
OWN = "/etc/systemd/system"
SUFFIXES = (".service", ".mount", ".socket", ".target", ".timer", ".swap", ".slice", ".path")
Answer = tuple[int, str, str]


class Failed(Exception):
    """What systemctl prints; with its exit status."""

    def __init__(self, rc: int, text: str) -> None:
        super().__init__(text)
        self.rc = rc


def full(name: str) -> str:
    """A unit's whole name: `ssh` is `ssh.service`."""
    return name if name.endswith(SUFFIXES) else name + ".service"


def path_of(root: str, unit: str) -> str | None:
    """The unit's file, the first of the places that has it; None when there is none."""
    for place in PLACES:
        if os.path.lexists(at(root, f"{place}/{unit}")):
            return f"{place}/{unit}"
    return None


def masked(root: str, unit: str) -> bool:
    """Whether the unit is a link to /dev/null."""
    path = path_of(root, unit)
    return path is not None and os.path.islink(at(root, path)) and os.readlink(at(root, path)) == "/dev/null"


def sections(text: str) -> dict[str, dict[str, list[str]]]:
    """A unit file's settings: {section: {key: [values]}}; an empty value takes back those before it."""
    found: dict[str, dict[str, list[str]]] = {}
    here: dict[str, list[str]] = {}
    for raw in text.replace("\\\n", " ").splitlines():
        line = raw.strip()
        if line.startswith("[") and line.endswith("]"):
            here = found.setdefault(line[1:-1], {})
        elif "=" in line and not line.startswith(("#", ";")):
            key, _, value = line.partition("=")
            if value.strip():
                here.setdefault(key.strip(), []).append(value.strip())
            else:
                here[key.strip()] = []
    return found


def settings(root: str, unit: str) -> dict[str, dict[str, list[str]]]:
    """The unit's settings with its drop-ins; empty when it has no file or is masked."""
    path = path_of(root, unit)
    if path is None or masked(root, unit):
        return {}
    return sections("\n".join(text for _, text in _texts(root, unit)))


def _texts(root: str, unit: str) -> list[tuple[str, str]]:
    """The unit file and its drop-ins, with their paths."""
    path = path_of(root, unit)
    found = [(path, read(root, path) or "")] if path and not masked(root, unit) else []
    dropins = {
        name: f"{place}/{unit}.d/{name}" for place in reversed(PLACES) for name in names(root, f"{place}/{unit}.d")
    }
    return found + [
        (dropins[name], read(root, dropins[name]) or "") for name in sorted(dropins) if name.endswith(".conf")
    ]


def digest(root: str, unit: str) -> str:
    """Of the unit file and its drop-ins, as they are on disk."""
    return hashlib.sha256(repr(_texts(root, unit)).encode()).hexdigest()


class Manager:
    """PID 1's memory: loaded in the constructor, written by `save`."""

    def __init__(self, root: str) -> None:
        self.root = root
        memory: dict[str, Any] = state(root, MEMORY)
        self.active: dict[str, str] = memory.get("active", {})
        self.known: dict[str, str] = memory.get("known", {})
        self.reloads: int = memory.get("reloads", 0)

    def save(self) -> None:
        """Keep it until the next call, or the next reboot."""
        keep(self.root, MEMORY, {"active": self.active, "known": self.known, "reloads": self.reloads})

    def look(self, unit: str) -> None:
        """Load a unit that is referenced for the first time."""
        if unit not in self.known and path_of(self.root, unit):
            self.known[unit] = digest(self.root, unit)

    def stale(self, unit: str) -> bool:
        """NeedDaemonReload: the file is not what the manager loaded."""
        return unit in self.known and self.known[unit] != digest(self.root, unit)

    def reload(self) -> None:
        """daemon-reload."""
        self.known = {unit: digest(self.root, unit) for unit in self.known if path_of(self.root, unit)}
        self.reloads += 1

    def state(self, unit: str) -> str:
        """active, inactive, failed."""
        if unit.endswith(".mount"):
            return "active" if mounted(self.root, mount_point(unit)) else "inactive"
        return self.active.get(unit, "inactive")

    def start(self, unit: str) -> None:
        """Start it, and what it requires; raises Failed with systemctl's words."""
        self.look(unit)
        if masked(self.root, unit):
            raise Failed(1, f"Failed to start {unit}: Unit {unit} is masked.")
        if path_of(self.root, unit) is None and not unit.endswith((".target", ".slice")):
            raise Failed(5, f"Failed to start {unit}: Unit {unit} not found.")
        if self.state(unit) == "active":
            return
        said = settings(self.root, unit)
        for needed in " ".join(
            [*said.get("Unit", {}).get("Requires", ()), *said.get("Unit", {}).get("Wants", ())]
        ).split():
            if self.state(needed) != "active" and path_of(self.root, needed):
                self.start(needed)
        if not _conditions(self.root, said.get("Unit", {})):
            return
        if unit.endswith(".mount"):
            _mount_unit(self.root, said.get("Mount", {}), unit)
        elif unit.endswith(".service"):
            self._service(unit, said.get("Service", {}))
        else:
            self.active[unit] = "active"

    def _service(self, unit: str, said: dict[str, list[str]]) -> None:
        oneshot = said.get("Type", ["simple"])[-1] == "oneshot"
        for key in ("ExecStartPre", "ExecStart", "ExecStartPost"):
            for line in said.get(key, ()):
                if not _execute(self.root, line, said, wait=oneshot or key != "ExecStart"):
                    self.active[unit] = "failed"
                    raise Failed(
                        1,
                        f"Job for {unit} failed because the control process exited with error code.\n"
                        f'See "systemctl status {unit}" and "journalctl -xeu {unit}" for details.',
                    )
        stays = not oneshot or said.get("RemainAfterExit", ["no"])[-1] in ("yes", "true", "1", "on")
        self.active[unit] = "active" if stays else "inactive"

    def stop(self, unit: str) -> None:
        """Stop it; one without a file is not loaded."""
        if path_of(self.root, unit) is None and unit not in self.active:
            raise Failed(5, f"Failed to stop {unit}: Unit {unit} not loaded.")
        said = settings(self.root, unit)
        if unit.endswith(".mount"):
            unmount(self.root, mount_point(unit))
        elif unit.endswith(".service") and self.state(unit) == "active":
            for line in said.get("Service", {}).get("ExecStop", ()):
                _execute(self.root, line, said.get("Service", {}), wait=True)
        self.active.pop(unit, None)


def _conditions(root: str, unit: dict[str, list[str]]) -> bool:
    """Conditions on paths; one that does not hold skips the unit without failing it."""
    for key, test in (("ConditionPathExists", os.path.exists), ("ConditionPathIsDirectory", os.path.isdir)):
        for path in unit.get(key, ()):
            if test(at(root, path.lstrip("!|"))) == path.startswith("!"):
                return False
    return True


def _execute(root: str, line: str, said: dict[str, list[str]], wait: bool) -> bool:
    """Run a line of Exec…= when `wait`; else only look whether its program is there, and tell a stand-in."""
    if root != "/":  # seen from outside the machine, nothing of it can run: it is taken to have succeeded
        return True
    ignore = "-" in line[: len(line) - len(line.lstrip("-@:+!"))]
    words = shlex.split(line.lstrip("-@:+!").replace("$$", "$").replace("%%", "%"))
    program = _program(root, words[0])
    if program is None:
        return ignore
    stand_in = program.startswith("/usr/local/sbin/")
    if not wait and not stand_in:
        return True
    environment = {
        "PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin"),
        "LANG": "C.UTF-8",
        "SIM_SERVICE": "" if wait else "start",
    }
    for item in said.get("Environment", ()):
        environment.update(_pair(pair) for pair in shlex.split(item))
    before = kernel.watched(root)
    done = subprocess.run(
        [program, *words[1:]], check=False, env=environment, cwd="/", stdin=subprocess.DEVNULL, timeout=120
    )
    kernel.settle(root, before)
    return ignore or done.returncode == 0


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def _program(root: str, path: str) -> str | None:
    """The program to run: where it says, or the stand-in of that name."""
    stand_in = f"/usr/local/sbin/{os.path.basename(path)}"
    for one in (stand_in, path, *(f"{folder}/{path}" for folder in ("/usr/sbin", "/usr/bin") if "/" not in path)):
        if os.path.lexists(at(root, one)) and os.access(one, os.X_OK):
            return one
    return None


# -- mounts


def mount_point(unit: str) -> str:
    """Where a mount unit mounts: `dev-hugepages1G.mount` at /dev/hugepages1G."""
    text = unit[: -len(".mount")]
    return "/" + text.replace("-", "/").replace("\\x2d", "-")


def mounted(root: str, point: str) -> bool:
    """Whether /proc/mounts lists something there."""
    return any(line.split()[1] == point for line in (read(root, "/proc/mounts") or "").splitlines() if line.strip())


def mount(root: str, what: str, point: str, kind: str, options: str) -> None:
    """List it in /proc/mounts, as the kernel shows it."""
    os.makedirs(at(root, point), exist_ok=True)
    shown = options
    if kind == "hugetlbfs":
        wanted = dict(word.partition("=")[::2] for word in options.split(","))
        size = {"1G": "1024M", "1024M": "1024M", "2M": "2M", "2048k": "2M"}.get(wanted.get("pagesize", "2M"), "2M")
        shown = f"rw,relatime,pagesize={size}"
    lines = (read(root, "/proc/mounts") or "") + f"{what} {point} {kind} {shown or 'rw,relatime'} 0 0\n"
    put(root, "/proc/mounts", lines, 0o444)


def unmount(root: str, point: str) -> bool:
    """Take the last mount there out of /proc/mounts; False when there is none."""
    lines = (read(root, "/proc/mounts") or "").splitlines()
    for number in range(len(lines) - 1, -1, -1):
        if lines[number].split()[1] == point:
            del lines[number]
            put(root, "/proc/mounts", "".join(line + "\n" for line in lines), 0o444)
            return True
    return False


def _mount_unit(root: str, said: dict[str, list[str]], unit: str) -> None:
    what, point = said.get("What", ["none"])[-1], said.get("Where", [mount_point(unit)])[-1]
    if point != mount_point(unit):
        raise Failed(1, f"Failed to start {unit}: Unit {unit} has a bad unit file setting.")
    kind, options = said.get("Type", ["auto"])[-1], ",".join(said.get("Options", ()))
    if (
        kind == "hugetlbfs"
        and "pagesize=1G" in options
        and not there(root, "/sys/kernel/mm/hugepages/hugepages-1048576kB")
    ):
        raise Failed(
            1, f'Job for {unit} failed.\nSee "systemctl status {unit}" and "journalctl -xeu {unit}" for details.'
        )
    mount(root, what, point, kind, options)


# -- what is enabled


def enabled(root: str, unit: str) -> str:
    """enabled, disabled, static, masked, or empty for a unit without a file."""
    if path_of(root, unit) is None:
        return ""
    if masked(root, unit):
        return "masked"
    if _links(root, unit):
        return "enabled"
    return "disabled" if settings(root, unit).get("Install") else "static"


def _links(root: str, unit: str) -> list[str]:
    """The links that enable it."""
    found = []
    for place in PLACES:
        for folder in names(root, place):
            if folder.endswith((".wants", ".requires")) and os.path.islink(at(root, f"{place}/{folder}/{unit}")):
                found.append(f"{place}/{folder}/{unit}")
    return found


def enable(root: str, unit: str) -> list[str]:
    """Make its links; what systemctl prints of it."""
    path = path_of(root, unit)
    if path is None:
        raise Failed(1, f"Failed to enable unit: Unit file {unit} does not exist.")
    if masked(root, unit):
        raise Failed(1, f"Failed to enable unit: Unit file {path} is masked.")
    install = settings(root, unit).get("Install", {})
    printed = []
    for key, suffix in (("WantedBy", "wants"), ("RequiredBy", "requires")):
        for target in " ".join(install.get(key, ())).split():
            link = f"{OWN}/{target}.{suffix}/{unit}"
            if not os.path.islink(at(root, link)):
                os.makedirs(at(root, os.path.dirname(link)), exist_ok=True)
                os.symlink(path, at(root, link))
                printed.append(f"Created symlink {link} → {path}.")
    return printed


def disable(root: str, unit: str) -> list[str]:
    """Take its links away."""
    links = [link for link in _links(root, unit) if link.startswith(OWN)]
    if path_of(root, unit) is None and not links:
        raise Failed(1, f"Failed to disable unit: Unit file {unit} does not exist.")
    for link in links:
        drop(root, link)
    return [f'Removed "{link}".' for link in links]


def boot(root: str) -> None:
    """Start what is enabled: early boot first, then the default target's, each in the order of After and Before."""
    manager = Manager(root)
    for target in ("local-fs", "swap", "sysinit", "basic", "multi-user", "graphical", "default", "timers", "sockets"):
        wanted = {
            name
            for place in PLACES
            for suffix in ("wants", "requires")
            for name in names(root, f"{place}/{target}.target.{suffix}")
        }
        for unit in _ordered(root, sorted(wanted)):
            try:
                manager.start(unit)
            except Failed:
                continue
    manager.save()


def _ordered(root: str, units: list[str]) -> list[str]:
    after = {unit: set() for unit in units}  # type: dict[str, set[str]]
    for unit in units:
        said = settings(root, unit).get("Unit", {})
        after[unit] |= {other for other in " ".join(said.get("After", ())).split() if other in after}
        for other in " ".join(said.get("Before", ())).split():
            if other in after:
                after[other].add(unit)
    done: list[str] = []
    while len(done) < len(units):
        ready = [unit for unit in units if unit not in done and after[unit] <= set(done)]
        done += ready or [unit for unit in units if unit not in done]
    return done


# -- the program


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
            _mask(root, unit, verb == "mask")
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


def _mask(root: str, unit: str, on: bool) -> None:
    link = f"{OWN}/{unit}"
    if on:
        if os.path.lexists(at(root, link)) and not os.path.islink(at(root, link)):
            raise Failed(1, f"Failed to mask unit: File {link} already exists.")
        drop(root, link)
        os.symlink("/dev/null", at(root, link))
    elif masked(root, unit):
        drop(root, link)


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
        sub = {"active": "running", "failed": "failed"}.get(state_now, "dead")
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
            out += "\n".join(f"# {place}\n{text}" for place, text in _texts(root, unit))
        else:
            out += (
                f"● {unit}\n     Loaded: loaded ({path}; {enabled(root, unit)})\n     Active: {manager.state(unit)}\n"
            )
    rc = 0 if verb == "cat" or all(manager.state(unit) == "active" for unit in units) else 3
    return rc, out, ""


def unit_file(root: str, name: str, text: str, started: bool = False) -> None:
    """Give the machine a packaged unit; when `started`, enabled too, so that it runs from the next boot."""
    put(root, f"/usr/lib/systemd/system/{name}", text)
    if started:
        enable(root, name)
    need(root, f"/usr/lib/systemd/system/{name}")
