# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's Host on a simulated machine: its kernel files answer as a kernel does, and faults strike at a step.

A fault is a mapping in /etc/sim/faults.json (a list of them, or one):

    {"at_step": 3, "do": "kill", "when": "after"}        the third change of the machine; "before" is the default
    {"path": "/sys/*/nr_hugepages", "do": "EIO"}         every change of such a path (or program, by its words)
    {"read": "/proc/cmdline", "do": "EIO"}               every read of such a path

`do` is kill (SIGKILL to the module), lie (success, nothing done), hang (it takes an hour; a program runs into its
timeout, of `timeout` seconds), or the name of an error (EIO, ENOSPC, EACCES, EINVAL). Every change is counted in
/var/log/sim/mutations.jsonl, over all modules, until a test removes that file.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import json
import os
import re
import signal
import sys
import time
import types
from typing import Any

from . import kernel, kube_repository, kubernetes, standins
from .machine import append, at, drop, put, read
from .paths import inside

MUTATIONS = "/var/log/sim/mutations.jsonl"
LIBRARY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
MAPPED_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from tests.sim.standins import main; "
    "sys.exit(main(sys.argv[3:], sys.argv[2]))"
)


def stand_behind(module: types.ModuleType, root: str) -> None:
    """Put the simulated machine behind `module.Host`, and behind the lock where the tree is not this process's root."""
    if root != "/":
        _map_directories(module, root)
    module.Host = played(module, root)  # type: ignore[attr-defined]


def played(module: Any, root: str) -> Any:
    """The class Host of `module` (`core.host`) on the machine in `root`, mapped into it unless that is "/"."""
    base: Any = module.Host if root == "/" else _mapped(module, root)

    class Host(base):  # type: ignore[misc]
        """Host whose changes are counted, may fail, and reach the simulated kernel."""

        def read(self, path: str) -> str | None:
            """Read a file, or fail as a test asked."""
            for fault in standins.faults(root):
                if fnmatch.fnmatch(path, str(fault.get("read", ""))):
                    number = getattr(errno, str(fault["do"]))
                    raise module._unreadable(path, OSError(number, os.strerror(number), path))
            found: str | None = super().read(path)
            return found

        def unary(self, path: str, method: str, message: bytes = b"", timeout: float = 10.0) -> bytes:
            """Call a daemon of the machine: it answers with nothing, or is not there."""
            fault = kubernetes.silence(root, path)
            if fault:
                raise _failure(module)(f"{path} cannot be asked for {method}: {fault}: see that it runs")
            return b""

        def get(self, url: str, timeout: float, ca: str = "", certificate: str = "") -> Any:
            """Ask a server of the test's own, on this machine, or the repository of Kubernetes: there is no other."""
            if re.match(r"https://(127\.0\.0\.1|localhost)[:/]", url):
                return super().get(url, timeout, ca=ca, certificate=certificate)
            code, text = kube_repository.answer(url)
            return module.Answer(code, text, "OK" if code == 200 else "Forbidden")

        def write(self, path: str, text: str, mode: int) -> None:
            """Replace a file."""
            strike(root, "write", path, lambda: super(Host, self).write(path, text, mode))

        def remove(self, path: str) -> None:
            """Remove a file."""
            strike(root, "remove", path, lambda: super(Host, self).remove(path))

        def set(self, path: str, value: str) -> None:
            """Write a kernel value: the simulated kernel answers."""
            if kernel.plays(path):
                strike(root, "set", path, lambda: kernel.write(root, path, value))
            else:
                strike(root, "set", path, lambda: super(Host, self).set(path, value))

        def act(self, step: Any) -> None:
            """Run a program."""
            hang = strike(root, "run", " ".join(step.argv), lambda: super(Host, self).act(step), can_hang=True)
            if hang:
                put(root, standins.HANG, "")
                try:
                    super().act(step._replace(timeout=float(str(hang.get("timeout", 1)))))
                finally:
                    drop(root, standins.HANG)

    return Host


def _failure(module: Any) -> Any:
    """The class StepFailed of `core.errors` beside `module`."""
    return sys.modules[f"{module.__package__}.errors"].StepFailed


def _mapped(module: Any, root: str) -> Any:
    """For want of a namespace: Host with each path inside the tree, and stand-ins for programs."""

    class Mapped(module.Host):  # type: ignore[misc]
        """Every path in the tree."""

        def read(self, path: str) -> str | None:
            """A file of the tree; one that is given as it lies on this machine is taken as it is."""
            found: str | None = super().read(path if path.startswith(root + "/") else inside(root, path))
            return found

        def file(self, path: str) -> Any:
            """A file of the tree, owned by its root."""
            seen = super().file(_last_link(root, path))
            return seen and seen._replace(uid=0)

        def names(self, path: str) -> tuple[str, ...]:
            """A directory of the tree."""
            found: tuple[str, ...] = super().names(inside(root, path))
            return found

        def exists(self, path: str) -> bool:
            """Whether it is in the tree."""
            return bool(super().exists(inside(root, path)))

        def link(self, path: str) -> str | None:
            """A link of the tree."""
            found: str | None = super().link(_last_link(root, path))
            return found

        def stamp(self, path: str) -> Any:
            """A file of the tree."""
            return super().stamp(inside(root, path))

        def which(self, program: str) -> str | None:
            """A stand-in that the tree has; nothing else can run."""
            if program == sys.executable:
                return program
            place = f"/usr/local/sbin/{os.path.basename(program)}"
            return place if os.path.lexists(at(root, place)) else None

        def write(self, path: str, text: str, mode: int) -> None:
            """Replace a file of the tree, in one rename."""
            where = _last_link(root, path)
            os.makedirs(os.path.dirname(where), exist_ok=True)
            with open(where + ".bcd-new", "w", encoding="utf-8", errors="surrogateescape") as out:
                out.write(text)
            os.chmod(where + ".bcd-new", mode)
            os.replace(where + ".bcd-new", where)

        def remove(self, path: str) -> None:
            """Remove a file of the tree."""
            with contextlib.suppress(FileNotFoundError):
                os.unlink(_last_link(root, path))

        def uid(self) -> int:
            """Root, of the simulated machine."""
            return 0

        def _spawn(self, argv: tuple[str, ...], timeout: float, stdin: str) -> Any:
            if self.which(argv[0]) is None:
                return module.Answer(127, "", f"{argv[0]}: no such program")
            command = (sys.executable, "-ISc", MAPPED_PROGRAM, LIBRARY, root, *argv)
            try:
                return super()._spawn(command, timeout, stdin)
            except _failure(module) as fault:
                raise _failure(module)(str(fault).replace(" ".join(command), " ".join(argv))) from None

    return Mapped


def _map_directories(module: Any, root: str) -> None:
    """The directories of the lock, and of whatever else the collection opens past Host."""

    def open_directory(path: str, create: bool = False) -> int:
        where = inside(root, path)
        if create:
            os.makedirs(where, exist_ok=True)
        return os.open(where, os.O_RDONLY | os.O_DIRECTORY)

    module.rootfs.open_directory = open_directory


def _last_link(root: str, path: str) -> str:
    """Where a path lies in the tree, a link at its end not followed."""
    directory, name = os.path.split(path)
    return os.path.join(inside(root, directory), name)


def strike(root: str, kind: str, what: str, change: Any, can_hang: bool = False) -> dict[str, Any] | None:
    """Count a change, make it, and let the faults that a test asked for happen; a hanging program is the caller's."""
    number = len((read(root, MUTATIONS) or "").splitlines()) + 1
    append(root, MUTATIONS, json.dumps({"step": number, "kind": kind, "what": what, "process": os.getpid()}) + "\n")
    fault = next((fault for fault in standins.faults(root) if _meant(fault, number, what)), None)
    do = str(fault["do"]) if fault else ""
    if fault is None:
        change()
    elif do == "kill":
        if fault.get("when") == "after":
            change()
        os.kill(os.getpid(), signal.SIGKILL)
    elif do == "hang":
        if can_hang:
            return fault
        time.sleep(3600)
    elif do != "lie":
        code = getattr(errno, do)
        raise OSError(code, os.strerror(code), what)
    return None


def _meant(fault: dict[str, Any], number: int, what: str) -> bool:
    if "at_step" in fault:
        return bool(fault["at_step"] == number)
    return "path" in fault and fnmatch.fnmatch(what, str(fault["path"]))


def mutations(root: str) -> list[dict[str, Any]]:
    """The changes so far: step, kind (write, remove, set, run), what, process."""
    return [json.loads(line) for line in (read(root, MUTATIONS) or "").splitlines()]
