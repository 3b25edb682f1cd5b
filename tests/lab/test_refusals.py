# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pass does not do on a real machine, what it says of that, and what it does all the same."""

from __future__ import annotations

import threading
import time

import pytest
import sandbox
import strikes
from labvm.machine import Machine
from play import Pass, Stage
from seen import STATE, Eyes, fingerprint

OUTSIDE = "host.unit: this host's configuration is managed outside bcd ([host] units = false in root's config.toml)"


@pytest.fixture(scope="module")
def stage(lab_story: Machine, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(lab_story, tmp_path_factory.mktemp("refusals"))


@pytest.fixture
def eyes(stage: Stage) -> Eyes:
    return Eyes(stage.machine)


def test_a_refused_parameter_and_a_wait_hold_back_nothing_else(stage: Stage, eyes: Eyes) -> None:
    section = {
        "kernel-modules": {"load": ["tun"]},
        "sysctl": {"kernel.core_pattern": "|/bin/false", "vm.swappiness": 10},
        "cpu": {"isolate": sandbox.ISOLATED},
    }
    pattern = eyes.sysctl("kernel.core_pattern")
    done = stage.converge(section)
    assert done.rc != 0  # by default a refused unit fails the host
    assert done.state == "PROGRESSING"
    said = done.tasks[-1]["result"]["msg"]
    assert "sysctl: kernel.core_pattern is refused" in said
    assert f'cpu: CPUs {sandbox.ISOLATED} are isolated from the next boot (now: ""): reboot the node' in said
    assert done.units["sysctl"]["reason"] == "Refused"
    assert done.units["kernel-modules"]["state"] == "converged"
    assert eyes.loaded("tun")
    assert eyes.sysctl("kernel.core_pattern") == pattern
    assert eyes.sysctl("vm.swappiness") == 60
    assert not eyes.exists("/etc/sysctl.d/90-bcd.conf")
    sandbox.next_boot_has(eyes, "cpu", sandbox.ISOLATION)
    assert "RebootRequired" in done.waits("cpu")


def test_a_directory_that_is_a_link_is_not_written_to(stage: Stage, eyes: Eyes) -> None:
    stage.machine.ssh(
        "mv /etc/sysctl.d /etc/sysctl.d.real && mkdir /srv/elsewhere && ln -s /srv/elsewhere /etc/sysctl.d"
    )
    try:
        done = stage.converge({"sysctl": {"vm.swappiness": 20}})
        assert done.rc != 0
        assert (
            "/etc/sysctl.d is not a directory only root can write: bcd will not write as root under it" in done.message
        )
        assert stage.machine.ssh("ls -A /srv/elsewhere").out == ""
    finally:
        stage.machine.ssh("rm /etc/sysctl.d && mv /etc/sysctl.d.real /etc/sysctl.d && rmdir /srv/elsewhere")
    assert stage.converge({"sysctl": {"vm.swappiness": 20}}).rc == 0
    assert eyes.lines("/etc/sysctl.d/90-bcd.conf") == ["vm.swappiness = 20"]


def test_a_host_that_is_managed_elsewhere_is_left_alone(stage: Stage) -> None:
    stage.machine.ssh(
        "mkdir -m 0750 /etc/bcd && umask 027 && cat >/etc/bcd/config.toml", stdin="[host]\nunits = false\n"
    )
    before = fingerprint(stage.machine)
    done = stage.converge({"sysctl": {"vm.swappiness": 30}})
    assert done.rc != 0
    assert done.message == OUTSIDE
    assert fingerprint(stage.machine).touched_since(before) == []
    stage.machine.ssh("rm -r /etc/bcd")


def test_a_second_pass_waits_and_then_names_the_first(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> None:
    strikes.order(stage.machine, ("SIGSTOP", "/proc/sys/vm/swappiness"))
    first: list[Pass] = []
    other = Stage(stage.machine, tmp_path_factory.mktemp("first"))
    thread = threading.Thread(target=lambda: first.append(other.converge({"sysctl": {"vm.swappiness": 40}})))
    thread.start()
    try:
        until = time.monotonic() + 600
        while strikes.left(stage.machine):
            assert time.monotonic() < until, "the first pass did not come to its change"
            time.sleep(1)
        holder = stage.machine.read(f"{STATE}/lock").strip()
        second = stage.converge({"sysctl": {"vm.swappiness": 50}})
    finally:
        stage.machine.ssh(f"kill -CONT $(sed 's/.*process //' {STATE}/lock)", check=False)
        thread.join(600)
    assert second.rc != 0
    assert holder.startswith("host_section, process ")
    assert f"another pass holds {STATE}/lock ({holder}), still after 3 seconds" in second.message
    assert first[0].rc == 0
    assert stage.machine.read("/proc/sys/vm/swappiness") == "40\n"
