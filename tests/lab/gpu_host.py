# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine as a GPU host: NVIDIA devices on its PCI bus, package repositories, a driver, a job.

The devices are the kernel's own: a module enumerates a bus for them (gpu/kernel/lab_gpus.c), and they have a
configuration space and nothing behind it.
"""

from __future__ import annotations

import hashlib
import re
import time
from pathlib import Path
from typing import Any

from labvm import recipe
from labvm.machine import Machine
from play import Stage
from seen import Eyes

H100 = "0x2330"
UUID = "GPU-10de2330-0000-4000-8000-000000011700"  # see information_show in gpu/kernel/nvidia.c
BRANCH, NEWER = "580", "590"
# The newest of each branch in the repository, and an older one of the first.
NEWEST = {BRANCH: "580.105.08", NEWER: "590.44.01"}
OLDER = "580.95.05"
VERSION = "/proc/driver/nvidia/version"
OPEN, PROPRIETARY = "NVIDIA UNIX Open Kernel Module for x86_64", "NVIDIA UNIX x86_64 Kernel Module"
JOB = f"{recipe.STORE}/job"
NODES = {"/dev/nvidiactl": (195, 255), "/dev/nvidia0": (195, 0)}
SECTION: dict[str, Any] = {"nvidia-driver": {"branch": BRANCH}}


def plug(machine: Machine) -> None:
    """One H100, now and after each boot. Nobody keeps nouveau from it, so udev loads that, as on any such host."""
    machine.ssh(
        f"echo lab_gpus >/etc/modules-load.d/lab.conf; echo 'options lab_gpus devices={H100}' >/etc/modprobe.d/lab.conf"
        "; modprobe lab_gpus && udevadm settle --timeout=60"
    )


def offer(machine: Machine, repository: str = "nvidia") -> None:
    """Let apt find a repository of the image."""
    line = f"deb [trusted=yes] file:{recipe.STORE}/{repository} ./"
    machine.ssh(f"echo '{line}' >/etc/apt/sources.list.d/{repository}.list")


def shut_nouveau_out(machine: Machine) -> None:
    """Unload it, so that a first pass has a free GPU: whether it comes back with a boot is for the unit to see to."""
    machine.ssh("modprobe -r nouveau && ! lsmod | grep -q ^nouveau")


def loaded(eyes: Eyes) -> str:
    """The first line of what the kernel's driver says of itself."""
    return eyes.text(VERSION).splitlines()[0]


def is_loaded(eyes: Eyes, version: str, flavour: str) -> None:
    """The kernel's module, the file that modprobe would take and the library agree; the nodes are the driver's."""
    assert f"{flavour}  {version}  " in loaded(eyes)
    modinfo = eyes.host.check_output("modinfo -F version nvidia; modinfo -F license nvidia").split("\n")
    assert modinfo == [version, "Dual MIT/GPL" if flavour == OPEN else "NVIDIA"]
    library = eyes.host.check_output("readlink -f /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1")
    assert library.rpartition("libnvidia-ml.so.")[2] == version
    assert eyes.loaded("nvidia", "nvidia_uvm")
    major = int(re.findall(r"^ *(\d+) nvidia-uvm$", eyes.text("/proc/devices"), re.MULTILINE)[0])
    for path, number in {**NODES, "/dev/nvidia-uvm": (major, 0)}.items():
        assert eyes.host.check_output("stat -c '%%F %%Hr %%Lr' %s", path) == "character special file {} {}".format(
            *number
        )
    assert eyes.host.check_output("nvidia-smi -L") == f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: {UUID})"


def installed(eyes: Eyes, package: str) -> str:
    """The installed version of a package, "" when it is not."""
    found = eyes.host.run("dpkg-query -W -f '${db:Status-Status} ${Version}' %s", package).stdout
    return str(found.removeprefix("installed ")) if found.startswith("installed ") else ""


def candidate(eyes: Eyes, package: str) -> str:
    """The version that apt would install or upgrade to by itself."""
    shown = eyes.host.check_output("apt-cache policy %s", package)
    return str(next(line.split()[1] for line in shown.splitlines() if line.strip().startswith("Candidate:")))


def start_job(machine: Machine, *nodes: str) -> int:
    """A process that has the nodes open; its id."""
    command = f"nohup {JOB} {' '.join(nodes)} >/dev/null 2>&1 </dev/null & echo $!"
    pid = int(machine.ssh(command).out)
    until = time.monotonic() + 120
    while not machine.ssh(f"readlink /proc/{pid}/fd/* | grep -xF {nodes[0]}", check=False).out:
        assert time.monotonic() < until, "the job did not open its nodes"
        time.sleep(0.2)
    return pid


def started(eyes: Eyes, service: str) -> str:
    """When the service's process was started, on the clock of this boot; "0" when it runs none."""
    return str(eyes.host.check_output("systemctl show --property=ExecMainStartTimestampMonotonic --value %s", service))


def stand_with_driver(stage: Stage) -> None:
    """The machine with the driver of SECTION installed and loaded: from the snapshot of a story, or made here."""
    if snapshot_name() in stage.machine.snapshots():
        stage.machine.revert(snapshot_name())
        return
    stage.machine.revert()
    plug(stage.machine)
    offer(stage.machine)
    shut_nouveau_out(stage.machine)
    done = stage.converge(SECTION)
    assert done.state == "CONVERGED", done.said
    stage.machine.snapshot(snapshot_name())


def snapshot_name() -> str:
    """Names the code that made it."""
    state = hashlib.sha256()
    for path in sorted((Path(__file__).resolve().parents[2] / "plugins").rglob("*.py")):
        state.update(path.read_bytes())
    return f"gpu-{state.hexdigest()[:12]}"
