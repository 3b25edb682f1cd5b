# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with systemd and cgroup v2 as far as slices of holds go, as systemd 257 on Linux 6.12 was seen to behave.

Memory limits are rounded down to pages, CPU lists are rewritten, CPUs that are not there are dropped with exit status
0, a slice's properties outlive its stop in /run, and limits of huge pages are files of the cgroup that exist once
the controller is enabled above it.
"""

from __future__ import annotations

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.cpulist import parse, render
from tests.unit.fake_host import FakeHost, Kernel

ROOT = "/sys/fs/cgroup"
TREE = (ROOT, f"{ROOT}/bcd.slice", f"{ROOT}/bcd.slice/bcd-alloc.slice")
CONTROL = "/run/systemd/system.control"
CONTROLLERS = "cpuset cpu io memory hugetlb pids rdma misc"
HUGE = {"hugetlb.2MB": 2 << 20, "hugetlb.1GB": 1 << 30}
SHOWN = {"AllowedCPUs": "cpuset.cpus", "AllowedMemoryNodes": "cpuset.mems", "CPUQuota": "cpu.max"}


def add_slices(
    host: FakeHost, cpus: str = "0-15", mems: str = "0-1", controllers: str = CONTROLLERS, page: int = 4096
) -> None:
    """Give a host its systemd and its cgroups; `page` is the kernel's page size in bytes."""
    systemd = _Systemd(cpus, mems, page)
    host.put("/run/systemd/system/marker", "")
    host.put(f"{ROOT}/cgroup.controllers", f"{controllers}\n")
    systemd.grow(host, ROOT)
    before = host.programs.get("systemctl")

    def systemctl(machine: FakeHost, argv: tuple[str, ...]) -> Answer:
        answer = systemd.answer(machine, argv)
        if answer is None:
            return before(machine, argv) if before else Answer(1, "", f"no answer to {argv}")
        return answer

    host.programs["systemctl"] = systemctl


def slice_folder(allocation: str) -> str:
    return f"{TREE[-1]}/bcd-alloc-{allocation}.slice"


def run_in(host: FakeHost, allocation: str, runs: bool = True) -> None:
    """Somebody starts a workload in the slice, or it ends."""
    host.put(f"{slice_folder(allocation)}/cgroup.events", f"populated {int(runs)}\nfrozen 0\n")


def reboot_slices(host: FakeHost) -> None:
    """What a boot leaves: no slice, no properties set at runtime, the controllers that systemd enables by itself."""
    gone = [path for path in host.files if path.startswith((f"{TREE[1]}/", f"{CONTROL}/"))]
    for path in gone:
        del host.files[path]
    host.put(f"{ROOT}/cgroup.subtree_control", "memory pids\n")
    host.reboot()


def _rounded_to(each: int) -> Kernel:
    """The kernel keeps whole pages."""
    return lambda _host, _path, value: f"{int(value) // each * each}\n"


class _Systemd:
    def __init__(self, cpus: str, mems: str, page: int) -> None:
        self.there = {"AllowedCPUs": frozenset(parse(cpus)), "AllowedMemoryNodes": frozenset(parse(mems))}
        self.page = page

    def answer(self, host: FakeHost, argv: tuple[str, ...]) -> Answer | None:
        words = [word for word in argv[1:] if word not in ("--runtime", "--no-reload")]
        if words[0] == "list-units":
            return Answer(0, "".join(f"{name} loaded active active {name}\n" for name in self.names(host)))
        name = words[1] if len(words) > 1 else ""
        if not name.startswith("bcd-alloc-"):
            return None
        if words[0] == "start":
            self.start(host, name)
        elif words[0] == "set-property":
            return self.set_properties(host, name, words[2:])
        elif words[0] == "stop":
            self.drop(host, f"{TREE[-1]}/{name}")
        elif words[0] == "revert":
            self.drop(host, f"{CONTROL}/{name}.d")
        else:
            return None
        return Answer(0, "")

    def names(self, host: FakeHost) -> list[str]:
        return [name for name in host.names(TREE[-1]) if name.endswith(".slice")]

    def start(self, host: FakeHost, name: str) -> None:
        for folder in TREE[1:]:
            self.grow(host, folder)
        folder = f"{TREE[-1]}/{name}"
        if f"{folder}/cgroup.events" not in host.files:
            host.put(f"{folder}/cgroup.events", "populated 0\nfrozen 0\n")
            self.limits_of_pages(host, folder)
            for file in host.names(f"{CONTROL}/{name}.d"):
                self.realize(host, folder, (host.text(f"{CONTROL}/{name}.d/{file}") or "").splitlines()[-1])

    def grow(self, host: FakeHost, folder: str) -> None:
        path = f"{folder}/cgroup.subtree_control"
        host.files.setdefault(path, File("memory pids\n"))
        host.kernel[path] = self.enable

    def enable(self, host: FakeHost, path: str, value: str) -> str | None:
        shown = (host.text(path) or "").split()
        above = path.rpartition("/")[0].rpartition("/")[0] + "/cgroup.subtree_control"
        place = f"{ROOT}/cgroup.controllers" if path.startswith(f"{ROOT}/cgroup.") else above
        if value[1:] not in (host.text(place) or "").split():
            raise FileNotFoundError(2, "No such file or directory", path)  # as the kernel has it
        host.put(path, " ".join(dict.fromkeys([*shown, value[1:]])) + "\n")
        for name in self.names(host):
            self.limits_of_pages(host, f"{TREE[-1]}/{name}")
        return None

    def limits_of_pages(self, host: FakeHost, folder: str) -> None:
        if "hugetlb" not in (host.text(f"{TREE[-1]}/cgroup.subtree_control") or "").split():
            return
        for size, each in HUGE.items():
            host.files.setdefault(f"{folder}/{size}.max", File("max\n"))
            host.files.setdefault(f"{folder}/{size}.current", File("0\n"))
            host.kernel[f"{folder}/{size}.max"] = _rounded_to(each)

    def set_properties(self, host: FakeHost, name: str, properties: list[str]) -> Answer:
        if "CPUQuota=0%" in properties:
            return Answer(1, "", "CPU quota too small.")
        for given in properties:
            host.put(f"{CONTROL}/{name}.d/50-{given.partition('=')[0]}.conf", f"[Slice]\n{given}\n")
            if host.names(f"{TREE[-1]}/{name}"):
                self.realize(host, f"{TREE[-1]}/{name}", given)
        return Answer(0, "")

    def realize(self, host: FakeHost, folder: str, given: str) -> None:
        key, value = given.split("=", maxsplit=1)
        if key in self.there:
            wanted = frozenset(parse(value))
            known = wanted if wanted <= self.there[key] else frozenset()
            host.put(f"{folder}/{SHOWN[key]}", render(known) + "\n")
            host.put(f"{folder}/{SHOWN[key]}.effective", render(known or self.there[key]) + "\n")
        elif key == "CPUQuota":
            host.put(f"{folder}/cpu.max", f"{int(value[:-1]) * 1000} 100000\n")
        else:
            file = {"MemoryMax": "memory.max", "MemoryHigh": "memory.high"}[key]
            host.put(f"{folder}/{file}", f"{int(value) // self.page * self.page}\n")

    def drop(self, host: FakeHost, folder: str) -> None:
        for file in host.names(folder):
            del host.files[f"{folder}/{file}"]
