# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubeadm reset of a worker: what goes, what it takes with it, and what stays."""

from __future__ import annotations

from .kubeadm import Said, Stopped
from .worker import BOOTSTRAP_CONF, KUBELET, KUBELET_CONF, KUBERNETES, MANIFESTS, Worker

ETCD = "/var/lib/etcd"
OTHERS = ("admin.conf", "super-admin.conf", "controller-manager.conf", "scheduler.conf")
STAYS = """
The reset process does not perform cleanup of CNI plugin configuration,
network filtering rules and kubeconfig files.

For information on how to perform this cleanup manually, please see:
    https://k8s.io/docs/reference/setup-tools/kubeadm/kubeadm-reset/
"""


def reset(worker: Worker, given: dict[str, str], stdin: str, said: Said) -> None:
    """`given` are the options, `stdin` answers the question; raises Stopped."""
    if "force" not in given and "f" not in given:
        said.out("[reset] WARNING: Changes made to this host by 'kubeadm init' or 'kubeadm join' will be reverted.")
        said.out("[reset] Are you sure you want to proceed? [y/N]: ")
        if stdin.strip().lower() != "y":
            why = "aborted reset operation" if stdin.strip() else "EOF"
            raise Stopped(f"error execution phase preflight: {why}")
    said.out("[preflight] Running pre-flight checks")
    skipped = given.get("skip-phases", "").split(",")
    if "remove-etcd-member" not in skipped:
        said.warn("removeetcdmember.go:105", "[reset] No kubeadm config, using etcd pod spec to get data directory")
        for name in worker.names(ETCD):
            worker.remove(f"{ETCD}/{name}")
        said.out(f"[reset] Deleted contents of the etcd data directory: {ETCD}")
    if "cleanup-node" not in skipped:
        _clean(worker, said)
    said.out(STAYS.rstrip("\n"))


def _clean(worker: Worker, said: Said) -> None:
    said.out("[reset] Stopping the kubelet service")
    worker.stop_kubelet()
    said.out(f'[reset] Unmounting mounted directories in "{KUBELET}"')
    below = sorted((path for path in worker.mounts() if path.startswith(KUBELET + "/")), reverse=True)
    stuck = [path for path in below if not worker.unmount(path)]
    if stuck and worker.minor >= 31:
        raise Stopped(f'error execution phase cleanup-node: failed to unmount "{stuck[0]}": device or resource busy')
    if stuck:
        said.warn("cleanupnode.go:134", f"[reset] Failed to unmount mounted directories in {KUBELET}")
    worker.remove_pods()
    folders = [MANIFESTS, KUBELET, f"{KUBERNETES}/pki"]
    said.out(f"[reset] Deleting contents of directories: [{' '.join(folders)}]")
    for folder in folders:
        for name in worker.names(folder):
            worker.remove(f"{folder}/{name}")
    files = [KUBELET_CONF, BOOTSTRAP_CONF, *(f"{KUBERNETES}/{name}" for name in OTHERS)]
    said.out(f"[reset] Deleting files: [{' '.join(files)}]")
    for path in files:
        worker.remove(path)
