# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server in a process of its own, on a real unix socket, and what clients do to it."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PATIENCE = 30.0  # seconds for what is to happen at once; the machine may be busy


class Served:
    """A server that runs: where it listens, its process, and how that ended."""

    def __init__(self, path: str, process: int) -> None:
        self.path = path
        self.process = process
        self.status: int | None = None

    def ask(self, data: bytes | Any) -> Any:
        """The answer to one request, JSON both ways."""
        with self.connect() as client:
            with suppress(BrokenPipeError, ConnectionResetError):  # it may know its answer before it has all
                client.sendall(data if isinstance(data, bytes) else json.dumps(data).encode())
                client.shutdown(socket.SHUT_WR)
            return answer(client)

    def connect(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(PATIENCE)
        client.connect(self.path)
        return client

    def ended(self, within: float = PATIENCE) -> int:
        """The exit status, negative for a signal, once the process has ended."""
        end = time.monotonic() + within
        while self.status is None:
            if time.monotonic() > end:
                raise AssertionError(f"the server still runs after {within:g} seconds")
            process, status = os.waitpid(self.process, os.WNOHANG)
            if process:
                self.status = os.waitstatus_to_exitcode(status)
            else:
                time.sleep(0.01)
        return self.status


def answer(client: socket.socket) -> Any:
    """What comes back to the end; None where nothing does."""
    found = b""
    with suppress(ConnectionResetError):
        while part := client.recv(65_536):
            found += part
    return json.loads(found) if found else None


@contextmanager
def serving(serve: Callable[[socket.socket], int | None], log: Path | None = None) -> Iterator[Served]:
    """Run `serve` over a listening socket in a child process; it is told to stop at the end, and has to."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        Path(folder).chmod(0o755)
        path = f"{folder}/s"
        listener.bind(path)
        Path(path).chmod(0o666)
        listener.listen(128)
        process = os.fork()
        if not process:
            _serve(serve, listener, log)
        listener.close()
        found = Served(path, process)
        try:
            yield found
        finally:
            if found.status is None:
                os.kill(process, signal.SIGTERM)
                found.ended()


def _serve(serve: Callable[[socket.socket], int | None], listener: socket.socket, log: Path | None) -> None:
    status = 70
    try:
        if log is not None:
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
        status = serve(listener) or 0
    except BaseException as fault:  # noqa: BLE001 - the exit status tells
        sys.stderr.write(f"{type(fault).__name__}: {fault}\n")
    finally:
        os._exit(status)
