# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A driver on a real kernel, from real packages: installed, swapped while it is free, kept while it is in use.

The module does nothing, and everything about it is the kernel's, modprobe's and apt's own: that it loads, who holds it,
that it cannot go while somebody has it open, what comes with a boot. One story, in the order of its tests.
"""

from __future__ import annotations

import json

import gpu_host
import pytest
import strikes
from gpu_host import BRANCH, NEWER, NEWEST, OLDER, OPEN, PROPRIETARY, SECTION
from labvm.machine import Machine
from play import LATER, Stage
from seen import STATE, Eyes, fingerprint

BLACKLIST = "/etc/modprobe.d/bcd-nouveau.conf"
PACKAGES = ("nvidia-driver-cuda", "nvidia-persistenced", "libnvidia-ml1")
KERNEL = {OPEN: "nvidia-kernel-open-dkms", PROPRIETARY: "nvidia-kernel-dkms"}
PINNED = {"nvidia-driver": {"version": OLDER, "open": False}}
IN_USE = {"nvidia-driver": {"version": OLDER, "open": True}}


@pytest.fixture(scope="module")
def stage(lab_story: Machine, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    gpu_host.plug(lab_story)
    gpu_host.offer(lab_story)
    return Stage(lab_story, tmp_path_factory.mktemp("driver"))


@pytest.fixture
def eyes(stage: Stage) -> Eyes:
    return Eyes(stage.machine)


def are_installed(eyes: Eyes, version: str, flavour: str) -> None:
    """apt has the packages of this driver and not those of the other flavour."""
    other = PROPRIETARY if flavour == OPEN else OPEN
    wanted = {**dict.fromkeys((*PACKAGES, KERNEL[flavour]), f"{version}-1"), KERNEL[other]: ""}
    assert {name: gpu_host.installed(eyes, name) for name in wanted} == wanted


def test_the_kernel_shows_a_gpu_and_gives_it_to_nouveau(eyes: Eyes) -> None:
    shown = [eyes.text(f"/sys/bus/pci/devices/0001:17:00.0/{name}").strip() for name in ("vendor", "device", "class")]
    assert shown == ["0x10de", gpu_host.H100, "0x030200"]
    assert eyes.loaded("nouveau")
    assert not eyes.exists(gpu_host.VERSION)


def test_a_check_of_the_bare_host_says_the_plan_in_order_and_changes_nothing(stage: Stage) -> None:
    section = {**SECTION, "container-toolkit": {}, "fabric-manager": {}}
    before = fingerprint(stage.machine)
    checked = stage.converge(section, "--check")
    assert checked.rc == 0, checked.said
    assert fingerprint(stage.machine).touched_since(before) == []
    assert list(checked.units) == ["nvidia-driver", "fabric-manager", "container-toolkit"]
    steps = checked.steps("nvidia-driver")
    assert f"write {BLACKLIST}" in steps
    assert any(step.startswith("refresh the package index") for step in steps)
    assert any(step.startswith("install") and BRANCH in step for step in steps)
    assert any(LATER in step for step in steps)


def test_a_pass_that_is_killed_at_the_driver_is_taken_up_by_the_next(stage: Stage, eyes: Eyes) -> None:
    gpu_host.shut_nouveau_out(stage.machine)
    strikes.order(stage.machine, ("SIGKILL", "apt-get *install nvidia-driver-cuda=*"))
    died = stage.converge(SECTION)
    assert died.rc != 0
    assert strikes.left(stage.machine) == [], died.said
    done = stage.converge(SECTION)
    assert (done.rc, done.state) == (0, "CONVERGED"), done.said
    gpu_host.is_loaded(eyes, NEWEST[BRANCH], OPEN)
    are_installed(eyes, NEWEST[BRANCH], OPEN)
    assert eyes.host.service("nvidia-persistenced").is_running
    assert eyes.host.service("nvidia-persistenced").is_enabled
    assert json.loads(stage.machine.read(f"{STATE}/owed.json"))["units"] == {}


def test_nouveau_is_kept_out_of_the_initramfs_too(eyes: Eyes) -> None:
    assert "blacklist nouveau" in eyes.lines(BLACKLIST)
    listed = eyes.host.check_output("lsinitramfs /boot/initrd.img-$(uname -r)").split()
    assert BLACKLIST.lstrip("/") in listed


def test_a_second_pass_changes_nothing(stage: Stage) -> None:
    again = stage.converge(SECTION)
    assert (again.rc, again.recap["changed"], again.all_steps()) == (0, 0, {})
    assert again.state == "CONVERGED"
    stage.machine.snapshot(gpu_host.snapshot_name())


def test_a_free_driver_gives_way_to_another_branch_in_one_pass(stage: Stage, eyes: Eyes) -> None:
    """Modules stand on it, one on another, and persistenced has its devices open: all of them are back after it."""
    stage.machine.ssh("modprobe nvidia-drm")
    boot, before = stage.machine.boot_id(), gpu_host.started(eyes, "nvidia-persistenced")
    done = stage.converge({"nvidia-driver": {"branch": NEWER}})
    assert (done.rc, done.state) == (0, "CONVERGED"), done.said
    gpu_host.is_loaded(eyes, NEWEST[NEWER], OPEN)
    are_installed(eyes, NEWEST[NEWER], OPEN)
    assert eyes.loaded("nvidia_modeset", "nvidia_drm")
    assert eyes.host.check_output("modinfo -F version nvidia_drm") == NEWEST[NEWER]
    assert eyes.host.service("nvidia-persistenced").is_running
    assert gpu_host.started(eyes, "nvidia-persistenced") != before
    assert gpu_host.candidate(eyes, "nvidia-driver-cuda") == f"{NEWEST[NEWER]}-1"
    assert gpu_host.installed(eyes, f"nvidia-driver-pinning-{NEWER}")
    assert not gpu_host.installed(eyes, f"nvidia-driver-pinning-{BRANCH}")
    assert stage.machine.boot_id() == boot


def test_an_exact_version_of_another_flavour_comes_in_one_pass_and_is_held(stage: Stage, eyes: Eyes) -> None:
    done = stage.converge(PINNED)
    assert (done.rc, done.state) == (0, "CONVERGED"), done.said
    gpu_host.is_loaded(eyes, OLDER, PROPRIETARY)
    are_installed(eyes, OLDER, PROPRIETARY)
    held = set(eyes.host.check_output("apt-mark showhold").split())
    assert {"nvidia-driver-cuda", KERNEL[PROPRIETARY]} <= held
    assert gpu_host.candidate(eyes, "nvidia-driver-cuda") != f"{OLDER}-1"  # there is something to upgrade to
    stage.machine.ssh("DEBIAN_FRONTEND=noninteractive apt-get -q -y upgrade", timeout=600)
    are_installed(eyes, OLDER, PROPRIETARY)


def test_a_driver_in_use_stays_loaded_and_its_user_is_named(stage: Stage, eyes: Eyes) -> None:
    pid = gpu_host.start_job(stage.machine, "/dev/nvidia0")
    done = stage.converge(IN_USE)
    assert done.rc == 0, done.said
    assert done.state == "PROGRESSING"
    [(reason, message)] = done.waits("nvidia-driver").items()
    assert reason == "RebootRequired"
    assert f"driver {OLDER} is in use; reboot the node to load version {OLDER}" in message
    assert f"{pid} (job)" in message
    are_installed(eyes, OLDER, OPEN)
    assert f"{PROPRIETARY}  {OLDER}  " in gpu_host.loaded(eyes)
    assert eyes.host.check_output("modinfo -F license nvidia") == "Dual MIT/GPL"
    assert eyes.exists(f"/proc/{pid}")
    assert eyes.host.service("nvidia-persistenced").is_running


def test_a_host_that_waits_for_its_reboot_is_left_alone(stage: Stage) -> None:
    again = stage.converge(IN_USE)
    assert (again.rc, again.recap["changed"], again.all_steps()) == (0, 0, {})
    assert again.waits("nvidia-driver").keys() == {"RebootRequired"}
    assert list(again.statistics["_run"]["bcd_converge_reboot_required"]["lab"]) == ["nvidia-driver"]


def test_the_boot_brings_the_other_driver_and_no_nouveau(stage: Stage) -> None:
    boot = stage.machine.boot_id()
    played = stage.play("reboot", None)
    assert played.rc == 0, played.said
    stage.machine.wait_for_ssh()
    assert stage.machine.boot_id() != boot
    eyes = Eyes(stage.machine)
    assert f"{OPEN}  {OLDER}  " in gpu_host.loaded(eyes)
    assert not eyes.loaded("nouveau")
    done = stage.converge(IN_USE)  # unified memory and device nodes: whoever wants them asks for them after a boot
    assert (done.rc, done.state) == (0, "CONVERGED"), done.said
    gpu_host.is_loaded(eyes, OLDER, OPEN)
