# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host to measure passes on: what we keep lies on a real disk; GPUs, systemd and the kernel are played.

To be used in a jail (tests/unit/core/jail.py), whose root is a folder of the measurement's own. What is played answers
in a time that does not grow with the number of files, so that growth is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from tests.gpu.fake import GpuHost
from tests.gpu.model import Machine
from tests.unit.hold_host import MEMORY, describe
from tests.unit.slice_host import add_slices

OURS = ("/etc/cdi", "/run/bcd", "/var/lib/bcd-hostconfig")
MEMORY_MIB = 4 << 20


class Files(dict[str, File]):
    """Files by path, which know what each folder holds."""

    def __init__(self, files: Mapping[str, File]) -> None:
        super().__init__()
        self.folders: dict[str, dict[str, int]] = {}  # how many files lie below each name
        self.update(files)

    def __setitem__(self, path: str, file: File) -> None:
        if path not in self:
            self._count(path, 1)
        super().__setitem__(path, file)

    def __delitem__(self, path: str) -> None:
        super().__delitem__(path)
        self._count(path, -1)

    def setdefault(self, path: str, file: File) -> File:
        if path not in self:
            self[path] = file
        return self[path]

    def pop(self, path: str, *default: Any) -> Any:
        if path in self:
            self._count(path, -1)
        return super().pop(path, *default)

    def update(self, *more: Any, **named: Any) -> None:
        for path, file in dict(*more, **named).items():
            self[path] = file

    def _count(self, path: str, more: int) -> None:
        above, _slash, name = path.rpartition("/")
        while name:
            held = self.folders.setdefault(above, {})
            held[name] = held.get(name, 0) + more
            if not held[name]:
                del held[name]
            above, _slash, name = above.rpartition("/")


class Work:
    """What a pass did: bytes that it read and wrote, files that it read, changes, programs that it ran."""

    def __init__(self) -> None:
        self.read = self.written = self.reads = self.changes = self.programs = 0


class BenchHost(GpuHost):
    """Eight GPUs or so, their vendor's specification, systemd with slices; `work` counts what passes do."""

    def __init__(self, products: list[str]) -> None:
        self.disk = Host()
        self.work = Work()
        self.is_shown = False
        super().__init__(Machine.from_products(products))
        self.is_shown = True
        self.files = Files(self.files)
        add_slices(self)
        self.put("/proc/meminfo", MEMORY.format(MEMORY_MIB * 1024))
        describe(self)

    def sync(self) -> None:
        """The GPUs never change here."""
        if not self.is_shown:
            super().sync()

    def put(self, path: str, text: str) -> None:
        if path.startswith(OURS):
            self.disk.write(path, text, 0o644)
        else:
            super().put(path, text)

    # -- reads

    def read(self, path: str) -> str | None:
        found = self.disk.read(path) if path.startswith(OURS) else super().read(path)
        self.work.reads += 1
        self.work.read += len(found or "")
        return found

    def file(self, path: str) -> File | None:
        found = self.disk.file(path) if path.startswith(OURS) else super().file(path)
        self.work.reads += 1
        self.work.read += len(found.text) if found else 0
        return found

    def names(self, path: str) -> tuple[str, ...]:
        if path.startswith(OURS):
            return self.disk.names(path)
        if not isinstance(self.files, Files):
            return super().names(path)
        prefix = path.rstrip("/") + "/"
        links = {link[len(prefix) :].split("/", 1)[0] for link in self.links if link.startswith(prefix)}
        return tuple(sorted(links.union(self.files.folders.get(path.rstrip("/"), ()))))

    def exists(self, path: str) -> bool:
        return self.disk.exists(path) if path.startswith(OURS) else super().exists(path)

    def link(self, path: str) -> str | None:
        return self.disk.link(path) if path.startswith(OURS) else super().link(path)

    def _call(self, argv: tuple[str, ...]) -> Answer:
        self.work.programs += 1
        return super()._call(argv)

    # -- changes

    def write(self, path: str, text: str, mode: int) -> None:
        self._count(text)
        if path.startswith(OURS):
            self.disk.write(path, text, mode)
        else:
            super().write(path, text, mode)

    def remove(self, path: str) -> None:
        self._count("")
        if path.startswith(OURS):
            self.disk.remove(path)
        else:
            super().remove(path)

    def set(self, path: str, value: str) -> None:
        self._count(value)
        super().set(path, value)

    def _count(self, text: str) -> None:
        self.work.changes += 1
        self.work.written += len(text)
