# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host in memory whose kubelet is tests.kubelet's: its files and its socket are real, in a folder of the test's."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from tests.kubelet.kubelet import Kubelet
from tests.unit.fake_host import FakeHost

KUBELET = "/var/lib/kubelet"
GPUS = "/proc/driver/nvidia/gpus"


class KubeletHost(FakeHost):
    """`kubelet` None: none was ever installed. `patience` bounds each call, whatever was asked, in seconds."""

    def __init__(self, kubelet: Kubelet | None, files: Mapping[str, str] | None = None, patience: float = 20.0) -> None:
        super().__init__(files)
        self.kubelet = kubelet
        self.patience = patience
        self.real = Host()

    def read(self, path: str) -> str | None:
        mapped = self._mapped(path)
        return super().read(path) if mapped is None else self.real.read(mapped)

    def names(self, path: str) -> tuple[str, ...]:
        mapped = self._mapped(path)
        return super().names(path) if mapped is None else self.real.names(mapped)

    def exists(self, path: str) -> bool:
        mapped = self._mapped(path)
        return super().exists(path) if mapped is None else self.real.exists(mapped)

    def unary(self, path: str, method: str, message: bytes = b"", timeout: float = 10.0) -> bytes:
        mapped = self._mapped(path)
        if mapped is None:
            return super().unary(path, method, message, timeout)
        return self.real.unary(mapped, method, message, min(timeout, self.patience))

    def _mapped(self, path: str) -> str | None:
        self._see(path)
        if self.kubelet is None or not f"{path}/".startswith(KUBELET + "/"):
            return None
        return str(self.kubelet.folder) + path[len(KUBELET) :]

    # -- GPUs and processes

    def gpu(self, minor: int, uuid: str) -> None:
        """A GPU that the driver has taken: its node's number."""
        said = f"Model: \t\t NVIDIA H100\nGPU UUID: \t {uuid}\nDevice Minor: \t {minor}\nGPU Excluded:\t No\n"
        self.put(f"{GPUS}/0000:{minor + 16:02x}:00.0/information", said)

    def process(self, pid: int, program: str, cgroup: str, *nodes: str) -> None:
        """A process in a cgroup, with what it has open."""
        self.links[f"/proc/{pid}/exe"] = f"/usr/bin/{program}"
        self.links.update({f"/proc/{pid}/fd/{at}": node for at, node in enumerate(nodes, 3)})
        self.put(f"/proc/{pid}/cgroup", f"0::{cgroup}\n")
