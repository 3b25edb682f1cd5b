# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemctl against systemctl(1): states, exit statuses, what is enabled, what is stale, what is really run."""

from __future__ import annotations

import pytest

from tests.sim import units

from .conftest import Maker

MOUNT = """[Unit]
DefaultDependencies=no
Before=sysinit.target
[Mount]
What=hugetlbfs
Where=/dev/hugepages1G
Type=hugetlbfs
Options=pagesize=1G
[Install]
WantedBy=sysinit.target
"""
ONESHOT = """[Unit]
Description=Sets pages
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'echo 3 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages; echo ran >> /var/ran'
[Install]
WantedBy=multi-user.target
"""


def test_a_mount_unit_mounts_and_is_there_after_a_reboot(make: Maker) -> None:
    host = make()
    host.write("/etc/systemd/system/dev-hugepages1G.mount", MOUNT)
    assert host.run("systemctl", "is-enabled", "dev-hugepages1G.mount").stdout == "disabled\n"
    assert host.run("systemctl", "enable", "--now", "dev-hugepages1G.mount").returncode == 0
    assert "hugetlbfs /dev/hugepages1G hugetlbfs rw,relatime,pagesize=1024M 0 0\n" in (host.read("/proc/mounts") or "")
    assert host.run("systemctl", "is-active", "dev-hugepages1G.mount").returncode == 0
    host.reboot()
    assert "/dev/hugepages1G" in (host.read("/proc/mounts") or "")
    assert host.run("systemctl", "disable", "--now", "dev-hugepages1G.mount").returncode == 0
    host.reboot()
    assert "/dev/hugepages1G" not in (host.read("/proc/mounts") or "")


def test_a_mount_unit_is_named_for_its_place(make: Maker) -> None:
    host = make()
    host.write("/etc/systemd/system/dev-other.mount", MOUNT)
    assert host.run("systemctl", "start", "dev-other.mount").returncode == 1


def test_a_oneshot_really_runs_and_the_kernel_answers(make: Maker) -> None:
    host = make()
    host.write("/etc/systemd/system/bcd-pages.service", ONESHOT)
    assert host.run("systemctl", "enable", "bcd-pages").returncode == 0
    assert host.read("/var/ran") is None
    host.reboot()
    assert host.read("/var/ran") == "ran\n"
    assert host.read("/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages") == "2\n"
    assert host.read("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") == "3\n"
    assert host.run("systemctl", "is-active", "bcd-pages.service").stdout == "active\n"


def test_a_oneshot_that_fails(make: Maker) -> None:
    host = make()
    host.write("/etc/systemd/system/bad.service", "[Service]\nType=oneshot\nExecStart=/bin/false\n")
    done = host.run("systemctl", "start", "bad")
    assert done.returncode == 1
    assert done.stderr.startswith("Job for bad.service failed because the control process exited with error code.\n")
    assert host.run("systemctl", "is-failed", "bad").returncode == 0
    assert (
        host.run("systemctl", "show", "-p", "ActiveState,Result", "bad").stdout
        == "ActiveState=failed\nResult=exit-code\n"
    )
    assert host.run("systemctl", "is-system-running").stdout == "degraded\n"


def test_a_changed_file_needs_a_reload(make: Maker) -> None:
    host = make()
    show = ("systemctl", "show", "--property=NeedDaemonReload", "--value", "ssh.service")
    assert host.run(*show).stdout == "no\n"
    host.write("/etc/systemd/system/ssh.service.d/mine.conf", "[Service]\nNice=1\n")
    assert host.run(*show).stdout == "yes\n"
    assert "changed on disk" in host.run("systemctl", "restart", "ssh").stderr
    host.run("systemctl", "daemon-reload")
    assert host.run(*show).stdout == "no\n"


def test_enable_reloads_by_itself(make: Maker) -> None:
    host = make()
    host.run("systemctl", "is-active", "ssh")
    host.run("systemctl", "show", "ssh")
    host.write(
        "/etc/systemd/system/ssh.service", "[Service]\nExecStart=/usr/bin/true\n[Install]\nWantedBy=multi-user.target\n"
    )
    host.run("systemctl", "enable", "ssh")
    assert host.run("systemctl", "show", "--value", "-p", "NeedDaemonReload", "ssh").stdout == "no\n"


@pytest.mark.parametrize(
    ("argv", "rc", "out", "err"),
    [
        (("is-active", "ssh"), 0, "active\n", ""),
        (("is-active", "none"), 4, "inactive\n", ""),
        (("is-active", "--quiet", "ssh"), 0, "", ""),
        (("is-enabled", "ssh"), 0, "enabled\n", ""),
        (("is-enabled", "multi-user.target"), 0, "static\n", ""),
        (("is-enabled", "none"), 1, "", "Failed to get unit file state for none.service: No such file or directory\n"),
        (("start", "none"), 5, "", "Failed to start none.service: Unit none.service not found.\n"),
        (("stop", "none"), 5, "", "Failed to stop none.service: Unit none.service not loaded.\n"),
        (("restart", "none"), 5, "", "Failed to restart none.service: Unit none.service not found.\n"),
        (("enable", "none"), 1, "", "Failed to enable unit: Unit file none.service does not exist.\n"),
        (("show", "-p", "LoadState", "none"), 0, "LoadState=not-found\n", ""),
        (("dance", "ssh"), 1, "", "Unknown command verb dance.\n"),
    ],
)
def test_what_systemctl_answers(make: Maker, argv: tuple[str, ...], rc: int, out: str, err: str) -> None:
    done = make().run("systemctl", *argv)
    assert (done.returncode, done.stdout, done.stderr) == (rc, out, err)


def test_a_masked_unit_does_not_start(make: Maker) -> None:
    host = make()
    host.run("systemctl", "mask", "--now", "ssh")
    assert host.run("systemctl", "is-enabled", "ssh").stdout == "masked\n"
    assert "is masked" in host.run("systemctl", "start", "ssh").stderr
    host.run("systemctl", "unmask", "ssh")
    assert host.run("systemctl", "start", "ssh").returncode == 0


def test_a_machine_without_systemd(make: Maker) -> None:
    host = make(systemd=False)
    assert host.run("sh", "-c", "command -v systemctl").returncode != 0
    assert host.run("test", "-d", "/run/systemd/system").returncode == 1


@pytest.mark.parametrize(
    "condition", ["ConditionPathExists=/no", "ConditionPathExistsGlob=/etc/n?/*", "ConditionPathExistsGlob=!/et?/sys*"]
)
def test_a_condition_that_does_not_hold_skips_without_failing(make: Maker, condition: str) -> None:
    host = make()
    host.write(
        "/etc/systemd/system/c.service",
        f"[Unit]\n{condition}\n[Service]\nType=oneshot\nExecStart=/bin/false\n",
    )
    assert host.run("systemctl", "start", "c").returncode == 0
    assert host.run("systemctl", "is-active", "c").stdout == "inactive\n"


def test_an_empty_value_takes_back_those_before_it() -> None:
    text = "[Service]\nExecStart=/a\n# ExecStart=/no\nExecStart=\nExecStart=/b \\\n  c\n"
    assert units.sections(text) == {"Service": {"ExecStart": ["/b    c"]}}


def test_boot_order_follows_after_and_before(make: Maker) -> None:
    host = make()
    for name, unit in (("a", "After=b.service"), ("b", ""), ("c", "Before=b.service")):
        service = f"[Unit]\n{unit}\n[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo {name} >> /var/order'\n"
        host.write(f"/etc/systemd/system/{name}.service", service + "[Install]\nWantedBy=multi-user.target\n")
        host.run("systemctl", "enable", name)
    host.reboot()
    assert (host.read("/var/order") or "").split() == ["c", "b", "a"]


def test_mounts_by_hand(make: Maker) -> None:
    host = make()
    assert host.run("mount", "-t", "hugetlbfs", "-o", "pagesize=1G", "none", "/dev/huge").returncode == 32
    host.run("mkdir", "/dev/huge")
    assert host.run("mount", "-t", "hugetlbfs", "-o", "pagesize=1G", "none", "/dev/huge").returncode == 0
    assert "none on /dev/huge type hugetlbfs (rw,relatime,pagesize=1024M)" in host.run("mount").stdout
    assert host.run("umount", "/dev/huge").returncode == 0
    assert host.run("umount", "/dev/huge").stderr == "umount: /dev/huge: not mounted.\n"


def test_swap_goes_off_until_the_next_boot(make: Maker) -> None:
    host = make()
    host.write("/swap.img", "")
    host.write("/etc/fstab", "/swap.img none swap sw 0 0\n")
    host.reboot()
    assert "/swap.img" in (host.read("/proc/swaps") or "")
    host.run("swapoff", "-a")
    assert len((host.read("/proc/swaps") or "").splitlines()) == 1
    host.reboot()
    assert "/swap.img" in (host.read("/proc/swaps") or "")
