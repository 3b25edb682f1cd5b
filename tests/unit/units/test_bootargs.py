# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot arguments through the units cpu and iommu, on every loader: whole passes on hosts in memory."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer, Past, Todo, Unit
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.runner import Goal, converge
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.boot import boot
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.bootargs import keep_arguments
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.grub_default import with_arguments
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.cpu import UNIT as CPU
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.iommu import UNIT as IOMMU
from tests.unit.boot_machines import CLOUD, LOADERS, entries, machine, next_line, reboot
from tests.unit.fake_host import FakeHost, Killed

ISOLATE = {"isolate": "4-5"}
WANTED = "isolcpus=managed_irq,domain,4-5 nohz_full=4-5 rcu_nocbs=4-5"
AMD = "amd_iommu=on iommu=pt"
RECORD = "/var/lib/bcd-hostconfig/bootargs/cpu"
DROP_IN = "/etc/default/grub.d/90-bcd-cpu.cfg"
NAMES = {
    "grub": "GRUB",
    "suse": "GRUB",
    "grubby": "GRUB (grubby)",
    "systemd-boot": "systemd-boot",
    "uki": "a unified kernel image",
    "ostree": "ostree",
}
HEADER = "# Managed by bettercompute.bcd: local edits are replaced.\n"


def go(host: FakeHost, settings: dict[str, Any] | None, unit: Unit = CPU, *, check: bool = False) -> Outcome:
    seen = PredictedHost(host) if check else host
    return converge(Goal(unit, settings), seen, Records(seen))


def lines(outcome: Outcome) -> list[str]:
    return [line.action for line in outcome.steps]


def tree(host: FakeHost) -> dict[str, str]:
    """Everything but our own state."""
    return {path: file.text for path, file in host.files.items() if not path.startswith("/var/lib/bcd-hostconfig/")}


def has(line: str, arguments: str) -> bool:
    return f" {arguments} " in f" {line} "


@pytest.mark.parametrize("loader", LOADERS)
def test_from_nothing_to_isolated(loader: str) -> None:
    host = machine(loader)
    before = next_line(host)
    first = go(host, ISOLATE)
    assert first.failure is None
    assert first.changed
    assert [wait.message for wait in first.pending] == [
        'cpu: CPUs 4-5 are isolated from the next boot (now: ""): reboot the node'
    ]
    assert all(has(line, WANTED) for line in entries(host)), entries(host)
    assert all(word in next_line(host).split() for word in before.split())

    waiting = go(host, ISOLATE)
    assert (waiting.changed, waiting.steps, waiting.pending) == (False, (), first.pending)

    reboot(host)
    after = go(host, ISOLATE)
    assert (after.changed, after.steps, after.pending, after.state) == (False, (), (), "converged")


@pytest.mark.parametrize("loader", LOADERS)
def test_check_mode_says_the_steps_that_are_then_taken(loader: str) -> None:
    host = machine(loader)
    before = dict(host.files)
    foreseen = go(host, ISOLATE, check=True)
    assert host.files == before
    assert host.calls == []
    taken = go(host, ISOLATE)
    assert lines(foreseen) == lines(taken)
    assert foreseen.pending == taken.pending
    assert foreseen.changed
    reboot(host)
    foreseen = go(host, {"isolate": "6-7"}, check=True)
    assert lines(foreseen) == lines(go(host, {"isolate": "6-7"}))
    foreseen = go(host, None, check=True)
    assert lines(foreseen) == lines(go(host, None))
    assert foreseen.failure is None


@pytest.mark.parametrize("loader", LOADERS)
def test_check_mode_foresees_iommu_too(loader: str) -> None:
    host = machine(loader)
    for settings in ({}, {"passthrough": False}, None):
        foreseen = go(host, settings, IOMMU, check=True)
        taken = go(host, settings, IOMMU)
        assert lines(foreseen) == lines(taken) != []
        assert foreseen.pending == taken.pending


@pytest.mark.parametrize("loader", LOADERS)
def test_removal_leaves_every_file_as_it_was(loader: str) -> None:
    host = machine(loader)
    before = tree(host)
    go(host, ISOLATE)
    go(host, {}, IOMMU)
    assert all(has(line, WANTED) and has(line, AMD) for line in entries(host))
    go(host, None)
    assert not any(has(line, WANTED) for line in entries(host))
    assert all(has(line, AMD) for line in entries(host))
    gone = go(host, None, IOMMU)
    assert tree(host) == before
    assert gone.state == "converged"
    assert host.text(RECORD) is None
    again = go(host, None)
    assert (again.changed, again.steps) == (False, ())


@pytest.mark.parametrize("loader", LOADERS)
def test_one_unit_alone_leaves_nothing_behind(loader: str) -> None:
    host = machine(loader)
    before = tree(host)
    go(host, ISOLATE)
    go(host, {"isolate": ""})
    assert tree(host) == before


@pytest.mark.parametrize("loader", LOADERS)
def test_another_list_replaces_the_first(loader: str) -> None:
    host = machine(loader)
    go(host, ISOLATE)
    reboot(host)
    moved = go(host, {"isolate": "6-7"})
    assert [wait.message for wait in moved.pending] == [
        'cpu: CPUs 6-7 are isolated from the next boot (now: "4-5"): reboot the node'
    ]
    assert all(has(line, WANTED.replace("4-5", "6-7")) and "4-5" not in line for line in entries(host)), entries(host)
    reboot(host, "third-boot")
    assert go(host, {"isolate": "6-7"}).state == "converged"


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("settings", [ISOLATE, {"isolate": "6-7"}, None])
def test_killed_at_every_change_nothing_is_lost(loader: str, settings: dict[str, Any] | None) -> None:
    """First killed, then a clean pass: the same entries as without the kill, and nothing left to do."""

    def prepared() -> FakeHost:
        host = machine(loader)
        if settings != ISOLATE:
            go(host, ISOLATE)
            host.calls.clear()
        return host

    straight = prepared()
    go(straight, settings)
    changes = len(straight.calls)
    assert changes > 2
    for at in range(1, changes + 1):
        host = prepared()
        host.kill_at = at
        with pytest.raises(Killed):
            go(host, settings)
        host.kill_at = 0
        healed = go(host, settings)
        assert healed.failure is None, (at, healed.failure)
        assert entries(host) == entries(straight), at
        assert tree(host) == tree(straight), at
        assert go(host, settings).steps == (), at


@pytest.mark.parametrize("loader", LOADERS)
def test_the_node_booted_without_the_argument(loader: str) -> None:
    host = machine(loader)
    without = next_line(host)
    go(host, ISOLATE)
    reboot(host, line=without)
    outcome = go(host, ISOLATE)
    (wait,) = outcome.pending
    assert wait.reason == "RebootRequired"
    assert wait.message.startswith('cpu: CPUs 4-5 are isolated from the next boot (now: ""): reboot the node')
    assert "booted without the argument" in wait.message
    assert NAMES[loader] in wait.message
    assert (outcome.changed, outcome.steps) == (False, ())


@pytest.mark.parametrize("loader", LOADERS)
def test_lost_before_the_boot_is_not_booted_without(loader: str) -> None:
    """Somebody took the arguments out, and the node booted: they are put back, and the next boot has them."""
    host = machine(loader)
    pristine = tree(host)
    go(host, ISOLATE)
    for path in set(tree(host)) - set(pristine):
        del host.files[path]
    for path, text in pristine.items():
        host.put(path, text)
    reboot(host)
    outcome = go(host, ISOLATE)
    assert outcome.changed
    assert [wait.message for wait in outcome.pending] == [
        'cpu: CPUs 4-5 are isolated from the next boot (now: ""): reboot the node'
    ]
    assert all(has(line, WANTED) for line in entries(host))


@pytest.mark.parametrize("loader", ["suse", "grubby", "systemd-boot", "uki", "ostree"])
def test_words_that_were_there_before_us_stay_when_we_go(loader: str) -> None:
    host = machine(loader)
    go(host, {}, IOMMU)
    host.remove("/var/lib/bcd-hostconfig/bootargs/iommu")  # as if an administrator had set them
    before = tree(host)
    outcome = go(host, {}, IOMMU)
    assert json.loads(host.text("/var/lib/bcd-hostconfig/bootargs/iommu") or "")["owned"] == []
    assert outcome.failure is None
    go(host, None, IOMMU)
    assert tree(host) == before


def test_the_record_says_what_was_set_and_when() -> None:
    host = machine("grubby")
    go(host, ISOLATE)
    record = json.loads(host.text(RECORD) or "")
    assert record == {
        "version": 1,
        "arguments": WANTED.split(),
        "owned": WANTED.split(),
        "boot_id": "first-boot",
        "created": None,
    }


# -- GRUB


def test_the_drop_in_wins_over_the_cloud_image_and_reaches_recovery_entries() -> None:
    host = machine("grub")
    foreign = {path: host.text(path) for path in ("/etc/default/grub", "/etc/default/grub.d/50-cloudimg-settings.cfg")}
    go(host, ISOLATE)
    assert host.text(DROP_IN) == HEADER + f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {WANTED}"\n'
    assert {path: host.text(path) for path in foreign} == foreign
    assert foreign["/etc/default/grub.d/50-cloudimg-settings.cfg"] == CLOUD
    menu = host.text("/boot/grub/grub.cfg") or ""
    ours = [line for line in menu.splitlines() if "/boot/vmlinuz-" in line]
    assert len(ours) == 4
    assert all(has(line, WANTED) and 'quiet  dyndbg="file a +p"' in line for line in ours)
    assert "console=tty1 console=ttyS0" in menu
    assert "linux /vmlinuz root=/dev/sdb1 ro\n" in menu


def test_one_entry_without_the_arguments_is_not_done() -> None:
    host = machine("grub")
    go(host, ISOLATE)
    menu = host.text("/boot/grub/grub.cfg") or ""
    host.put("/boot/grub/grub.cfg", menu[::-1].replace(f" {WANTED}"[::-1], "", 1)[::-1])
    assert not all(has(line, WANTED) for line in entries(host))
    outcome = go(host, ISOLATE)
    assert lines(outcome) == ["write /boot/grub/grub.cfg with update-grub"]
    assert all(has(line, WANTED) for line in entries(host))


@pytest.mark.parametrize("check", [True, False])
def test_a_later_file_that_overrides_ours_is_named(check: bool) -> None:
    host = machine("grub")
    host.put("/etc/default/grub.d/zz.cfg", 'GRUB_CMDLINE_LINUX="quiet"\n')
    outcome = go(host, ISOLATE, check=check)
    assert outcome.failure is not None
    assert outcome.failure.retryable
    assert "update-grub ran and /boot/grub/grub.cfg lacks isolcpus=managed_irq,domain,4-5" in outcome.failure.message
    assert "/etc/default/grub.d/zz.cfg overrides GRUB_CMDLINE_LINUX" in outcome.failure.message
    assert outcome.pending == ()
    if check:
        return
    again = go(host, ISOLATE)
    assert again.failure == outcome.failure
    assert not again.changed
    host.remove("/etc/default/grub.d/zz.cfg")
    assert go(host, ISOLATE).failure is None
    assert all(has(line, WANTED) for line in entries(host))


def test_a_later_file_that_goes_on_from_ours_overrides_nothing() -> None:
    host = machine("grub")
    host.put("/etc/default/grub.d/zz.cfg", 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX audit=1"\n')
    assert go(host, ISOLATE).failure is None


def test_update_grub_that_does_nothing_is_found_out() -> None:
    host = machine("grub")
    host.programs["update-grub"] = lambda _host, _argv: Answer(0, "")
    outcome = go(host, ISOLATE)
    assert outcome.failure is not None
    assert "done without effect" in outcome.failure.message


def test_a_local_edit_of_the_drop_in_is_replaced() -> None:
    host = machine("grub")
    go(host, ISOLATE)
    host.put(DROP_IN, HEADER + 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX isolcpus=1"\n')
    outcome = go(host, ISOLATE)
    assert f"write {DROP_IN} again: it is not as we keep it" in lines(outcome)
    assert "write /boot/grub/grub.cfg with update-grub" in lines(outcome)
    assert go(host, ISOLATE).steps == ()


def test_a_rival_argument_is_named_with_its_file_and_left_alone() -> None:
    host = machine("grub")
    host.put("/etc/default/grub", 'GRUB_CMDLINE_LINUX="isolcpus=2-3"\n')
    update = host.programs["update-grub"]
    update(host, ())
    outcome = go(host, ISOLATE)
    assert any("isolcpus=2-3" in note and "/etc/default/grub" in note for note in outcome.notes)
    assert host.text("/etc/default/grub") == 'GRUB_CMDLINE_LINUX="isolcpus=2-3"\n'
    assert not any("4-5" in note for note in go(host, {"isolate": "6-7"}).notes)


def test_an_account_that_cannot_read_the_menu_says_so() -> None:
    host = machine("grub")
    host.unreadable.add("/boot/grub/grub.cfg")
    host.user = 1000
    outcome = go(host, ISOLATE, check=True)
    assert outcome.failure is None
    assert lines(outcome) == ["boot arguments: known after it is seen as root"]


# -- SUSE


def test_suse_has_the_words_in_etc_default_grub() -> None:
    host = machine("suse")
    go(host, ISOLATE)
    text = host.text("/etc/default/grub") or ""
    assert f'GRUB_CMDLINE_LINUX="quiet  dyndbg=\\"file a +p\\" {WANTED}"\n# end\n' in text
    assert "grub2-mkconfig -o /boot/grub2/grub.cfg" in host.calls
    assert host.text(DROP_IN) is None


@pytest.mark.parametrize("text", ["GRUB_TIMEOUT=5\n", "GRUB_TIMEOUT=5", "", "GRUB_CMDLINE_LINUX=''\n", None])
def test_suse_without_the_variable_gets_it_back_as_it_was(text: str | None) -> None:
    host = machine("suse")
    if text is None:
        del host.files["/etc/default/grub"]
    else:
        host.put("/etc/default/grub", text)
    go(host, ISOLATE)
    assert all(has(line, WANTED) for line in entries(host))
    go(host, None)
    left = host.text("/etc/default/grub")
    assert left == (text + "\n" if text == "GRUB_TIMEOUT=5" else text)


# -- grubby


def test_grubby_changes_entries_and_the_files_of_future_kernels() -> None:
    host = machine("grubby")
    go(host, ISOLATE)
    assert f"grubby --update-kernel=ALL --args={WANTED}" in host.calls
    assert has((host.text("/etc/kernel/cmdline") or "").strip(), WANTED)
    assert f'GRUB_CMDLINE_LINUX="crashkernel=1G console=tty0 console=ttyS0 {WANTED}"\n' in (
        host.text("/etc/default/grub") or ""
    )
    assert all("console=tty0 console=ttyS0" in line for line in entries(host))
    go(host, None)
    assert f"grubby --update-kernel=ALL --remove-args={WANTED}" in host.calls


def test_grubby_checks_every_entry() -> None:
    host = machine("grubby")
    go(host, ISOLATE)
    path = next(path for path in host.files if path.endswith("6.12.1.conf"))
    host.put(path, (host.text(path) or "").replace(" nohz_full=4-5", ""))
    assert not all(has(line, "nohz_full=4-5") for line in entries(host))
    outcome = go(host, ISOLATE)
    assert outcome.changed
    assert outcome.failure is None
    assert all("nohz_full=4-5" in line.split() for line in entries(host))


def test_grubby_keeps_what_others_have_under_the_same_name() -> None:
    """--args replaces all arguments of a name: another page size, and its count, must come back."""
    host = machine("grubby")
    host.programs["grubby"](host, ("grubby", "--update-kernel=ALL", "--args=hugepagesz=2M hugepages=64"))
    for wanted, expected in (
        (("hugepagesz=1G", "hugepages=64"), "hugepagesz=2M hugepages=64 hugepagesz=1G hugepages=64"),
        (("hugepagesz=1G", "hugepages=8"), "hugepagesz=2M hugepages=64 hugepagesz=1G hugepages=8"),
        ((), "hugepagesz=2M hugepages=64"),
    ):
        todo = Todo()
        keep_arguments(todo, "hugepages", wanted, boot(host, "hugepages"), Past(boot_id="first-boot"))
        for step in todo.plan().steps:
            host.apply(step)
        found = [" ".join(word for word in line.split() if "hugepage" in word) for line in entries(host)]
        assert found == [expected, expected], wanted


def test_entries_that_cannot_be_listed_fail_the_lane() -> None:
    host = machine("grubby")
    for path in [path for path in host.files if path.startswith("/boot/loader/entries/")]:
        del host.files[path]
    outcome = go(host, ISOLATE)
    assert outcome.failure is not None
    assert outcome.failure.retryable
    assert "grubby --info=ALL" in outcome.failure.message


# -- systemd-boot, unified images, ostree


def test_systemd_boot_has_the_words_in_its_entries_and_for_future_kernels() -> None:
    """update-grub is there and would run fine, and nothing boots by it."""
    host = machine("systemd-boot")
    go(host, ISOLATE)
    assert host.text("/etc/kernel/cmdline") == f"root=UUID=5b0c ro quiet {WANTED}\n"
    assert (
        host.text("/efi/loader/entries/other.conf")
        == "title Other\nmachine-id ffff\noptions root=/dev/sdb1\nlinux /other\n"
    )
    assert not any("grub" in call for call in host.calls)


def test_unified_images_are_made_again_and_looked_into() -> None:
    host = machine("uki")
    go(host, ISOLATE)
    made = [call for call in host.calls if call.startswith("kernel-install")]
    assert made == [f"kernel-install add {release} /boot/vmlinuz-{release}" for release in ("6.12.1", "6.12.9")]
    host.put("/efi/EFI/Linux/6.12.1.efi", "MZ\nroot=UUID=5b0c ro quiet")
    assert go(host, ISOLATE).changed
    assert all(has(line, WANTED) for line in entries(host))


@pytest.mark.parametrize(
    ("tool", "calls"),
    [
        ("mkinitcpio", ["mkinitcpio -P"]),
        (
            "dracut",
            [
                f"dracut --force --uefi --kver {release} --kernel-cmdline root=UUID=5b0c ro quiet {WANTED}"
                for release in ("6.12.1", "6.12.9")
            ],
        ),
    ],
)
def test_unified_images_by_other_tools_whose_run_is_owed_until_it_went_well(tool: str, calls: list[str]) -> None:
    """Without bootctl nothing shows what is in an image: the debt is all there is."""
    host = machine("uki")
    for program in ("kernel-install", "bootctl"):
        del host.programs[program]
    host.programs[tool] = lambda _host, _argv: Answer(1, "", "no space left")
    assert go(host, ISOLATE).failure is not None
    host.programs[tool] = lambda _host, _argv: Answer(0, "")
    host.calls.clear()
    assert go(host, ISOLATE).failure is None
    assert [call for call in host.calls if call.startswith(tool)] == calls
    assert go(host, ISOLATE).steps == ()


def test_proxmox_refreshes_partitions_that_are_not_mounted() -> None:
    host = machine("systemd-boot")
    for path in [path for path in host.files if path.startswith("/efi/")]:
        del host.files[path]
    host.put("/etc/kernel/proxmox-boot-uuids", "AAAA-BBBB\n")
    host.put("/etc/kernel/cmdline", "root=ZFS=rpool/ROOT/pve-1 boot=zfs\n")
    host.programs["proxmox-boot-tool"] = lambda _host, _argv: Answer(0, "")
    outcome = go(host, ISOLATE)
    assert outcome.failure is None
    assert host.text("/etc/kernel/cmdline") == f"root=ZFS=rpool/ROOT/pve-1 boot=zfs {WANTED}\n"
    assert [call for call in host.calls if "proxmox" in call] == ["proxmox-boot-tool refresh"]
    assert go(host, ISOLATE).steps == ()


def test_systemd_boot_without_a_mounted_partition_fails_the_lane() -> None:
    host = machine("systemd-boot")
    for path in [path for path in host.files if path.startswith("/efi/")]:
        del host.files[path]
    outcome = go(host, ISOLATE)
    assert outcome.failure is not None
    assert outcome.failure.retryable
    assert "is the EFI system partition mounted?" in outcome.failure.message


def test_ostree_is_one_call_and_keeps_consoles() -> None:
    host = machine("ostree")
    go(host, ISOLATE)
    calls = [call for call in host.calls if call.startswith("rpm-ostree")]
    assert calls == ["rpm-ostree kargs " + " ".join(f"--append-if-missing={word}" for word in WANTED.split())]
    go(host, {"isolate": "6-7"})
    assert host.calls.count(next(call for call in host.calls if "--delete-if-present=" in call)) == 1
    assert "console=tty0 console=ttyS0" in next_line(host)


def test_ostree_changes_a_page_count_and_keeps_its_size_with_it() -> None:
    host = machine("ostree")
    for wanted in (("hugepagesz=1G", "hugepages=64"), ("hugepagesz=1G", "hugepages=8"), ()):
        todo = Todo()
        keep_arguments(todo, "hugepages", wanted, boot(host, "hugepages"), Past(boot_id="first-boot"))
        for step in todo.plan().steps:
            host.apply(step)
        assert [word for word in next_line(host).split() if "hugepage" in word] == list(wanted)


# -- no loader


def test_without_a_loader_the_lane_fails_and_may_be_tried_again() -> None:
    host = machine("grub")
    del host.programs["update-grub"]
    outcome = go(host, ISOLATE)
    assert outcome.failure is not None
    assert (outcome.failure.reason, outcome.failure.retryable, outcome.state) == ("StepFailed", True, "progressing")
    assert "none of update-grub, grubby, grub2-mkconfig and grub-mkconfig is there" in outcome.failure.message
    assert not outcome.changed
    assert outcome.pending == ()  # no boot would bring the isolation
    assert set(tree(host)) == set(tree(machine("grub")))
    assert host.text(RECORD) is None


def test_without_a_loader_there_is_nothing_to_remove() -> None:
    host = FakeHost({"/proc/cmdline": "root=/dev/vda\n"})
    assert go(host, None).state == "converged"
    assert go(host, {"isolate": ""}).state == "converged"


# -- what a tool reports is read back

TOOLS = {
    "grub": "update-grub",
    "suse": "grub2-mkconfig",
    "grubby": "grubby",
    "uki": "kernel-install",
    "ostree": "rpm-ostree",
}


@pytest.mark.parametrize("loader", TOOLS)
@pytest.mark.parametrize("settings", [None, {"isolate": ""}, {"isolate": "6-7"}])
def test_a_tool_that_takes_nothing_out_is_found_out(loader: str, settings: dict[str, Any] | None) -> None:
    host = machine(loader)
    go(host, ISOLATE)
    real = host.programs[TOOLS[loader]]

    def idle(host: FakeHost, argv: tuple[str, ...]) -> Answer:
        return real(host, argv) if argv[1:] in (("--info=ALL",), ("kargs",)) else Answer(0, "")

    host.programs[TOOLS[loader]] = idle
    for _pass in range(2):
        outcome = go(host, settings)
        assert outcome.failure is not None
        assert "done without effect" in outcome.failure.message
        assert all(has(line, WANTED) for line in entries(host))
    host.programs[TOOLS[loader]] = real
    assert go(host, settings).failure is None
    assert not any("4-5" in line for line in entries(host)), entries(host)
    assert go(host, settings).steps == ()


@pytest.mark.parametrize("loader", ["grub", "suse"])
@pytest.mark.parametrize("variable", ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"])
def test_a_word_that_the_administrator_has_too_stays_without_an_end_of_runs(loader: str, variable: str) -> None:
    host = machine(loader)
    host.files.pop("/etc/default/grub.d/50-cloudimg-settings.cfg", None)  # it sets the default anew
    text = (host.text("/etc/default/grub") or "") + f"{variable}='quiet nohz_full=4-5'\n"
    host.put("/etc/default/grub", text)
    generate = {"grub": ("update-grub",), "suse": ("grub2-mkconfig", "-o", "/boot/grub2/grub.cfg")}[loader]
    host.programs[generate[0]](host, generate)
    before = tree(host)
    for settings in (ISOLATE, {"isolate": "6-7"}, None):
        outcome = go(host, settings)
        assert outcome.failure is None, outcome.failure
        assert go(host, settings).steps == ()
    assert tree(host) == before


# -- what others have stays theirs, what was ours stays gone


@pytest.mark.parametrize("loader", ["systemd-boot", "uki"])
def test_arguments_of_a_unit_that_left_do_not_come_back_from_the_running_kernel(loader: str) -> None:
    host = machine(loader)
    host.files.pop("/etc/kernel/cmdline", None)
    before = tree(host)
    go(host, ISOLATE)
    reboot(host)
    gone = go(host, None)
    assert gone.failure is None, gone.failure
    assert entries(host) == ["root=UUID=5b0c ro quiet"] * 2
    go(host, {}, IOMMU)
    assert host.text("/etc/kernel/cmdline") == f"root=UUID=5b0c ro quiet {AMD}\n"
    assert entries(host) == [f"root=UUID=5b0c ro quiet {AMD}"] * 2
    assert go(host, None, IOMMU).failure is None
    disk = ("/etc/", "/boot/", "/efi/")
    assert {path: text for path, text in tree(host).items() if path.startswith(disk)} == {
        path: text for path, text in before.items() if path.startswith(disk)
    }


def everywhere(host: FakeHost, word: str) -> None:
    """As an administrator who sets a word in every boot entry, and nowhere else, and has booted since."""
    for path in list(host.files):
        text = host.text(path) or ""
        if "/entries/" in path and "root=UUID=5b0c" in text:
            host.put(path, text.replace("root=UUID=5b0c ro", f"root=UUID=5b0c ro {word}"))
    reboot(host)


@pytest.mark.parametrize("loader", ["systemd-boot", "grubby"])
def test_an_argument_that_every_entry_had_before_us_stays_when_we_go(loader: str) -> None:
    host = machine(loader)
    everywhere(host, "amd_iommu=on")
    before = entries(host)
    files = set(tree(host))
    assert all(has(line, "amd_iommu=on") for line in before)
    assert go(host, {}, IOMMU).failure is None
    assert all({"amd_iommu=on", "iommu=pt"} <= set(line.split()) for line in entries(host))
    assert json.loads(host.text("/var/lib/bcd-hostconfig/bootargs/iommu") or "")["owned"] == ["iommu=pt"]
    assert go(host, {}, IOMMU).steps == ()
    assert go(host, None, IOMMU).failure is None
    assert entries(host) == before
    assert set(tree(host)) == files


@pytest.mark.parametrize("loader", ["systemd-boot", "grubby"])
def test_an_argument_that_only_one_entry_had_is_ours(loader: str) -> None:
    """Ownership is of a word, not of a place: with the others it goes from this entry too."""
    host = machine(loader)
    path = next(path for path in host.files if path.endswith("6.12.1.conf"))
    host.put(path, (host.text(path) or "").replace(" ro ", " ro iommu=pt "))
    go(host, {}, IOMMU)
    assert json.loads(host.text("/var/lib/bcd-hostconfig/bootargs/iommu") or "")["owned"] == AMD.split()
    go(host, None, IOMMU)
    assert not any("iommu" in line for line in entries(host))


# -- /etc/default/grub is a shell file


@pytest.mark.parametrize(
    "text",
    [
        'GRUB_CMDLINE_LINUX="$(printf "a b")"\n',
        'GRUB_CMDLINE_LINUX="`echo a` b"\n',
        "GRUB_CMDLINE_LINUX=`echo a b`\n",
        "GRUB_CMDLINE_LINUX=$(echo a b)\n",
        'X=1\nGRUB_CMDLINE_LINUX="${X:-"a b"} c"\n',
        'X=a\nGRUB_CMDLINE_LINUX="$X ${X} b"\n',
        'GRUB_CMDLINE_LINUX=quiet" splash"\n',
        "GRUB_CMDLINE_LINUX=quiet' splash'\n",
        "GRUB_CMDLINE_LINUX='a'\\''b'\n",
        "GRUB_CMDLINE_LINUX=quiet\\ splash\n",
        'GRUB_CMDLINE_LINUX="quiet"#x\n',
        'GRUB_CMDLINE_LINUX="a\\\n b"\n',
        'GRUB_CMDLINE_LINUX="quiet" # it\'s "ours"\n',
        "GRUB_CMDLINE_LINUX='dyndbg=\"file a\"'\n",
        'GRUB_CMDLINE_LINUX=""\nGRUB_CMDLINE_LINUX+=" x"\n',
        'GRUB_CMDLINE_LINUX=a\nGRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX x"\n',
        'if true; then GRUB_CMDLINE_LINUX="x"; fi\n',
        'GRUB_CMDLINE_LINUX="a"\nif true; then\n  GRUB_CMDLINE_LINUX="x"\nfi\n',
        "export GRUB_CMDLINE_LINUX=a\n",
        'GRUB_CMDLINE_LINUX="a"; export GRUB_CMDLINE_LINUX\n',
        '#GRUB_CMDLINE_LINUX="c"\nGRUB_TIMEOUT=5\n',
        'GRUB_CMDLINE_LINUX="a"\n# GRUB_CMDLINE_LINUX="c"\n',
        "GRUB_CMDLINE_LINUX=console=ttyS0,115200n8\n",
        "GRUB_CMDLINE_LINUX=\nGRUB_TIMEOUT=5\n",
        "",
    ],
)
def test_the_shell_reads_what_it_read_and_ours_after_it(text: str) -> None:
    """As bash itself reads it; the second edit changes our words, the third takes them out and gives the file back."""

    def said(script: str) -> str:
        script += 'printf "[%s]" "$GRUB_CMDLINE_LINUX"'
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout[1:-1]

    one, two = (("isolcpus=1",),), (("isolcpus=2",), ("nohz_full=2",))
    first = with_arguments(text, (), one)
    assert said(first).split() == [*said(text).split(), "isolcpus=1"]
    assert with_arguments(first, (), one) == first
    second = with_arguments(first, one, two)
    assert said(second).split() == [*said(text).split(), "isolcpus=2", "nohz_full=2"]
    back = with_arguments(second, two, ())
    assert said(back) == said(text)
    quoted = {"=console=ttyS0,115200n8\n": '="console=ttyS0,115200n8"\n', "LINUX=\n": 'LINUX=""\n'}  # quotes stay
    for bare, as_edited in quoted.items():
        text = text.replace(bare, as_edited)
    assert back == text


def test_a_value_that_cannot_be_edited_is_gone_on_from() -> None:
    host = machine("suse")
    text = 'GRUB_CMDLINE_LINUX="quiet"\nif true; then\n  GRUB_CMDLINE_LINUX="audit=1"\nfi\n'
    host.put("/etc/default/grub", text)
    go(host, ISOLATE)
    added = f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {WANTED}" # added by bettercompute.bcd\n'
    assert host.text("/etc/default/grub") == text + added
    assert go(host, None).failure is None
    assert host.text("/etc/default/grub") == text


# -- records


@pytest.mark.parametrize(
    "damage",
    [
        {"arguments": None},
        {"arguments": "isolcpus=1"},
        {"owned": 7},
        {"owned": [["isolcpus=1"]]},
        {"boot_id": None},
        {"created": []},
        {"version": 2},
    ],
)
@pytest.mark.parametrize("settings", [ISOLATE, None])
def test_a_damaged_record_is_named_and_kept(damage: dict[str, Any], settings: dict[str, Any] | None) -> None:
    host = machine("grub")
    go(host, ISOLATE)
    record = json.dumps({**json.loads(host.text(RECORD) or ""), **damage})
    host.put(RECORD, record)
    outcome = go(host, settings)
    assert outcome.failure is not None
    assert outcome.failure.message == f"{RECORD} is not a record of version 1: look at it, then move it away"
    assert host.text(RECORD) == record
    assert go(host, {}, IOMMU).failure is None  # the other unit's own record is sound


# -- another loader than before


@pytest.mark.parametrize("loader", [name for name in LOADERS if name != "grub"])
@pytest.mark.parametrize("settings", [ISOLATE, None])
@pytest.mark.parametrize("check", [True, False])
def test_the_drop_in_goes_when_the_machine_boots_by_another_loader(
    loader: str, settings: dict[str, Any] | None, check: bool
) -> None:
    """The machine was set up under update-grub; since then it boots by another loader, and the drop-in is left."""
    host = machine(loader)
    before = tree(host)
    old = machine("grub")
    go(old, ISOLATE)
    for path in (DROP_IN, RECORD):
        host.put(path, old.text(path) or "")
    foreseen = go(host, settings, check=True)
    assert f"remove {DROP_IN}: this machine boots by {NAMES[loader]} now" in lines(foreseen)
    if check:
        assert host.text(DROP_IN) is not None
        return
    outcome = go(host, settings)
    assert lines(outcome) == lines(foreseen)
    assert outcome.failure is None
    assert host.text(DROP_IN) is None
    assert all(has(line, WANTED) == (settings is not None) for line in entries(host))
    assert go(host, settings).steps == ()
    go(host, None)
    assert tree(host) == before


def test_a_drop_in_of_no_record_goes_too() -> None:
    host = machine("systemd-boot")
    before = tree(host)
    host.put("/etc/default/grub.d/90-bcd-iommu.cfg", HEADER + f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {AMD}"\n')
    assert go(host, None, IOMMU).changed
    assert tree(host) == before


@pytest.mark.parametrize("first", [CPU, IOMMU])
@pytest.mark.parametrize("loader", ["systemd-boot", "uki"])
def test_a_file_that_two_units_made_goes_with_the_last_of_them(loader: str, first: Unit) -> None:
    """One of the two has words of its own in it; those of the other were in every entry before us."""
    host = machine(loader)
    host.files.pop("/etc/kernel/cmdline", None)
    everywhere(host, "amd_iommu=on")
    if loader == "uki":
        host.put("/proc/cmdline", "root=UUID=5b0c ro amd_iommu=on quiet\n")
        for release in ("6.12.1", "6.12.9"):
            host.programs["kernel-install"](host, ("kernel-install", "add", release, f"/boot/vmlinuz-{release}"))
    before = tree(host)
    wanted: dict[Unit, dict[str, Any]] = {CPU: ISOLATE, IOMMU: {"passthrough": False}}
    units = [first, *(unit for unit in wanted if unit != first)]
    for unit in units:
        assert go(host, wanted[unit], unit).failure is None
    left, kept = units
    go(host, None, left)
    assert go(host, wanted[kept], kept).steps == ()
    assert host.text("/etc/kernel/cmdline") is not None
    assert go(host, None, kept).failure is None
    assert tree(host) == before
