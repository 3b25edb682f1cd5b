# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Debian host in memory whose kernel keeps pools of huge pages as Linux does, with systemd and GRUB beside it.

What Linux does is told here in its own terms (mm/hugetlb.c): a pool's count includes its surplus, pages in use become
surplus when the pool shrinks below them, a write succeeds whatever came of it, and a boot spreads a total over the
nodes in turn. How many 1 GiB pages a node can find at runtime, and at boot, is the test's to say.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from tests.unit.fake_host import FakeHost
from tests.unit.shown_units import shown_units

SMALL, LARGE = "hugepages-2048kB", "hugepages-1048576kB"
MIB = {SMALL: 2, LARGE: 1024}
NODES, HOST = "/sys/devices/system/node", "/sys/kernel/mm/hugepages"
THP = "/sys/kernel/mm/transparent_hugepage/enabled"
SYSTEM = "/etc/systemd/system"
GRUB = "/boot/grub/grub.cfg"
DROP_IN = "/etc/default/grub.d/90-bcd-hugepages.cfg"
MOUNT, SERVICE = "dev-hugepages1G.mount", "bcd-hugepages.service"
BOOT_ARGUMENT = re.compile(r"hugepagesz=1G hugepages=(\S+)")
DEFAULTS = 'GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_CMDLINE_LINUX=""\n'


class Node(NamedTuple):
    """What a node can give: its memory in MiB, and how many 1 GiB pages in one piece at runtime and at boot."""

    mib: int = 16384
    at_runtime: int = 99
    at_boot: int = 99


class HugeHost(FakeHost):
    """See the module; `pools` maps (node, size) to [total, used, surplus]."""

    def __init__(self, nodes: tuple[Node, ...] = (Node(), Node()), release: str = "6.12.48-amd64") -> None:
        super().__init__(programs={"systemctl": systemctl, "update-grub": update_grub, "mount": mount, "mkdir": mkdir})
        self.nodes = dict(enumerate(nodes))
        self.pools = {(node, size): [0, 0, 0] for node in self.nodes for size in MIB}
        self.loaded: dict[str, str] = {}  # unit files as systemd has them in memory
        self.boots = 1
        self.put("/proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz root=/dev/vda1 ro quiet\n")
        self.put("/proc/sys/kernel/osrelease", release + "\n")
        self.put("/proc/meminfo", f"MemTotal: {sum(node.mib for node in nodes) * 1024} kB\n")
        self.put("/proc/mounts", "proc /proc proc rw 0 0\n")
        self.put(THP, "always [madvise] never\n")
        self.put("/run/systemd/system/x", "")
        self.put("/etc/default/grub", DEFAULTS)
        update_grub(self, ())
        self.kernel[THP] = lambda _host, _path, value: shown_policy(value)
        for node in self.nodes:
            self.put(f"{NODES}/node{node}/cpulist", f"{node * 4}-{node * 4 + 3}\n")
            self.put(f"{NODES}/node{node}/meminfo", f"Node {node} MemTotal:  {self.nodes[node].mib * 1024} kB\n")
        for size in MIB:
            for where in (None, *self.nodes):
                self.put(f"{folder(where, size)}/nr_hugepages", "0\n")
                self.kernel[f"{folder(where, size)}/nr_hugepages"] = resize
            self.put(f"{HOST}/{size}/nr_overcommit_hugepages", "0\n")
        self.show()

    # -- what a test does to it

    def count(self, size: str, node: int | None = None) -> int:
        """A pool's count, as its file shows it."""
        return int(self.text(f"{folder(node, size)}/nr_hugepages") or "0")

    def by_node(self, size: str) -> list[int]:
        """Each node's count."""
        return [self.count(size, node) for node in self.nodes]

    def use(self, node: int, size: str, pages: int) -> None:
        """Something takes pages, or gives them back: those that are surplus go."""
        pool = self.pools[node, size]
        pool[1] = pages
        gone = min(pool[2], pool[0] - pages)
        pool[0], pool[2] = pool[0] - gone, pool[2] - gone
        self.show()

    def finds(self, at_runtime: int, at_boot: int = 99) -> None:
        """From now on every node finds so many 1 GiB pages."""
        self.nodes = {node: seen._replace(at_runtime=at_runtime, at_boot=at_boot) for node, seen in self.nodes.items()}

    def boot(self, arguments: bool = True) -> None:
        """A reboot: memory is whole, the menu's first entry is taken (or its arguments are lost), units start."""
        self.boots += 1
        self.reboot(f"boot-{self.boots}")
        line = re.search(r"^\tlinux\t\S+ (.*)$", self.text(GRUB) or "", re.MULTILINE)
        said = line.group(1) if line and arguments else "root=/dev/vda1 ro quiet"
        self.put("/proc/cmdline", f"BOOT_IMAGE=/boot/vmlinuz {said}\n")
        self.put("/proc/mounts", "proc /proc proc rw 0 0\n")
        self.put(THP, "always [madvise] never\n")
        self.pools = {key: [0, 0, 0] for key in self.pools}
        self.loaded = {name: self.text(f"{SYSTEM}/{name}") or "" for name in (MOUNT, SERVICE)}
        reserved = BOOT_ARGUMENT.search(said)
        if reserved:
            self._reserve(reserved.group(1))
        self.show()
        self._start_at_boot()

    def _reserve(self, said: str) -> None:
        """The kernel's own reading of hugepages=: a total in turn over the nodes, or node:count pairs (since 5.16)."""
        limits = {node: seen.at_boot for node, seen in self.nodes.items()}
        if ":" in said:
            for pair in said.split(","):
                node, count = (int(number) for number in pair.split(":"))
                self.pools[node, LARGE][0] = min(count, limits[node])
            return
        left = int(said)
        while left and any(self.pools[node, LARGE][0] < limits[node] for node in self.nodes):
            for node in self.nodes:
                if left and self.pools[node, LARGE][0] < limits[node]:
                    self.pools[node, LARGE][0] += 1
                    left -= 1

    def _start_at_boot(self) -> None:
        if f"{SYSTEM}/sysinit.target.wants/{SERVICE}" in self.files:
            for value, path in re.findall(
                r"^ExecStart=-/bin/sh -c 'echo (\S+) >(\S+)'$", self.text(f"{SYSTEM}/{SERVICE}") or "", re.MULTILINE
            ):
                self._echo(path, value)
        if f"{SYSTEM}/sysinit.target.wants/{MOUNT}" in self.files:
            systemctl(self, ("systemctl", "start", MOUNT))

    def _echo(self, path: str, value: str) -> None:
        """A shell's write, whose failure the service ignores."""
        try:
            shown = self.kernel[path](self, path, value)
        except OSError:
            return
        if shown is not None:
            self.put(path, shown)

    # -- the kernel

    def room(self, node: int, size: str) -> int:
        """How many more pages the node finds now."""
        taken = sum(self.pools[node, each][0] * mib for each, mib in MIB.items())
        fits = (self.nodes[node].mib - taken) // MIB[size]
        if size == LARGE:
            fits = min(fits, self.nodes[node].at_runtime - self.pools[node, LARGE][0])
        return max(0, fits)

    def show(self) -> None:
        """Write all pools' files."""
        for size in MIB:
            for where in (None, *self.nodes):
                rows = [self.pools[node, size] for node in self.nodes if where in (None, node)]
                total, used, surplus = (sum(row[column] for row in rows) for column in range(3))
                shown = {"nr": total, "free": total - used, "surplus": surplus}
                for name, number in shown.items():
                    self.files[f"{folder(where, size)}/{name}_hugepages"] = File(f"{number}\n")


def folder(node: int | None, size: str) -> str:
    """A pool's directory."""
    return f"{HOST}/{size}" if node is None else f"{NODES}/node{node}/hugepages/{size}"


def shown_policy(value: str) -> str:
    """How the kernel shows the chosen one of three words."""
    return " ".join(f"[{word}]" if word == value else word for word in ("always", "madvise", "never")) + "\n"


def resize(host: FakeHost, path: str, value: str) -> str | None:
    """A write to nr_hugepages."""
    assert isinstance(host, HugeHost)
    size = SMALL if SMALL in path else LARGE
    named = re.search(r"/node(\d+)/", path)
    where = [int(named.group(1))] if named else list(host.nodes)
    want = int(value)

    def persistent() -> int:
        return sum(host.pools[node, size][0] - host.pools[node, size][2] for node in where)

    while persistent() < want and any(host.pools[node, size][2] or host.room(node, size) for node in where):
        for node in where:
            pool = host.pools[node, size]
            if persistent() < want and pool[2]:
                pool[2] -= 1
            elif persistent() < want and host.room(node, size):
                pool[0] += 1
    while persistent() > want:
        for node in where:
            pool = host.pools[node, size]
            if persistent() > want and pool[0] > pool[1]:
                pool[0] -= 1
            elif (
                persistent() > want
                and pool[0] > pool[2]
                and all(host.pools[other, size][0] == host.pools[other, size][1] for other in where)
            ):
                pool[2] += 1
    host.show()
    return None


# -- programs


def systemctl(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """The verbs that unit files of ours need."""
    assert isinstance(host, HugeHost)
    verb, name = argv[1], argv[-1]
    on_disk = host.text(f"{SYSTEM}/{name}")
    if verb == "daemon-reload":
        host.loaded = {unit: host.text(f"{SYSTEM}/{unit}") or "" for unit in (MOUNT, SERVICE)}
    elif verb == "enable":
        if on_disk is None:
            return Answer(1, "", f"Failed to enable unit: Unit file {name} does not exist.")
        target = re.search(r"^WantedBy=(\S+)$", on_disk, re.MULTILINE)
        assert target is not None
        host.put(f"{SYSTEM}/{target.group(1)}.wants/{name}", "")
    elif verb == "show":
        is_stale = host.loaded.get(name, on_disk) != on_disk
        return shown_units(argv, lambda _name: "inactive", lambda _name: is_stale)
    elif verb in ("start", "stop") and name == MOUNT:
        return _mount_unit(host, verb)
    else:
        return Answer(1, "", f"systemctl {' '.join(argv[1:])} is not played")
    return Answer(0, "")


def _mount_unit(host: HugeHost, verb: str) -> Answer:
    text = host.loaded.get(MOUNT) or host.text(f"{SYSTEM}/{MOUNT}") or ""
    if verb == "stop":
        if any(host.pools[node, LARGE][1] for node in host.nodes):
            return Answer(1, "", "umount: /dev/hugepages1G: target is busy.")
        kept = [line for line in (host.text("/proc/mounts") or "").splitlines() if "/dev/hugepages1G" not in line]
        host.put("/proc/mounts", "".join(line + "\n" for line in kept))
        return Answer(0, "")
    said = dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return mount(host, ("mount", "-t", said["Type"], "-o", said["Options"], said["What"], said["Where"]))


def mount(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """A hugetlbfs of 1 GiB pages; the kernel shows their size as 1024M."""
    assert argv[:5] == ("mount", "-t", "hugetlbfs", "-o", "pagesize=1G")
    line = f"{argv[5]} {argv[6]} hugetlbfs rw,relatime,pagesize=1024M 0 0\n"
    host.put("/proc/mounts", (host.text("/proc/mounts") or "") + line)
    return Answer(0, "")


def mkdir(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """A directory is there when something lies in it."""
    host.put(argv[-1] + "/.", "")
    return Answer(0, "")


def update_grub(host: FakeHost, _argv: tuple[str, ...]) -> Answer:
    """grub-mkconfig reads the defaults, then the drop-ins in order, as a shell does."""
    values = {"GRUB_CMDLINE_LINUX": "", "GRUB_CMDLINE_LINUX_DEFAULT": ""}
    drop_ins = [f"/etc/default/grub.d/{name}" for name in host.names("/etc/default/grub.d") if name.endswith(".cfg")]
    for path in ("/etc/default/grub", *drop_ins):
        for name, value in re.findall(r'^(\w+)="(.*)"$', host.text(path) or "", re.MULTILINE):
            values[name] = value.replace("$GRUB_CMDLINE_LINUX", values["GRUB_CMDLINE_LINUX"])
    words = " ".join(f"ro {values['GRUB_CMDLINE_LINUX']} {values['GRUB_CMDLINE_LINUX_DEFAULT']}".split())
    entry = f"menuentry 'Debian' {{\n\tlinux\t/boot/vmlinuz root=/dev/vda1 {words}\n}}\n"
    host.put(GRUB, f"### BEGIN /etc/grub.d/10_linux ###\n{entry}### END /etc/grub.d/10_linux ###\n")
    return Answer(0, "")
