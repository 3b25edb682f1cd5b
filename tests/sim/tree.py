# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the tree of a simulated host: `build(path, machine)` writes a whole machine and boots it once."""

from __future__ import annotations

import hashlib
import os
import shutil

from . import (
    bls,
    boot,
    containers,
    gpu,
    gpu_profiles,
    grub,
    initramfs,
    kernel,
    kube_profiles,
    loaders,
    modules,
    packages,
    pages,
    sdboot,
    standins,
    units,
)
from .machine import ROOT_ARGUMENTS, Machine, as_cpulist, at, initrd_name, kernels, load, put, save
from .profiles import PROFILES as PLAIN
from .profiles import machine, present

__all__ = ["PROFILES", "build", "copy", "machine", "present"]

PROFILES = {**PLAIN, **gpu_profiles.PROFILES, **kube_profiles.PROFILES}
OS_RELEASE = {
    "debian": (
        'NAME="Debian GNU/Linux"',
        'VERSION="12 (bookworm)"',
        'VERSION_ID="12"',
        "VERSION_CODENAME=bookworm",
        "ID=debian",
    ),
    "ubuntu": ('NAME="Ubuntu"', 'VERSION_ID="24.04"', "VERSION_CODENAME=noble", "ID=ubuntu", "ID_LIKE=debian"),
    "rocky": ('NAME="Rocky Linux"', 'ID="rocky"', 'ID_LIKE="rhel centos fedora"', 'VERSION_ID="9.4"'),
    "suse": ('NAME="openSUSE Leap"', 'ID="opensuse-leap"', 'ID_LIKE="suse opensuse"', 'VERSION_ID="15.6"'),
    "ostree": (
        'NAME="Fedora Linux"',
        "ID=fedora",
        "VERSION_ID=40",
        "VARIANT_ID=coreos",
        "OSTREE_VERSION='40.20240416.3.1'",
    ),
}
VENDORS = {"intel": "GenuineIntel", "amd": "AuthenticAMD", "hygon": "HygonGenuine", "other": "CentaurHauls"}


def build(path: str, what: Machine, hostname: str = "node", programs: tuple[str, ...] | None = None) -> str:
    """Write the tree at `path`, which must not hold anything yet, and boot it; returns the path.

    `programs` replaces the stand-ins that the machine's distribution and loader have.
    """
    root = os.path.abspath(path)
    os.makedirs(root, mode=0o755)
    before = os.umask(0o022)
    try:
        os.chmod(root, 0o755)  # noqa: S103  (a machine's / is)
        _directories(root, what)
        save(root, what)
        _identity(root, what, hostname)
        _hardware(root, what)
        _software(root, what)
        standins.install(root, present(what) if programs is None else programs)
        _loader(root, what)
        _packages(root, what)
        boot.start(root, loaders.next_cmdline(root, what))
    finally:
        os.umask(before)
    return root


def copy(source: str, target: str, hostname: str = "") -> str:
    """A second machine like the first; it gets its own name and boot id."""
    shutil.copytree(source, target, symlinks=True)
    if hostname:
        put(target, "/etc/hostname", hostname + "\n")
        put(target, "/etc/machine-id", hashlib.sha256(hostname.encode()).hexdigest()[:32] + "\n", 0o444)
        _rename_entries(target)
        boot.start(target, loaders.next_cmdline(target, load(target)))
    return target


def _rename_entries(root: str) -> None:
    """Entries carry the machine's id in their names."""
    what = load(root)
    if what.loader in ("systemd-boot", "uki", "grubby"):
        for folder in (sdboot.entries_in(what), sdboot.images_in(what), bls.ENTRIES):
            shutil.rmtree(at(root, folder), ignore_errors=True)
            os.makedirs(at(root, folder), exist_ok=True)
        for one in kernels(root):
            sdboot.install_kernel(root, what, one)


def _directories(root: str, what: Machine) -> None:
    for path in (
        "/.sim/root",
        "/etc/alternatives",
        "/dev/shm",
        "/home",
        "/mnt",
        "/opt",
        "/srv",
        "/run",
        "/var/lib/sim",
        "/var/tmp",
        "/var/log/sim",
        "/tmp",
        "/boot",
        "/proc/sys",
        "/sys/class",
        "/sys/fs/cgroup",
        "/sys/kernel",
        "/etc/modprobe.d",
        "/etc/modules-load.d",
        "/etc/sysctl.d",
        "/etc/systemd/system",
        "/usr/local/sbin",
        "/usr/lib/modprobe.d",
        "/usr/lib/modules-load.d",
        "/usr/lib/sysctl.d",
        "/usr/lib/systemd/system",
        "/usr/lib/kernel",
        "/usr/lib/bcd",  # of the program: what is made below /usr by a program inside stays only in folders of the tree
        "/dev/hugepages",
    ):
        os.makedirs(at(root, path), exist_ok=True)
    os.makedirs(at(root, "/root"), mode=0o700, exist_ok=True)
    for path in ("/tmp", "/var/tmp", "/dev/shm"):
        os.chmod(at(root, path), 0o1777)  # noqa: S103  (so are these)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0")):
        os.symlink(target, at(root, f"/dev/{name}"))
    os.symlink("/run", at(root, "/var/run"))
    del what


def _identity(root: str, what: Machine, hostname: str) -> None:
    put(root, "/etc/os-release", "".join(line + "\n" for line in OS_RELEASE[what.distribution]))
    put(root, "/etc/hostname", hostname + "\n")
    put(root, "/etc/hosts", f"127.0.0.1 localhost\n127.0.1.1 {hostname}\n")
    put(root, "/etc/machine-id", hashlib.sha256(hostname.encode()).hexdigest()[:32] + "\n", 0o444)
    put(
        root,
        "/etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\nadmin:x:1000:1000::/home/admin:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
    )
    put(root, "/etc/group", "root:x:0:\nadmin:x:1000:\nnogroup:x:65534:\n")
    put(root, "/etc/shadow", "root:*:19000:0:99999:7:::\n", 0o640)
    put(root, "/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n")
    put(root, "/etc/fstab", "UUID=5b0c6f2e-0f4b-4f0c-9d55-3a1f6f7f1e11 / ext4 defaults 0 1\n")
    release = {"rocky": ("redhat-release", "Rocky Linux release 9.4 (Blue Onyx)"), "debian": ("debian_version", "12.5")}
    if what.distribution in release:
        put(root, "/etc/" + release[what.distribution][0], release[what.distribution][1] + "\n")
    put(root, "/etc/ld.so.cache", "")
    os.makedirs(at(root, "/home/admin"), exist_ok=True)


def _hardware(root: str, what: Machine) -> None:
    put(root, "/proc/cpuinfo", "\n".join(_cpuinfo(what, cpu) for cpu in what.cpus), 0o444)
    put(root, "/proc/version", f"Linux version {what.kernel} (builder@sim) #1 SMP PREEMPT_DYNAMIC\n", 0o444)
    put(root, "/proc/loadavg", "0.00 0.00 0.00 1/100 1\n", 0o444)
    put(root, "/proc/filesystems", "nodev\tproc\nnodev\thugetlbfs\n\text4\n", 0o444)
    if what.systemd:
        put(root, "/proc/1/comm", "systemd\n", 0o444)
    every = as_cpulist(what.cpus) + "\n"
    for name in ("online", "present", "possible"):
        put(root, f"/sys/devices/system/cpu/{name}", every, 0o444)
    for cpu in what.cpus:
        base = f"/sys/devices/system/cpu/cpu{cpu}"
        os.makedirs(at(root, base), exist_ok=True)
        if what.cpufreq:
            put(root, f"{base}/cpufreq/scaling_governor", "powersave\n")
            put(root, f"{base}/cpufreq/scaling_available_governors", " ".join(what.governors) + " \n", 0o444)
            put(
                root,
                f"{base}/cpufreq/scaling_driver",
                "intel_pstate\n" if what.vendor == "intel" else "acpi-cpufreq\n",
                0o444,
            )
    _memory(root, what)
    if what.efi:
        os.makedirs(at(root, "/sys/firmware/efi/efivars"), exist_ok=True)
        put(root, "/sys/firmware/efi/fw_platform_size", "64\n", 0o444)
        if what.loader in ("systemd-boot", "uki"):
            _efi_variable(root, "LoaderInfo", "systemd-boot 252.22-1~deb12u1")
            if what.loader == "uki":
                _efi_variable(root, "StubInfo", "systemd-stub 252.22-1~deb12u1")


def _efi_variable(root: str, name: str, text: str) -> None:
    """As efivarfs shows it: four bytes of attributes, then UTF-16 with a final zero."""
    path = at(root, f"/sys/firmware/efi/efivars/{name}-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f")
    with open(path, "wb") as out:
        out.write(b"\x06\0\0\0" + (text + "\0").encode("utf-16-le"))


def _cpuinfo(what: Machine, cpu: int) -> str:
    if what.vendor == "arm":
        return f"processor\t: {cpu}\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n"
    virtual = {"intel": "vmx", "amd": "svm", "hygon": "svm"}.get(what.vendor, "")
    return (
        f"processor\t: {cpu}\nvendor_id\t: {VENDORS[what.vendor]}\ncpu family\t: 6\nmodel name\t: Simulated CPU\n"
        f"flags\t\t: fpu msr pae sse2 pdpe1gb {virtual}\n"
    )


def _memory(root: str, what: Machine) -> None:
    sizes = [size for size in pages.PAGE_KB if size == "2048kB" or what.pages_1g]
    if what.numa:
        put(root, "/sys/devices/system/node/online", as_cpulist(tuple(range(len(what.nodes)))) + "\n", 0o444)
        put(root, "/sys/devices/system/node/possible", as_cpulist(tuple(range(len(what.nodes)))) + "\n", 0o444)
        for number, node in enumerate(what.nodes):
            put(root, f"/sys/devices/system/node/node{number}/cpulist", as_cpulist(node.cpus) + "\n", 0o444)
            put(
                root,
                f"/sys/devices/system/node/node{number}/meminfo",
                f"Node {number} MemTotal: {node.memory_mb * 1024} kB\n",
                0o444,
            )
    for size in sizes:
        for where in (None, *range(len(what.nodes))):
            pages.show(root, where, size, pages.Pool(0, 0, 0))
    if what.thp:
        put(
            root,
            "/sys/kernel/mm/transparent_hugepage/enabled",
            kernel.choice(("always", "madvise", "never"), "madvise"),
        )
        put(
            root,
            "/sys/kernel/mm/transparent_hugepage/defrag",
            kernel.choice(("always", "defer", "defer+madvise", "madvise", "never"), "madvise"),
        )


def _software(root: str, what: Machine) -> None:
    for name, text in modules.modules_files(what.kernel).items():
        put(root, f"/usr/lib/modules/{what.kernel}/{name}", text)
    put(
        root,
        "/usr/lib/sysctl.d/50-default.conf",
        "# Of the distribution\nkernel.sysrq = 438\nnet.ipv4.conf.all.rp_filter = 2\n",
    )
    for name in ("local-fs.target", "sysinit.target", "basic.target", "multi-user.target", "swap.target"):
        put(root, f"/usr/lib/systemd/system/{name}", f"[Unit]\nDescription={name}\n")
    units.unit_file(
        root,
        "ssh.service",
        "[Unit]\nDescription=ssh\n[Service]\nExecStart=/usr/bin/true\n[Install]\nWantedBy=multi-user.target\n",
        True,
    )
    for name in modules.BUILTIN:
        os.makedirs(at(root, f"/sys/module/{name}"), exist_ok=True)


def _packages(root: str, what: Machine) -> None:
    """GPUs, their driver where it is installed, container runtimes and other packages."""
    if what.gpus:
        gpu.build(root, what)
    if what.gpus or what.packaged:
        containers.build(root)
        packages.provide(root, list(what.packages))


def _loader(root: str, what: Machine) -> None:
    put(root, f"/boot/vmlinuz-{what.kernel}", "kernel\n")
    put(root, f"/boot/config-{what.kernel}", "CONFIG_HUGETLBFS=y\n")
    initramfs.build(root, what, f"/boot/{initrd_name(root, what.kernel)}")
    line = f"{ROOT_ARGUMENTS} quiet"
    if what.loader in ("grub", "grubby") or what.leftover_grub:
        default = 'GRUB_DEFAULT=0\nGRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_CMDLINE_LINUX=""\n'
        if what.loader == "grubby":
            default = 'GRUB_TIMEOUT=5\nGRUB_DEFAULT=saved\nGRUB_CMDLINE_LINUX="quiet"\nGRUB_ENABLE_BLSCFG=true\n'
        put(root, "/etc/default/grub", default)
        if what.distribution in ("debian", "ubuntu"):
            os.makedirs(at(root, "/etc/default/grub.d"), exist_ok=True)
        grub.grub_mkconfig(root, ["-o", f"{grub.grub_directory(root)}/grub.cfg"])
    if what.efi and what.loader in ("grub", "grubby"):
        name = {"debian": "debian", "ubuntu": "ubuntu", "rocky": "rocky"}.get(what.distribution, "opensuse")
        put(root, f"/boot/efi/EFI/{name}/grub.cfg", f"configfile {grub.grub_directory(root)}/grub.cfg\n")
    if what.loader in ("grubby", "ostree"):
        grub.set_environment(root, {"boot_success": "1"})
    if what.loader in ("grubby", "systemd-boot", "uki"):
        put(root, "/etc/kernel/cmdline", line + "\n")
        sdboot.install_kernel(root, what, what.kernel)
    if what.loader in ("systemd-boot", "uki"):
        put(root, f"{what.esp}/loader/loader.conf", "timeout 3\n")
        put(root, "/etc/kernel/install.conf", f"layout={'uki' if what.loader == 'uki' else 'bls'}\n")
    if what.proxmox:
        put(root, "/etc/kernel/proxmox-boot-uuids", "5B0C-6F2E\n")
    if what.loader == "ostree":
        put(
            root,
            f"{bls.ENTRIES}/ostree-1-fedora-coreos.conf",
            (
                f"title Fedora CoreOS 40 (ostree:0)\nversion 1\noptions {line} ostree=/ostree/boot.1/fedora-coreos/0\n"
                f"linux /ostree/fedora-coreos/vmlinuz-{what.kernel}\n"
                f"initrd /ostree/fedora-coreos/initramfs-{what.kernel}.img\n"
            ),
        )
        put(root, f"{grub.grub_directory(root)}/grub.cfg", "insmod blscfg\nblscfg\n")
