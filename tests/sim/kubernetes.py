# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubeadm, kubelet, kubectl and journalctl of a simulated host: the stand-ins of tests.cluster over its tree.

The control plane is a `tests.cluster.control_plane.Cluster` of the test's, at 127.0.0.1, which the hosts reach: their
network is not closed off. kubeadm's waiting costs no time. The kubelet is no process: it has a turn whenever systemctl
was called.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence

from tests.cluster.worker import CONFIG, Worker

from . import machine as files
from . import mounts, units
from .machine import append, at, load, names, read, state, there

Answer = tuple[int, str, str]
SERVICE = "kubelet.service"
# Whose each socket is. The kubelet's tells that no pod has a device: there are none.
CONTAINERD = "/run/containerd/containerd.sock"
SOCKETS = {
    CONTAINERD: "containerd.service",
    "/var/lib/kubelet/pod-resources/kubelet.sock": SERVICE,
}
LOG = "/var/log/sim/kubelet.log"
STAGES = "/var/log/sim/kubeadm-stages"
REGISTERED = "/run/sim/kubelet-registered"  # there while the kubelet that runs has registered its Node
PORT = 10250
SERVICE_FILE = """\
[Unit]
Description=kubelet: The Kubernetes Node Agent
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=10

[Install]
WantedBy=multi-user.target
"""


class Tree(Worker):
    """The machine in a tree. Waiting is counted, not done."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.waited = 0.0
        self.is_registered = there(root, REGISTERED)
        self.hostname = (read(root, "/etc/hostname") or "localhost").strip()
        self.version = _version(root, "kubeadm")
        self.kubelet_version = _version(root, "kubelet")
        self.has_runtime_config = not _version(root, "containerd").startswith("1.")

    def read(self, path: str) -> str | None:
        """A file."""
        return read(self.root, path)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Replace it."""
        files.put(self.root, path, text, mode)

    def link(self, path: str, target: str) -> None:
        """A link in place of whatever was there."""
        files.drop(self.root, path)
        os.symlink(target, at(self.root, path))

    def remove(self, path: str) -> None:
        """A file, a link, or a folder with all in it."""
        where = at(self.root, path)
        if os.path.isdir(where) and not os.path.islink(where):
            shutil.rmtree(where)
        else:
            files.drop(self.root, path)

    def exists(self, path: str) -> bool:
        """Whether it is there."""
        return there(self.root, path)

    def names(self, path: str) -> Sequence[str]:
        """What a folder holds."""
        return names(self.root, path)

    def has(self, program: str) -> bool:
        """A stand-in of the tree, or a program of the /usr below it."""
        places = (at(self.root, "/usr/local/sbin"), "/usr/sbin", "/usr/bin")
        return any(os.path.lexists(f"{place}/{program}") for place in places)

    def cri_fault(self) -> str:
        """containerd's answer, where it does not run."""
        fault = silence(self.root, CONTAINERD)
        return fault and f"rpc error: code = Unavailable desc = connection error: {fault}"

    def is_taken(self, port: int) -> bool:
        """The kubelet's port, while it runs."""
        return port == PORT and self.is_healthy()

    def is_enabled(self) -> bool:
        """Whether its service starts at boot."""
        return units.enabled(self.root, SERVICE) == "enabled"

    def is_healthy(self) -> bool:
        """Whether its service runs; it has a turn then."""
        turn(self.root)
        return active(self.root, SERVICE)

    def start_kubelet(self) -> None:
        """By systemd."""
        self._systemctl("restart")

    def stop_kubelet(self) -> None:
        """By systemd."""
        self._systemctl("stop")

    def log(self, line: str) -> None:
        """Into the journal of its service."""
        append(self.root, LOG, line + "\n")

    def unmount(self, path: str) -> bool:
        """Take the mount away."""
        return mounts.unmount(self.root, path)

    def remove_pods(self) -> None:
        """There are none."""

    def clock(self) -> float:
        """The clock, with what was waited."""
        return time.monotonic() + self.waited

    def time(self) -> int:
        """Unix time."""
        return int(time.time())

    def sleep(self, seconds: float) -> None:
        """Wait for that long, without waiting."""
        self.waited += seconds

    def stage(self, name: str) -> None:
        """Told to the test."""
        append(self.root, STAGES, name + "\n")

    def _systemctl(self, verb: str) -> None:
        from .systemctl import systemctl

        systemctl(self.root, [verb, SERVICE])


def _version(root: str, package: str) -> str:
    """The upstream version of a package, or of a runtime that the machine was built with."""
    from .packages import installed

    found = installed(root).get(package, {}).get("version") or dict(load(root).runtimes).get(package, "0.0.0")
    return str(found).rpartition(":")[2].partition("-")[0].partition("~")[0]


def active(root: str, unit: str) -> bool:
    """Whether a service runs."""
    from .systemd import MEMORY

    return bool(state(root, MEMORY).get("active", {}).get(unit) == "active")


def silence(root: str, path: str) -> str:
    """Why nobody answers at a socket, "" where somebody does."""
    unit = SOCKETS.get(path)
    return "" if unit and active(root, unit) else f"dial unix {path}: connect: no such file or directory"


def turn(root: str) -> None:
    """A running kubelet does its round; one that died is started again, as its service asks for."""
    if not there(root, CONFIG):
        return
    from tests.cluster import kubelet

    from .systemd import MEMORY, Manager

    shown = state(root, MEMORY).get("active", {}).get(SERVICE)
    worker = Tree(root)
    if shown == "activating" and kubelet.start(worker):
        manager = Manager(root)
        manager.active[SERVICE] = shown = "active"
        manager.save()
    if shown == "active":
        _round(worker)


def _round(worker: Tree) -> None:
    """It registers its Node once after a start, also where it is no process."""
    from tests.cluster import kubelet

    kubelet.sync(worker)
    if not worker.is_registered:
        files.drop(worker.root, REGISTERED)
    elif not there(worker.root, REGISTERED):
        files.put(worker.root, REGISTERED, "")


# -- programs


def kubeadm(root: str, argv: list[str]) -> Answer:
    """kubeadm version|config validate|join|reset."""
    from tests.cluster.kubeadm import kubeadm as program

    asks = argv[:1] == ["reset"] and not {"--force", "-f"} & set(argv)
    answer = program(Tree(root), ("kubeadm", *argv), sys.stdin.read() if asks else "")
    return answer.rc, answer.out, answer.err


def kubelet(root: str, argv: list[str]) -> Answer:
    """kubelet: told by the service manager to start; --version."""
    from tests.cluster import kubelet as program

    worker = Tree(root)
    if "--version" in argv:
        return 0, f"Kubernetes v{worker.kubelet_version}\n", ""
    if not program.start(worker):
        return 1, "", ""
    _round(worker)
    return 0, "", ""


def kubectl(root: str, argv: list[str]) -> Answer:
    """kubectl label|cordon|uncordon|drain|get, over HTTPS with the credentials of its kubeconfig."""
    from tests.cluster.kubectl import kubectl as program

    answer = program(Tree(root), ("kubectl", *argv))
    return answer.rc, answer.out, answer.err


def journalctl(root: str, argv: list[str]) -> Answer:
    """journalctl --unit=kubelet.service [--lines=N]: the kubelet's log; of other units nothing was kept."""
    words = {word.partition("=")[0]: word.partition("=")[2] for word in argv}
    if not words.get("--unit", "").startswith("kubelet"):
        return 0, "", ""
    lines = (read(root, LOG) or "").splitlines()[-int(words.get("--lines", "1000")) :]
    return 0, "".join(line + "\n" for line in lines), ""
