# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel of a worker, on a host in memory whose modprobe brings what the real modules bring."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer, Past, Plan, Todo, Unit
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File, run
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.kube_kernel import kernel
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.kube_modules import parse_filesystems
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import kube_kernel as planner
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_kernel_change import absent
from tests.unit.fake_host import FakeHost
from tests.unit.promises import a_kill_loses_nothing, check_is_truthful, go, lines, second_pass_is_quiet

RELEASE = "6.12.48+deb13-amd64"
LOAD, SYSCTL = "/etc/modules-load.d/90-bcd-k8s.conf", "/etc/sysctl.d/90-bcd-k8s.conf"
HEADER = "# Managed by bettercompute.bcd: local edits are replaced.\n"
IPTABLES, IP6TABLES = "net.bridge.bridge-nf-call-iptables", "net.bridge.bridge-nf-call-ip6tables"
BRIDGE, FORWARD = "/proc/sys/net/bridge", "/proc/sys/net/ipv4/ip_forward"
IN_BRIDGE = (f"{BRIDGE}/bridge-nf-call-ip6tables", f"{BRIDGE}/bridge-nf-call-iptables")
DEP = f"/lib/modules/{RELEASE}/modules.dep"
BOTH = "kernel/fs/overlayfs/overlay.ko.xz:\nkernel/net/bridge/br_netfilter.ko.xz: kernel/net/bridge/bridge.ko.xz\n"
FILESYSTEMS = "nodev\tsysfs\nnodev\ttmpfs\n\text4\n"


def planned(_settings: Any, now: planner.Kernel, past: Past) -> Plan:
    planner.refuse_rivals(past)
    todo = Todo()
    planner.plan(todo, now, past)
    return todo.plan()


def removed(now: planner.Kernel, past: Past) -> Plan:
    todo = Todo()
    absent(todo, now, past)
    return todo.plan()


def look(host: Host, _settings: Any, _past: Past) -> planner.Kernel:
    return kernel(host)


UNIT = Unit("k8s-join", (), dict, look, planned, removed)


def modprobe(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    assert argv[:2] == ("modprobe", "--")
    name = argv[2]
    if f"/{name}.ko" not in (host.text(DEP) or ""):
        return Answer(1, "", f"modprobe: FATAL: Module {name} not found in directory /lib/modules/{RELEASE}\n")
    host.put(f"/sys/module/{name}/refcnt", "0\n")
    if name == "br_netfilter":
        for path in IN_BRIDGE:
            host.put(path, "0\n" if "/etc/udev/set-to-0" in host.files else "1\n")
    else:
        host.put("/proc/filesystems", FILESYSTEMS + "nodev\toverlay\n")
    return Answer(0, "")


def machine() -> FakeHost:
    return FakeHost(
        {
            "/proc/sys/kernel/osrelease": RELEASE + "\n",
            "/proc/filesystems": FILESYSTEMS,
            "/proc/sys/net/ipv6/conf/all/forwarding": "0\n",
            FORWARD: "0\n",
            DEP: BOTH,
        },
        {"modprobe": modprobe},
    )


def with_files(files: dict[str, str]) -> FakeHost:
    host = machine()
    for path, text in files.items():
        host.put(path, text)
    return host


def test_a_bare_machine_gets_both_files_its_modules_then_its_values() -> None:
    host = machine()
    first = go(UNIT, host, {})
    assert (first.state, first.changed, first.failure) == ("converged", True, None)
    assert host.text(LOAD) == HEADER + "overlay\nbr_netfilter\n"
    assert host.text(SYSCTL) == HEADER + f"{IP6TABLES} = 1\n{IPTABLES} = 1\nnet.ipv4.ip_forward = 1\n"
    assert [host.text(path) for path in (*IN_BRIDGE, FORWARD)] == ["1\n"] * 3
    mine = [call for call in host.calls if "bcd-hostconfig" not in call]
    assert mine.index("modprobe -- br_netfilter") < mine.index(f"set {FORWARD} 1")
    second_pass_is_quiet(UNIT, host, {})


def test_values_that_a_rule_sets_to_0_when_the_module_comes_are_set_to_1_after_it() -> None:
    host = with_files({"/etc/udev/set-to-0": ""})  # as rules of Red Hat's packages do for bridges
    outcome = go(UNIT, host, {})
    assert f"set {IPTABLES} to 1 (now: 0)" in lines(outcome)
    assert [host.text(path) for path in IN_BRIDGE] == ["1\n", "1\n"]
    second_pass_is_quiet(UNIT, host, {})


@pytest.mark.parametrize("held", [True, False])
def test_values_are_set_although_what_follows_is_held_back_or_fails(held: bool) -> None:
    """In the unit all of it is one trunk: swap comes next, which may be neither allowed nor possible."""
    behind = run(("swapoff", "-a"), "turn swap off", disruption="service")

    def more(_settings: Any, now: planner.Kernel, past: Past) -> Plan:
        todo = Todo()
        planner.plan(todo, now, past)
        todo.add(behind)
        return todo.plan()

    host = with_files({"/etc/udev/set-to-0": ""})
    outcome = go(UNIT._replace(plan=more), host, {}, max_disruption="none" if held else "gpu")
    assert [wait.reason for wait in outcome.pending] == (["HeldBack"] if held else [])
    assert (outcome.failure is None) is held
    assert [host.text(path) for path in (*IN_BRIDGE, FORWARD)] == ["1\n"] * 3
    assert SYSCTL in host.files


@pytest.mark.parametrize("files", [{}, {"/etc/udev/set-to-0": ""}, {"/sys/module/tun/refcnt": "0\n"}])
def test_check_mode_says_what_is_then_done(files: dict[str, str]) -> None:
    check_is_truthful(UNIT, lambda: with_files(files), {})
    planned_ = go(UNIT, with_files(files), {}, check=True)
    later = [line.action for line in planned_.steps if line.later]
    assert later == [f"{name}: known after the module br_netfilter is loaded" for name in (IP6TABLES, IPTABLES)]
    assert lines(planned_) == [
        f"write {LOAD}",
        "load the module overlay",
        "load the module br_netfilter",
        "set net.ipv4.ip_forward to 1 (now: 0)",
        f"write {SYSCTL}",
    ]


def test_a_kill_anywhere_loses_nothing() -> None:
    def shown(host: FakeHost) -> object:
        return [host.text(path) for path in (LOAD, SYSCTL, FORWARD, *IN_BRIDGE)]

    changes = a_kill_loses_nothing(UNIT, lambda: with_files({"/etc/udev/set-to-0": ""}), {}, shown)
    assert changes >= 7
    a_kill_loses_nothing(UNIT, joined, None, lambda host: [host.text(path) for path in (LOAD, SYSCTL)])


def joined() -> FakeHost:
    host = machine()
    go(UNIT, host, {})
    host.calls.clear()
    return host


def test_a_kernel_with_them_built_in_is_asked_for_nothing() -> None:
    host = with_files({"/proc/filesystems": FILESYSTEMS + "nodev\toverlay\n", **dict.fromkeys(IN_BRIDGE, "1\n")})
    host.put(DEP, "")
    outcome = go(UNIT, host, {})
    assert (outcome.state, outcome.failure) == ("converged", None)
    assert not [call for call in host.calls if call.startswith("modprobe")]


@pytest.mark.parametrize(
    ("release", "means"),
    [
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="10.1"\n', f"kernel-modules-extra-{RELEASE}"),
        ("ID=fedora\nVERSION_ID=43\n", f"kernel-modules-extra-{RELEASE}"),
        ('ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n', f"linux-modules-extra-{RELEASE}"),
    ],
)
def test_a_kernel_without_the_module_says_which_package_has_it(release: str, means: str) -> None:
    """Cloud images of Red Hat's family, from 10 on, come without br_netfilter."""
    host = with_files({DEP: BOTH.splitlines()[0] + "\n", "/etc/os-release": release})
    outcome = go(UNIT, host, {})
    assert outcome.failure is not None
    assert outcome.failure.message == (
        f"k8s-join: the running kernel, {RELEASE}, has no module br_netfilter: install {means}, which has it, "
        "and run again"
    )
    assert outcome.failure.retryable
    assert host.text(FORWARD) == "0\n", "nothing follows a module that is missing"
    host.put(DEP, BOTH)
    assert go(UNIT, host, {}).state == "converged"


def test_other_kernels_without_it_are_told_to_boot_one_that_has_it() -> None:
    host = with_files({DEP: BOTH.splitlines()[0] + "\n", "/etc/os-release": "ID=debian\nVERSION_ID=13\n"})
    failure = go(UNIT, host, {}).failure
    assert failure is not None
    assert failure.message.endswith("has no module br_netfilter: boot a kernel that has it, and run again")


def test_a_kernel_whose_modules_an_upgrade_took_away_waits_for_a_reboot() -> None:
    host = machine()
    del host.files[DEP]
    failure = go(UNIT, host, {}).failure
    assert failure is not None
    assert "has no modules on disk any more" in failure.message
    assert "reboot the node" in failure.message


def test_without_ipv6_a_missing_ip6tables_key_is_a_note() -> None:
    host = joined()
    del host.files[IN_BRIDGE[0]], host.files["/proc/sys/net/ipv6/conf/all/forwarding"]
    outcome = second_pass_is_quiet(UNIT, host, {})
    assert (outcome.state, outcome.failure) == ("converged", None)
    assert outcome.notes == (f"this kernel has neither IPv6 nor {IP6TABLES}: there is nothing to set",)


def test_with_ipv6_a_missing_ip6tables_key_fails() -> None:
    host = joined()
    del host.files[IN_BRIDGE[0]]
    failure = go(UNIT, host, {}).failure
    assert failure is not None
    assert failure.message == f"k8s-join: the running kernel, {RELEASE}, has no {IP6TABLES}: boot one that has it"


@pytest.mark.parametrize(
    ("path", "text", "note"),
    [
        (
            "/etc/sysctl.d/99-site.conf",
            "net.ipv4.ip_forward=0\n",
            (
                f"/etc/sysctl.d/99-site.conf sets net.ipv4.ip_forward = 0 after {SYSCTL}, and wins at a boot until the "
                "next pass: take it out of there"
            ),
        ),
        (
            "/etc/sysctl.conf",
            "net.ipv4.conf.all.forwarding = 0\n",
            (
                "/etc/sysctl.conf sets net.ipv4.conf.all.forwarding = 0, and wins whenever sysctl --system reads it: "
                "take it out of there"
            ),
        ),
        (
            "/etc/modprobe.d/hardening.conf",
            "install bridge /bin/true\n",
            (
                "/etc/modprobe.d/hardening.conf says install bridge, which can keep it from loading at boot: "
                "remove it there"
            ),
        ),
        (
            "/usr/lib/modprobe.d/x.conf",
            "blacklist br-netfilter\n",
            (
                "/usr/lib/modprobe.d/x.conf says blacklist br_netfilter, which can keep it from loading at boot: "
                "remove it there"
            ),
        ),
    ],
)
def test_who_else_has_a_say_at_a_boot_is_named(path: str, text: str, note: str) -> None:
    host = joined()
    host.put(path, text)
    assert second_pass_is_quiet(UNIT, host, {}).notes == (note,)


@pytest.mark.parametrize("text", ["net.ipv4.ip_forward = 1\n", "vm.swappiness = 0\n"])
def test_who_says_the_same_or_something_else_is_not(text: str) -> None:
    host = joined()
    host.put("/etc/sysctl.d/99-site.conf", text)
    host.put("/etc/sysctl.d/10-early.conf", "net.ipv4.ip_forward = 0\n")
    assert second_pass_is_quiet(UNIT, host, {}).notes == ()


@pytest.mark.parametrize(
    ("applied", "message"),
    [
        (
            {"sysctl": {IPTABLES: 0}},
            (
                f"k8s-join: the unit sysctl sets {IPTABLES} = 0, and a worker needs {IPTABLES} = 1: "
                "take it out of the settings of sysctl"
            ),
        ),
        (
            {"sysctl": {"net/ipv4/conf/all/forwarding": False}},
            (
                "k8s-join: the unit sysctl sets net/ipv4/conf/all/forwarding = 0, and a worker needs "
                "net.ipv4.conf.all.forwarding = 1: take it out of the settings of sysctl"
            ),
        ),
        (
            {"kernel-modules": {"blacklist": ["nouveau", "br-netfilter"]}},
            (
                "k8s-join: the unit kernel-modules keeps br_netfilter out, and a worker needs br_netfilter: "
                "take it off blacklist in the settings of kernel-modules"
            ),
        ),
        (
            {"kernel-modules": {"blacklist": ["bridge"]}},
            (
                "k8s-join: the unit kernel-modules keeps bridge out, and a worker needs br_netfilter, which stands on "
                "bridge: take it off blacklist in the settings of kernel-modules"
            ),
        ),
    ],
)
def test_settings_of_other_units_that_say_the_opposite_are_refused(applied: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused) as refused:
        planner.refuse_rivals(Past(applied=applied))
    assert refused.value.message == message


def test_settings_of_other_units_that_agree_are_taken() -> None:
    sysctl = {IPTABLES: 1, "net.ipv4.ip_forward": True, "vm.swappiness": 10, "net.ipv4.conf.eth0.forwarding": 0}
    modules = {"load": ["br_netfilter"], "blacklist": ["nouveau"], "options": {"bridge": "x=1"}}
    planner.refuse_rivals(Past(applied={"sysctl": sysctl, "kernel-modules": modules}))


def test_a_value_that_somebody_sets_back_is_mended() -> None:
    host = joined()
    host.put(FORWARD, "0\n")
    host.files[LOAD] = File("overlay\n", 0o600)
    outcome = go(UNIT, host, {})
    assert lines(outcome) == [
        f"write {LOAD} again: it is not as we keep it",
        "set net.ipv4.ip_forward to 1 (now: 0)",
    ]


def test_removal_takes_the_files_and_leaves_what_runs() -> None:
    host = joined()
    outcome = go(UNIT, host, None)
    assert lines(outcome) == [f"remove {LOAD}", f"remove {SYSCTL}"]
    assert host.text(FORWARD) == "1\n"
    assert outcome.notes == (
        "the modules overlay and br_netfilter, and the live values of their parameters, stay until a reboot",
    )
    assert go(UNIT, host, None).changed is False


def test_filesystems_are_read_by_their_whole_name() -> None:
    text = "nodev\toverlay\n\text4\nnodev\toverlayfs2\n"
    assert parse_filesystems(text, "overlay")
    assert not parse_filesystems("nodev\toverlayfs2\n", "overlay")
    assert parse_filesystems(text, "ext4")
