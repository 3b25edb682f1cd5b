# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults strike the collection's Host where a test asked and nowhere else, in a namespace and mapped into a tree."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import host as core_host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed, Unreadable
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import remove, run, set_value, write
from tests.sim import played
from tests.sim.host import SimulatedHost

from .conftest import Maker

SWAPPINESS = "/proc/sys/vm/swappiness"
STEPS = (
    write("/etc/sysctl.d/90-bcd.conf", "vm.swappiness = 10\n", "write the file"),
    set_value(SWAPPINESS, "10", "set the key"),
    run(("modprobe", "--", "tun"), "load tun"),
    remove("/etc/hosts", "remove the file"),
)
DONE = ("vm.swappiness = 10\n", "10\n", "0\n", None)
# Runs the steps inside the namespace by the collection's own Host, found as in AnsiballZ: by its full name.
PROGRAM = """
import json, sys
sys.path.insert(0, "/collections")
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed, Unreadable
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import Step, remove, run, set_value, write
host, said = Host(), []
for words in json.loads(sys.argv[1]):
    try:
        host.apply(Step(**{name: tuple(value) if isinstance(value, list) else value for name, value in words.items()}))
        said.append("")
    except (StepFailed, Unreadable) as fault:
        said.append(str(fault))
print(json.dumps(said))
"""


def mapped(host: SimulatedHost) -> Any:
    """The collection's Host over the tree, in this process."""
    return played.played(core_host, host.tree)()


def seen(host: SimulatedHost) -> tuple[str | None, ...]:
    """What the four steps change."""
    paths = ("/etc/sysctl.d/90-bcd.conf", SWAPPINESS, "/sys/module/tun/refcnt", "/etc/hosts")
    return tuple(host.read(path) for path in paths)


def apply(host: SimulatedHost) -> list[str]:
    """What each step said, of the mapped Host."""
    said = []
    door = mapped(host)
    for step in STEPS:
        try:
            door.apply(step)
            said.append("")
        except StepFailed as fault:
            said.append(str(fault))
    return said


def inside(host: SimulatedHost) -> subprocess.CompletedProcess[str]:
    """The same by the real Host in the namespace."""
    where = Path(host.tree) / "collections" / "ansible_collections" / "bettercompute" / "bcd" / "plugins"
    if not where.exists():
        shutil.copytree(Path(core_host.__file__).parents[1], where / "module_utils")
    steps = [dict(step._asdict(), effects=()) for step in STEPS]
    return host.run(host.python, "-c", PROGRAM, json.dumps(steps))


def test_both_doors_make_the_same_changes_and_count_them(make: Maker) -> None:
    one, other = make(name="one"), make(name="other")
    assert apply(one) == ["", "", "", ""]
    done = inside(other)
    assert json.loads(done.stdout) == ["", "", "", ""], done.stderr
    assert seen(one) == seen(other) == DONE
    expected = ["write /etc/sysctl.d/90-bcd.conf", f"set {SWAPPINESS}", "run modprobe -- tun", "remove /etc/hosts"]
    assert one.changes() == other.changes() == expected


@pytest.mark.parametrize("step", [1, 2, 3, 4])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_at_each_change(make: Maker, step: int, when: str) -> None:
    host = make()
    untouched = seen(host)
    host.fault({"at_step": step, "do": "kill", "when": when})
    done = inside(host)
    assert done.returncode == -9
    reached = step if when == "after" else step - 1
    assert seen(host) == DONE[:reached] + untouched[reached:]
    host.fault()
    assert json.loads(inside(host).stdout) == ["", "", "", ""]


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_a_lie_and_an_error_at_each_change(make: Maker, step: int) -> None:
    for do, said in (("lie", ""), ("EIO", "Input/output error"), ("ENOSPC", "No space left on device")):
        host = make(name=f"{do}-{step}")
        untouched = seen(host)
        host.fault({"at_step": step, "do": do})
        answers = apply(host)
        assert answers[: step - 1] + answers[step:] == ["", "", ""]
        assert said in answers[step - 1]
        assert bool(answers[step - 1]) == bool(said)
        assert seen(host)[step - 1] == untouched[step - 1]


def test_a_program_that_hangs_runs_into_its_timeout(make: Maker) -> None:
    host = make()
    host.fault({"at_step": 3, "do": "hang", "timeout": 0.5})
    assert apply(host)[2].startswith("modprobe -- tun did not end within 0.5 seconds: ")
    assert host.read("/sys/module/tun/refcnt") is None
    assert host.read("/run/sim/hang") is None


def test_faults_of_a_path_a_read_and_a_program(make: Maker) -> None:
    host = make()
    host.fault(
        {"path": "/proc/sys/vm/*", "do": "lie"},
        {"read": "/proc/cmdline", "do": "EIO"},
        {"program": "modprobe", "arguments": "tun", "do": "fail", "rc": 3, "err": "no luck\n"},
    )
    assert apply(host) == ["", "", "cannot load tun: modprobe -- tun exited with 3: no luck", ""]
    assert host.read(SWAPPINESS) == "60\n"
    with pytest.raises(Unreadable, match="cannot read /proc/cmdline: Input/output error"):
        mapped(host).read("/proc/cmdline")
    assert host.run("modprobe", "loop").returncode == 0


def test_the_kernel_refuses_through_the_host(make: Maker) -> None:
    door = mapped(make())
    with pytest.raises(StepFailed, match=r"cannot set it: Invalid argument \(the kernel does not take this value\)"):
        door.apply(set_value("/proc/sys/vm/mmap_rnd_bits", "1024", "set it"))


def test_a_mapped_host_stays_in_its_tree(make: Maker) -> None:
    host = make()
    door = mapped(host)
    assert door.uid() == 0
    assert door.which("sh") is None
    assert door.ask(("sh", "-c", "touch /tmp/marker-of-sim")).rc == 127
    assert door.which("modprobe") == "/usr/local/sbin/modprobe"
    assert door.read("/etc/hostname") == "node\n"
    assert door.file("/etc/hostname").uid == 0
    assert door.link("/var/run") == "/run"
    assert door.names("/var/run") == ("lock", "sim", "systemd") or door.names("/var/run") == ("lock", "systemd")
    assert door.exists("/boot/grub/grub.cfg") is True
    door.write("/var/run/new/file", "x", 0o600)
    assert host.read("/run/new/file") == "x"
    assert not Path("/run/new").exists()
