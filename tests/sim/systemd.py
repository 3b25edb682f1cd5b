# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PID 1 of a simulated host: what is active, what is run, what a boot starts.

What the manager has in memory (active units, the digest of each loaded unit file) stands in /run/sim/units.json, so a
reboot forgets it; what is enabled or masked stands as links in /etc/systemd/system, as in the real one.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import Any

from . import gpu, kernel, mounts, swaps
from .machine import at, keep, names, state, there
from .units import PLACES, Failed, conditions, digest, masked, path_of, settings

MEMORY = "/run/sim/units.json"


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
            return "active" if mounts.mounted(self.root, mount_point(unit)) else "inactive"
        if unit.endswith(".swap"):
            return "active" if swaps.is_on(self.root, swap_area(unit)) else "inactive"
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
        if not conditions(self.root, said.get("Unit", {})):
            return
        if unit.endswith(".mount"):
            _mount_unit(self.root, said.get("Mount", {}), unit)
        elif unit.endswith(".swap"):
            refused = swaps.turn_on(self.root, swap_area(unit))
            if refused:
                raise Failed(1, f"Job for {unit} failed.\n{refused}")
        elif unit.endswith(".service"):
            self._service(unit, said.get("Service", {}))
        else:
            self.active[unit] = "active"

    def _service(self, unit: str, said: dict[str, list[str]]) -> None:
        oneshot = said.get("Type", ["simple"])[-1] == "oneshot"
        for folder in " ".join(said.get("RuntimeDirectory", ())).split():
            os.makedirs(at(self.root, f"/run/{folder}"), exist_ok=True)
        for key in ("ExecStartPre", "ExecStart", "ExecStartPost"):
            for line in said.get(key, ()):
                if not _execute(self.root, line, said, wait=oneshot or key != "ExecStart"):
                    self._ended(said)
                    if key == "ExecStart" and not oneshot and said.get("Restart", ["no"])[-1] == "always":
                        self.active[unit] = "activating"  # it was started; that it died comes after systemctl's end
                        return
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
            mounts.unmount(self.root, mount_point(unit))
        elif unit.endswith(".swap"):
            swaps.turn_off(self.root, [swap_area(unit)])
        elif unit.endswith(".service") and self.state(unit) == "active":
            for line in said.get("Service", {}).get("ExecStop", ()):
                _execute(self.root, line, said.get("Service", {}), wait=True)
            self._ended(said.get("Service", {}))
        self.active.pop(unit, None)

    def _ended(self, said: dict[str, list[str]]) -> None:
        """End what is left of a service, then run what comes after it."""
        gpu.service_ended(self.root, _environment(said))
        for line in said.get("ExecStopPost", ()):
            _execute(self.root, line, said, wait=True)


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
    environment.update(_environment(said))
    before = kernel.watched(root)
    done = subprocess.run(
        [program, *words[1:]], check=False, env=environment, cwd="/", stdin=subprocess.DEVNULL, timeout=120
    )
    kernel.settle(root, before)
    return ignore or done.returncode == 0


def _environment(said: dict[str, list[str]]) -> dict[str, str]:
    """What a service's Environment= sets."""
    return dict(_pair(pair) for item in said.get("Environment", ()) for pair in shlex.split(item))


def _pair(text: str) -> tuple[str, str]:
    name, _unused, value = text.partition("=")
    return name, value


def _program(root: str, path: str) -> str | None:
    """The program to run: where it says, or the stand-in of that name."""
    stand_in = f"/usr/local/sbin/{os.path.basename(path)}"
    for one in (stand_in, path, *(f"{folder}/{path}" for folder in ("/usr/sbin", "/usr/bin") if "/" not in path)):
        if os.path.lexists(at(root, one)) and os.access(one, os.X_OK):
            return one
    return None


def mount_point(unit: str) -> str:
    """Where a mount unit mounts: `dev-hugepages1G.mount` at /dev/hugepages1G."""
    text = unit[: -len(".mount")]
    return "/" + text.replace("-", "/").replace("\\x2d", "-")


def swap_area(unit: str) -> str:
    """What a swap unit turns on: `var-swap.swap` is /var/swap."""
    return mount_point(unit[: -len(".swap")] + ".mount")


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
    mounts.mount(root, what, point, kind, options)


def boot(root: str) -> None:
    """Start what is enabled: early boot first, then the default target's, each in the order of After and Before."""
    manager = Manager(root)
    for target in ("local-fs", "swap", "sysinit", "basic", "multi-user", "graphical", "default", "timers", "sockets"):
        if masked(root, f"{target}.target"):
            continue
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
