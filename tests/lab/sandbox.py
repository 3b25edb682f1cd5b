# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The specification's sandbox host for the machine at hand, and what such a host has to show."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from labvm.machine import Machine
from play import Stage
from seen import G1, M2, Eyes

NODES = 2
PAGES_2M, PAGES_1G = 32, 1  # on each node
ISOLATED = "2-3"
BRIDGE = ("net.bridge.bridge-nf-call-ip6tables", "net.bridge.bridge-nf-call-iptables")
ISOLATION = [f"isolcpus=managed_irq,domain,{ISOLATED}", f"nohz_full={ISOLATED}", f"rcu_nocbs={ISOLATED}"]
RESERVATION = ["hugepagesz=1G", f"hugepages={NODES * PAGES_1G}"]
IOMMU = {
    "GenuineIntel": ["intel_iommu=on", "iommu=pt"],
    "AuthenticAMD": ["amd_iommu=on", "iommu=pt"],
    "HygonGenuine": ["amd_iommu=on", "iommu=pt"],
}

BREAK_UP = """
import os
TOP = "/sys/devices/system/memory"
size = int(open(f"{TOP}/block_size_bytes").read(), 16)
broken = set()
for number in sorted(int(name[6:]) for name in os.listdir(TOP) if name[6:].isdigit()):
    piece = number * size >> 30
    if piece not in broken:
        try:
            with open(f"{TOP}/memory{number}/state", "w") as state:
                state.write("offline")
            broken.add(piece)
        except OSError as fault:
            print(f"memory{number} stays: {fault.strerror}")
"""


def kvm_module(machine: Machine) -> str:
    """The module of the CPU at hand."""
    flags = machine.ssh("grep -m1 ^flags /proc/cpuinfo").out.split()
    assert {"svm", "vmx"} & set(flags), "the lab's CPU shows neither svm nor vmx: QEMU has to offer one"
    return "kvm_amd" if "svm" in flags else "kvm_intel"


def load_without_nesting(machine: Machine, kvm: str) -> None:
    """The module with another option than the example asks for; the CPU itself has had it loaded at the boot."""
    machine.ssh(f"modprobe -r {kvm} && modprobe {kvm} nested=0")
    assert machine.read(f"/sys/module/{kvm}/parameters/nested").strip() in ("0", "N")


def break_up(machine: Machine) -> None:
    """Leave no GiB of memory in one piece until the next boot, as on a host that has been up for a while.

    One block of memory (128 MiB) is taken offline in each; where none can be, the kernel itself sits in all of them.
    """
    machine.ssh("python3 -", stdin=BREAK_UP)


def vendor(machine: Machine) -> str:
    """The CPU's vendor_id."""
    return machine.ssh("grep -m1 ^vendor_id /proc/cpuinfo").out.split()[-1]


def section(machine: Machine) -> dict[str, Any]:
    """The example's units, in wire form."""
    kvm = kvm_module(machine)
    return {
        "kernel-modules": {"load": [kvm, "vhost_net", "tun", "br_netfilter"], "options": {kvm: "nested=1"}},
        "sysctl": dict.fromkeys(BRIDGE, 0),
        "hugepages": {"pages1g": PAGES_1G, "pages2m": PAGES_2M, "perNuma": True},
        "cpu": {"governor": "performance", "isolate": ISOLATED},
        "iommu": {},
    }


def modules_are_as_asked(eyes: Eyes, kvm: str) -> None:
    """kernel-modules: both drop-ins, everything loaded, the option in effect."""
    assert eyes.lines("/etc/modules-load.d/bcd.conf") == sorted([kvm, "vhost_net", "tun", "br_netfilter"])
    assert eyes.lines("/etc/modprobe.d/bcd.conf") == [f"options {kvm} nested=1"]
    assert eyes.loaded(kvm, "vhost_net", "tun", "br_netfilter")
    assert eyes.parameter(kvm, "nested")


def parameters_are_as_asked(eyes: Eyes) -> None:
    """sysctl: the drop-in, sorted, and the live values."""
    assert eyes.lines("/etc/sysctl.d/90-bcd.conf") == [f"{name} = 0" for name in sorted(BRIDGE)]
    assert [eyes.sysctl(name) for name in BRIDGE] == [0, 0]


def pages_are_as_asked(eyes: Eyes) -> None:
    """hugepages: the pools of each node, the mount and what brings both back at a boot."""
    assert eyes.pools(M2) == [PAGES_2M] * NODES
    assert eyes.pools(G1) == [PAGES_1G] * NODES
    small_pages_and_mount_are_as_asked(eyes)


def small_pages_and_mount_are_as_asked(eyes: Eyes) -> None:
    """What hugepages can have before any reboot, wherever the 1 GiB pages come from."""
    assert eyes.pools(M2) == [PAGES_2M] * NODES
    mount = eyes.host.mount_point("/dev/hugepages1G")
    assert mount.exists
    assert mount.filesystem == "hugetlbfs"
    assert "pagesize=1024M" in mount.options
    unit = eyes.lines("/etc/systemd/system/dev-hugepages1G.mount")
    assert {"What=hugetlbfs", "Where=/dev/hugepages1G", "Options=pagesize=1G"} <= set(unit)
    assert {"DefaultDependencies=no", "Before=sysinit.target", "WantedBy=sysinit.target"} <= set(unit)
    for name in ("dev-hugepages1G.mount", "bcd-hugepages.service"):
        assert eyes.host.check_output("systemctl is-enabled %s", name) == "enabled"
        assert eyes.host.check_output("systemctl show --property=NeedDaemonReload --value %s", name) == "no"


def governors_are_as_asked(eyes: Eyes) -> None:
    """cpu: the governor of each CPU that has one."""
    listed = eyes.host.run("cat /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor").stdout.split()
    assert set(listed) <= {"performance"}


def next_boot_has(eyes: Eyes, unit: str, words: list[str]) -> None:
    """The unit's drop-in carries exactly the words, in order, and every entry of the menu has them."""
    [line] = eyes.lines(f"/etc/default/grub.d/90-bcd-{unit}.cfg")
    assert line == f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {" ".join(words)}"'
    assert all(in_order(words, entry) for entry in eyes.menu_lines())


def in_order(words: list[str], line: list[str]) -> bool:
    """Whether the words stand on the line next to each other, once."""
    places = [at for at in range(len(line)) if line[at : at + len(words)] == words]
    return len(places) == 1 and all(line.count(word) == 1 for word in words)


def booted_as_asked(eyes: Eyes, kvm: str, maker: str) -> None:
    """Everything, after the reboot that it waited for."""
    modules_are_as_asked(eyes, kvm)
    parameters_are_as_asked(eyes)
    pages_are_as_asked(eyes)
    governors_are_as_asked(eyes)
    assert in_order(ISOLATION, eyes.command_line())
    assert in_order(IOMMU[maker], eyes.command_line())
    assert in_order(RESERVATION, eyes.command_line())
    assert eyes.text("/sys/devices/system/cpu/isolated").strip() == ISOLATED
    assert eyes.text("/sys/devices/system/cpu/nohz_full").strip() == ISOLATED
    assert eyes.host.file("/sys/class/iommu").listdir()
    assert eyes.host.file("/sys/kernel/iommu_groups").listdir()
    next_boot_has(eyes, "cpu", ISOLATION)
    next_boot_has(eyes, "iommu", IOMMU[maker])
    next_boot_has(eyes, "hugepages", RESERVATION)


def stand_converged(stage: Stage) -> None:
    """The machine as a converged sandbox host, rebooted: from the snapshot that the story of test_sandbox leaves."""
    wanted = section(stage.machine)
    if snapshot_name(wanted) in stage.machine.snapshots():
        stage.machine.revert(snapshot_name(wanted))
        return
    stage.machine.revert()
    break_up(stage.machine)
    assert stage.converge(wanted).rc == 0
    stage.machine.reboot()
    after = stage.converge(wanted)
    assert after.state == "CONVERGED", after.message
    stage.machine.snapshot(snapshot_name(wanted))


def snapshot_name(wanted: dict[str, Any]) -> str:
    """Names the code that made it, so that a snapshot that outlives a change of it is not taken over."""
    state = hashlib.sha256(json.dumps(wanted).encode())
    plugins = Path(__file__).resolve().parents[2] / "plugins"
    for path in sorted(plugins.rglob("*.py")):
        state.update(path.read_bytes())
    return f"sandbox-{state.hexdigest()[:12]}"
