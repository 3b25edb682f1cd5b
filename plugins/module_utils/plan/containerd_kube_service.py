# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd's service for the kubelet: started at boot, running, and answering."""

from __future__ import annotations

from ..core.plan import Todo
from ..core.step import Effect, fail
from .containerd_daemon import CALL, Daemon
from .containerd_seen import UNIT_FILE
from .systemd import control
from .systemd_asks import RUNS
from .unit_names import K8S_JOIN as UNIT


def enable(todo: Todo, daemon: Daemon) -> None:
    """Have it started at boot; a step fails where it can never run."""
    load, enabled = daemon.load, daemon.enabled
    message = ""
    if load == "not-found":
        message = f"{UNIT}: there is no {UNIT_FILE}, by which containerd is run: install containerd as a package"
    elif enabled.startswith("masked"):
        message = f"{UNIT}: {UNIT_FILE} is masked: unmask it (systemctl unmask containerd) and run again"
    if message:
        todo.add(fail("start containerd", message, retryable=False))
    elif enabled == "disabled":
        todo.add(control("enable", UNIT_FILE, "have containerd started at boot"))


def start(todo: Todo, daemon: Daemon) -> None:
    """Have it running; what runs has to answer."""
    if daemon.active not in RUNS:
        effects = (Effect("answers", CALL),)
        todo.add(control("start", UNIT_FILE, "start containerd", barrier=True, effects=effects))
    elif daemon.silent:
        message = (
            f"{UNIT}: containerd runs and its CRI does not answer ({daemon.silent}), which the kubelet needs: see "
            "journalctl -u containerd for why, and run again"
        )
        todo.add(fail("ask containerd for its version", message))
