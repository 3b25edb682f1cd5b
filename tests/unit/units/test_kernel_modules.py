# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kernel-modules on a host in memory whose modprobe behaves as kmod's does."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.runner import Goal, converge
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import kernel_modules as planner
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.modprobe import parse_options, same_value
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.kernel_modules import UNIT
from tests.unit.fake_host import FakeHost, Killed

LOAD, PROBE = "/etc/modules-load.d/bcd.conf", "/etc/modprobe.d/bcd.conf"
HEADER = "# Managed by bettercompute.bcd: local edits are replaced.\n"
SANDBOX = {"load": ["kvm_intel", "vhost_net", "tun", "br_netfilter"], "options": {"kvm_intel": "nested=1"}}
KNOWN = {"kvm_intel": {"nested": "N"}, "vhost_net": {}, "tun": {}, "br_netfilter": {}, "nouveau": {"modeset": "-1"}}


def modprobe(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    name = argv[-1].replace("-", "_")
    if "-r" in argv:
        for path in [path for path in host.files if path.startswith(f"/sys/module/{name}/")]:
            del host.files[path]
        return Answer(0, "")
    if name not in KNOWN:
        return Answer(1, "", f"modprobe: FATAL: Module {name} not found in directory /lib/modules/6.12.0")
    host.put(f"/sys/module/{name}/refcnt", "0\n")
    values = dict(KNOWN[name])
    for line in (host.text(PROBE) or "").splitlines():
        if line.startswith(f"options {name} "):
            values.update({key: "Y" if value == "1" else value for key, value in parse_options(line.split(None, 2)[2])})
    for key, value in values.items():
        host.put(f"/sys/module/{name}/parameters/{key}", value + "\n")
    return Answer(0, "")


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
        {"modprobe": modprobe, "update-initramfs": update_initramfs, "lsinitramfs": lsinitramfs},
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
    host = debian()
    before = dict(host.files)
    planned = go(host, SANDBOX, check=True)
    assert host.files == before
    assert lines(planned) == lines(go(host, SANDBOX))


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


@pytest.mark.parametrize("at", range(1, 14))
def test_a_pass_killed_anywhere_is_finished_by_the_next(at: int) -> None:
    settings = {"load": ["tun"], "options": {"kvm_intel": "nested=1"}, "blacklist": ["nouveau"]}
    host = debian()
    for name in ("kvm_intel", "nouveau"):
        modprobe(host, ("modprobe", name))
    host.kill_at = at
    try:
        go(host, settings)
    except Killed:
        host.kill_at = 0
    assert go(host, settings).state == "converged"
    assert host.text("/sys/module/kvm_intel/parameters/nested") == "Y\n"
    assert host.text("/sys/module/nouveau/refcnt") is None
    assert host.text("/boot/initrd.img-6.12.0") == host.text(PROBE)
    assert go(host, settings).changed is False


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
    ],
)
def test_settings_that_are_never_applied(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(Refused) as refused:
        planner.check(settings)
    assert text in refused.value.message


@pytest.mark.parametrize(
    ("wanted", "shown", "same"),
    [
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
