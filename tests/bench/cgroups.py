# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processor time and memory of groups of processes, by the kernel's control groups, v1 or v2.

A group is told apart by what its processes do, not by whose children they are: what Ansible starts on a "host" is moved
into another group than Ansible's own before it becomes the program that is measured.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

GROUPS = ("controller", "host", "tools")


class NoGroups(Exception):
    """No control group can be made here; the message says why."""


class Groups:
    """The groups of one bench run, each below a folder of its own in every hierarchy that is used."""

    def __init__(self, name: str, mounts: str = "/proc/self/mounts", own: str = "/proc/self/cgroup") -> None:
        places = hierarchies(Path(mounts).read_text(encoding="utf-8"), Path(own).read_text(encoding="utf-8"))
        if "cpu" not in places:
            raise NoGroups("the kernel shows neither cpuacct nor a v2 hierarchy")
        self._tops = {kind: place / name for kind, place in places.items()}
        try:
            for top in self._tops.values():
                for group in GROUPS:
                    (top / group).mkdir(parents=True, exist_ok=True)
                _share_memory(top)
            probe = self._file("cpu", "controller", "cgroup.procs")
            if not os.access(probe, os.W_OK):
                raise NoGroups(f"{probe} cannot be written to")
            self.cpu("controller")
        except OSError as fault:
            self.remove()
            raise NoGroups(f"{fault.filename}: {fault.strerror}") from None

    def _file(self, kind: str, group: str, name: str) -> Path:
        return self._tops[kind] / group / name

    def doors(self, group: str) -> list[str]:
        """The files to which a process writes 0, or its number, to belong to the group."""
        return sorted({str(self._file(kind, group, "cgroup.procs")) for kind in self._tops})

    def cpu(self, group: str) -> float:
        """Seconds of processor time that the group's processes, ended ones too, have used."""
        with contextlib.suppress(FileNotFoundError):
            return int(self._file("cpu", group, "cpuacct.usage").read_text(encoding="ascii")) / 1e9
        words = self._file("cpu", group, "cpu.stat").read_text(encoding="ascii").split()
        return int(words[words.index("usage_usec") + 1]) / 1e6

    def forget_peak(self, group: str) -> None:
        """Let the peak of the group's memory begin anew."""
        for name, text in (("memory.force_empty", "0"), ("memory.max_usage_in_bytes", "0"), ("memory.peak", "reset")):
            with contextlib.suppress(OSError):
                if "memory" in self._tops and self._file("memory", group, name).exists():
                    self._file("memory", group, name).write_text(text, encoding="ascii")

    def peak(self, group: str) -> int | None:
        """The most bytes that the group's processes had at once, files they read included; None where unknown."""
        for name in ("memory.max_usage_in_bytes", "memory.peak"):
            with contextlib.suppress(OSError, KeyError):
                return int(self._file("memory", group, name).read_text(encoding="ascii"))
        return None

    def remove(self) -> None:
        """Take the groups away; a process that has not ended yet is waited for."""
        for top in self._tops.values():
            for folder in (*(top / group for group in GROUPS), top):
                for _turn in range(50):
                    try:
                        folder.rmdir()
                    except FileNotFoundError:
                        pass
                    except OSError:
                        time.sleep(0.1)
                        continue
                    break


def hierarchies(mounts: str, own: str) -> dict[str, Path]:
    """Where groups are made for "cpu" and "memory": below this process's own group. `mounts`, `own`: kernel's texts."""
    paths = {}  # controller, or "" for v2: the path of this process's group
    for line in own.splitlines():
        _number, controllers, path = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), path))
    found: dict[str, Path] = {}
    for line in mounts.splitlines():
        _source, point, kind, options = line.split()[:4]
        controller = {"cpuacct": "cpu", "memory": "memory"}
        if kind == "cgroup":
            for one in set(options.split(",")) & set(controller) & set(paths):
                found[controller[one]] = Path(point + paths[one])
        elif kind == "cgroup2" and "" in paths:
            for one in controller.values():
                found.setdefault(one, Path(point + paths[""]))
    return found


def _share_memory(top: Path) -> None:
    """In v2 a group has a memory's peak only where its parent hands the controller down."""
    with contextlib.suppress(OSError):
        (top / "cgroup.subtree_control").write_text("+memory", encoding="ascii")
