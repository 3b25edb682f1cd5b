# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet: pods come and go, it is restarted and stopped, and its files and its socket show what a real one's do."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import TracebackType

from . import pods as written
from .grpc_server import Faults, Server
from .pods import Pod

LIST = "/v1.PodResourcesLister/List"
SOCKET = "pod-resources/kubelet.sock"
CHECKPOINT = "device-plugins/kubelet_internal_checkpoint"
CLAIMS = "dra_manager_state"


class Kubelet:
    """`folder` is its /var/lib/kubelet. A context manager: it runs from the beginning to the end, unless stopped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / SOCKET
        self._pods: dict[str, Pod] = {}  # those that live
        self._noted: dict[str, Pod] = {}  # in the checkpoint, which keeps those that ended
        self._prepared: dict[str, Pod] = {}  # with claims: unprepared, they are forgotten
        self._known: set[str] = set()  # to this run of the kubelet: what it lists
        self._server: Server | None = None
        for below in ("pods", "pod-resources", "device-plugins"):
            (folder / below).mkdir(parents=True, exist_ok=True)
        self._write()
        self.start()

    def __enter__(self) -> Kubelet:
        return self

    def __exit__(self, _kind: type[BaseException] | None, _fault: object, _trace: TracebackType | None) -> None:
        self.stop()

    # -- pods

    def run(self, *pods: Pod) -> None:
        """Admit pods: devices are noted, folders made."""
        for pod in pods:
            self._pods[pod.uid] = self._noted[pod.uid] = self._prepared[pod.uid] = pod
            self._known.add(pod.uid)
            (self.folder / "pods" / pod.uid / "volumes").mkdir(parents=True)
        self._write()

    def end(self, *uids: str) -> None:
        """Delete pods: folders and claims go; the checkpoint keeps them until it is next written for another reason."""
        for uid in uids:
            del self._pods[uid], self._prepared[uid]
            self._known.discard(uid)
            shutil.rmtree(self.folder / "pods" / uid)
        self._write()

    # -- the process

    def start(self) -> None:
        """Start serving; what it does not know of its pods, it does not list."""
        self._server = Server(self.socket, self._answer)

    def stop(self) -> None:
        """As `systemctl stop kubelet`: pods go on, the socket's file stays and refuses."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def restart(self, api_server: bool = True) -> None:
        """Stop and start; while the API server is away, no pod is known, and the list is empty."""
        self.stop()
        self._known = set(self._pods) if api_server else set()
        self.start()

    def misbehave(self, faults: Faults) -> None:
        """See Faults; Faults() is none."""
        self.server.faults = faults

    @property
    def server(self) -> Server:
        if self._server is None:
            raise RuntimeError("this kubelet is stopped")
        return self._server

    def _answer(self, method: str, _request: bytes) -> bytes | tuple[int, str]:
        if method != LIST:
            return 12, f"unknown method {method}"
        return written.listed(self._pods[uid] for uid in sorted(self._known))

    def _write(self) -> None:
        (self.folder / CHECKPOINT).write_text(written.checkpoint(self._noted.values()), encoding="utf-8")
        (self.folder / CLAIMS).write_text(written.claims(self._prepared.values()), encoding="utf-8")
