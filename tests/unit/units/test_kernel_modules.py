# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kernel-modules on a host in memory whose modprobe behaves as kmod's does."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.runner import Goal, converge
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import module_settings as planner
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.modprobe import parse_options, same_value
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.kernel_modules import UNIT
from tests.unit.fake_host import FakeHost, Killed
from tests.unit.promises import a_kill_loses_nothing, check_is_truthful

LOAD, PROBE = "/etc/modules-load.d/bcd.conf", "/etc/modprobe.d/bcd.conf"
HEADER = "# Managed by bettercompute.bcd: local edits are replaced.\n"
SANDBOX = {"load": ["kvm_intel", "vhost_net", "tun", "br_netfilter"], "options": {"kvm_intel": "nested=1"}}
KNOWN = {"kvm_intel": {"nested": "N"}, "vhost_net": {}, "tun": {}, "br_netfilter": {}, "nouveau": {"modeset": "-1"}}
KNOWN.update({"nvidia": {}, "softdog": {}})
HIDDEN = ("NVreg_", "soft_")  # what sysfs does not show
RECORD = "/var/lib/bcd-hostconfig/modules/softdog"
SOFTDOG = {"options": {"softdog": "soft_noboot=1"}}


def modprobe(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    name = argv[-1].replace("-", "_")
    if "-r" in argv:
        for below in unload(host, name):
            if host.text(f"/sys/module/{below}/refcnt") == "0\n":
                modprobe(host, ("modprobe", "-r", "--", below))  # what only this module needed goes along
        return Answer(0, "")
    if host.text(f"/sys/module/{name}/refcnt") is not None:
        return Answer(0, "")
    if name not in KNOWN:
        return Answer(1, "", f"modprobe: FATAL: Module {name} not found in directory /lib/modules/6.12.0")
    host.put(f"/sys/module/{name}/refcnt", "0\n")
    values = dict(KNOWN[name])
    for line in (host.text(PROBE) or "").splitlines():
        if line.startswith(f"options {name} "):
            values.update({key: "Y" if value == "1" else value for key, value in parse_options(line.split(None, 2)[2])})
    for key, value in values.items():
        if not key.startswith(HIDDEN):
            host.put(f"/sys/module/{name}/parameters/{key}", value + "\n")
    if name == "nvidia":
        shown = {"NVreg_EnableMSI": "1", "NVreg_DeviceFileMode": "438", "NVreg_RegistryDwords": "", **values}
        shown["NVreg_DeviceFileMode"] = {"0660": "432"}.get(shown["NVreg_DeviceFileMode"], "438")
        shown["NVreg_RegistryDwords"] = f'"{shown["NVreg_RegistryDwords"]}"'
        host.put("/proc/driver/nvidia/params", "".join(f"{key[6:]}: {value}\n" for key, value in shown.items()))
    return Answer(0, "")


def unload(host: FakeHost, name: str) -> list[str]:
    """Take a module out of the kernel; what it stood on."""
    below = [path.split("/")[3] for path in host.files if path.endswith(f"/holders/{name}")]
    for path in [path for path in host.files if path.startswith(f"/sys/module/{name}/")]:
        del host.files[path]
    for other in below:
        del host.files[f"/sys/module/{other}/holders/{name}"]
        host.put(f"/sys/module/{other}/refcnt", f"{int(host.text(f'/sys/module/{other}/refcnt') or 0) - 1}\n")
    return below


def rmmod(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    name = argv[-1]
    count = host.text(f"/sys/module/{name}/refcnt")
    if count != "0\n":
        return Answer(1, "", f"rmmod: ERROR: Module {name} is {'in use' if count else 'not currently loaded'}")
    unload(host, name)
    return Answer(0, "")


def stand_on(host: FakeHost, above: str, below: str) -> None:
    """Load one module on top of another."""
    for name in (below, above):
        modprobe(host, ("modprobe", name))
    host.put(f"/sys/module/{below}/holders/{above}", "")
    host.put(f"/sys/module/{below}/refcnt", f"{int(host.text(f'/sys/module/{below}/refcnt') or 0) + 1}\n")


def update_initramfs(host: FakeHost, _argv: tuple[str, ...]) -> Answer:
    host.put("/boot/initrd.img-6.12.0", host.text(PROBE) or "")
    return Answer(0, "")


def lsinitramfs(_host: FakeHost, _argv: tuple[str, ...]) -> Answer:
    return Answer(0, "usr/lib/modules/6.12.0/kernel/drivers/gpu/drm/nouveau/nouveau.ko.xz\nusr/bin/sh\n")


def debian(**files: str) -> FakeHost:
    host = FakeHost(
        {
            "/proc/sys/kernel/osrelease": "6.12.0\n",
            "/lib/modules/6.12.0/modules.builtin": "kernel/drivers/net/loopback.ko\nkernel/fs/ext4/ext4.ko\n",
        },
        {"modprobe": modprobe, "rmmod": rmmod, "update-initramfs": update_initramfs, "lsinitramfs": lsinitramfs},
    )
    for path, text in files.items():
        host.put(path, text)
    return host


def go(host: FakeHost, settings: dict[str, Any] | None, *, check: bool = False, max_disruption: str = "gpu") -> Outcome:
    seen = PredictedHost(host) if check else host
    return converge(Goal(UNIT, settings), seen, Records(seen), max_disruption)


def lines(outcome: Outcome) -> list[str]:
    return [line.action for line in outcome.steps]


def test_the_sandbox_host_gets_both_files_and_its_modules() -> None:
    host = debian()
    first = go(host, SANDBOX)
    assert (first.state, first.changed, first.failure) == ("converged", True, None)
    assert host.text(LOAD) == HEADER + "br_netfilter\nkvm_intel\ntun\nvhost_net\n"
    assert host.text(PROBE) == HEADER + "options kvm_intel nested=1\n"
    assert host.text("/sys/module/kvm_intel/parameters/nested") == "Y\n"
    second = go(host, SANDBOX)
    assert (second.state, second.changed, second.steps) == ("converged", False, ())


def test_check_mode_says_the_steps_that_are_then_taken() -> None:
    check_is_truthful(UNIT, debian, SANDBOX)


def test_a_module_loaded_without_its_options_is_loaded_again_only_while_nothing_uses_it() -> None:
    host = debian()
    modprobe(host, ("modprobe", "kvm_intel"))
    free = go(host, SANDBOX)
    assert "unload the module kvm_intel, to load it with nested=1" in lines(free)
    assert [step.disruption for step in free.steps if "kvm_intel" in step.action] == ["service", "service"]
    assert free.state == "converged"

    host = debian()
    modprobe(host, ("modprobe", "kvm_intel"))
    host.put("/sys/module/kvm_intel/refcnt", "3\n")
    host.put("/sys/module/kvm_intel/holders/vmm", "")
    passes = [go(host, SANDBOX), go(host, SANDBOX)]
    for busy in passes:
        assert busy.state == "progressing"
        assert [wait.reason for wait in busy.pending] == ["RebootRequired"]
        assert "refcnt 3, held by vmm" in busy.pending[0].message
        assert "reboot the node" in busy.pending[0].message
    assert passes[-1].changed is False
    assert host.text("/sys/module/kvm_intel/parameters/nested") == "N\n"


def test_loading_again_is_held_back_where_nothing_may_be_disturbed() -> None:
    host = debian()
    modprobe(host, ("modprobe", "kvm_intel"))
    held = go(host, SANDBOX, max_disruption="none")
    assert [wait.reason for wait in held.pending] == ["HeldBack"]
    assert host.text("/sys/module/kvm_intel/parameters/nested") == "N\n"
    assert host.text("/sys/module/tun/refcnt") == "0\n"


def test_a_pass_killed_anywhere_is_finished_by_the_next() -> None:
    settings = {"load": ["tun"], "options": {"kvm_intel": "nested=1"}, "blacklist": ["nouveau"]}

    def machine() -> FakeHost:
        host = debian()
        for name in ("kvm_intel", "nouveau"):
            modprobe(host, ("modprobe", name))
        return host

    def shown(host: FakeHost) -> object:
        assert host.text("/sys/module/kvm_intel/parameters/nested") == "Y\n"
        assert host.text("/sys/module/nouveau/refcnt") is None
        assert host.text("/boot/initrd.img-6.12.0") == host.text(PROBE)
        return host.text(LOAD), host.text(PROBE)

    assert a_kill_loses_nothing(UNIT, machine, settings, shown) > 6


def test_a_removal_killed_anywhere_is_finished_by_the_next() -> None:
    def machine() -> FakeHost:
        host = debian()
        assert go(host, {"load": ["tun"], "blacklist": ["nouveau"]}).state == "converged"
        host.calls.clear()
        return host

    def shown(host: FakeHost) -> object:
        assert (host.text(LOAD), host.text(PROBE)) == (None, None)
        return host.text("/boot/initrd.img-6.12.0")

    assert "nouveau" in str(machine().text("/boot/initrd.img-6.12.0"))
    assert a_kill_loses_nothing(UNIT, machine, None, shown) > 2
    host = machine()
    go(host, None)
    assert "nouveau" not in str(host.text("/boot/initrd.img-6.12.0"))


def test_what_is_kept_out_goes_into_the_initramfs_and_out_of_the_kernel() -> None:
    host = debian()
    modprobe(host, ("modprobe", "nouveau"))
    first = go(host, {"blacklist": ["nouveau"]})
    assert host.text(PROBE) == HEADER + "blacklist nouveau\ninstall nouveau /bin/false\n"
    assert host.text("/boot/initrd.img-6.12.0") == host.text(PROBE)
    assert lines(first)[-1] == "unload the module nouveau, which is kept out"
    assert first.state == "converged"
    removed = go(host, None)
    assert lines(removed) == [f"remove {PROBE}", "rebuild the initramfs with update-initramfs"]
    assert host.text("/boot/initrd.img-6.12.0") == ""


def test_only_what_we_name_is_unloaded() -> None:
    settings = {"load": ["tun"], "blacklist": ["vhost_net"]}
    host = debian()
    stand_on(host, "vhost_net", "tun")
    planned = go(host, settings, check=True)
    done = go(host, settings)
    assert lines(planned) == lines(done)
    assert [line for line in lines(done) if "module " in line] == ["unload the module vhost_net, which is kept out"]
    assert host.text("/sys/module/vhost_net/refcnt") is None
    assert host.text("/sys/module/tun/refcnt") == "0\n"
    assert go(host, settings).changed is False


def test_two_that_stand_on_a_third_are_all_kept_out() -> None:
    settings = {"blacklist": ["br_netfilter", "kvm_intel", "tun", "vhost_net"]}
    host = debian()
    stand_on(host, "vhost_net", "tun")
    stand_on(host, "br_netfilter", "tun")
    planned = go(host, settings, check=True)
    done = go(host, settings)
    assert lines(planned) == lines(done)
    assert lines(done)[-1] == "unload the module tun, which is kept out"
    assert (planned.pending, done.pending, done.state) == ((), (), "converged")


def test_a_module_is_loaded_again_before_another_is_loaded_on_top_of_it() -> None:
    settings = {"load": ["br_netfilter"], "options": {"kvm_intel": "nested=1"}}
    host = debian()
    modprobe(host, ("modprobe", "kvm_intel"))
    found = [line for line in lines(go(host, settings)) if "module " in line]
    assert found[-1] == "load the module br_netfilter"


def test_what_is_kept_out_is_not_loaded_again_for_its_options() -> None:
    host = debian()
    modprobe(host, ("modprobe", "nouveau"))
    done = go(host, {"options": {"nouveau": "modeset=1"}, "blacklist": ["nouveau"]})
    assert [line for line in lines(done) if "module " in line] == ["unload the module nouveau, which is kept out"]
    assert done.state == "converged"


# -- options that the kernel does not show


def test_an_option_that_sysfs_hides_is_read_where_nvidia_shows_it() -> None:
    settings = {"options": {"nvidia": 'NVreg_DeviceFileMode=0660 NVreg_RegistryDwords="a=1; b=2"'}}
    host = debian()
    modprobe(host, ("modprobe", "nvidia"))
    host.put("/sys/module/nvidia/refcnt", "3\n")
    host.put("/sys/module/nvidia/holders/nvidia_uvm", "")
    waiting = go(host, settings)
    assert [wait.reason for wait in waiting.pending] == ["RebootRequired"]
    for words in ("nvidia waits for reload", "refcnt 3, held by nvidia_uvm", "NVreg_DeviceFileMode=0660", "reboot the"):
        assert words in waiting.pending[0].message
    assert go(host, settings).changed is False
    boot(host, "nvidia")
    after = go(host, settings)
    assert (after.state, after.changed, after.pending) == ("converged", False, ())


def boot(host: FakeHost, *modules: str) -> None:
    """Reboot, with these loaded by what the hardware announces."""
    host.reboot()
    for path in [path for path in host.files if path.startswith("/sys/module/")]:
        del host.files[path]
    for name in modules:
        modprobe(host, ("modprobe", name))


def test_an_option_that_nothing_shows_is_recorded_and_its_module_loaded_again() -> None:
    host = debian()
    modprobe(host, ("modprobe", "softdog"))
    planned = go(host, SOFTDOG, check=True)
    done = go(host, SOFTDOG)
    assert lines(done) == lines(planned)
    assert lines(done) == [
        f"write {RECORD}",
        f"write {PROBE}",
        "unload the module softdog, to load it with soft_noboot=1",
        f"remove {RECORD}",
        "load the module softdog",
    ]
    assert [step.disruption for step in done.steps] == ["none", "none", "service", "none", "service"]
    assert host.text(RECORD) is None
    again = go(host, SOFTDOG)
    assert (again.state, again.changed, again.steps) == ("converged", False, ())


def test_a_module_in_use_waits_for_reload_until_it_is_free_or_another_boot() -> None:
    host = debian()
    modprobe(host, ("modprobe", "softdog"))
    host.put("/sys/module/softdog/refcnt", "1\n")
    planned = go(host, SOFTDOG, check=True)
    first = go(host, SOFTDOG)
    assert lines(first) == lines(planned) == [f"write {RECORD}", f"write {PROBE}"]
    for waiting in (planned, first, go(host, SOFTDOG), go(host, SOFTDOG, check=True)):
        assert [wait.reason for wait in waiting.pending] == ["RebootRequired"]
        assert "softdog waits for reload: it is in use (refcnt 1)" in waiting.pending[0].message
    assert go(host, SOFTDOG).changed is False

    rebooted = debian()
    rebooted.files = dict(host.files)
    boot(rebooted, "softdog")
    after = go(rebooted, SOFTDOG)
    assert (after.state, after.changed, after.pending, after.steps) == ("converged", False, (), ())

    host.put("/sys/module/softdog/refcnt", "0\n")
    assert "load the module softdog" in lines(go(host, SOFTDOG))
    assert go(host, SOFTDOG).changed is False


@pytest.mark.parametrize("in_use", [False, True])
@pytest.mark.parametrize("reboots", [False, True])
@pytest.mark.parametrize("at", range(1, 12))
def test_a_pass_killed_anywhere_does_not_lose_what_waits_for_reload(at: int, in_use: bool, reboots: bool) -> None:
    host = debian()
    modprobe(host, ("modprobe", "softdog"))
    if in_use:
        host.put("/sys/module/softdog/refcnt", "1\n")
    host.kill_at = at
    with contextlib.suppress(Killed):
        go(host, SOFTDOG)
    host.kill_at = 0
    written = host.text(PROBE) is not None
    if reboots:
        boot(host, "softdog")
    outcome = go(host, SOFTDOG)
    loaded = [call for call in host.calls if call == "modprobe -- softdog"]
    if reboots:
        assert outcome.state == "converged"
        assert written or len(loaded) == 1  # it booted with the option, or was loaded again
    elif in_use:
        assert [wait.reason for wait in outcome.pending] == ["RebootRequired"]
        assert loaded == []
    else:
        assert outcome.state == "converged"
        assert host.calls.count("rmmod -- softdog") >= 1
        assert loaded
    calls = len(host.calls)
    assert go(host, SOFTDOG).changed is False
    assert len(host.calls) == calls


def test_options_that_go_back_to_what_the_module_has_wait_for_nothing() -> None:
    host = debian()
    go(host, {"load": ["softdog"], **SOFTDOG})
    host.put("/sys/module/softdog/refcnt", "1\n")
    other = {"load": ["softdog"], "options": {"softdog": "soft_noboot=0"}}
    assert [wait.reason for wait in go(host, other).pending] == ["RebootRequired"]
    back = go(host, {"load": ["softdog"], **SOFTDOG})
    assert (back.state, back.pending, host.text(RECORD)) == ("converged", (), None)


@pytest.mark.parametrize("left", [None, {"load": ["tun"]}])
def test_a_record_leaves_with_the_options(left: dict[str, Any] | None) -> None:
    host = debian()
    modprobe(host, ("modprobe", "softdog"))
    host.put("/sys/module/softdog/refcnt", "1\n")
    go(host, SOFTDOG)
    assert host.text(RECORD) is not None
    gone = go(host, left)
    assert (gone.state, host.text(RECORD)) == ("converged", None)
    assert go(host, left).changed is False


def test_an_option_of_what_is_built_in_is_noted_where_nothing_shows_it() -> None:
    notes = go(debian(), {"options": {"ext4": "unseen=1"}}).notes
    assert len(notes) == 1
    assert "ext4 is built into this kernel and does not show unseen" in notes[0]


# -- the initramfs


def rpm_ostree(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """initramfs-etc: tracks files below /etc, and fails where one of them is not there."""
    tracked = set((host.text("/tracked") or "").split())
    for word in argv[2:]:
        name, _equals, path = word.partition("=")
        if name == "--track":
            tracked.add(path)
        elif name == "--untrack":
            tracked.discard(path)
    if any(host.text(path) is None for path in tracked):
        return Answer(1, "", "error: fstatat(etc/modprobe.d/bcd.conf): No such file or directory")
    host.put("/tracked", "".join(path + "\n" for path in sorted(tracked)))
    return Answer(0, "")


def ostree() -> FakeHost:
    host = debian(**{"/run/ostree-booted": ""})
    del host.programs["update-initramfs"], host.programs["lsinitramfs"]
    host.programs["rpm-ostree"] = rpm_ostree
    return host


@pytest.mark.parametrize("at", range(6))
def test_ostree_tracks_our_file_while_it_is_there(at: int) -> None:
    host = ostree()
    assert go(host, {"blacklist": ["nouveau"]}).state == "converged"
    assert host.text("/tracked") == PROBE + "\n"
    host.calls.clear()
    host.kill_at = at
    with contextlib.suppress(Killed):
        go(host, None)
    host.kill_at = 0
    removed = go(host, None)
    assert (removed.failure, removed.state) == (None, "converged")
    assert (host.text(PROBE), host.text("/tracked")) == (None, "")
    assert go(host, None).changed is False


@pytest.mark.parametrize("booted", [{}, {"/run/ostree-booted": ""}])
def test_a_host_without_a_known_tool_for_its_initramfs_says_so(booted: dict[str, str]) -> None:
    host = debian(**booted)
    del host.programs["update-initramfs"]
    for settings in ({"blacklist": ["nouveau"]}, {"options": {"kvm_intel": "nested=1"}}):
        for outcome in (go(host, settings, check=True), go(host, settings), go(host, settings)):
            assert outcome.failure is None
            [note] = [note for note in outcome.notes if "initramfs" in note]
            assert "dracut, rpm-ostree, update-initramfs" in note
            assert "rebuild it by hand" in note
    assert any("initramfs" in note for note in go(host, {"load": ["tun"]}).notes)  # the file leaves
    assert go(host, {"load": ["tun"]}).notes == ()


def test_an_image_that_only_root_may_list_is_known_when_root_looks() -> None:
    host = debian()
    host.programs["lsinitramfs"] = lambda _host, _argv: Answer(1, "", "could not be read")
    settings = {"options": {"kvm_intel": "nested=1"}}
    host.user = 1000
    planned = go(host, settings, check=True)
    assert lines(planned) == [f"write {PROBE}", "initramfs: known after it is seen as root"]
    assert planned.failure is None
    host.user = 0
    assert "rebuild the initramfs with update-initramfs" in lines(go(host, settings, check=True))


def test_one_that_is_kept_out_and_in_use_waits_for_a_reboot() -> None:
    host = debian()
    modprobe(host, ("modprobe", "nouveau"))
    host.put("/sys/module/nouveau/refcnt", "1\n")
    busy = go(host, {"blacklist": ["nouveau"]})
    assert [wait.reason for wait in busy.pending] == ["RebootRequired"]
    assert "reboot the node" in busy.pending[0].message


@pytest.mark.parametrize(("module", "rebuilt"), [("nouveau", True), ("kvm_intel", False)])
def test_options_rebuild_the_initramfs_only_for_a_module_that_is_in_it(module: str, rebuilt: bool) -> None:
    host = debian()
    outcome = go(host, {"options": {module: "modeset=1"}})
    assert ("rebuild the initramfs with update-initramfs" in lines(outcome)) is rebuilt
    outcome = go(host, None)
    assert ("rebuild the initramfs with update-initramfs" in lines(outcome)) is rebuilt


def test_an_unknown_module_fails_in_its_own_lane() -> None:
    host = debian()
    outcome = go(host, {"load": ["tun", "no_such_module"]})
    assert outcome.failure is not None
    assert outcome.failure.retryable
    assert "no_such_module not found" in outcome.failure.message
    assert host.text("/sys/module/tun/refcnt") == "0\n"


def test_a_module_built_into_the_kernel_is_there_already() -> None:
    host = debian()
    assert go(host, {"load": ["loopback", "ext4"]}).state == "converged"
    assert not any(call.startswith("modprobe") for call in host.calls)


def test_what_modprobe_d_cannot_reach_is_refused() -> None:
    host = debian()
    host.put("/sys/module/ext4/parameters/debug", "0\n")
    for settings, text in (
        ({"blacklist": ["ext4"]}, "cannot be kept out"),
        ({"options": {"ext4": "debug=1"}}, "ext4.debug=1"),
    ):
        outcome = go(host, settings)
        assert outcome.failure is not None
        assert (outcome.failure.reason, outcome.failure.retryable) == ("Refused", False)
        assert text in outcome.failure.message
    assert host.calls == []


@pytest.mark.parametrize(
    ("path", "edited"),
    [(LOAD, "local\n"), (LOAD, None), (PROBE, HEADER + "options kvm_intel nested=0\n"), (PROBE, None)],
)
def test_a_local_edit_is_planned_away_alone(path: str, edited: str | None) -> None:
    host = debian()
    go(host, SANDBOX)
    ours = host.text(path)
    if edited is None:
        del host.files[path]
    else:
        host.put(path, edited)
    repaired = go(host, SANDBOX)
    assert [line for line in lines(repaired) if path not in line] == []
    assert host.text(path) == ours
    assert repaired.diff[0]["before"] == (edited or "")


def test_a_file_that_others_may_write_is_taken_back() -> None:
    host = debian()
    go(host, SANDBOX)
    host.files[LOAD] = File(host.text(LOAD) or "", mode=0o666)
    assert go(host, SANDBOX).changed
    assert host.files[LOAD].mode == 0o644


def test_a_value_that_the_kernel_shows_its_own_way_is_loaded_once_and_noted() -> None:
    host = debian()

    def rounding(machine: FakeHost, argv: tuple[str, ...]) -> Answer:
        done = modprobe(machine, argv)
        if argv[-1] == "kvm_intel":
            machine.put("/sys/module/kvm_intel/parameters/nested", "100352\n")
        return done

    rounding(host, ("modprobe", "kvm_intel"))
    host.programs["modprobe"] = rounding
    settings = {"options": {"kvm_intel": "nested=100000"}}
    first = go(host, settings)
    assert (first.state, first.failure) == ("converged", None)
    loads = sum(call.startswith("modprobe") for call in host.calls)
    again = go(host, settings)
    assert (again.state, again.changed) == ("converged", False)
    assert any("shows a value of its own" in note for note in again.notes)
    assert sum(call.startswith("modprobe") for call in host.calls) == loads == 1


def test_removal_leaves_the_modules_and_says_so() -> None:
    host = debian()
    go(host, SANDBOX)
    removed = go(host, None)
    assert (host.text(LOAD), host.text(PROBE)) == (None, None)
    assert host.text("/sys/module/tun/refcnt") == "0\n"
    assert removed.notes == ("modules that are loaded stay loaded until a reboot",)
    assert go(host, None).changed is False


def test_others_who_decide_about_our_modules_are_named() -> None:
    host = debian()
    host.put("/etc/modprobe.d/kvm.conf", "options kvm-intel nested=0\n")
    host.put("/usr/lib/modprobe.d/net.conf", "blacklist tun\n")
    host.put("/usr/lib/modprobe.d/fine.conf", "options kvm_intel nested=Y\n")
    notes = go(host, SANDBOX).notes
    assert [note.split(" ")[0] for note in notes] == ["/etc/modprobe.d/kvm.conf", "/usr/lib/modprobe.d/net.conf"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"laod": ["tun"]}, "'laod' is no setting of this unit (it takes blacklist, load, options)"),
        ({"load": "tun"}, "load is a string ('tun'), and takes a list"),
        ({"load": ["../tun"]}, "'../tun' is no module name"),
        ({"load": ["a" * 65]}, "is no module name"),
        ({"load": [1]}, "1 is no module name"),
        ({"load": ["-r"], "blacklist": ["_r"]}, "_r is in load and in blacklist"),
        ({"load": ["vhost-net"], "blacklist": ["vhost_net"]}, "vhost_net is in load and in blacklist"),
        ({"options": {"tun": "a=1\ninstall x /bin/sh"}}, "the options of tun are"),
        ({"options": {"tun": ""}}, "the options of tun are ''"),
        ({"options": {"a-b": "x=1", "a_b": "x=2"}}, "names the module a_b twice"),
        ({"options": {"vfio": "enable_unsafe_noiommu_mode=1"}}, "vfio enable_unsafe_noiommu_mode is refused"),
        ({"options": {"vfio": "enable-unsafe-noiommu-mode"}}, "vfio enable_unsafe_noiommu_mode is refused"),
        ({"options": {"vfio-iommu-type1": "x=1 allow_unsafe_interrupts=0"}}, "allow_unsafe_interrupts is refused"),
        ({"options": {"vfio": 'enable_unsafe_noiommu_mode="1"'}}, "enable_unsafe_noiommu_mode is refused"),
        ({"options": {"char-major-10-196": "enable_unsafe_noiommu_mode=1"}}, "enable_unsafe_noiommu_mode is refused"),
        ({"options": {"vfio": '"enable_unsafe_noiommu_mode=1"'}}, "can be read in more than one way"),
        ({"options": {"vfio": '"enable_unsafe_noiommu_mode=1'}}, "can be read in more than one way"),
        ({"options": {"vfio": 'a=1"x enable_unsafe_noiommu_mode=1'}}, "can be read in more than one way"),
        ({"options": {"vfio": "x=\u00e0enable_unsafe_noiommu_mode=1"}}, "in ASCII"),
        ({"options": {"vfio": "vfio.enable_unsafe_noiommu_mode=1"}}, "can be read in more than one way"),
        ({"options": {"vfio": "-- enable_unsafe_noiommu_mode=1"}}, "'--', which can be read in more than one way"),
        ({"options": {"kvm_intel": '"nested=1"'}}, "can be read in more than one way"),
        ({"options": {"kvm_intel": 'nested"="1'}}, "can be read in more than one way"),
        ({"options": {"kvm_intel": 'nested=""1"'}}, "can be read in more than one way"),
        ({"options": {"kvm_intel": 'nested="1"x'}}, "can be read in more than one way"),
        ({"options": {"kvm_intel": "=1"}}, "can be read in more than one way"),
        ({"options": {"kvm_intel": "'nested=1'"}}, "can be read in more than one way"),
        ({"options": {"kvm_intel": "e-pt=1 nested=1 e_pt=0"}}, "give e_pt twice"),
    ],
)
def test_settings_that_are_never_applied(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(Refused) as refused:
        planner.check(settings)
    assert text in refused.value.message


@pytest.mark.parametrize(
    ("line", "pairs"),
    [
        ("nested=1 emulate", (("nested", "1"), ("emulate", "1"))),
        ("a-b=c-d", (("a_b", "c-d"),)),
        ('a="b  c" d=', (("a", "b  c"), ("d", ""))),
        ('"a=b c" d=1', (("a", "b c"), ("d", "1"))),
        ('"a=b c', (("a", "b c"),)),
        ('a=x"y z"', (("a", 'x"y z"'),)),
        ('a=""', (("a", ""),)),
        ("a=1 -- b=2", (("a", "1"),)),
    ],
)
def test_options_as_the_kernel_reads_them(line: str, pairs: tuple[tuple[str, str], ...]) -> None:
    assert parse_options(line) == pairs


def test_blanks_between_options_are_one_and_those_in_quotes_stay() -> None:
    settings = planner.check({"options": {"nvidia": ' NVreg_RegistryDwords="a=1;  b=2"   NVreg_EnableMSI=1 '}})
    assert settings.options["nvidia"] == 'NVreg_RegistryDwords="a=1;  b=2" NVreg_EnableMSI=1'


@pytest.mark.parametrize(
    ("wanted", "shown", "same"),
    [
        ("0660", "432", True),
        ("0660", "660", False),
        ("089", "89", False),
        ("1_0", "10", False),
        ("-1", "-1", True),
        ("1", "Y", True),
        ("Y", "1", True),
        ("n", "0", True),
        ("on", "Y", True),
        ("0", "Y", False),
        ("0x10", "16", True),
        ("16", "17", False),
        ("a,b", "a,b", True),
        ("a", "b", False),
    ],
)
def test_values_that_the_kernel_shows_its_own_way(wanted: str, shown: str, same: bool) -> None:
    assert same_value(wanted, shown) is same
