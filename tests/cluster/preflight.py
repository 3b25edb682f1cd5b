# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kubeadm looks at before it joins a machine: the checks of a worker, in kubeadm's order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .kubeadm import Said, Stopped
from .worker import BOOTSTRAP_CONF, CA, FORWARD, KUBELET_CONF, MANIFESTS, Worker

if TYPE_CHECKING:
    from .join_configuration import Join

RUNTIME_CONFIG = (
    "You must update your container runtime to a version that supports the CRI method RuntimeConfig. Falling back to "
    "using cgroupDriver from kubelet config will be removed in 1.37. For more information, see "
    "https://git.k8s.io/enhancements/keps/sig-node/4033-group-driver-detection-over-cri"
)
CGROUPS_1 = (
    "cgroups v1 support is deprecated and will be removed in a future release. Please migrate to cgroups v2. To "
    "explicitly enable cgroups v1 support for kubelet v1.35 or newer, you must set the kubelet configuration option "
    "'FailCgroupV1' to 'false'. You must also explicitly skip this validation. For more information, see "
    "https://git.k8s.io/enhancements/keps/sig-node/5573-remove-cgroup-v1"
)
HINT = "[preflight] If you know what you are doing, you can make a check non-fatal with `--ignore-preflight-errors=...`"


class Checks:
    """What the checks found: errors to stop at, warnings said at once."""

    def __init__(self, worker: Worker, join: Join, said: Said) -> None:
        self.worker = worker
        self.ignored = {name.lower() for name in join.ignored}
        self.said = said
        self.errors: list[str] = []

    def warn(self, name: str, text: str) -> None:
        self.said.err(f"\t[WARNING {name}]: {text}")

    def fail(self, name: str, text: str) -> None:
        """An error, unless it is to be ignored."""
        if name.lower() in self.ignored or "all" in self.ignored:
            self.warn(name, text)
        else:
            self.errors.append(f"\t[ERROR {name}]: {text}")

    def absent(self, path: str) -> None:
        if self.worker.exists(path):
            self.fail(f"FileAvailable-{path.replace('/', '-')}", f"{path} already exists")


def check(worker: Worker, join: Join, said: Said) -> None:
    """All of them; raises Stopped with the errors."""
    said.out("[preflight] Running pre-flight checks")
    checks = Checks(worker, join, said)
    if worker.names(MANIFESTS):
        checks.fail("DirAvailable--etc-kubernetes-manifests", f"{MANIFESTS} is not empty")
    checks.absent(KUBELET_CONF)
    checks.absent(BOOTSTRAP_CONF)
    _runtime(checks, join.socket)
    _machine(checks)
    _system(checks)
    _kubelet(checks)
    checks.absent(CA)
    if (worker.read(FORWARD) or "").strip() != "1":
        checks.fail("FileContent--proc-sys-net-ipv4-ip_forward", f"{FORWARD} contents are not set to 1")
    if not checks.errors:
        return
    head = "[preflight] Some fatal errors occurred:"
    errors = "\n".join(checks.errors)
    if worker.minor >= 35:
        said.err(f"{head}\n{errors}\n{HINT}")
        raise Stopped("error execution phase preflight: preflight checks failed")
    raise Stopped(f"error execution phase preflight: {head}\n{errors}\n{HINT}")


def _runtime(checks: Checks, socket: str) -> None:
    worker = checks.worker
    fault = worker.cri_fault()
    if fault and worker.minor >= 31:
        checks.fail("CRI", f"could not connect to the container runtime: {fault}")
        return
    if fault:
        said = f'time="2026-11-30T00:00:00Z" level=fatal msg="{fault}"'
        checks.fail("CRI", f"container runtime is not running: output: {said}\n, error: exit status 1")
        return
    if not worker.has_runtime_config and worker.minor >= 35:
        checks.said.err(
            'E1130 00:00:00.000000    4242 remote_runtime.go:1177] "RuntimeConfig from runtime service failed" err="'
            'rpc error: code = Unimplemented desc = method RuntimeConfig not implemented"'
        )
        report = checks.warn if worker.minor < 37 else checks.fail
        report("ContainerRuntimeVersion", RUNTIME_CONFIG)
    del socket


def _machine(checks: Checks) -> None:
    worker = checks.worker
    if worker.has_swap():
        if worker.minor < 23:
            checks.fail("Swap", "running with swap on is not supported. Please disable swap")
        else:
            text = (
                "swap is supported for cgroup v2 only. The kubelet must be properly configured to use swap. Please "
                "refer to https://kubernetes.io/docs/concepts/architecture/nodes/#swap-memory, or disable swap on the "
                "node"
            )
            old = "swap is enabled; production deployments should disable swap unless testing the NodeSwap feature gate"
            checks.warn("Swap", text if worker.minor >= 30 else f"{old} of the kubelet")
    if worker.minor < 24 and (worker.read("/proc/sys/net/bridge/bridge-nf-call-iptables") or "").strip() != "1":
        path = "/proc/sys/net/bridge/bridge-nf-call-iptables"
        why = "contents are not set to 1" if worker.exists(path) else "does not exist"
        checks.fail("FileContent--proc-sys-net-bridge-bridge-nf-call-iptables", f"{path} {why}")
    needed = ["losetup", "mount", "cp", *(["conntrack"] if worker.minor < 32 else [])]
    for program in needed:
        if not worker.has(program):
            checks.fail(f"FileExisting-{program}", f"{program} not found in system path")


def _system(checks: Checks) -> None:
    worker = checks.worker
    found = list(worker.verification)
    if found or worker.cgroups == 1:
        checks.said.out("[preflight] The system verification failed. Printing the output from the verification:")
        checks.said.out("KERNEL_VERSION: 6.12.0\nCONFIG_NAMESPACES: enabled\nOS: Linux")
    for text in found:
        checks.fail("SystemVerification", text)
    if worker.cgroups == 1:
        report = checks.fail if worker.minor >= 35 else checks.warn
        report("SystemVerification", CGROUPS_1)


def _kubelet(checks: Checks) -> None:
    worker = checks.worker
    if worker.kubelet_minor < worker.minor - (3 if worker.minor >= 28 else 1):  # of the cluster's version it knows none
        old = f'Kubelet version "{worker.kubelet_version}" is lower than kubeadm can support. Please upgrade kubelet'
        checks.fail("KubeletVersion", old)
    if not worker.is_enabled():
        checks.warn("Service-kubelet", "kubelet service is not enabled, please run 'systemctl enable kubelet.service'")
    if worker.is_taken(10250):
        checks.fail("Port-10250", "Port 10250 is in use")
