# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swap of a worker on a host in memory: off, off after a boot, given back as it was.

In the place of the join stands a step of the trunk that writes a file: it must not be taken while swap is on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer, Past, Plan, Todo, Unit
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File, write
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.swap import allowed, swap
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import swap as planner
from tests.unit.fake_host import FakeHost
from tests.unit.promises import a_kill_loses_nothing, check_is_truthful, go, lines, second_pass_is_quiet
from tests.unit.swap_host import ETC, FSTAB, GENERATOR, LATE, OVERRIDE, USR, WANTS, SwapHost, with_mode

RECORD = "/var/lib/bcd-hostconfig/k8s-swap.json"
CONFIG = "/var/lib/kubelet/config.yaml"
MARK = "# off while this machine is a Kubernetes worker (bettercompute.bcd): "
TABLE = "UUID=0b0f / ext4 defaults 0 1\n/swapfile none swap sw 0 0\n# end, without a newline"
OFF = f"UUID=0b0f / ext4 defaults 0 1\n{MARK}/swapfile none swap sw 0 0\n# end, without a newline"
JOINED = "/run/joined"
GIB = 1024 * 1024  # in KiB
OK = Answer(0, "")


class Seen(NamedTuple):
    swap: planner.Swap
    allowed: bool
    joined: File | None


def look(host: Host, settings: Any, _past: Past) -> Seen:
    stays = allowed(host)
    return Seen(swap(host, settings is None or stays), stays, host.file(JOINED))


def planned(_settings: Any, now: Seen, past: Past) -> Plan:
    todo = Todo()
    planner.plan(todo, now.swap, now.allowed, past)
    if now.joined is None:
        todo.add(write(JOINED, "", "join"))
    return todo.plan()


def removed(now: Seen, past: Past) -> Plan:
    todo = Todo()
    planner.restore(todo, now.swap, past)
    return todo.plan()


UNIT = Unit("k8s-join", (), dict, look, planned, removed)


# -- machines


def with_fstab() -> SwapHost:
    """Debian's way with a file."""
    host = SwapHost({"/swapfile": 2 * GIB}, {FSTAB: TABLE})
    with_mode(host, FSTAB, 0o664)
    host.boot()
    return host


def with_units() -> SwapHost:
    """An administrator's swap unit, and a partition that systemd finds by its type."""
    host = SwapHost({"/var/swap": GIB, "/dev/sda3": GIB}, {FSTAB: "UUID=0b0f / ext4 defaults 0 1\n"})
    host.put(f"{ETC}/var-swap.swap", "[Swap]\nWhat=/var/swap\n[Install]\nWantedBy=swap.target\n")
    host.links[f"{WANTS}/var-swap.swap"] = f"{ETC}/var-swap.swap"
    host.put(
        f"{LATE}/dev-sda3.swap", "[Unit]\nDocumentation=man:systemd-gpt-auto-generator(8)\n[Swap]\nWhat=/dev/sda3\n"
    )
    host.boot()
    return host


def with_zram() -> SwapHost:
    """Fedora's way."""
    host = SwapHost({"/dev/zram0": GIB})
    host.put("/usr/lib/systemd/system-generators/zram-generator", "")
    host.put("/usr/lib/systemd/zram-generator.conf", "[zram0]\nzram-size = min(ram, 8192)\n")
    host.boot()
    return host


def with_service() -> SwapHost:
    """Debian's zram-tools."""
    host = SwapHost({"/dev/zram0": GIB})
    host.put(f"{USR}/zramswap.service", "[Service]\nType=oneshot\nRemainAfterExit=true\n")
    host.links[f"{ETC}/multi-user.target.wants/zramswap.service"] = f"{USR}/zramswap.service"
    host.by_service["zramswap.service"] = "/dev/zram0"
    host.boot()
    return host


def with_everything() -> SwapHost:
    """All of them, and an area that somebody turned on."""
    host = SwapHost(dict.fromkeys(("/swapfile", "/var/swap", "/dev/sda3", "/dev/zram0", "/dev/sdb1"), GIB // 4))
    for other in (with_fstab(), with_units(), with_zram()):
        host.files.update(
            {path: file for path, file in other.files.items() if path.startswith(("/etc/", "/usr/", LATE))}
        )
        host.links.update(other.links)
    host.put(FSTAB, TABLE)
    host.boot()
    host.turn_on("/dev/sdb1", 7)
    return host


MACHINES: dict[str, Callable[[], SwapHost]] = {
    "fstab": with_fstab,
    "units": with_units,
    "zram": with_zram,
    "service": with_service,
    "everything": with_everything,
}
every_machine = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)


def worker(machine: Callable[[], SwapHost]) -> SwapHost:
    """The machine with its swap off."""
    host = machine()
    assert go(UNIT, host, {}).state == "converged"
    host.calls.clear()
    return host


def of_boot(host: SwapHost) -> object:
    """What a boot reads, and what is on."""
    files = {path: file for path, file in host.files.items() if path.startswith("/etc/")}
    return files, host.links, sorted(host.on())


def own_calls(host: SwapHost) -> list[str]:
    return [call for call in host.calls if "bcd-hostconfig" not in call]


# -- off


@every_machine
def test_swap_goes_off_and_stays_off_over_a_boot_and_a_second_pass_is_quiet(machine: Callable[[], SwapHost]) -> None:
    host = machine()
    assert host.on()
    outcome = go(UNIT, host, {})
    assert (outcome.state, outcome.changed, outcome.failure) == ("converged", True, None)
    assert host.on() == []
    assert JOINED in host.files
    second_pass_is_quiet(UNIT, host, {})
    reboots = host.on
    host.boot()
    assert reboots() == []
    second_pass_is_quiet(UNIT, host, {})


@every_machine
def test_systemd_knows_what_is_masked_before_swap_goes_off(machine: Callable[[], SwapHost]) -> None:
    """Otherwise the next start of any service could turn it on again, since that wants swap.target."""
    host = machine()
    go(UNIT, host, {})
    calls = own_calls(host)
    assert calls.index("systemctl daemon-reload") < calls.index("swapoff -a")
    assert calls.index("systemctl mask --no-reload swap.target") < calls.index("systemctl daemon-reload")
    assert calls.count("systemctl daemon-reload") == 1


@every_machine
def test_check_mode_says_what_is_then_done(machine: Callable[[], SwapHost]) -> None:
    check_is_truthful(UNIT, machine, {})
    check_is_truthful(UNIT, lambda: worker(machine), None)


@every_machine
def test_a_kill_anywhere_loses_nothing(machine: Callable[[], SwapHost]) -> None:
    def shown(host: SwapHost) -> object:
        return of_boot(host), host.known, host.text(RECORD)

    assert a_kill_loses_nothing(UNIT, machine, {}, shown) >= 4  # type: ignore[arg-type]
    a_kill_loses_nothing(UNIT, lambda: worker(machine), None, shown)  # type: ignore[arg-type]


@every_machine
def test_everything_is_recorded_before_it_is_changed(machine: Callable[[], SwapHost]) -> None:
    host = machine()
    areas = sorted(host.on())
    go(UNIT, host, {})
    changes = [call for call in host.calls if "applied" not in call and "owed" not in call]
    assert changes[0] == f"write {RECORD}"
    record = json.loads(host.text(RECORD) or "")
    assert sorted(area["path"] for area in record["areas"]) == areas
    assert host.files[RECORD].mode == 0o600


def test_the_lines_of_fstab_are_commented_and_its_mode_is_kept() -> None:
    host = with_fstab()
    outcome = go(UNIT, host, {})
    assert host.files[FSTAB] == File(OFF, 0o664)
    assert lines(outcome) == [
        f"write {RECORD}",
        f"comment the swap lines of {FSTAB}",
        "mask swap.target",
        "let systemd load its unit files again (daemon-reload)",
        "turn swap off: /swapfile",
        "join",
    ]


def test_units_are_masked_and_an_administrators_own_is_disabled() -> None:
    host = with_units()
    go(UNIT, host, {})
    assert host.links[f"{ETC}/dev-sda3.swap"] == "/dev/null"
    assert f"{ETC}/var-swap.swap" in host.files
    assert f"{WANTS}/var-swap.swap" not in host.links
    assert own_calls(host)[:3] == [
        "systemctl mask --no-reload dev-sda3.swap",
        "systemctl disable --no-reload var-swap.swap",
        "systemctl mask --no-reload swap.target",
    ]


def test_zram_generator_is_told_to_make_no_such_device() -> None:
    host = with_zram()
    go(UNIT, host, {})
    assert host.text(OVERRIDE) == (
        "# Managed by bettercompute.bcd: local edits are replaced.\n[zram0]\nhost-memory-limit = 1\n"
    )
    assert host.text("/usr/lib/systemd/zram-generator.conf") == "[zram0]\nzram-size = min(ram, 8192)\n"
    host.boot()
    assert f"{GENERATOR}/dev-zram0.swap" not in host.files


def test_a_service_is_stopped_while_its_unit_file_still_says_how_and_then_masked() -> None:
    host = with_service()
    go(UNIT, host, {})
    calls = own_calls(host)
    assert calls.index("systemctl stop zramswap.service") < calls.index("systemctl mask --no-reload zramswap.service")
    assert "zramswap.service" not in host.active


def test_a_machine_without_any_swap_is_left_as_it_is() -> None:
    host = SwapHost({}, {FSTAB: "UUID=0b0f / ext4 defaults 0 1\n/old none swap noauto 0 0\n"})
    outcome = go(UNIT, host, {})
    assert lines(outcome) == ["join"]
    assert host.links == {}
    assert RECORD not in host.files


def test_what_is_off_already_but_would_come_with_a_boot_is_kept_from_it() -> None:
    """As a machine is after `swapoff -a` by hand."""
    host = with_fstab()
    host.turn_off("/swapfile")
    go(UNIT, host, {})
    assert "swapoff -a" not in host.calls
    host.boot()
    assert host.on() == []
    go(UNIT, host, None)
    assert host.on() == [], "what was off is not turned on"
    host.boot()
    assert host.on() == ["/swapfile"]


def test_where_systemd_is_not_the_manager_only_fstab_and_the_kernel_are_asked() -> None:
    host = with_fstab()
    del host.files["/run/systemd/system/x"]
    outcome = go(UNIT, host, {})
    assert outcome.state == "converged"
    assert own_calls(host) == [f"write {FSTAB}", "swapoff -a", f"write {JOINED}"]
    second_pass_is_quiet(UNIT, host, {})


def test_swap_of_nobodys_is_recorded_and_said() -> None:
    host = SwapHost({"/mnt/extra": GIB})
    host.turn_on("/mnt/extra", 7)
    go(UNIT, host, {})
    note = (
        "swap on /mnt/extra was on, and nothing that a boot starts names it: it stays off until this machine "
        "leaves its cluster"
    )
    assert second_pass_is_quiet(UNIT, host, {}).notes == (note,)
    go(UNIT, host, None)
    assert "/mnt/extra\t\tfile\t\t1048576\t\t0\t\t7\n" in (host.text("/proc/swaps") or "")


def test_swap_that_comes_back_goes_off_again_and_is_recorded_too() -> None:
    host = worker(with_fstab)
    host.sizes["/more"], host.used["/more"] = GIB, 0
    host.put("/more", "")
    host.put(FSTAB, OFF + "\n/more none swap sw 0 0\n")
    host.turn_on("/more")
    outcome = go(UNIT, host, {})
    assert lines(outcome)[:2] == [
        f"write {RECORD}: more is to be turned off",
        f"comment the swap lines of {FSTAB}",
    ]
    assert host.on() == []
    go(UNIT, host, None)
    assert sorted(host.on()) == ["/more", "/swapfile"]


# -- what can come in the way


def test_too_little_memory_is_said_before_it_is_tried_and_nothing_stands_on_it() -> None:
    host = with_fstab()
    host.used["/swapfile"] = 5 * GIB
    host.turn_off("/swapfile")
    host.turn_on("/swapfile")
    failure = go(UNIT, host, {}).failure
    assert failure is not None
    assert failure.message == (
        "k8s-join: swap cannot be turned off: 5120 MiB of swap are in use, and 4096 MiB of memory are available, "
        "1024 MiB too few: end what needs the memory, or give the machine more, and run again"
    )
    assert failure.retryable
    assert "swapoff -a" not in host.calls
    assert JOINED not in host.files
    host.put("/proc/meminfo", "MemAvailable: 6291456 kB\n")
    assert go(UNIT, host, {}).state == "converged"
    assert host.on() == []


def test_a_kernel_that_has_not_enough_memory_after_all_is_quoted() -> None:
    host = with_fstab()
    said = "swapoff: /swapfile: swapoff failed: Cannot allocate memory"
    whole = host.programs["swapoff"]
    host.programs["swapoff"] = lambda _host, _argv: Answer(1, "", said)
    outcome = go(UNIT, host, {})
    [wait] = outcome.pending
    assert (wait.reason, outcome.state) == ("NotReady", "progressing")
    assert said in wait.message
    assert wait.message.startswith("k8s-join: swap is not off: ")
    assert wait.message.endswith(
        "; 0 MiB of swap are in use: end what needs the memory, or give the machine more, and run again"
    )
    assert JOINED not in host.files
    host.programs["swapoff"] = whole
    assert go(UNIT, host, {}).state == "converged"


def test_a_swapoff_that_went_through_and_turned_nothing_off_is_no_success() -> None:
    host = with_fstab()
    host.programs["swapoff"] = lambda _host, _argv: Answer(0, "")
    [wait] = go(UNIT, host, {}).pending
    assert "swapoff -a went through, and /proc/swaps still lists /swapfile" in wait.message
    assert JOINED not in host.files


def test_swapoff_has_the_class_service() -> None:
    host = with_fstab()
    outcome = go(UNIT, host, {}, max_disruption="none")
    assert [wait.reason for wait in outcome.pending] == ["HeldBack"]
    assert host.on() == ["/swapfile"]
    assert JOINED not in host.files
    assert go(UNIT, host, {}, max_disruption="service").state == "converged"


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (
            lambda host: host.put(FSTAB, TABLE.replace("\n", "\r\n")),
            "has carriage returns: give its lines plain ends, or take its swap lines out",
        ),
        (
            lambda host: (host.put("/srv/fstab", TABLE), host.links.update({FSTAB: "/srv/fstab"})),
            "is not a regular file: put the file itself there, or take its swap lines out",
        ),
    ],
)
def test_a_table_that_cannot_be_given_back_to_the_byte_is_not_touched(
    spoil: Callable[[FakeHost], object], why: str
) -> None:
    host = with_fstab()
    spoil(host)
    before = dict(host.files)
    failure = go(UNIT, host, {}).failure
    assert failure is not None
    assert failure.message == f"k8s-join: {FSTAB} {why}, and run again"
    assert (host.text(FSTAB), host.on()) == (before[FSTAB].text, ["/swapfile"])
    assert RECORD not in host.files


def test_a_damaged_record_stops_all() -> None:
    host = worker(with_fstab)
    host.put(RECORD, "{")
    both: tuple[dict[str, Any] | None, ...] = ({}, None)
    for settings in both:
        failure = go(UNIT, host, settings).failure
        assert failure is not None
        assert failure.message.startswith(f"{RECORD} is not a record of version 1")
        assert failure.retryable is False


# -- clusters whose kubelets run beside swap


@every_machine
def test_a_machine_whose_swap_is_off_starts_no_program(machine: Callable[[], SwapHost]) -> None:
    host = worker(machine)
    host.asked.clear()
    assert go(UNIT, host, {}).changed is False
    assert [line for line in host.asked if line[0] == "grep"] == []


def test_how_much_of_it_is_in_use_matters_only_where_it_is_to_go() -> None:
    host = with_fstab()
    known, going = swap(host, True), swap(host, False)
    assert (going.areas[0].used, known.areas[0].used) == (0, 0)
    host.turn_off("/swapfile")
    host.used["/swapfile"] = 4096
    host.turn_on("/swapfile")
    host.put("/proc/meminfo", "MemAvailable: 17 kB\n")
    assert swap(host, True) == known
    assert (swap(host, False).areas[0].used, swap(host, False).available) == (4096, 17)


def test_where_the_clusters_kubelets_run_beside_swap_it_is_left_alone() -> None:
    host = with_fstab()
    host.put(CONFIG, "failSwapOn: false\nmemorySwap:\n  swapBehavior: LimitedSwap\n")
    assert lines(go(UNIT, host, {})) == ["join"]
    assert (host.text(FSTAB), host.on()) == (TABLE, ["/swapfile"])
    second_pass_is_quiet(UNIT, host, {})


@every_machine
def test_what_was_turned_off_before_that_was_known_is_given_back(machine: Callable[[], SwapHost]) -> None:
    host, before = worker(machine), of_boot(machine())
    host.put(CONFIG, "failSwapOn: false\n")
    outcome = go(UNIT, host, {})
    assert (outcome.state, outcome.failure) == ("converged", None)
    assert of_boot(host) == before
    second_pass_is_quiet(UNIT, host, {})


def test_the_cluster_is_known_in_the_middle_of_the_pass_that_joins() -> None:
    """The join brings the kubelet's configuration; swap goes off before, and comes back in the same pass."""
    host = with_fstab()

    def planned_with_join(settings: Any, now: Seen, past: Past) -> Plan:
        todo = Todo()
        planner.plan(todo, now.swap, now.allowed, past)
        if now.joined is None:
            todo.add(write(CONFIG, "failSwapOn: false\n", "join"), write(JOINED, "", "joined"))
        return todo.plan()

    outcome = go(UNIT._replace(plan=planned_with_join), host, {})
    assert (outcome.state, outcome.failure) == ("converged", None)
    assert (host.text(FSTAB), host.on(), RECORD in host.files) == (TABLE, ["/swapfile"], False)


# -- given back


@every_machine
def test_removal_gives_everything_back_to_the_byte(machine: Callable[[], SwapHost]) -> None:
    host, before = worker(machine), machine()
    outcome = go(UNIT, host, None)
    assert (outcome.failure, outcome.pending) == (None, ())
    assert of_boot(host) == of_boot(before)
    assert RECORD not in host.files
    assert go(UNIT, host, None).changed is False
    host.boot()
    before.boot()
    assert of_boot(host) == of_boot(before)


@every_machine
def test_removal_after_a_reboot_gives_everything_back_too(machine: Callable[[], SwapHost]) -> None:
    host, before = worker(machine), machine()
    host.boot()
    assert go(UNIT, host, None).failure is None
    assert of_boot(host) == of_boot(before)


def test_what_others_changed_meanwhile_stays_theirs() -> None:
    host = worker(with_fstab)
    host.put(FSTAB, OFF.replace("sw 0 0", "sw,pri=9 0 0") + "\n/new /mnt ext4 defaults 0 0\n")
    host.links.pop(f"{ETC}/swap.target")
    outcome = go(UNIT, host, None)
    assert outcome.failure is None
    assert (host.text(FSTAB) or "").count(MARK) == 1
    assert "systemctl unmask --no-reload swap.target" not in host.calls
    assert host.on() == ["/swapfile"]


@pytest.mark.parametrize(
    ("spoil", "mend", "why"),
    [
        (  # a text that was read does not show them
            lambda host: host.programs.update(grep=lambda _host, _argv: Answer(0, "3\n")),
            lambda host: host.programs.update(grep=lambda _host, _argv: Answer(1, "0\n")),
            "has carriage returns: give its lines plain ends",
        ),
        (
            lambda host: (host.put("/srv/fstab", OFF), host.files.pop(FSTAB), host.links.update({FSTAB: "/srv/fstab"})),
            lambda host: (host.links.pop(FSTAB), host.put(FSTAB, OFF)),
            "is not a regular file: put the file itself there",
        ),
    ],
)
def test_a_table_that_became_one_we_cannot_edit_keeps_the_record_until_it_is_mended(
    spoil: Callable[[FakeHost], object], mend: Callable[[FakeHost], object], why: str
) -> None:
    host = worker(with_fstab)
    spoil(host)
    failure = go(UNIT, host, None).failure
    assert failure is not None
    assert failure.message == (
        f"k8s-join: {FSTAB} {why}, or take our comments off its swap lines by hand, and run again"
    )
    assert host.on() == ["/swapfile"], "what else is to be given back does not wait for it"
    assert RECORD in host.files
    mend(host)
    assert go(UNIT, host, None).state == "converged"
    assert (host.text(FSTAB), RECORD in host.files) == (TABLE, False)


@pytest.mark.parametrize("changed", [OFF.replace("sw 0 0", "sw,pri=9 0 0"), OFF.replace(MARK, MARK.rstrip())])
def test_a_comment_of_ours_that_stays_is_named(changed: str) -> None:
    host = worker(with_fstab)
    host.put(FSTAB, changed)
    left = f"in {FSTAB} 1 line has our comment still, and not as our record has them: take it off by hand where swap is"
    for _pass in range(2):
        outcome = go(UNIT, host, None)
        assert (outcome.state, outcome.notes) == ("converged", (f"{left} wanted",))
    host.put(FSTAB, TABLE)
    assert go(UNIT, host, None).notes == ()


def test_what_a_lost_record_leaves_is_named() -> None:
    host = worker(with_fstab)
    del host.files[RECORD]
    outcome = go(UNIT, host, None)
    assert outcome.changed is False
    assert len(outcome.notes) == 1
    assert "unmask swap.target (systemctl unmask swap.target)" in outcome.notes[0]


def test_a_path_with_a_blank_is_known_to_come_with_a_boot() -> None:
    host = SwapHost({}, {FSTAB: "/swap\\040file none swap sw 0 0\n"})
    host.put("/proc/swaps", "Filename Type Size Used Priority\n/swap\\040file\tfile\t1048576\t0\t-2\n")
    outcome = go(UNIT, host, {})
    assert (outcome.state, outcome.notes) == ("converged", ())
    assert [area["path"] for area in json.loads(host.text(RECORD) or "")["areas"]] == ["/swap file"]


@pytest.mark.parametrize(
    ("source", "link", "target"),
    [
        ("/dev/mapper/vg-swap", "/dev/mapper/vg-swap", "../"),
        ("UUID=0b0f-aa", "/dev/disk/by-uuid/0b0f-aa", "../../"),
        ('PARTLABEL="swap"', "/dev/disk/by-partlabel/swap", "/dev/"),
    ],
)
def test_a_device_that_has_another_number_after_a_boot_is_found(source: str, link: str, target: str) -> None:
    host = SwapHost({"/dev/dm-0": GIB, "/dev/dm-1": GIB}, {FSTAB: f"{source} none swap sw 0 0\n"})
    host.links[link] = f"{target}dm-0"
    host.turn_on("/dev/dm-0", 5)
    assert go(UNIT, host, {}).notes == ()
    assert json.loads(host.text(RECORD) or "")["areas"] == [{"path": link, "priority": 5, "by": "boot"}]
    host.turn_on("/dev/dm-0")  # somebody does, and it is known for what it is
    go(UNIT, host, {})
    assert len(json.loads(host.text(RECORD) or "")["areas"]) == 1
    host.reboot()
    host.links[link] = f"{target}dm-1"

    def swapon(_host: FakeHost, argv: tuple[str, ...]) -> Answer:
        host.turn_on(host.links[argv[-1]].replace(target, "/dev/"))
        return OK

    host.programs["swapon"] = swapon
    planned = go(UNIT, host, None, check=True)
    outcome = go(UNIT, host, None)
    assert (outcome.state, lines(outcome)) == ("converged", lines(planned))
    assert lines(outcome)[-1] == f"remove {RECORD}"
    assert host.on() == ["/dev/dm-1"]


def test_what_was_masked_before_us_stays_masked() -> None:
    host = with_units()
    host.links[f"{ETC}/swap.target"] = host.links[f"{ETC}/dev-sda3.swap"] = "/dev/null"
    before = {path: target for path, target in host.links.items() if target == "/dev/null"}
    go(UNIT, host, {})
    go(UNIT, host, None)
    assert {path: target for path, target in host.links.items() if target == "/dev/null"} == before


def test_a_swap_file_that_is_gone_is_named_and_the_rest_given_back() -> None:
    host = worker(with_everything)
    del host.files["/swapfile"]
    outcome = go(UNIT, host, None)
    assert outcome.failure is None
    assert lines(outcome)[-1] == (f"remove {RECORD}: /swapfile stays off, since it is not there or did not come on")
    assert sorted(host.on()) == ["/dev/sda3", "/dev/sdb1", "/dev/zram0", "/var/swap"]
    assert host.text(FSTAB) == TABLE


def test_an_area_that_does_not_come_on_does_not_hold_up_the_removal() -> None:
    host = worker(with_fstab)
    host.programs["swapon"] = lambda _host, _argv: Answer(255, "", "swapon: /swapfile: read swap header failed")
    outcome = go(UNIT, host, None)
    assert outcome.failure is None
    assert lines(outcome)[-1].startswith(f"remove {RECORD}: /swapfile stays off")
    assert host.text(FSTAB) == TABLE


def test_a_service_that_was_removed_is_named() -> None:
    host = worker(with_service)
    del host.files[f"{USR}/zramswap.service"], host.links[f"{ETC}/zramswap.service"]
    outcome = go(UNIT, host, None)
    assert outcome.failure is None
    assert lines(outcome)[-1].startswith(f"remove {RECORD}: zramswap.service stays off")


def test_an_override_without_a_record_goes_too() -> None:
    host = worker(with_zram)
    del host.files[RECORD]
    go(UNIT, host, None)
    assert OVERRIDE not in host.files
    host.boot()
    assert "swap.target" in host.known, "nothing says any more who masked it"


def test_a_machine_that_never_had_swap_gives_nothing_back() -> None:
    host = SwapHost({}, {FSTAB: "UUID=0b0f / ext4 defaults 0 1\n"})
    assert go(UNIT, host, None).changed is False
    assert own_calls(host) == []
