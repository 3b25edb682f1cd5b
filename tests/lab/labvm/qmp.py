# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""QEMU's control socket: connect, one command at a time, errors as LabError."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class QmpError(Exception):
    """QEMU refused a command, or is gone."""


class Qmp:
    """A connection to a QEMU. Use it as a context manager; each machine takes one client at a time."""

    def __init__(self, path: Path, timeout: float = 120) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(str(path))
            self._stream = self._socket.makefile("rwb")
            self._read()  # the greeting
            self.command("qmp_capabilities")
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Qmp:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._socket.close()

    def command(self, name: str, **arguments: Any) -> Any:
        """Runs a QMP command and returns its value; events in between are dropped."""
        request: dict[str, Any] = {"execute": name}
        if arguments:
            request["arguments"] = {key.replace("_", "-"): value for key, value in arguments.items()}
        self._stream.write(json.dumps(request).encode() + b"\n")
        self._stream.flush()
        while True:
            answer = self._read()
            if "error" in answer:
                raise QmpError(f"QEMU refused {name}: {answer['error'].get('desc', answer['error'])}")
            if "return" in answer:
                return answer["return"]

    def monitor(self, line: str) -> str:
        """Runs a line of the human monitor. savevm and loadvm answer with text only when they fail."""
        return str(self.command("human-monitor-command", command_line=line)).strip()

    def status(self) -> str:
        """running, paused, inmigrate, ..."""
        return str(self.command("query-status")["status"])

    def _read(self) -> dict[str, Any]:
        line = self._stream.readline()
        if not line:
            raise QmpError("QEMU closed its control socket")
        answer: dict[str, Any] = json.loads(line)
        return answer


def connect(path: Path, alive: Callable[[], bool], limit: float = 20) -> Qmp:
    """Waits for the control socket of a QEMU that was just started.

    alive: whether that QEMU still runs. limit: seconds. Raises QmpError when it ends or never listens.
    """
    end = time.monotonic() + limit
    while True:
        try:
            return Qmp(path)
        except (FileNotFoundError, ConnectionRefusedError):
            if not alive():
                raise QmpError("QEMU ended at its start") from None
            if time.monotonic() > end:
                raise QmpError(f"QEMU did not open its control socket within {limit:g} s") from None
            time.sleep(0.05)
