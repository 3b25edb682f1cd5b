# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine that this runs on, as kubeadm, kubelet and kubectl see it; and a kubelet that stays up as a service."""

from __future__ import annotations

import http.client
import http.server
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from . import kubelet
from .worker import KUBELET, Worker

HEALTHZ = 10248
PORT = 10250
ROUND = 1.0  # seconds between two rounds of the kubelet
FOLDERS = ("device-plugins", "pki", "plugins", "plugins_registry", "pod-resources", "pods")


class RealWorker(Worker):
    """See Worker; `version` is that of all three programs."""

    def __init__(self, version: str) -> None:
        self.version = self.kubelet_version = version
        self.hostname = socket.gethostname()
        self.has_runtime_config = _containerd() >= 2

    def read(self, path: str) -> str | None:
        try:
            with open(path, encoding="utf-8") as source:
                return source.read()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        draft = f"{path}.draft"
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as out:
            os.fchmod(out.fileno(), mode)
            out.write(text)
        os.replace(draft, path)

    def link(self, path: str, target: str) -> None:
        self.remove(path)
        os.symlink(target, path)

    def remove(self, path: str) -> None:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.remove(path)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def names(self, path: str) -> Sequence[str]:
        return sorted(os.listdir(path)) if os.path.isdir(path) else ()

    def has(self, program: str) -> bool:
        return shutil.which(program) is not None

    def cri_fault(self) -> str:
        """By what containerd says of its plugins: the CRI's service answers exactly when its plugin is loaded."""
        where = 'for endpoint "unix:///run/containerd/containerd.sock": rpc error: code ='
        try:
            done = _run("ctr", "plugins", "ls")
        except FileNotFoundError:
            done = None
        if done is None or done.returncode:
            return f"validate CRI v1 runtime API {where} Unavailable desc = connection error"
        rows = (line.split() for line in done.stdout.splitlines())
        if any(row[1:2] == ["cri"] and row[-1] == "ok" for row in rows):
            return ""
        return f"validate CRI v1 runtime API {where} Unimplemented desc = unknown service runtime.v1.RuntimeService"

    def is_taken(self, port: int) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    def is_enabled(self) -> bool:
        return _run("systemctl", "is-enabled", "--quiet", "kubelet.service").returncode == 0

    def is_healthy(self) -> bool:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", HEALTHZ, timeout=1)
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except OSError:
            return False

    def start_kubelet(self) -> None:
        _run("systemctl", "restart", "kubelet.service")

    def stop_kubelet(self) -> None:
        _run("systemctl", "stop", "kubelet.service")

    def log(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def unmount(self, path: str) -> bool:
        return _run("umount", path).returncode == 0

    def remove_pods(self) -> None:
        """There are none: this kubelet runs no container."""

    def clock(self) -> float:
        return time.monotonic()

    def time(self) -> int:
        return int(time.time())

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def _run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def _containerd() -> int:
    """The major version of the containerd that is installed, 0 for none."""
    try:
        words = _run("containerd", "--version").stdout.split()
    except FileNotFoundError:
        return 0
    return int(words[2].lstrip("v").partition(".")[0]) if len(words) > 2 else 0


class _Healthz(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_words: Any) -> None:
        """Not into the kubelet's log."""


def run_kubelet(worker: Worker) -> int:
    """Stay up, with healthz and the port that a kubelet takes; the exit status when it cannot."""
    if not kubelet.start(worker):
        return 1
    for name in FOLDERS:
        os.makedirs(f"{KUBELET}/{name}", exist_ok=True)
    for port in (HEALTHZ, PORT):
        server = http.server.ThreadingHTTPServer(("127.0.0.1" if port == HEALTHZ else "", port), _Healthz)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    while True:
        kubelet.sync(worker)
        worker.sleep(ROUND)
