# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A control plane as a process, with its state kept in a folder over restarts; and its admin's words to it.

The admin speaks over a unix socket: one line of JSON, [method, *arguments], and one with the answer.
"""

from __future__ import annotations

import json
import socket
import socketserver
import time
from pathlib import Path
from typing import Any

from .control_plane import Cluster

SOCKET = "admin.sock"
STATE = "state.json"
KEPT = ("nodes", "tokens", "signed", "serial")  # of a Cluster, over restarts
METHODS = ("admin", "token", "expire", "labels", "taints", "node", "delete_node", "issue", "pod")
VALUES = ("pin", "url", "endpoint", "requests", "nodes")


def serve(folder: Path, port: int, version: str) -> None:
    """Serve until killed, from a folder that Cluster.export left."""
    cluster = Cluster(version, folder=folder, port=port)
    state = folder / STATE
    if state.exists():
        for name, value in json.loads(state.read_text(encoding="utf-8")).items():
            setattr(cluster, name, value)
    place = folder / SOCKET
    place.unlink(missing_ok=True)

    class Admin(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            method, *arguments = json.loads(self.rfile.readline())
            try:
                found = _do(cluster, method, arguments)
                said = {"answer": found}
            except (ValueError, KeyError) as fault:
                said = {"fault": str(fault)}
            _keep(cluster, state)
            self.wfile.write(json.dumps(said).encode() + b"\n")

    with socketserver.ThreadingUnixStreamServer(str(place), Admin) as server:
        server.daemon_threads = True
        server.timeout = 0.2
        kept = -1
        while True:
            server.handle_request()
            if cluster.serial != kept:
                kept = cluster.serial
                _keep(cluster, state)


def _keep(cluster: Cluster, state: Path) -> None:
    with cluster.lock:
        draft = state.with_suffix(".draft")
        draft.write_text(json.dumps({name: getattr(cluster, name) for name in KEPT}), encoding="utf-8")
        draft.replace(state)


def _do(cluster: Cluster, method: str, arguments: list[Any]) -> Any:
    if method in VALUES:
        return getattr(cluster, method)
    if method == "fault":
        setattr(cluster.faults, *arguments)
        return None
    if method not in METHODS:
        raise ValueError(f"the admin cannot {method}")
    with cluster.lock:
        return getattr(cluster, method)(*arguments)


def ask(folder: Path, method: str, *arguments: Any, patience: float = 10.0) -> Any:
    """What the control plane of a folder answers; raises ValueError for what it refuses."""
    end = time.monotonic() + patience
    while True:
        with socket.socket(socket.AF_UNIX) as talk:
            try:
                talk.connect(str(folder / SOCKET))
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
                continue
            talk.sendall(json.dumps([method, *arguments]).encode() + b"\n")
            said = json.loads(talk.makefile().readline())
        if "fault" in said:
            raise ValueError(said["fault"])
        return said["answer"]
