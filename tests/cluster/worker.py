# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kubeadm, kubelet and kubectl see of a machine, and do to it."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Sequence

KUBERNETES = "/etc/kubernetes"
KUBELET = "/var/lib/kubelet"
KUBELET_CONF = f"{KUBERNETES}/kubelet.conf"
BOOTSTRAP_CONF = f"{KUBERNETES}/bootstrap-kubelet.conf"
CA = f"{KUBERNETES}/pki/ca.crt"
MANIFESTS = f"{KUBERNETES}/manifests"
CONFIG = f"{KUBELET}/config.yaml"
INSTANCE_CONFIG = f"{KUBELET}/instance-config.yaml"
FLAGS = f"{KUBELET}/kubeadm-flags.env"
CERTIFICATE = f"{KUBELET}/pki/kubelet-client-current.pem"
SWAPS = "/proc/swaps"
FORWARD = "/proc/sys/net/ipv4/ip_forward"


class Worker(ABC):
    """A machine. `version` is kubeadm's ("1.36.2"), `kubelet_version` the kubelet's.

    `cgroups` is 1 or 2; `has_runtime_config`: its containerd tells the cgroup driver (2.x); `verification`: what
    kubeadm's verification of the system finds wrong; `kubelet_fault`: what the kubelet
    dies of besides; `pace`: seconds between two looks of a program that waits.
    """

    version = "1.36.2"
    kubelet_version = "1.36.2"
    hostname = "gpu-01"
    cgroups = 2
    has_runtime_config = True
    verification: Sequence[str] = ()
    kubelet_fault = ""
    pace = 0.5
    is_registered = False  # by the kubelet that runs
    reached = ""  # the last stage of kubeadm's

    @property
    def minor(self) -> int:
        """kubeadm's: 36."""
        return int(self.version.split(".")[1])

    @property
    def kubelet_minor(self) -> int:
        """The kubelet's."""
        return int(self.kubelet_version.split(".")[1])

    # -- files

    @abstractmethod
    def read(self, path: str) -> str | None:
        """The text, None when it is absent."""

    @abstractmethod
    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Replace a file."""

    @abstractmethod
    def link(self, path: str, target: str) -> None:
        """Have a symbolic link."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove a file, a link, or a folder with all that is in it; what is absent is fine."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder."""

    @abstractmethod
    def names(self, path: str) -> Sequence[str]:
        """What a folder holds."""

    # -- the rest

    @abstractmethod
    def has(self, program: str) -> bool:
        """Whether a program is installed."""

    @abstractmethod
    def cri_fault(self) -> str:
        """What the container runtime answers where it does not serve ("" when it does)."""

    @abstractmethod
    def is_taken(self, port: int) -> bool:
        """Whether something listens there."""

    @abstractmethod
    def is_enabled(self) -> bool:
        """Whether the kubelet's service starts at boot."""

    @abstractmethod
    def is_healthy(self) -> bool:
        """Whether the kubelet answers at its healthz."""

    @abstractmethod
    def start_kubelet(self) -> None:
        """(Re)start its service."""

    @abstractmethod
    def stop_kubelet(self) -> None:
        """Stop its service."""

    @abstractmethod
    def log(self, line: str) -> None:
        """A line of the kubelet's log."""

    def mounts(self) -> Sequence[str]:
        """Where something is mounted."""
        return [line.split()[1] for line in (self.read("/proc/mounts") or "").splitlines()]

    @abstractmethod
    def unmount(self, path: str) -> bool:
        """Whether that could be."""

    @abstractmethod
    def remove_pods(self) -> None:
        """All pod sandboxes of the container runtime."""

    @abstractmethod
    def clock(self) -> float:
        """Monotonic seconds."""

    @abstractmethod
    def time(self) -> int:
        """Unix time."""

    @abstractmethod
    def sleep(self, seconds: float) -> None:
        """Wait."""

    def stage(self, name: str) -> None:
        """kubeadm gets here: preflight, discovery, kubelet-start, kubelet-wait-bootstrap, done."""
        self.reached = name

    # -- what follows from it

    def has_swap(self) -> bool:
        """Whether any swap is on."""
        return len((self.read(SWAPS) or "").splitlines()) > 1

    def flags(self) -> dict[str, str]:
        """The kubelet's arguments as kubeadm left them."""
        text = (self.read(FLAGS) or "").strip().partition("=")[2]
        words = shlex.split(shlex.split(text)[0]) if text else []
        pairs = (word.lstrip("-").partition("=") for word in words)
        return {name: value for name, _equals, value in pairs}

    def node_name(self) -> str:
        """The name under which the kubelet registers."""
        return self.flags().get("hostname-override") or self.hostname.strip().lower()
