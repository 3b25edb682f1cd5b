# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs run inside the tree and nowhere else, as root and as an ordinary user."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sim import enter
from tests.sim import helper_socket as helper
from tests.sim.marks import with_accounts
from tests.sim.paths import inside

from .conftest import Maker, fingerprint


def test_a_program_sees_and_changes_the_tree_alone(make: Maker) -> None:
    host = make()
    before = fingerprint("/etc")
    host.write("/etc/only-here", "mine\n")
    done = host.run(
        "sh", "-c", "cat /etc/only-here; echo gone > /etc/passwd; rm -rf /var/lib /boot; touch /tmp/marker-of-sim"
    )
    assert done.stdout == "mine\n"
    assert (host.read("/etc/passwd"), host.read("/tmp/marker-of-sim")) == ("gone\n", "")
    assert not os.path.exists(host.tree + "/boot/grub")
    assert fingerprint("/etc") == before
    assert Path("/boot").is_dir()
    assert not Path("/tmp/marker-of-sim").exists()


def test_this_machines_usr_can_be_read_not_written(make: Maker) -> None:
    host = make()
    assert host.run("test", "-x", "/usr/bin/env").returncode == 0
    assert "Read-only" in host.run("touch", "/usr/bin/marker-of-sim").stderr
    assert not Path("/usr/bin/marker-of-sim").exists()


def test_what_the_tree_has_below_usr_is_its_own_and_stays(make: Maker) -> None:
    host = make()
    kernel = (host.read("/proc/sys/kernel/osrelease") or "").strip()
    done = host.run(
        "sh", "-c", f"ls /lib/modules; echo new > /usr/lib/sysctl.d/10-new.conf; ls /usr/lib/modules/{kernel}"
    )
    assert done.stdout.splitlines()[0] == kernel
    assert "modules.dep" in done.stdout
    assert host.read("/usr/lib/sysctl.d/10-new.conf") == "new\n"
    assert not Path("/usr/lib/sysctl.d/10-new.conf").exists()


def test_proc_and_sys_are_the_trees(make: Maker) -> None:
    host = make()
    host.run("sh", "-c", "echo 7 > /proc/sys/vm/swappiness")
    assert host.read("/proc/sys/vm/swappiness") == "7\n"
    assert host.run("sh", "-c", "ls /proc/1/root; ls /sys/fs/cgroup").stdout == ""


def test_a_program_that_is_played_cannot_run_for_real(make: Maker) -> None:
    host = make("rocky")
    for program in ("/usr/sbin/swapoff", "/usr/bin/mount", "/usr/sbin/sysctl"):
        if Path(program).exists():
            host.forget_calls()
            host.run(program, "-a")
            assert [words[0] for words in host.calls()] == [os.path.basename(program)]
    assert host.run("sh", "-c", "command -v update-grub").returncode != 0  # a Rocky machine has none, whatever runs it
    for place in ("/usr/sbin/grub-mkconfig", "/usr/bin/kubectl", "/usr/bin/nvidia-smi", "/usr/bin/apt-get"):
        assert host.run("test", "-x", place).returncode == 1


def test_the_machine_has_its_own_name_and_release(make: Maker) -> None:
    host = make()
    host.write("/etc/hostname", "gpu-7\n")
    assert host.run("hostname").stdout == "gpu-7\n"
    script = "import os, socket; print(socket.gethostname(), os.uname().nodename, os.uname().release)"
    assert host.run("/.sim/python", "-c", script).stdout.split() == ["gpu-7", "gpu-7", "6.1.0-18-amd64"]


def test_an_interpreter_outside_usr_is_bound_with_its_base(make: Maker) -> None:
    host = make()
    done = host.run(sys.executable, "-c", "import sys, json, ctypes; print(sys.version_info[:2], sys.prefix)")
    assert done.stdout.strip() == f"{sys.version_info[:2]} {sys.prefix}", done.stderr


def test_a_script_that_finds_an_interpreter_is_refused(make: Maker, tmp_path: Path) -> None:
    shim = tmp_path / "bin" / "python3"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\nexec python3\n", encoding="ascii")
    shim.chmod(0o755)
    host = make()
    host.python = str(shim)
    done = host.run("true")
    assert done.returncode == 125
    assert "name the interpreter itself" in done.stderr


def test_what_is_no_tree_cannot_be_entered(tmp_path: Path) -> None:
    entry = [sys.executable, "-IS", enter.__file__, str(tmp_path), "--", "true"]
    done = subprocess.run(entry, check=False, capture_output=True, text=True)
    assert (done.returncode, "no simulated host" in done.stderr) == (125, True)


def test_another_account_is_not_root_inside(make: Maker) -> None:
    host = make()
    assert host.run("id", "-u").stdout == "0\n"
    assert host.run("id", "-u", uid=1000).stdout == "1000\n"
    assert host.run("sh", "-c", "mount -t tmpfs x /mnt; chroot / true", uid=1000).returncode != 0


@with_accounts
def test_an_account_of_the_host_has_its_own_rights_alone(make: Maker) -> None:
    host = make()
    helper.accounts(host.tree)
    assert host.run("id", account="admin").stdout == "uid=1000(admin) gid=1000(admin) groups=1000(admin),990(bcd)\n"
    assert host.run("id", "-G", account="guest").stdout == "1001\n"
    assert host.run("sh", "-c", "cd; pwd; touch mine", account="guest").stdout == "/home/guest\n"
    for forbidden in ("cat /etc/shadow", "touch /etc/x", "touch /home/admin/x", "echo > /proc/sys/vm/swappiness"):
        assert host.run("sh", "-c", forbidden, account="guest").returncode != 0, forbidden
    nobody = host.run("true", account="no-one")
    assert (nobody.returncode, "no account no-one in its /etc/passwd" in nobody.stderr) == (125, True)


def test_an_ordinary_user_needs_no_root(ordinary: tuple[Path, str, dict[str, Any]]) -> None:
    home, python, account = ordinary
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from tests.sim.host import SimulatedHost\n"
        "host = SimulatedHost.of(sys.argv[1] + '/node', 'debian')\n"
        "print(host.run('sh', '-c', 'id -u; stat -c %u /etc /; modprobe tun; echo x > /etc/mark').stdout.split())\n"
        "first = host.read('/proc/sys/kernel/random/boot_id').strip()\n"
        "print(host.read('/sys/module/tun/refcnt'), host.reboot() != first, host.read('/etc/mark'))\n"
    )
    before = fingerprint("/etc")
    done = subprocess.run(
        [python, "-I", "-c", script, str(home)],
        check=False,
        capture_output=True,
        text=True,
        cwd=home,
        env={},
        **account,
    )
    assert done.stdout == "['0', '0', '0']\n0\n True x\n\n", done.stderr
    assert fingerprint("/etc") == before


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/etc/passwd", "/etc/passwd"),
        ("/etc/../../../etc/shadow", "/etc/shadow"),
        ("/out/passwd", "/etc/passwd"),
        ("/up/x", "/x"),
        ("/var/run/lock", "/run/lock"),
    ],
)
def test_no_link_leads_out_of_the_tree(tmp_path: Path, path: str, expected: str) -> None:
    (tmp_path / "var").mkdir()
    (tmp_path / "out").symlink_to("/etc")
    (tmp_path / "up").symlink_to("../../../../..")
    (tmp_path / "var" / "run").symlink_to("/run")
    assert inside(str(tmp_path), path) == str(tmp_path) + expected
