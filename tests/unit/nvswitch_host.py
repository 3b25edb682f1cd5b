# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An NVSwitch board in memory: its package manager, systemd, the driver's files and nvidia-smi's word on the fabric."""

from __future__ import annotations

import json

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from tests.unit.fake_host import FakeHost
from tests.unit.package_machine import PackageHost, Shelf, apt_host, dnf_host, zypper_host
from tests.unit.shown_units import shown_units

SERVICE = "nvidia-fabricmanager.service"
VERSION = "/proc/driver/nvidia/version"
BUILD = "-0ubuntu0.24.04.1"


class Board:
    """What the board's programs answer from: the service, the GPUs' places in the fabric, who computes.

    `state` is what each GPU says of its fabric while the service runs; "[N/A]" before Hopper. `starts`: whether
    Fabric Manager stays up; `joins_after`: how many looks at the fabric it takes until GPUs have joined.
    """

    def __init__(self, state: str = "Completed, Success") -> None:
        self.active = False
        self.enabled = False
        self.masked = False
        self.installed = False
        self.starts = True
        self.state = state
        self.joins_after = 0
        self.mig: set[str] = set()
        self.apps: list[str] = []
        self.restarts = 0


def nvswitch(
    kind: str = "ubuntu",
    version: str | None = "580.95.05",
    product: str = "NVIDIA H100 80GB HBM3",
    board: Board | None = None,
    carried: dict[str, list[str]] | None = None,
    switches: bool = True,
) -> PackageHost:
    """A host with two GPUs on an NVSwitch board, whose driver is loaded at `version`."""
    made = board or Board()
    shelf = Shelf(packages_of(kind) if carried is None else carried)
    host = _hosts(kind, shelf, made)
    host.programs.update(
        {
            "systemctl": lambda host, argv: systemctl(made, argv),
            "nvidia-smi": lambda host, argv: nvidia_smi(made, argv),
            "modprobe": modprobe,
        }
    )
    host.put("/run/systemd/system/x", "")
    if switches:
        host.put("/sys/bus/pci/devices/0000:05:00.0/vendor", "0x10de\n")
        host.put("/sys/bus/pci/devices/0000:05:00.0/class", "0x068000\n")
    host.put("/sys/bus/pci/devices/0000:17:00.0/vendor", "0x10de\n")
    host.put("/sys/bus/pci/devices/0000:17:00.0/class", "0x030200\n")
    if version:
        load(host, version, product)
    return host


def _hosts(kind: str, shelf: Shelf, board: Board) -> PackageHost:
    def brings(host: PackageHost, name: str) -> None:
        if name.startswith(("nvidia-fabricmanager", "nvidia-fabric-manager")):
            board.installed = True
            host.put(f"/usr/lib/systemd/system/{SERVICE}", "[Service]\n")

    if kind in ("ubuntu", "debian"):
        return apt_host(shelf, kind, brings)
    return zypper_host(shelf, brings) if kind == "leap" else dnf_host(shelf, kind, brings)


def packages_of(kind: str) -> dict[str, list[str]]:
    """What the repositories carry: several versions, of which the newest is never the one that is loaded."""
    if kind == "ubuntu":
        return {
            "nvidia-fabricmanager-570": [f"570.195.03{BUILD}", f"580.126.20{BUILD}"],
            "nvidia-fabricmanager-580": [f"580.82.07{BUILD}", f"580.95.05{BUILD}", f"580.126.20{BUILD}"],
            "nvlsm": ["2025.06.5-1"],
            "infiniband-diags": ["50.0-2"],
        }
    new = ["580.82.07-1", "580.95.05-1", "590.44.01-1"]
    old = (
        {"nvidia-fabricmanager-570": ["570.195.03-1"]}
        if kind == "debian"
        else {"nvidia-fabric-manager": ["570.195.03-1"]}
    )
    locker = {"python3-dnf-plugin-versionlock": ["4.7.0-1.el9"]}
    return {"nvidia-fabricmanager": new, **old, "nvlsm": ["2025.06.5-1"], "infiniband-diags": ["50.0-2"], **locker}


def load(host: FakeHost, version: str, product: str = "NVIDIA H100 80GB HBM3") -> None:
    """The driver is loaded, and its library is on the disk at the same version."""
    host.put(VERSION, f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build  (b)  date\n")
    host.put("/proc/driver/nvidia/gpus/0000:17:00.0/information", f"Model: \t\t {product}\nIRQ:   \t\t 18\n")
    library(host, version)


def library(host: FakeHost, version: str) -> None:
    """The driver's library on the disk."""
    folder = "/usr/lib/x86_64-linux-gnu"
    for path in [path for path in host.files if path.startswith(f"{folder}/libnvidia-ml.so.")]:
        del host.files[path]
    host.put(f"{folder}/libnvidia-ml.so.{version}", "")
    host.links[f"{folder}/libnvidia-ml.so.1"] = f"libnvidia-ml.so.{version}"


def nvlink5(host: FakeHost) -> None:
    """The board's switches are managed through InfiniBand devices; a common adapter of the same kind is there too."""
    for path in [path for path in host.files if path.startswith("/sys/bus/pci/devices/0000:05:00.0/")]:
        del host.files[path]
    adapter(host, "0000:18:00.0", "\x82\x1aConnectX-7\udcff")
    adapter(host, "0000:05:00.4", "\udc82\x00V2SMDL=SW_MNG\udcfe\x78")


def adapter(host: FakeHost, address: str, data: str) -> None:
    """An InfiniBand adapter on the bus, with its vital product data."""
    for name, text in (("vendor", "0x15b3\n"), ("class", "0x020700\n"), ("vpd", data)):
        host.put(f"/sys/bus/pci/devices/{address}/{name}", text)


def hold(host: FakeHost, allocation: str) -> None:
    """A live hold on a GPU."""
    gpu = "GPU-5f1c2a90-0000-4000-8000-000000000001"
    spec = {
        "cdiVersion": "0.5.0",
        "kind": "bcd.dev/gpu",
        "devices": [{"name": gpu, "containerEdits": {"env": ["A=b"]}}],
    }
    host.put(f"/etc/cdi/bcd-{allocation}.json", json.dumps(spec))


def systemctl(board: Board, argv: tuple[str, ...]) -> Answer:
    verb = argv[1]
    if verb == "show":
        return shown_units(argv, lambda name: "active" if board.active and name == SERVICE else "inactive")
    if verb == "is-active":
        state = "active" if board.active else "inactive"
        return Answer(0 if board.active else 3 if board.installed else 4, f"{state}\n")
    if verb == "is-enabled":
        state = "masked" if board.masked else "enabled" if board.enabled else "disabled"
        return Answer(0 if state == "enabled" else 1, f"{state}\n" if board.installed else "not-found\n")
    if not board.installed:
        return Answer(5, "", f"Failed to {verb} {SERVICE}: Unit {SERVICE} not found.\n")
    if verb == "enable":
        board.enabled = True
    elif verb in ("start", "restart"):
        board.restarts += verb == "restart"
        board.active = board.starts
    return Answer(0, "")


GPUS = ("GPU-5f1c2a90-0000-4000-8000-000000000001", "GPU-5f1c2a90-0000-4000-8000-000000000002")


def nvidia_smi(board: Board, argv: tuple[str, ...]) -> Answer:
    if argv[1].startswith("--query-compute-apps"):
        return Answer(0, "".join(f"{GPUS[0]}, {pid}, python3\n" for pid in board.apps))
    option, _equals, fields = argv[1].partition("=")
    assert option == "--query-gpu", argv
    state = board.state
    if "fabric.state" in fields and board.active and board.joins_after > 0:
        board.joins_after -= 1
        state = "In Progress, [N/A]"
    place = dict(zip(("fabric.state", "fabric.status"), state.split(", ")))
    rows = []
    for at, gpu in enumerate(GPUS):
        mode = "Enabled" if gpu in board.mig else "Disabled"
        told = {"index": str(at), "uuid": gpu, "count": str(len(GPUS)), "mig.mode.current": mode, **place}
        rows.append(", ".join(told.get(field, "[N/A]") for field in fields.split(",")) + "\n")
    return Answer(0, "".join(rows))


def modprobe(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    host.put(f"/sys/module/{argv[-1]}/refcnt", "0\n")
    return Answer(0, "")
