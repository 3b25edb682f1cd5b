# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated host as a value for tests: run programs in it, read and write its files, reboot it, play tricks on it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import boot, gpu, kernel, modules, played, standins, timeline
from . import machine as files
from .helper_socket import HelperSocket
from .tree import PROFILES, build

if TYPE_CHECKING:
    from tests.gpu.model import Machine as Gpus

HERE = os.path.dirname(os.path.realpath(__file__))


class SimulatedHost:
    """The machine in a tree."""

    def __init__(self, tree: str, python: str = sys.executable) -> None:
        self.tree = tree
        self.python = python

    @classmethod
    def of(cls, tree: str, profile: str, **changes: Any) -> SimulatedHost:
        """Build a machine of a profile, with fields of it changed."""
        return cls(build(tree, PROFILES[profile]._replace(**changes)))

    def run(
        self, *argv: str, uid: int = 0, account: str = "", stdin: str = "", timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run a program inside, as an account of the host where one is named; its exit status, output and error."""
        return subprocess.run(
            self.entry(*argv, uid=uid, account=account),
            check=False,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def entry(self, *argv: str, uid: int = 0, account: str = "") -> list[str]:
        """The words that run a program inside."""
        who = ["--account", account] if account else ["--uid", str(uid)]
        enter = [sys.executable, "-IS", os.path.join(HERE, "enter.py"), self.tree, "--python", self.python]
        return [*enter, *who, "--", *argv]

    def helper(self, *, ready: float = 30, edit: Callable[[str], None] | None = None) -> HelperSocket:
        """The host's bcd helper with its socket while the context lasts (see helper_socket.py)."""
        return HelperSocket(self.tree, self.python, self.entry, ready, edit)

    def read(self, path: str) -> str | None:
        """A file of it."""
        return files.read(self.tree, path)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Change a file of it by hand."""
        files.put(self.tree, path, text, mode)

    def set(self, path: str, value: str) -> None:
        """Write to a kernel file of it, as an administrator would by hand."""
        kernel.write(self.tree, path, value)

    def remove(self, path: str) -> None:
        """Remove a file of it."""
        files.drop(self.tree, path)

    def change(self, **fields: Any) -> None:
        """Change what the machine is built of; most of it shows at the next boot."""
        files.save(self.tree, files.load(self.tree)._replace(**fields))

    def reboot(self) -> str:
        """Reboot it from inside; the new boot id."""
        done = self.run("reboot")
        if done.returncode:
            raise RuntimeError(done.stderr)
        return (self.read("/proc/sys/kernel/random/boot_id") or "").strip()

    def hold_module(self, name: str, count: int) -> None:
        """Let something use a module so many times."""
        modules.hold(self.tree, name, count)

    def fault(self, *faults: dict[str, Any]) -> None:
        """Ask for faults, in place of those before; without any, all is well again."""
        for path in (standins.FAULTS, played.MUTATIONS):
            files.drop(self.tree, path)
        if faults:
            files.put(self.tree, standins.FAULTS, json.dumps(list(faults)) + "\n")

    def calls(self, program: str = "") -> list[list[str]]:
        """The calls of stand-ins so far, of one program or of all: the words of each."""
        found: list[list[str]] = [list(call["argv"]) for call in standins.calls(self.tree)]
        return [words for words in found if not program or words[0] == program]

    def changes(self) -> list[str]:
        """What the collection has changed since faults were last asked for, or the journal emptied: "set /sys/…"."""
        return [f"{change['kind']} {change['what']}" for change in played.mutations(self.tree)]

    def gpus(self) -> contextlib.AbstractContextManager[Gpus]:
        """Its GPUs (tests.gpu.model), to be looked at or changed: `with host.gpus() as gpus: gpus.occupy(0)`."""
        return gpu.editing(self.tree)

    def forget_calls(self) -> None:
        """Empty the journals of calls and of changes."""
        files.drop(self.tree, standins.JOURNAL)
        files.drop(self.tree, played.MUTATIONS)

    def up(self) -> None:
        """Bring a machine that never came back to life again."""
        files.drop(self.tree, boot.DOWN)
        timeline.note(self.tree, timeline.UP)
