# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A reboot of a simulated host: what the loader, the kernel and systemd do between two boots."""

from __future__ import annotations

import glob
import os
import re
import shutil
import time
import uuid

from . import gpu, initramfs, kernel, kubernetes, loaders, modules, pages, sdboot, swaps, systemd, timeline, units
from .machine import Machine, as_cpulist, at, cpulist, drop, initrd_name, load, names, need, put, read, there

DOWN = "/var/lib/sim/down"
NEVER = 1e12


def reboot(root: str) -> None:
    """Go down and come up again, as the machine's `misboot` says.

    `never-back`: the connection finds it down for ever; `same-boot-id`: it was not a reboot at all, though everything
    said so; `other-loader`: it boots by another loader than the one that was configured, without new arguments.
    """
    machine = load(root)
    if machine.misboot == "same-boot-id":
        return
    timeline.note(root, timeline.DOWN)
    if machine.misboot == "never-back":
        _down(root, NEVER)
        return
    until = time.time() + machine.down_seconds if machine.down_seconds else None
    if until is not None:
        _down(root, until)
    before = (read(root, "/proc/cmdline") or "").strip()
    start(root, before if machine.misboot == "other-loader" else loaders.next_cmdline(root, machine))
    timeline.note(root, timeline.UP, until)


def _down(root: str, until: float) -> None:
    """Leave the mark that the connection plugin looks for."""
    put(root, DOWN, f"{until}\n")


def start(root: str, cmdline: str) -> None:
    """Boot with this command line."""
    machine = load(root)
    put(root, "/proc/cmdline", cmdline + "\n", 0o444)
    put(root, "/proc/sys/kernel/random/boot_id", f"{uuid.uuid4()}\n", 0o444)
    put(root, "/proc/uptime", "12.34 20.00\n", 0o444)
    put(root, "/var/lib/sim/boots", str(int(read(root, "/var/lib/sim/boots") or "0") + 1))
    _empty_run(root, machine)
    put(root, "/proc/mounts", mounts(machine), 0o444)
    default_sysctls(root, machine)
    modules.forget_all(root)
    gpu.go_down(root)
    _cpus(root, machine, cmdline)
    _governors(root, machine)
    _iommu(root, machine, cmdline)
    _pages(root, machine, cmdline)
    swaps.boot(root, target=not (machine.systemd and units.masked(root, "swap.target")))
    _early_modules(root, machine)
    if machine.systemd:
        _modules_load(root)
        modules.autoload(root, machine, modules.rules(root))
        apply_sysctls(root)
        _tmpfiles(root)
        systemd.boot(root)
        kubernetes.turn(root)  # what died for want of what started behind it is started again


def mounts(machine: Machine) -> str:
    """/proc/mounts of a machine that has just booted."""
    lines = [
        "/dev/vda1 / ext4 rw,relatime 0 0",
        "proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0",
        "sysfs /sys sysfs rw,nosuid,nodev,noexec,relatime 0 0",
        "tmpfs /run tmpfs rw,nosuid,nodev 0 0",
        "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime 0 0",
    ]
    if machine.systemd:
        lines.append("hugetlbfs /dev/hugepages hugetlbfs rw,nosuid,nodev,relatime,pagesize=2M 0 0")
    if machine.efi and not machine.proxmox:
        lines.append(f"/dev/vda15 {machine.esp} vfat rw,relatime 0 0")
    return "".join(line + "\n" for line in lines)


def _governors(root: str, machine: Machine) -> None:
    """Every boot begins with the kernel's own governor."""
    for cpu in machine.cpus if machine.cpufreq else ():
        put(root, f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor", "powersave\n")


def _tmpfiles(root: str) -> None:
    """systemd-tmpfiles --create --boot, as far as `w` lines go: written to each file that the pattern finds."""
    folder = "/etc/tmpfiles.d"
    for name in sorted(names(root, folder)):
        for line in (read(root, f"{folder}/{name}") or "").splitlines():
            fields = line.split(None, 6)
            if fields[:1] == ["w"] and len(fields) == 7:
                for path in sorted(glob.glob(at(root, fields[1]))):
                    kernel.write(root, path[len(root.rstrip("/")) :], fields[6])


def _empty_run(root: str, machine: Machine) -> None:
    for name in names(root, "/run"):
        path = at(root, f"/run/{name}")
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    os.makedirs(at(root, "/run/lock"), exist_ok=True)
    if machine.systemd:
        os.makedirs(at(root, "/run/systemd/system"), exist_ok=True)
    if machine.loader == "ostree":
        put(root, "/run/ostree-booted", "")


def default_sysctls(root: str, machine: Machine) -> None:
    """Every key as the kernel boots with it."""
    values = dict(kernel.SYSCTLS)
    values["kernel/osrelease"] = machine.kernel
    values["kernel/hostname"] = (read(root, "/etc/hostname") or "localhost").strip()
    for key, value in values.items():
        if key in machine.no_sysctl:
            drop(root, f"/proc/sys/{key}")
        else:
            put(root, f"/proc/sys/{key}", value + "\n", 0o444 if key in kernel.READONLY else 0o644)


def _words(cmdline: str) -> list[tuple[str, str]]:
    return [(name, value) for name, _unused, value in (word.partition("=") for word in cmdline.split())]


def _cpus(root: str, machine: Machine, cmdline: str) -> None:
    isolated: tuple[int, ...] = ()
    full: tuple[int, ...] = ()
    for name, value in _words(cmdline):
        try:
            if name == "isolcpus":
                parts = value.split(",")
                flags = [part for part in parts if re.match(r"[a-z]", part)]
                domain = not flags or "domain" in flags
                isolated = cpulist(",".join(part for part in parts if part not in flags)) if domain else ()
            elif name == "nohz_full":
                full = cpulist(value)
        except ValueError:
            continue
    present = set(machine.cpus)
    put(
        root,
        "/sys/devices/system/cpu/isolated",
        as_cpulist(tuple(cpu for cpu in isolated if cpu in present)) + "\n",
        0o444,
    )
    put(
        root,
        "/sys/devices/system/cpu/nohz_full",
        (as_cpulist(tuple(cpu for cpu in full if cpu in present)) or "(null)") + "\n",
        0o444,
    )


def _iommu(root: str, machine: Machine, cmdline: str) -> None:
    words = _words(cmdline)
    wanted = {"intel": "intel_iommu", "amd": "amd_iommu", "hygon": "amd_iommu"}.get(machine.vendor, "")
    given = [value for name, value in words if name == wanted]
    off = "off" in given or ("iommu", "off") in words
    on = machine.iommu == "on" or (machine.iommu == "argument" and any(value.startswith("on") for value in given))
    if machine.vendor == "arm":
        on = machine.iommu != "off"
    for folder in ("/sys/class/iommu", "/sys/kernel/iommu_groups"):
        shutil.rmtree(at(root, folder), ignore_errors=True)
        os.makedirs(at(root, folder))
    if on and not off:
        name = {"intel": "dmar0", "arm": "smmu3.0x0000000009050000"}.get(machine.vendor, "ivhd0")
        os.makedirs(at(root, f"/sys/class/iommu/{name}"))
        for group in range(3):
            os.makedirs(at(root, f"/sys/kernel/iommu_groups/{group}/devices/0000:00:0{group}.0"))
            put(
                root,
                f"/sys/kernel/iommu_groups/{group}/type",
                "identity\n" if ("iommu", "pt") in words else "DMA-FQ\n",
                0o444,
            )


SIZES = {"1G": "1048576kB", "1024M": "1048576kB", "2M": "2048kB", "2048K": "2048kB"}


def _pages(root: str, machine: Machine, cmdline: str) -> None:
    """The pools that the command line reserves: evenly over the nodes as far as memory allows, or per node."""
    for size in pages.PAGE_KB:
        for node in (None, *range(len(machine.nodes))):
            if there(root, pages.pool_of(root, node, size)):
                pages.show(root, node, size, pages.Pool(0, 0, 0))
    size = pages.default_size(root)
    for name, value in _words(cmdline):
        if name == "hugepagesz":
            size = SIZES.get(value.upper(), "")
        elif name == "hugepages" and size and there(root, pages.pool_of(root, None, size)):
            _reserve(root, machine, size, value)
        elif name == "default_hugepagesz":
            size = SIZES.get(value.upper(), size)
        elif name == "transparent_hugepage" and machine.thp:
            put(
                root,
                "/sys/kernel/mm/transparent_hugepage/enabled",
                kernel.choice(("always", "madvise", "never"), value),
            )
    if machine.thp and not any(name == "transparent_hugepage" for name, _unused in _words(cmdline)):
        put(
            root,
            "/sys/kernel/mm/transparent_hugepage/enabled",
            kernel.choice(("always", "madvise", "never"), "madvise"),
        )


def _reserve(root: str, machine: Machine, size: str, value: str) -> None:
    nodes = range(len(machine.nodes))
    room = {node: _boot_room(root, machine, node, size) for node in nodes}
    given = dict.fromkeys(nodes, 0)
    if ":" in value:
        for part in value.split(","):
            number, _unused, wanted = part.partition(":")
            if int(number) in given:
                given[int(number)] = min(int(wanted), room[int(number)])
    else:
        missing = int(value)
        while missing > 0 and any(given[node] < room[node] for node in nodes):
            for node in nodes:
                if missing > 0 and given[node] < room[node]:
                    given[node] += 1
                    missing -= 1
    for node, count in given.items():
        pages.show(root, node, size, pages.Pool(count, count, 0))


def _boot_room(root: str, machine: Machine, node: int, size: str) -> int:
    """How many pages of the size an empty machine's node can give."""
    taken = sum(pages.pool(root, node, each).total * kb for each, kb in pages.PAGE_KB.items() if each != size) // 1024
    fits = max(0, (machine.nodes[node].memory_mb - pages.BASE_MB - taken) * 1024 // pages.PAGE_KB[size])
    return min(fits, machine.nodes[node].boot_1g) if size == "1048576kB" else fits


def _early_modules(root: str, machine: Machine) -> None:
    """What the initial RAM disk loads, with the options that were current when it was made."""
    if machine.loader == "uki":
        images = [f"{sdboot.images_in(machine)}/{name}" for name in names(root, sdboot.images_in(machine))]
        text = sdboot.image_sections(need(root, images[-1]))[".initrd"] if images else None
    elif machine.loader == "systemd-boot":
        identity = (read(root, "/etc/machine-id") or "").strip()
        text = read(root, f"{machine.esp}/{identity}/{machine.kernel}/initrd.img-{machine.kernel}")
    else:
        text = read(root, f"/boot/{initrd_name(root, machine.kernel)}")
    if text is None:
        return
    said = initramfs.rules(text)
    for name in machine.initramfs_modules:
        if name in machine.boot_modules and name not in said.blacklist:
            try:
                modules.insert(root, name, (), said)
            except modules.Refused:
                continue


def _modules_load(root: str) -> None:
    files: dict[str, str] = {}
    for folder in (
        "/etc/modules-load.d",
        "/run/modules-load.d",
        "/usr/local/lib/modules-load.d",
        "/usr/lib/modules-load.d",
    ):
        for name in names(root, folder):
            if name.endswith(".conf"):
                files.setdefault(name, f"{folder}/{name}")
    lines = [line for name in sorted(files) for line in (read(root, files[name]) or "").splitlines()]
    lines += (read(root, "/etc/modules") or "").splitlines()
    said = modules.rules(root)
    for line in lines:
        word = line.strip()
        if word and not word.startswith(("#", ";")) and modules.plain(word.split()[0]) not in said.blacklist:
            try:
                modules.insert(root, word.split()[0], (), said)
            except modules.Refused:
                continue


def apply_sysctls(root: str) -> None:
    """systemd-sysctl: the files of sysctl.d by name, one in an earlier directory hiding its namesake in a later one."""
    files: dict[str, str] = {}
    for folder in ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"):
        for name in names(root, folder):
            if name.endswith(".conf"):
                files.setdefault(name, f"{folder}/{name}")
    for name in sorted(files):
        for raw in (read(root, files[name]) or "").splitlines():
            line = raw.strip().lstrip("-")
            if "=" in line and not line.startswith(("#", ";")):
                key, _unused, value = line.partition("=")
                try:
                    kernel.write(root, "/proc/sys/" + sysctl_path(key.strip()), value.strip())
                except OSError:
                    continue


def sysctl_path(name: str) -> str:
    """Below /proc/sys: when the first separator is a dot, dots and slashes change places; else the name is a path."""
    first = re.search(r"[./]", name)
    if first and first.group(0) == ".":
        return name.translate(str.maketrans("./", "/."))
    return name
