# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How QEMU is called: the machine's shape, and a bounded probe for an accelerator that really boots a kernel."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import time
from pathlib import Path

from . import recipe

QEMU = "qemu-system-x86_64"
NODES = 2
CPUS_PER_NODE = 2
# 1 GiB pages reserved at boot come from whole, untouched gigabytes: a node needs more of them than a test asks for.
# Memory is taken from this machine only as the guest touches it (about 0.5 GiB after a boot).
MEMORY_PER_NODE_MIB = 5 * 1024

KVM = ("-accel", "kvm", "-cpu", "host")
# What is off would only slow the emulation down: measured, a boot takes a seventh less and a Python start a quarter.
TCG = (
    "-accel",
    "tcg,thread=multi",
    "-cpu",
    "max,la57=off,avx=off,avx2=off,xsave=off,smap=off,smep=off,pku=off,umip=off",
)

PROBE_LIMIT = 15.0
# Printed once the kernel has its processors, memory and initcalls; without a root it then panics and reboots.
PROBE_MARKER = b"Kernel panic - not syncing: VFS"
PROBE_FAILURES = (b"KVM internal error", b"Assertion", b"error:")


def shape() -> tuple[str, ...]:
    """The arguments that make the machine what its guest sees, less accelerator, disk and network."""
    count = NODES * CPUS_PER_NODE
    argv = [
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-vga",
        "none",
        "-M",
        "q35,kernel-irqchip=split,sata=off,smbus=off,usb=off,vmport=off",
        "-smp",
        f"{count},sockets={NODES},cores={CPUS_PER_NODE}",
        "-m",
        str(NODES * MEMORY_PER_NODE_MIB),
    ]
    for node in range(NODES):
        first = node * CPUS_PER_NODE
        argv += [
            "-object",
            f"memory-backend-ram,id=m{node},size={MEMORY_PER_NODE_MIB}M",
            "-numa",
            f"node,nodeid={node},cpus={first}-{first + CPUS_PER_NODE - 1},memdev=m{node}",
        ]
    return (*argv, "-device", "intel-iommu", "-device", "virtio-rng-pci")


def devices(disk: Path, port: int, console: Path, control: Path) -> tuple[str, ...]:
    """Disk, network (guest's ssh on a loopback port, no way out), console and control socket."""
    return (
        "-drive",
        f"file={disk},if=virtio,format=qcow2,cache=unsafe,discard=unmap",
        "-nic",
        f"user,model=virtio-net-pci,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22",
        "-chardev",
        f"file,id=console,path={console},append=on",
        "-serial",
        "chardev:console",
        "-qmp",
        f"unix:{control},server=on,wait=off",
    )


def version() -> str:
    done = subprocess.run((QEMU, "--version"), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


def key(accelerator: tuple[str, ...]) -> str:
    """Names everything that a saved memory image depends on besides the disk."""
    cpu = ""
    if accelerator == KVM:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line for line in lines if line.startswith("model name")), "")
    text = "\n".join((version(), cpu, *accelerator, *shape()))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def accelerator(kernel: Path) -> tuple[str, ...]:
    """KVM where the lab's kernel boots under it, else emulation. The answer is kept for this boot of this machine.

    kernel: a bzImage. That /dev/kvm can be opened proves nothing: nested machines may offer it and fail at the first
    guest. BCD_LAB_ACCELERATOR=kvm or tcg overrides the probe.
    """
    wish = os.environ.get("BCD_LAB_ACCELERATOR", "")
    if wish in ("kvm", "tcg"):
        return KVM if wish == "kvm" else TCG
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return TCG
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    note = recipe.cache() / "kvm"
    asked = f"{boot} {version()}"
    lines = note.read_text().splitlines() if note.exists() else []
    if lines[:1] != [asked]:
        lines = [asked, "works" if kvm_boots(kernel) else "fails"]
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text("\n".join(lines) + "\n")
    return KVM if lines[1:] == ["works"] else TCG


def kvm_boots(kernel: Path, limit: float = PROBE_LIMIT) -> bool:
    """Boots the kernel under KVM without a disk and waits for its own words, at most `limit` seconds."""
    with tempfile.TemporaryDirectory(prefix="bcd-lab-kvm-") as name:
        output = Path(name) / "output"
        argv = (
            QEMU,
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            *KVM,
            "-M",
            "q35,kernel-irqchip=split",
            "-smp",
            "2",
            "-m",
            "512",
            "-no-reboot",
            "-serial",
            f"file:{name}/console",
            "-kernel",
            str(kernel),
            "-append",
            "console=ttyS0 panic=-1",
        )
        with output.open("wb") as stream:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream)
        try:
            return _reaches_marker(child, Path(name) / "console", output, time.monotonic() + limit)
        finally:
            child.kill()
            child.wait()


def _reaches_marker(child: subprocess.Popen[bytes], console: Path, output: Path, end: float) -> bool:
    while time.monotonic() < end:
        ended = child.poll() is not None
        if console.exists() and PROBE_MARKER in console.read_bytes():
            return True
        if ended or any(word in output.read_bytes() for word in PROBE_FAILURES):
            return False
        time.sleep(0.1)
    return False
