# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A GPU server in memory, before and after NVIDIA's driver: its packages, kernel modules, services and processes.

The kernel's part is as kmod and the kernel behave: a module with references is not taken out, one that stands on
another holds it, and what is loaded stays what it was when its file changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from tests.unit.fake_host import FakeHost, Program
from tests.unit.shown_units import shown_units

KERNEL = "6.8.0-88-generic"
DKMS = "/lib/modules/{kernel}/updates/dkms/nvidia.ko"
BELOW = {
    "nvidia_uvm": "nvidia",
    "nvidia_modeset": "nvidia",
    "nvidia_drm": "nvidia_modeset",
    "nvidia_peermem": "nvidia",
    "gdrdrv": "nvidia",
    "nvidia_fs": "nvidia",
}
STAMP = "/var/lib/bcd-hostconfig/package-index"
VERSION = "/proc/driver/nvidia/version"
OPEN_LINE = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (a@b)  Tue Sep 23 2025\n"
CLOSED_LINE = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Tue Sep 23 10:11:16 UTC 2025\n"
OS_RELEASE = {
    "ubuntu": "ID=ubuntu\nID_LIKE=debian\nVERSION_ID=24.04\nVERSION_CODENAME=noble\n",
    "debian": "ID=debian\nVERSION_ID=13\nVERSION_CODENAME=trixie\n",
    "rocky9": 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.6"\n',
    "rocky10": 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="10.0"\n',
    "sles": 'ID="sles"\nID_LIKE="suse"\nVERSION_ID="15.6"\n',
    "arch": "ID=arch\n",
}
KERNELS = {
    "rocky9": "5.14.0-570.12.1.el9_6.x86_64",
    "rocky10": "6.12.0-55.9.1.el10_0.x86_64",
    "sles": "6.4.0-150600.23.47-default",
}
MANAGERS = {"ubuntu": "apt", "debian": "apt", "rocky9": "dnf", "rocky10": "dnf", "sles": "zypper", "arch": ""}
Repo = Mapping[str, tuple[str, ...]]


def ubuntu(*versions: str, open_too: bool = True) -> dict[str, tuple[str, ...]]:
    """Ubuntu's archive: the server packages of these driver versions, and the running kernel's headers."""
    repo: dict[str, list[str]] = {f"linux-headers-{KERNEL}": ["6.8.0-88.89"]}
    for version in versions:
        server = f"{version.partition('.')[0]}-server"
        names = [f"nvidia-headless-{server}", f"nvidia-utils-{server}", f"nvidia-compute-utils-{server}"]
        for name in (*names, *((f"nvidia-headless-{server}-open",) if open_too else ())):
            repo.setdefault(name, []).append(f"{version}-0ubuntu0.24.04.1")
    return {name: tuple(found) for name, found in repo.items()}


def debian(version: str = "550.163.01") -> dict[str, tuple[str, ...]]:
    """Debian's own archive: one version, module packages of both flavours, nvidia-smi and MPS apart."""
    names = ("nvidia-kernel-dkms", "nvidia-open-kernel-dkms", "firmware-nvidia-gsp", "nvidia-smi", "libcuda1")
    return {
        **dict.fromkeys((*names, "libnvidia-ml1", "nvidia-cuda-mps"), (f"{version}-2",)),
        "nvidia-persistenced": ("550.163.01-1",),
        f"linux-headers-{KERNEL}": ("6.12.48-1",),
    }


def nvidia_debian(*versions: str) -> dict[str, tuple[str, ...]]:
    """NVIDIA's repository for Debian: one set of names, and a package a branch that pins it."""
    names = ("nvidia-driver-cuda", "nvidia-kernel-open-dkms", "nvidia-kernel-dkms", "nvidia-persistenced")
    pins = {f"nvidia-driver-pinning-{version.partition('.')[0]}": ("1",) for version in versions}
    built = tuple(f"{version}-1" for version in versions)
    return {**dict.fromkeys(names, built), **pins, f"linux-headers-{KERNEL}": ("6.12.48-1",)}


def red_hat(*versions: str, release: str = "el9") -> dict[str, tuple[str, ...]]:
    """NVIDIA's repository for RHEL: every version under one set of names."""
    names = ("nvidia-driver-cuda", "kmod-nvidia-open-dkms", "kmod-nvidia-latest-dkms", "nvidia-persistenced")
    found = {name: tuple(f"3:{version}-1.{release}" for version in versions) for name in names}
    return {**found, "kernel-devel": ("5.14.0-570.12.1.el9_6",), "python3-dnf-plugin-versionlock": ("4.3.0-1",)}


def suse(*versions: str) -> dict[str, tuple[str, ...]]:
    """NVIDIA's repository for SUSE: the generation is in the name, the branch is not."""
    kmp = tuple(f"{version}_k6.4.0_1-1" for version in versions)
    return {
        "nvidia-open-driver-G06-signed-kmp-default": kmp,
        "nvidia-driver-G06-kmp-default": kmp,
        "nvidia-compute-utils-G06": tuple(f"{version}-1" for version in versions),
    }


class Process(NamedTuple):
    """A process that has device nodes open."""

    program: str
    nodes: tuple[str, ...]


SERVICES = {
    "nvidia-persistenced": Process("nvidia-persistenced", ("/dev/nvidia0", "/dev/nvidiactl")),
    "nvidia-fabricmanager": Process("nv-fabricmanager", ("/dev/nvidiactl",)),
    "nvidia-dcgm": Process("nv-hostengine", ("/dev/nvidia0", "/dev/nvidia-uvm")),
    "bcd-mps": Process("nvidia-cuda-mps-server", ("/dev/nvidia0", "/dev/nvidia-uvm")),
}


class DriverMachine(FakeHost):
    """A host with GPUs of these device ids; `repo` maps a package's name to the versions that the index offers.

    `fails` maps a command line's beginning to the answer that it gives instead of doing anything; with `lies` it does
    nothing and says 0. `breaks_dkms`: the module is not built. `streams`: module streams of dnf and their marks.
    """

    def __init__(self, distribution: str, repo: Repo, gpus: Iterable[str] = ("2330",)) -> None:
        self.manager = MANAGERS[distribution]
        self.release = KERNELS.get(distribution, KERNEL)
        self.repo = dict(repo)
        self.packages: dict[str, str] = {}
        self.held: set[str] = set()
        self.broken: set[str] = set()  # unpacked, and not configured
        self.killed_after = 0  # packages of a transaction, for once
        self.loaded: dict[str, str] = {}  # module -> what stands below it
        self.running = ""  # of the loaded driver: "580.95.05 open"
        self.module_files: dict[str, str] = {}  # by kernel release
        self.processes: dict[int, Process] = {}
        self.active: set[str] = set()
        self.enabled: dict[str, str] = {}
        self.streams: dict[str, str] = {}
        self.fails: dict[str, Answer] = {}
        self.breaks_dkms = self.signs = self.rejects = False
        self.makes_nodes = True
        self.uvm_major = 511  # the next that the kernel gives
        self.loads_instead = ""
        super().__init__(_files(distribution, tuple(gpus)), _programs(self.manager))
        self.put("/proc/sys/kernel/osrelease", f"{self.release}\n")
        self.put(f"/lib/modules/{self.release}/build/Makefile", "")

    # -- what a test sets up

    def install(self, *packages: str) -> DriverMachine:
        """Have these installed, `name=version` each, as if long ago."""
        for package in packages:
            name, _equals, version = package.partition("=")
            self.unpack(name, version)
        return self

    def load(self, *modules: str) -> DriverMachine:
        """Load modules, as at boot."""
        for module in modules:
            assert modprobe(self, ("modprobe", module)).rc == 0, module
        return self

    def serve(self, *services: str) -> DriverMachine:
        """Have services installed, enabled and running."""
        for service in services:
            self.put(f"/usr/lib/systemd/system/{service}.service", "")
            self.enabled[service] = "enabled"
            self.start(service)
        return self

    def open_nodes(self, pid: int, program: str, *nodes: str) -> None:
        """A process has nodes open."""
        self.processes[pid] = Process(program, nodes)
        self.show()

    def end(self, pid: int) -> None:
        """The process ends."""
        del self.processes[pid]
        self.show()

    def boot(self, boot_id: str = "next-boot") -> None:
        """The machine starts again: what is on the disk is loaded, unless nouveau still has the GPUs."""
        self.reboot(boot_id)
        for path in [path for path in self.files if path.startswith("/dev/")]:
            del self.files[path]
        self.processes.clear()
        for service in sorted(self.active):
            self.stop(service)
        self.loaded.clear()
        self.running = ""
        nouveau = (
            "blacklist nouveau" not in (self.text("/initramfs") or "") and "/sys/module/nouveau/refcnt" in self.files
        )
        self.files.pop("/sys/module/nouveau/refcnt", None)
        if nouveau:
            self.put("/sys/module/nouveau/refcnt", "2\n")
        self.show()
        if self.release in self.module_files and not nouveau:
            self.load("nvidia", "nvidia_uvm")
        for service, state in self.enabled.items():
            if state in ("enabled", "static") and self.loaded:
                self.start(service)

    # -- packages

    def unpack(self, name: str, version: str) -> None:
        """What a package brings to the disk."""
        rest = re.sub(r"\d.*", "", name)
        for other in [other for other in self.packages if other != name and re.sub(r"\d.*", "", other) == rest]:
            if not name.startswith(("libnvidia", "linux-")):
                self.erase(other)
        self.packages[name] = version
        if "pinning" in name or name == "kernel-devel":
            return
        driver = re.split(r"[-_]", version.rpartition(":")[2])[0]
        flavour = "open" if "open" in name else "proprietary"
        if "linux-modules-nvidia" in name:  # has the kernel's version, and the module of the newest driver
            driver = re.split(r"[-_]", self.repo[f"nvidia-headless-no-dkms-{name.split('-')[3]}-server-open"][-1])[0]
        if re.search(r"headless-\d|kernel.*dkms|kmod-nvidia|-kmp|linux-modules-nvidia", name) and not self.breaks_dkms:
            self.module_files[self.release] = f"{driver} {flavour}"
        if re.search(r"nvidia-utils|driver-cuda|libnvidia-ml1|compute-utils-G0", name):
            folder = "/usr/lib/x86_64-linux-gnu" if self.manager == "apt" else "/usr/lib64"
            for link in [path for path in self.links if path.endswith("/libnvidia-ml.so.1")]:
                del self.links[link]
            self.links[f"{folder}/libnvidia-ml.so.1"] = f"libnvidia-ml.so.{driver}"
            self.put(f"{folder}/libnvidia-ml.so.{driver}", "")
        if re.search(r"persistenced|compute-utils", name):
            self.put("/usr/lib/systemd/system/nvidia-persistenced.service", "")
            self.enabled.setdefault("nvidia-persistenced", "static" if self.manager == "apt" else "disabled")

    def erase(self, name: str) -> None:
        """A package goes."""
        self.packages.pop(name, None)
        self.held.discard(name)

    # -- services

    def start(self, service: str) -> None:
        """Run a service; it opens its nodes."""
        self.active.add(service)
        self.open_nodes(700 + sorted(SERVICES).index(service), *_flat(SERVICES[service]))

    def stop(self, service: str) -> None:
        """End it."""
        self.active.discard(service)
        self.processes.pop(700 + sorted(SERVICES).index(service), None)
        self.show()

    # -- the kernel

    def refcnt(self, module: str) -> int:
        """References: of modules on top, and of each process that has a node of it open."""
        holders = [name for name, below in self.loaded.items() if below == module]
        nodes = [node for process in self.processes.values() for node in process.nodes]
        return len(holders) + sum(_owner(node) == module for node in nodes)

    def show(self) -> None:
        """Bring /sys, /proc and /dev in line with the state."""
        ours = re.compile(r"/sys/module/(nvidia|gdrdrv)|/proc/driver/nvidia/|/proc/\d+/(fd|exe)|/dev/nvidia")
        for path in [path for path in self.files if ours.match(path)]:
            if not path.startswith("/dev/"):
                del self.files[path]
        for path in [path for path in self.links if ours.match(path)]:
            del self.links[path]
        for module in self.loaded:
            self.put(f"/sys/module/{module}/refcnt", f"{self.refcnt(module)}\n")
            for name in [name for name, below in self.loaded.items() if below == module]:
                self.put(f"/sys/module/{module}/holders/{name}", "")
        for pid, process in self.processes.items():
            self.links[f"/proc/{pid}/exe"] = f"/usr/bin/{process.program}"
            for number, node in enumerate(process.nodes, 3):
                self.links[f"/proc/{pid}/fd/{number}"] = node
        self._show_driver()

    def _show_driver(self) -> None:
        majors = "Character devices:\n  1 mem\n"
        if self.running:
            version, flavour = self.running.split()
            self.put(VERSION, (OPEN_LINE if flavour == "open" else CLOSED_LINE).format(version))
            for minor, address in enumerate(self.names("/sys/bus/pci/devices")):
                self.put(f"/proc/driver/nvidia/gpus/{address}/information", f"Device Minor: \t {minor}\n")
            majors += "195 nvidia\n"
            majors += f"{self.uvm_major} nvidia-uvm\n" if "nvidia_uvm" in self.loaded else ""
        self.put("/proc/devices", majors + "\nBlock devices:\n  8 sd\n")
        if self.running and self.makes_nodes:
            self.make_nodes()

    def make_nodes(self) -> None:
        """As udev and the driver's programs do."""
        nodes = ["nvidiactl", *(f"nvidia{minor}" for minor in range(len(self.names("/sys/bus/pci/devices"))))]
        nodes += ["nvidia-uvm", "nvidia-uvm-tools"] if "nvidia_uvm" in self.loaded else []
        nodes += ["nvidia-modeset"] if "nvidia_modeset" in self.loaded else []
        for node in nodes:
            if f"/dev/{node}" not in self.files:
                self.put(f"/dev/{node}", f"{self.uvm_major}" if "uvm" in node else "195")

    def act_as(self, argv: tuple[str, ...]) -> Answer | None:
        """The answer that a test has for a command line, if any."""
        line = " ".join(argv) + " "
        return next((answer for start, answer in self.fails.items() if line.startswith(start)), None)

    def _call(self, argv: tuple[str, ...]) -> Answer:
        return self.act_as(argv) or super()._call(argv)


def _flat(process: Process) -> tuple[str, ...]:
    return (process.program, *process.nodes)


def _owner(node: str) -> str:
    """The module that has a device node."""
    return {
        "/dev/nvidia-uvm": "nvidia_uvm",
        "/dev/nvidia-modeset": "nvidia_modeset",
        "/dev/dri/card0": "nvidia_drm",
    }.get(node, "nvidia")


def _files(distribution: str, gpus: tuple[str, ...]) -> dict[str, str]:
    files = {
        "/etc/os-release": OS_RELEASE[distribution],
        "/proc/sys/kernel/arch": "x86_64\n",
        "/run/systemd/system/.d": "",
        STAMP: "",
        "/proc/devices": "Character devices:\n  1 mem\n",
    }
    for at, device in enumerate(gpus):
        folder = f"/sys/bus/pci/devices/0000:{at + 1:02x}:00.0"
        files.update({f"{folder}/vendor": "0x10de\n", f"{folder}/class": "0x030200\n"})
        files[f"{folder}/device"] = f"0x{device}\n"
    return files


def _programs(manager: str) -> dict[str, Program]:
    from tests.unit import driver_packages

    tool = "update-initramfs" if manager == "apt" else "dracut"
    return {
        "modprobe": modprobe,
        "rmmod": rmmod,
        "modinfo": modinfo,
        "systemctl": systemctl,
        tool: initramfs,
        **driver_packages.PROGRAMS.get(manager, {}),
    }


# -- the kernel's programs


def modprobe(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    assert isinstance(host, DriverMachine)
    name = argv[-1]
    if name in host.loaded:
        return Answer(0, "")
    if name in BELOW:
        below = modprobe(host, ("modprobe", BELOW[name]))
        if below.rc:
            return below
        if name in ("gdrdrv", "nvidia_fs") and f"/lib/modules/{host.release}/{name}.ko" not in host.files:
            return Answer(1, "", f"modprobe: FATAL: Module {name} not found in directory /lib/modules/{host.release}\n")
    elif host.release not in host.module_files:
        return Answer(1, "", f"modprobe: FATAL: Module {name} not found in directory /lib/modules/{host.release}\n")
    elif host.rejects:
        return Answer(1, "", f"modprobe: ERROR: could not insert '{name}': Key was rejected by service\n")
    elif "/sys/module/nouveau/refcnt" in host.files or not host.names("/sys/bus/pci/devices"):
        return Answer(1, "", f"modprobe: ERROR: could not insert '{name}': No such device\n")
    else:
        host.running = host.loads_instead or host.module_files[host.release]
    host.loaded[name] = BELOW.get(name, "")
    host.show()
    return Answer(0, "")


def rmmod(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    assert isinstance(host, DriverMachine)
    name = argv[-1]
    if name not in host.loaded:
        return Answer(1, "", f"rmmod: ERROR: Module {name} is not currently loaded\n")
    if host.refcnt(name):
        return Answer(1, "", f"rmmod: ERROR: Module {name} is in use\n")
    del host.loaded[name]
    if name == "nvidia":
        host.running = ""
    if name == "nvidia_uvm":
        host.uvm_major -= 1
    host.show()
    return Answer(0, "")


def modinfo(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    assert isinstance(host, DriverMachine)
    found = host.module_files.get(argv[2]) if argv[1] == "-k" and argv[-1] == "nvidia" else None
    if found is None:
        return Answer(1, "", f"modinfo: ERROR: Module {argv[-1]} not found.\n")
    version, flavour = found.split()
    licence = "Dual MIT/GPL" if flavour == "open" else "NVIDIA"
    text = f"filename:       {DKMS.format(kernel=argv[2])}\nversion:        {version}\nlicense:        {licence}\n"
    return Answer(0, text + ("signer:         a key of the distribution\n" if host.signs else ""))


def initramfs(host: FakeHost, _argv: tuple[str, ...]) -> Answer:
    host.put("/initramfs", host.text("/etc/modprobe.d/bcd-nouveau.conf") or "")
    return Answer(0, "")


def systemctl(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    assert isinstance(host, DriverMachine)
    verb, service = argv[1], argv[-1].replace(".service", "")
    if verb == "show":
        return shown_units(argv, lambda name: "active" if name.partition(".")[0] in host.active else "inactive")
    if verb == "is-active":
        return Answer(0, "active\n") if service in host.active else Answer(3, "inactive\n")
    if verb == "is-enabled":
        state = host.enabled.get(service, "disabled")
        return Answer(0 if state in ("enabled", "static") else 1, state + "\n")
    if verb == "enable" and host.enabled.get(service) == "disabled":
        host.enabled[service] = "enabled"
    elif verb == "start":
        if not host.running or host.running.split()[0] not in " ".join(host.links.values()):
            return Answer(1, "", f"Job for {service}.service failed\n")
        host.start(service)
    elif verb == "stop":
        host.stop(service)
    return Answer(0, "")


def matching(names: Iterable[str], globs: Iterable[str]) -> list[str]:
    """The names that are, or fit, one of the globs."""
    return sorted({name for name in names for glob in globs if fnmatchcase(name, glob)})
