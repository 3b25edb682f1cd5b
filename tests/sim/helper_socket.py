# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated host's bcd helper: systemd's part, and the program's own code from this checkout, as root, in the tree.

The socket is a real one. What another account of the host may do with it, this machine's kernel decides.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable

from .machine import at, put, read
from .standins import JOURNAL

CODE = "/usr/lib/bcd/checkout"  # where the program's package lies in the tree
SOCKET = "/run/bcd/helper.sock"
CONFIG = "/etc/bcd/config.toml"
GROUP, GID = "bcd", 990
MEMBER, STRANGER = "admin", "guest"  # accounts of the host: in the group, and not
STARTS = 5  # that end badly one after the other: then systemd gives the socket up, and who waits there is told
START = (
    "import sys; sys.dont_write_bytecode = True; sys.path.insert(0, '/.sim/lib'); from tests.sim import helper_socket; "
    "helper_socket.listen()"
)
LOG = "/var/log/sim/helper.log"  # what the service says
MODULE_UTILS = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))), "plugins", "module_utils"
)


class HelperSocket:
    """The helper of a tree, listening within the context; `edit` is given the folder of its code before it starts."""

    def __init__(
        self,
        tree: str,
        python: str,
        entry: Callable[..., list[str]],
        ready: float,
        edit: Callable[[str], None] | None,
    ) -> None:
        self._tree = tree
        self._python = python  # by its own path: it has its packages, cryptography among them
        self._entry = entry
        self._ready = ready
        self._edit = edit
        self._service: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> HelperSocket:
        install(self._tree)
        if self._edit is not None:
            self._edit(at(self._tree, f"{CODE}/bcd"))
        with open(at(self._tree, LOG), "ab") as log:
            self._service = subprocess.Popen(
                self._entry(self._python, "-c", START),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        end = time.monotonic() + self._ready
        while not os.path.exists(at(self._tree, SOCKET)):
            if self._service.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the helper does not start: {self.log()}")
            time.sleep(0.02)
        return self

    def __exit__(self, *_fault: object) -> None:
        if self._service is not None:
            os.killpg(self._service.pid, signal.SIGTERM)
            self._service.wait(60)
        os.unlink(at(self._tree, SOCKET))

    def log(self) -> str:
        """What the service has said."""
        return read(self._tree, LOG) or ""


def install(tree: str) -> None:
    """The program's code, and who may use it."""
    accounts(tree)
    if read(tree, CONFIG) is None:
        configure(tree, "# Root's configuration of bcd.\n")
    shutil.rmtree(at(tree, CODE), ignore_errors=True)
    shutil.copytree(MODULE_UTILS, at(tree, f"{CODE}/bcd"), ignore=shutil.ignore_patterns("__pycache__"))


def configure(tree: str, text: str) -> None:
    """Root's configuration as an enrolled host has it: the group reads it, and root alone writes it."""
    put(tree, CONFIG, text, 0o640)
    os.chmod(at(tree, os.path.dirname(CONFIG)), 0o750)  # noqa: S103  (as the role bcd_config has it)
    for path in (CONFIG, os.path.dirname(CONFIG)):
        os.chown(at(tree, path), 0, GID)


def accounts(tree: str) -> None:
    """A group of those who may use a helper, an account that may not, and what each needs to log in and be told of."""
    for path, line in (
        ("/etc/group", f"{GROUP}:x:{GID}:{MEMBER}\n{STRANGER}:x:1001:\n"),
        ("/etc/passwd", f"{STRANGER}:x:1001:1001::/home/{STRANGER}:/bin/sh\n"),
    ):
        text = read(tree, path) or ""
        if line not in text:
            put(tree, path, text + line)
    for name, uid in ((MEMBER, 1000), (STRANGER, 1001)):
        os.makedirs(at(tree, f"/home/{name}"), exist_ok=True)
        os.chown(at(tree, f"/home/{name}"), uid, uid)
    os.chmod(at(tree, "/var/log/sim"), 0o777)  # noqa: S103  (of the simulator: whoever calls a stand-in)
    put(tree, JOURNAL, read(tree, JOURNAL) or "", 0o666)
    os.chmod(at(tree, "/root"), 0o711)  # noqa: S103  (an interpreter may lie below it)


def listen() -> None:
    """Inside, in systemd's place: the socket, and the service whenever somebody connects while it does not run."""
    os.makedirs(os.path.dirname(SOCKET), mode=0o755, exist_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(SOCKET)
    os.chown(SOCKET, 0, GID)
    os.chmod(SOCKET, 0o660)
    listener.listen(128)
    signal.signal(signal.SIGTERM, _end)  # which the service gets as well, and ends what it does
    ended_badly = 0
    while ended_badly < STARTS:
        select.select([listener], [], [])
        service = os.fork()
        if service == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.dup2(listener.fileno(), 3)
            os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
            sys.path[:] = [CODE, *(place for place in sys.path if place != "/.sim/lib")]
            from bcd.front.helper_service import serve  # type: ignore[import-not-found]

            os._exit(serve())
        _pid, status = os.waitpid(service, 0)
        ended_badly = ended_badly + 1 if status else 0
        if status:
            sys.stderr.write(f"the service ended with {status}\n")
            time.sleep(0.2)


def _end(_number: int, _frame: object) -> None:
    with contextlib.suppress(ChildProcessError):
        os.wait()
    os._exit(0)
