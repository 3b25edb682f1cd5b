# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab itself: that it is the machine the other tests take it for, and that it leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from labvm import guest, image, machine, process, recipe
from labvm.errors import LabError
from labvm.machine import Machine

SLACK = 10  # seconds that the guest's clock may be off: it stands still whenever this machine has no time for it
CLI = Path(__file__).with_name("lab.py")


def assert_clock_is_right(guest_machine: Machine) -> None:
    before = time.time()
    seen = float(guest_machine.ssh("date +%s.%N").out)
    assert before - SLACK < seen < time.time() + SLACK


def test_the_machine_is_a_debian_that_is_up(lab_machine: Machine) -> None:
    assert lab_machine.read("/proc/1/comm") == "systemd\n"
    assert "VERSION_CODENAME=trixie" in lab_machine.read("/etc/os-release")
    assert lab_machine.ssh("systemctl is-system-running", check=False).out == "running\n"
    assert_clock_is_right(lab_machine)


def test_the_ordinary_user_needs_sudo(lab: Machine) -> None:
    refused = lab.ssh("echo x >/etc/lab-test", user=recipe.USER, check=False)
    assert refused.rc != 0
    assert "Permission denied" in refused.err
    lab.ssh("echo x | sudo -n tee /etc/lab-test", user=recipe.USER)
    assert lab.read("/etc/lab-test") == "x\n"


def test_the_kernel_has_what_the_units_need(lab_machine: Machine) -> None:
    names = lab_machine.ssh("cd /sys/devices/system/node && echo node[0-9]*").out.split()
    assert names == ["node0", "node1"]
    for node in names:
        for size in ("2048kB", "1048576kB"):
            assert lab_machine.read(f"/sys/devices/system/node/{node}/hugepages/hugepages-{size}/nr_hugepages") == "0\n"
    assert lab_machine.ssh("ls /sys/class/iommu").out.split() == ["dmar0"]
    assert len(lab_machine.ssh("ls /sys/kernel/iommu_groups").out.split()) > 0
    lab_machine.ssh("for name in vhost_net br_netfilter tun; do modprobe --dry-run $name || exit 1; done")
    assert lab_machine.ssh("lsmod | grep -E '^kvm_(amd|intel) '").rc == 0
    assert lab_machine.read("/sys/devices/system/cpu/online") == "0-3\n"


def test_revert_brings_disk_memory_and_clock_back(lab: Machine) -> None:
    boot = lab.boot_id()
    lab.ssh("echo 1 >/root/left-behind && sync && sysctl -q -w vm.swappiness=7 && date -s 2001-01-01")
    lab.revert()
    assert lab.ssh("test -e /root/left-behind", check=False).rc == 1
    assert lab.read("/proc/sys/vm/swappiness") == "60\n"
    assert_clock_is_right(lab)
    assert lab.boot_id() == boot


def test_a_failed_command_says_what_and_why(lab_machine: Machine) -> None:
    with pytest.raises(LabError, match=r"`ls /nowhere` exited 2 .*No such file or directory"):
        lab_machine.run(["ls", "/nowhere"])
    assert lab_machine.run(["printf", "%s", "a b'c$d"]).out == "a b'c$d"


def start_tied(name: str) -> subprocess.Popen[str]:
    """A process that brings a machine of its own up, says so, and waits."""
    code = (
        f"import sys, time; sys.path.insert(0, {str(CLI.parent)!r})\n"
        "from labvm import machine\n"
        f"found = machine.up({name!r}, tied=True)\n"
        "print(found.process.pid, found.port, flush=True)\ntime.sleep(600)\n"
    )
    return subprocess.Popen((sys.executable, "-c", code), stdout=subprocess.PIPE, text=True)


@pytest.fixture
def other_name(lab_machine: Machine) -> str:
    """The name of a second machine (the session's shows that this machine can run one)."""
    return f"other-{os.getpid()}"


def test_a_killed_session_takes_its_machine_with_it(other_name: str) -> None:
    with start_tied(other_name) as child:
        assert child.stdout is not None
        pid, port = map(int, child.stdout.readline().split())
        assert process.find(pid) is not None
        assert guest.answers(port)
        child.send_signal(signal.SIGKILL)
    end = time.monotonic() + 120
    while process.find(pid) is not None and time.monotonic() < end:
        time.sleep(0.1)
    assert process.find(pid) is None
    # What it could not remove, the next question removes.
    assert machine.running(other_name) is None
    assert not machine.room_of(other_name).exists()


def test_up_status_down_leave_nothing(other_name: str) -> None:
    def cli(*words: str) -> subprocess.CompletedProcess[str]:
        argv = (sys.executable, str(CLI), "--name", other_name, *words)
        return subprocess.run(argv, capture_output=True, text=True, check=False)

    try:
        assert cli("up").returncode == 0
        found = machine.running(other_name)
        assert found is not None
        again = cli("up")
        assert again.returncode == 0
        assert f"pid {found.process.pid}" in again.stdout
        assert cli("ssh", "id", "-un").stdout == f"{recipe.USER}\n"
        assert cli("ssh", "--root", "id", "-un").stdout == "root\n"
    finally:
        assert cli("down").returncode == 0
    assert not found.alive
    assert not guest.answers(found.port)
    assert not found.room.exists()
    assert "not running" in cli("status").stdout


def test_the_image_is_named_by_its_recipe() -> None:
    base = recipe.VARIANTS[recipe.BASE]
    more = base._replace(packages=(*base.packages, "podman"))
    assert recipe.digest(base) != recipe.digest(more)
    assert image.directory(base) != image.directory(more)
