# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fresh Ubuntu server in memory for all units at once: two H100 on an NVSwitch board, GRUB, apt, containerd.

The parts are those of the other hosts: GPUs and systemd of tests/gpu, runtimes of container_host, the loader of
boot_machines, apt of package_machine. Here they are put together, and told what packages bring.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from tests.gpu.fake import MODULES, PROGRAMS, RELEASE, modprobe
from tests.gpu.model import Machine
from tests.unit import boot_machines, package_machine
from tests.unit.container_host import ContainerHost
from tests.unit.fake_host import FakeHost
from tests.unit.package_machine import PackageHost, Shelf, apt_host

VERSION = "550.163.01"
BUILD = "-0ubuntu0.24.04.1"
CPUS = "/sys/devices/system/cpu"
POOLS = ("/sys/kernel/mm/hugepages/hugepages-2048kB", "/sys/devices/system/node/node0/hugepages/hugepages-2048kB")
FRESH = {
    "/sys/class/iommu/dmar0/x": "",
    "/sys/kernel/iommu_groups/0/x": "",
    "/proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\n",
    "/sys/devices/system/node/node0/cpulist": "0-7\n",
    "/sys/devices/system/node/node0/meminfo": "Node 0 MemTotal: 67108864 kB\n",
    "/proc/meminfo": "MemTotal: 67108864 kB\n",
    "/proc/mounts": "proc /proc proc rw 0 0\n",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "/proc/sys/vm/swappiness": "60\n",
    "/proc/sys/kernel/hostname": "gpu-1\n",
    f"/lib/modules/{RELEASE}/build/Makefile": "",
    f"/lib/modules/{RELEASE}/modules.dep": "",
    f"/lib/modules/{RELEASE}/modules.builtin": "",
    f"/boot/vmlinuz-{RELEASE}": "image",
}
NVSWITCH = {
    "/sys/bus/pci/devices/0000:c0:00.0/vendor": "0x10de\n",
    "/sys/bus/pci/devices/0000:c0:00.0/class": "0x068000\n",
}
# What apt offers, of several versions the newest last; Fabric Manager's newest is not the driver's.
OFFERED = {
    "nvidia-headless-550-server": [f"{VERSION}{BUILD}"],
    "nvidia-headless-550-server-open": [f"{VERSION}{BUILD}"],
    "nvidia-headless-580-server": [f"580.95.05{BUILD}"],
    "nvidia-utils-550-server": [f"{VERSION}{BUILD}"],
    "nvidia-compute-utils-550-server": [f"{VERSION}{BUILD}"],
    "nvidia-fabricmanager-550": [f"550.144.03{BUILD}", f"{VERSION}{BUILD}", f"550.200.01{BUILD}"],
    "nvidia-container-toolkit": ["1.17.8-1", "1.18.1-1"],
}
# A section with every unit; nothing in it needs a reboot on this host.
UNITS: dict[str, Any] = {
    "kernel-modules": {"load": ["tun"], "options": {"tun": "debug=1"}},
    "sysctl": {"vm.swappiness": 10},
    "hugepages": {"pages2m": 512},
    "cpu": {"governor": "performance"},
    "iommu": {"passthrough": True},
    "nvidia-driver": {"branch": "550"},
    "fabric-manager": {},
    "gpu-settings": {"powerLimitWatts": 500},
    "mig-layout": {"layout": "off", "gpus": [{"select": {"index": 0}, "layout": "3g.40gb,2g.20gb:2"}]},
    "gpu-sharing": {"mode": "mps", "replicas": 4},
    "container-toolkit": {},
}


class WholeHost(ContainerHost):
    """See the module; `apt` is its packages.

    `fresh`: the package index was refreshed a minute ago; without `switched` the board has no NVSwitches.
    """

    def __init__(self, fresh: bool = False, switched: bool = True, gpus: int = 2) -> None:
        self.switched = switched
        machine = Machine.from_products(["H100-80GB"] * gpus, VERSION)
        machine.unload()
        machine.library = machine.disk = None
        super().__init__(machine, {"containerd": "1.7.24"}, {**FRESH, **(NVSWITCH if switched else {})}, toolkit=False)
        self.apt: PackageHost = apt_host(Shelf(OFFERED, fresh), on_install=lambda _apt, name: self.bring(name))
        if fresh:
            self.put(package_machine.STAMP, "The package index was refreshed when this file was written.\n")
        booted = boot_machines.machine("grub")
        for path, file in booted.files.items():
            self.files.setdefault(path, file)
        self.put("/etc/os-release", package_machine.OS_RELEASE["ubuntu"])
        for cpu in range(8):
            self.put(f"{CPUS}/cpu{cpu}/cpufreq/scaling_governor", "powersave\n")
            self.put(f"{CPUS}/cpu{cpu}/cpufreq/scaling_available_governors", "performance powersave\n")
        self._show_pages(0)
        for pool in POOLS:
            self.kernel[f"{pool}/nr_hugepages"] = lambda _host, _path, value: self._show_pages(int(value))
        for name in ("nvidia-smi", "nvidia-cuda-mps-control"):
            del self.programs[name]
        self.programs.update(booted.programs)
        self.programs.update({"modprobe": load, "update-initramfs": rebuild, "lsinitramfs": inside})
        for name in ("dpkg-query", "apt-cache", "apt-get", "apt-mark"):
            self.programs[name] = _of_apt(self.apt.programs[name])

    def sync(self) -> None:
        """On a switched board GPUs join the fabric when its manager runs."""
        for card in self.machine.cards if self.switched else ():
            card.fabric = "Completed" if "nv-fabricmanager" in self.machine.clients else "In Progress"
        super().sync()

    def bring(self, package: str) -> None:
        """What a package brings to the disk."""
        if "headless" in package:
            self.machine.disk = VERSION
            self.machine.disk_flavour = "open" if package.endswith("-open") else "proprietary"
        elif package.startswith("nvidia-utils"):
            self.machine.library = VERSION
            self.programs["nvidia-smi"] = PROGRAMS["nvidia-smi"]
        elif package.startswith("nvidia-compute-utils"):
            self.programs["nvidia-cuda-mps-control"] = PROGRAMS["nvidia-cuda-mps-control"]
            self.services.add("nvidia-persistenced.service")
        elif package.startswith("nvidia-fabricmanager"):
            self.services.add("nvidia-fabricmanager.service")
        elif package == "nvidia-container-toolkit":
            self.unpack(refresh=True)

    def _show_pages(self, count: int) -> None:
        for pool in POOLS:
            for name, number in (("nr", count), ("free", count), ("surplus", 0), ("nr_overcommit", 0)):
                self.put(f"{pool}/{name}_hugepages", f"{number}\n")


def whole(host: FakeHost) -> WholeHost:
    """The host, as what it is."""
    assert isinstance(host, WholeHost)
    return host


def _of_apt(program: Callable[[FakeHost, tuple[str, ...]], Answer]) -> Callable[[FakeHost, tuple[str, ...]], Answer]:
    return lambda host, argv: program(whole(host).apt, argv)


def load(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """modprobe: the driver's modules as the driver is, any other with the options of modprobe.d."""
    name = argv[-1]
    if name.replace("-", "_") in MODULES or "-r" in argv:
        return modprobe(host, argv)
    host.put(f"/sys/module/{name}/refcnt", "0\n")
    host.put(f"/sys/module/{name}/initstate", "live\n")
    for line in (host.text("/etc/modprobe.d/bcd.conf") or "").splitlines():
        if line.startswith(f"options {name} "):
            key, _equals, value = line.split(None, 2)[2].partition("=")
            host.put(f"/sys/module/{name}/parameters/{key}", f"{value}\n")
    return Answer(0, "")


def rebuild(host: FakeHost, _argv: tuple[str, ...]) -> Answer:
    """update-initramfs: the image has what modprobe.d says."""
    said = (f"{path}:{host.text(path)}" for path in sorted(host.files) if path.startswith("/etc/modprobe.d/"))
    host.put(f"/boot/initrd.img-{RELEASE}", "".join(said))
    return Answer(0, "")


def inside(_host: FakeHost, _argv: tuple[str, ...]) -> Answer:
    """lsinitramfs: nothing that our units have options for."""
    return Answer(0, "usr/bin/sh\n")
