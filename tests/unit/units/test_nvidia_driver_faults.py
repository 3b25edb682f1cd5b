# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvidia-driver where something is wrong: the firmware, the kernel, the package sources, a step that fails or lies."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.nvidia_driver import UNIT
from tests.unit import promises
from tests.unit.driver_hosts import BLACKLIST, NEW, NEWER, OLD, bare, go, reasons, running, shown
from tests.unit.driver_machine import DriverMachine, debian, nvidia_debian, red_hat, ubuntu
from tests.unit.fake_host import FakeHost, Killed
from tests.unit.promises import lines

TO_580 = {"branch": "580"}
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
ON, OFF = "\x06\x00\x00\x00\x01", "\x06\x00\x00\x00\x00"


def said_by(done: Any) -> str:
    assert done.failure is not None, done
    return str(done.failure.message)


# -- nouveau


def test_where_nouveau_has_the_gpus_the_driver_is_installed_and_a_reboot_is_due() -> None:
    def machine() -> DriverMachine:
        host = bare()
        host.put("/sys/module/nouveau/refcnt", "2\n")
        return host

    done = promises.check_is_truthful(UNIT, machine, TO_580)
    assert reasons(go(machine(), TO_580, check=True)) == ["RebootRequired"]
    assert (done.state, reasons(done), done.failure) == ("progressing", ["RebootRequired"], None)
    assert "nouveau has the GPUs; reboot the node to load branch 580" in done.pending[0].message
    host = machine()
    go(host, TO_580)
    assert host.text(BLACKLIST) == (
        "# Managed by bettercompute.bcd: local edits are replaced.\n"
        "blacklist nouveau\nblacklist nova_core\noptions nouveau modeset=0\n"
    )
    assert host.text("/initramfs") == host.text(BLACKLIST)
    assert host.loaded == {}
    assert reasons(promises.second_pass_is_quiet(UNIT, host, TO_580)) == ["RebootRequired"]
    host.boot()
    assert (go(host, TO_580).state, host.running) == ("converged", f"{NEWER} open")


def test_an_edited_blacklist_is_written_again_and_reaches_the_initramfs() -> None:
    host = running(NEW, "-open")
    go(host, TO_580)
    host.put(BLACKLIST, "")
    done = go(host, TO_580)
    assert lines(done) == [
        f"write {BLACKLIST} again: it is not as we keep it",
        "rebuild the initramfs with update-initramfs",
    ]
    assert host.text("/initramfs") == host.text(BLACKLIST)


def test_without_a_tool_for_the_initramfs_it_is_said() -> None:
    host = running(NEW, "-open")
    del host.programs["update-initramfs"]
    done = go(host, TO_580)
    assert done.state == "converged"
    assert any("rebuild it by hand" in note and BLACKLIST in note for note in done.notes)


# -- Secure Boot


def secure(value: str = ON, lockdown: str = "none [integrity] confidentiality\n") -> DriverMachine:
    host = bare()
    host.repo = {**ubuntu(NEWER)}
    host.put(SECURE_BOOT, value)
    host.put("/sys/kernel/security/lockdown", lockdown)
    return host


def test_an_unsigned_module_under_secure_boot_is_said_plainly() -> None:
    host = secure()
    done = go(host, TO_580)
    assert (done.state, reasons(done), done.failure) == ("progressing", ["NotReady"], None)
    assert "Secure Boot is on" in done.pending[0].message
    assert "is not signed, so the kernel does not take it" in done.pending[0].message
    assert not [call for call in host.calls if call.startswith("modprobe")]
    promises.second_pass_is_quiet(UNIT, host, TO_580)


def test_a_loaded_driver_is_not_taken_out_for_one_that_the_kernel_refuses() -> None:
    host = running()
    host.put(SECURE_BOOT, ON)
    done = go(host, TO_580)
    assert reasons(done) == ["NotReady"]
    assert host.running == f"{OLD} proprietary"


@pytest.mark.parametrize(
    ("value", "lockdown"),
    [(OFF, "none [integrity] confidentiality\n"), (ON, "[none] integrity confidentiality\n")],
)
def test_where_the_kernel_takes_any_module_it_is_loaded(value: str, lockdown: str) -> None:
    host = secure(value, lockdown)
    assert (go(host, TO_580).state, host.running) == ("converged", f"{NEWER} open")


def test_a_signed_module_is_loaded_and_a_rejected_one_says_why() -> None:
    host = secure()
    host.signs = True
    assert go(host, TO_580).state == "converged"
    host = secure()
    host.signs = host.rejects = True
    done = go(host, TO_580)
    assert "Key was rejected by service" in said_by(done)
    assert (done.state, done.failure.retryable if done.failure else None) == ("progressing", True)
    (note,) = [note for note in done.notes if "Secure Boot is on" in note]
    assert "'a key of the distribution'" in note
    assert "mokutil --import" in note
    host = bare()  # without Secure Boot a module that does not load has another reason
    host.signs = host.rejects = True
    assert not [note for note in go(host, TO_580).notes if "mokutil" in note]


def test_modules_that_the_distribution_signs_come_first_under_secure_boot() -> None:
    host = secure()
    host.signs = True
    version = f"{NEWER}-0ubuntu0.24.04.1"
    host.repo["nvidia-headless-no-dkms-580-server-open"] = (version,)
    host.repo[f"linux-modules-nvidia-580-server-open-{host.release}"] = ("6.8.0-88.89+1",)
    go(host, TO_580)
    assert f"linux-modules-nvidia-580-server-open-{host.release}" in host.packages


@pytest.mark.parametrize(
    ("files", "out", "expected"),
    [
        ({"/sys/module/module/parameters/sig_enforce": "Y\n"}, "", "NotReady"),
        ({"/sys/module/module/parameters/sig_enforce": "N\n"}, "", ""),
        ({"/sys/firmware/efi/runtime": ""}, "SecureBoot enabled\n", "NotReady"),
        ({"/sys/firmware/efi/runtime": ""}, "SecureBoot disabled\n", ""),
        ({}, "SecureBoot enabled\n", ""),  # not booted by EFI
    ],
)
def test_who_is_asked_about_secure_boot(files: dict[str, str], out: str, expected: str) -> None:
    host = bare()
    for path, text in files.items():
        host.put(path, text)
    host.programs["mokutil"] = lambda _host, _argv: Answer(0, out)
    assert reasons(go(host, TO_580)) == ([expected] if expected else [])


# -- the module file


def test_headers_come_along_where_dkms_needs_them() -> None:
    host = bare()
    del host.files[f"/lib/modules/{host.release}/build/Makefile"]
    assert go(host, TO_580).state == "converged"
    assert f"linux-headers-{host.release}" in host.packages


def test_where_no_headers_can_be_had_nothing_is_touched() -> None:
    host = running()
    del host.files[f"/lib/modules/{host.release}/build/Makefile"]
    del host.repo[f"linux-headers-{host.release}"]
    before = dict(host.packages)
    done = go(host, TO_580)
    assert f"linux-headers-{host.release}" in said_by(done)
    assert done.state == "progressing"
    assert (host.packages, host.running) == (before, f"{OLD} proprietary")


def test_a_module_that_is_not_there_for_the_running_kernel_is_named_and_nothing_is_unloaded() -> None:
    """The packages are right and dkms built nothing: the loaded version alone says nothing of the disk."""
    host = running()
    host.breaks_dkms = True
    host.module_files.clear()
    done = go(host, TO_580)
    assert f"the running kernel {host.release} has no module nvidia" in said_by(done)
    assert f"linux-headers-{host.release}" in said_by(done)
    assert (host.running, "nvidia-persistenced" in host.active) == (f"{OLD} proprietary", True)
    host.breaks_dkms = False
    host.module_files[host.release] = f"{NEWER} open"  # the operator ran dkms
    assert (go(host, TO_580).state, host.running) == ("converged", f"{NEWER} open")


def test_a_module_that_went_from_under_the_right_driver_is_missed() -> None:
    host = running(NEW, "-open")
    assert go(host, TO_580).state == "converged"
    host.module_files.clear()
    host.breaks_dkms = True
    done = go(host, TO_580)
    assert "has no module nvidia" in said_by(done)


def test_another_kernel_that_has_the_module_is_one_to_boot() -> None:
    host = running(NEW, "-open")
    host.module_files = {"6.8.0-90-generic": f"{NEW} open"}
    host.put("/lib/modules/6.8.0-90-generic/modules.dep", "")
    done = go(host, TO_580)
    assert reasons(done) == ["RebootRequired"]
    assert "6.8.0-90-generic has: reboot the node into it" in done.pending[0].message


def test_a_module_of_another_installer_is_named() -> None:
    host = bare()
    go(host, TO_580)
    host.module_files[host.release] = f"{NEW} proprietary"
    done = go(host, TO_580)
    assert f"is {NEW}, proprietary" in said_by(done)
    assert "see dkms status" in said_by(done)
    assert host.running == f"{NEWER} open"


def test_a_library_of_another_installer_is_named() -> None:
    host = bare()
    go(host, TO_580)
    host.links["/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"] = f"libnvidia-ml.so.{NEW}"
    host.put(f"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{NEW}", "")
    done = go(host, TO_580)
    assert f"the packages of the driver {NEWER}, open are installed" in said_by(done)
    assert f"the library on the disk is {NEW}" in said_by(done)


# -- package sources


def test_a_transitional_package_is_no_driver_of_its_branch() -> None:
    host = bare()
    names = ("nvidia-headless-570-server-open", "nvidia-utils-570-server", "nvidia-compute-utils-570-server")
    host.repo.update(dict.fromkeys(names, (f"{NEWER}-0ubuntu0.24.04.1",)))
    done = go(host, {"branch": "570"})
    assert f"is a transitional package there and would install {NEWER}" in said_by(done)
    assert host.packages == {}


def test_a_package_that_pins_the_branch_comes_first() -> None:
    def machine() -> DriverMachine:
        return DriverMachine("debian", nvidia_debian(OLD, NEW, "590.48.01"))

    done = promises.check_is_truthful(UNIT, machine, TO_580)
    installs = [line for line in lines(done) if line.startswith("install ")]
    assert installs[0] == "install nvidia-driver-pinning-580"
    assert f"nvidia-kernel-open-dkms {NEW}-1" in installs[1]
    host = machine()
    assert (go(host, TO_580).state, host.running) == ("converged", f"{NEW} open")
    assert "nvidia-persistenced" in host.active
    promises.second_pass_is_quiet(UNIT, host, TO_580)
    assert promises.a_kill_loses_nothing(UNIT, machine, TO_580, shown) > 4


def test_debians_own_archive_has_one_branch_and_says_so() -> None:
    host = bare("debian")
    done = go(host, TO_580)
    assert "a driver of branch 580" in said_by(done)
    assert OLD in said_by(done)
    assert host.packages == {}


def test_a_stream_that_is_not_there_is_said_with_those_that_are() -> None:
    host = bare("rocky9")
    host.streams = {"550-dkms": " [d]", "latest-dkms": ""}
    done = go(host, TO_580)
    assert "there is no stream nvidia-driver:580-open" in said_by(done)
    assert "550-dkms, latest-dkms" in said_by(done)
    assert host.packages == {}


def test_switching_a_stream_shows_the_reset() -> None:
    host = bare("rocky9")
    host.streams["550-dkms"] = " [e]"
    done = go(host, TO_580)
    assert done.state == "converged"
    reset = [line for line in lines(done) if line.startswith("reset nvidia-driver:550-dkms")]
    assert len(reset) == 1
    assert "[e]" in host.streams["580-open"]
    promises.second_pass_is_quiet(UNIT, host, TO_580)


def test_where_no_stream_keeps_the_branch_a_lock_does() -> None:
    host = bare("rocky10")
    go(host, TO_580)
    assert f"nvidia-driver-cuda-3:{NEWER}-1.el10.*" in (host.text("/etc/dnf/plugins/versionlock.list") or "")
    host = bare("sles")
    go(host, TO_580)
    assert "solvable_name: nvidia-compute-utils-G06" in (host.text("/etc/zypp/locks") or "")


def test_an_exact_version_is_gone_back_to() -> None:
    host = running(NEWER, "-open")
    done = go(host, {"version": NEW})
    assert (done.state, host.running) == ("converged", f"{NEW} open")
    done = go(host, {"version": NEWER})
    assert (done.state, host.running) == ("converged", f"{NEWER} open")  # our own hold was no obstacle
    assert {"nvidia-headless-580-server-open", "nvidia-utils-580-server"} <= host.held


def test_a_version_that_nobody_offers_is_said_with_those_that_are() -> None:
    host = bare()
    done = go(host, {"version": "580.1.2"})
    assert "580.1.2" in said_by(done)
    assert NEWER in said_by(done)
    assert (done.state, host.packages) == ("progressing", {})


def test_rhel_8_and_9_take_a_stream_and_rhel_10_none() -> None:
    host = DriverMachine("rocky9", red_hat(NEWER))
    done = go(host, TO_580)
    assert "there is no stream nvidia-driver:580-open" in said_by(done)
    assert "no module nvidia-driver at all" in said_by(done)
    assert go(DriverMachine("rocky10", red_hat(NEWER, release="el10")), TO_580).state == "converged"


# -- device nodes and persistenced


@pytest.mark.parametrize("by_program", [True, False])
def test_device_nodes_that_are_missing_are_made(by_program: bool) -> None:
    host = running(NEW, "-open", gpus=("2330", "2330"))
    host.makes_nodes = False
    for node in ("nvidia-uvm", "nvidia-uvm-tools", "nvidia1"):
        del host.files[f"/dev/{node}"]

    def program(machine: FakeHost, argv: tuple[str, ...]) -> Answer:
        if argv[:2] == ("nvidia-modprobe", "-u"):
            machine.put("/dev/nvidia-uvm", "")
            machine.put("/dev/nvidia-uvm-tools", "")
        elif argv[0] == "nvidia-modprobe":
            machine.put(f"/dev/nvidia{argv[2]}", "")
        else:
            machine.put(argv[3], " ".join(argv[1:]))
        return Answer(0, "")

    host.programs["nvidia-modprobe" if by_program else "mknod"] = program
    done = go(host, TO_580)
    assert done.state == "converged"
    made = [call for call in host.calls if "nvidia-modprobe" in call or call.startswith("mknod")]
    if by_program:
        assert made == ["nvidia-modprobe -c 1", "nvidia-modprobe -u -c 0"]
    else:
        assert made == [
            "mknod -m 0666 /dev/nvidia1 c 195 1",
            "mknod -m 0666 /dev/nvidia-uvm c 511 0",
            "mknod -m 0666 /dev/nvidia-uvm-tools c 511 1",
        ]
    promises.second_pass_is_quiet(UNIT, host, TO_580)


def test_the_node_of_the_display_part_is_made_where_its_module_is_loaded() -> None:
    host = running(NEW, "-open")
    host.load("nvidia_modeset")
    del host.files["/dev/nvidia-modeset"]
    host.makes_nodes = False

    def mknod(machine: FakeHost, argv: tuple[str, ...]) -> Answer:
        machine.put(argv[3], "")
        return Answer(0, "")

    host.programs["mknod"] = mknod
    assert go(host, TO_580).state == "converged"
    assert "mknod -m 0666 /dev/nvidia-modeset c 195 254" in host.calls
    promises.second_pass_is_quiet(UNIT, host, TO_580)


def test_nodes_have_the_owner_and_mode_that_the_driver_is_told() -> None:
    host = running(NEW, "-open")
    host.makes_nodes = False
    del host.files["/dev/nvidia0"]

    def mknod(machine: FakeHost, argv: tuple[str, ...]) -> Answer:
        machine.put(argv[3], "")
        return Answer(0, "")

    host.programs["mknod"] = mknod
    host.programs["chown"] = lambda _machine, _argv: Answer(0, "")
    host.put(
        "/proc/driver/nvidia/params", "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 44\nDeviceFileMode: 432\n"
    )
    go(host, TO_580)
    assert "mknod -m 0660 /dev/nvidia0 c 195 0" in host.calls
    assert "chown 0:44 /dev/nvidia0" in host.calls


def test_nodes_that_the_driver_leaves_to_others_are_not_made() -> None:
    host = running(NEW, "-open")
    host.makes_nodes = False
    del host.files["/dev/nvidia0"]
    host.put("/proc/driver/nvidia/params", "ModifyDeviceFiles: 0\n")
    done = go(host, TO_580)
    assert (done.state, reasons(done)) == ("progressing", ["NotReady"])
    assert "/dev/nvidia0 is missing, and NVreg_ModifyDeviceFiles=0" in done.pending[0].message
    assert not [call for call in host.calls if call.startswith(("mknod", "nvidia-modprobe"))]


def test_a_node_that_does_not_come_is_a_failure() -> None:
    host = running(NEW, "-open")
    host.makes_nodes = False
    del host.files["/dev/nvidia-uvm"]
    host.programs["nvidia-modprobe"] = lambda _host, _argv: Answer(0, "")
    done = go(host, TO_580)
    assert "done without effect: make the device node /dev/nvidia-uvm" in said_by(done)


def test_unified_memory_is_loaded_beside_a_right_driver() -> None:
    host = bare().install(
        f"nvidia-headless-580-server-open={NEW}-0ubuntu0.24.04.1", f"nvidia-utils-580-server={NEW}-0ubuntu0.24.04.1"
    )
    host.load("nvidia")
    done = go(host, TO_580)
    assert "load the module nvidia_uvm" in lines(done)
    assert (done.state, "/dev/nvidia-uvm" in host.files) == ("converged", True)


def test_persistenced_is_enabled_and_started() -> None:
    host = running(NEW, "-open")
    host.stop("nvidia-persistenced")
    host.enabled["nvidia-persistenced"] = "disabled"
    done = go(host, TO_580)
    assert [line for line in lines(done) if "persistenced" in line] == [
        "enable nvidia-persistenced",
        "start nvidia-persistenced",
    ]
    assert host.enabled["nvidia-persistenced"] == "enabled"
    host.stop("nvidia-persistenced")
    host.enabled["nvidia-persistenced"] = "masked"
    done = go(host, TO_580)
    assert (done.state, done.steps) == ("converged", ())
    assert any("is masked and stays so" in note for note in done.notes)


def test_without_systemd_nothing_is_said_of_services() -> None:
    host = running(NEW, "-open")
    host.stop("nvidia-persistenced")
    del host.files["/run/systemd/system/.d"]
    assert go(host, TO_580).state == "converged"
    assert "nvidia-persistenced" not in host.active


# -- others


def test_a_gpu_that_fell_off_the_bus_swaps_no_flavour() -> None:
    host = running(NEW, gpus=("1db1",))
    assert go(host, TO_580).state == "converged"
    for path in [path for path in host.files if path.startswith("/sys/bus/pci")]:
        del host.files[path]
    assert (go(host, TO_580).state, host.running) == ("converged", f"{NEW} proprietary")


def test_debians_module_under_its_own_name() -> None:
    host = DriverMachine("debian", debian(OLD))
    host.install(*(f"{name}={OLD}-2" for name in ("nvidia-kernel-dkms", "nvidia-smi", "libnvidia-ml1", "libcuda1")))
    host.load("nvidia", "nvidia_uvm")
    for path in [path for path in host.files if path.startswith("/sys/module/nvidia")]:
        host.put(path.replace("/nvidia", "/nvidia_current", 1), host.text(path) or "")
        del host.files[path]
    modinfo = host.programs["modinfo"]
    host.programs["modinfo"] = lambda machine, argv: (
        modinfo(machine, (*argv[:-1], "nvidia"))
        if argv[-1] == "nvidia-current"
        else Answer(1, "", "modinfo: ERROR: Module nvidia not found.\n")
    )
    done = go(host, {"branch": "550"})
    assert (done.state, lines(done)) == (
        "converged",
        [f"write {BLACKLIST}", "rebuild the initramfs with update-initramfs"],
    )


def test_removal_leaves_the_driver_and_says_so() -> None:
    host = running(NEW, "-open")
    go(host, TO_580)
    calls = len(host.calls)
    done = go(host, None)
    assert (done.state, done.steps, done.changed) == ("converged", (), False)
    assert not [call for call in host.calls[calls:] if not call.startswith("write /var/lib/bcd-hostconfig")]
    assert any("the NVIDIA driver stays installed and loaded" in note for note in done.notes)
    assert any(BLACKLIST in note for note in done.notes)


def test_a_killed_pass_is_finished_when_the_unit_leaves() -> None:
    total = 0
    for at in range(1, 99):
        host = running().load("nvidia_drm").serve("nvidia-dcgm")
        host.kill_at = at
        try:
            go(host, TO_580)
        except Killed:
            pass
        else:
            total = at
            break
        host.kill_at = 0
        running_then = host.running
        done = go(host, None)
        assert (host.text("/initramfs") or None) == host.text(BLACKLIST)
        # What was taken out of the kernel on the way comes back: by then it is the driver on the disk.
        assert host.running in (running_then, f"{NEWER} open")
        assert host.running
        if done.state != "converged":  # services of the former driver do not start on the new library
            assert "start nvidia-" in said_by(done)
            host.boot()
            assert go(host, None).state == "converged", at
        else:
            assert {"nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm"} == set(host.loaded), at
        assert host.active == {"nvidia-dcgm", "nvidia-persistenced"}
        assert go(host, None).changed is False
    assert total > 20


def test_an_account_that_is_not_root_is_told_what_only_root_sees() -> None:
    host = running()
    host.user = 1000
    host.unreadable.add("/proc/700/fd")
    host.open_nodes(700, "python3", "/dev/nvidia0")
    planned = go(host, TO_580, check=True)
    assert planned.failure is None
    assert any("it is seen as root" in step.action for step in planned.steps)


# -- every step of a pass, failing or lying


def machines() -> dict[str, Any]:
    return {
        "bare": bare,
        "swap": lambda: running().load("nvidia_drm").serve("nvidia-dcgm"),
        "streams": lambda: bare("rocky9"),
        "suse": lambda: bare("sles"),
    }


def commands(name: str) -> list[str]:
    """The programs that an undisturbed pass runs."""
    host = machines()[name]()
    before = len(host.calls)
    go(host, TO_580)
    return [call for call in host.calls[before:] if not call.startswith(("write ", "remove ", "set "))]


@pytest.mark.parametrize("name", ["bare", "swap", "streams", "suse"])
@pytest.mark.parametrize("answer", [Answer(1, "", "E: broken\n"), Answer(0, "")], ids=["fails", "lies"])
def test_a_step_that_fails_or_does_nothing_is_never_taken_for_done(name: str, answer: Answer) -> None:
    whole = machines()[name]()
    assert go(whole, TO_580).state == "converged"
    ran = commands(name)
    assert len(ran) > 4
    for command in dict.fromkeys(ran):
        host = machines()[name]()
        host.fails = {command + " ": answer}
        done = go(host, TO_580)
        unseen = ("update-initramfs", "dracut")  # what is in an initramfs is not looked at: the exit status is all
        if answer.rc or not command.startswith(unseen):
            assert done.state != "converged" or shown(host) == shown(whole), f"{command}: said to be converged"
        host.fails = {}
        after = go(host, TO_580)
        boots = "RebootRequired" in reasons(after)
        if boots:
            host.boot()
            after = go(host, TO_580)
        assert after.state == "converged", f"{command}: {after.failure} {after.pending}"
        assert host.running == whole.running
        assert boots or sorted(host.loaded) == sorted(whole.loaded), command
        assert host.active == whole.active, command
