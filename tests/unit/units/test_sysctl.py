# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""sysctl on a host in memory whose kernel takes, rounds, refuses and lacks values as real ones do."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Plan, Todo, Unit
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.runner import Goal, converge
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.state import STATE
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import Effect, run
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.wire_form import wire_settings
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.sysctl import UNIT
from tests.unit.fake_host import FakeHost, Kernel, Killed

FILE = "/etc/sysctl.d/90-bcd.conf"
HEADER = "# Managed by bettercompute.bcd: local edits are replaced.\n"
SWAP, FORWARD = "/proc/sys/vm/swappiness", "/proc/sys/net/ipv4/ip_forward"
WANTED = {"vm.swappiness": 10, "net.ipv4.ip_forward": True}
WRITTEN = HEADER + "net.ipv4.ip_forward = 1\nvm.swappiness = 10\n"


def machine(files: Mapping[str, str] | None = None, kernel: Mapping[str, Kernel] | None = None) -> FakeHost:
    return FakeHost({SWAP: "60\n", FORWARD: "0\n", **(files or {})}, kernel=kernel)


def go(host: Host, settings: Mapping[str, Any] | None) -> Outcome:
    return converge(Goal(UNIT, settings), host, Records(host))


def actions(outcome: Outcome) -> list[str]:
    return [line.action for line in outcome.steps]


def refuses(number: int) -> Kernel:
    def refuse(_host: FakeHost, _path: str, _value: str) -> str | None:
        raise OSError(number, os.strerror(number))

    return refuse


def own_changes(host: FakeHost) -> list[str]:
    return [call for call in host.calls if STATE not in call]


def test_values_are_set_and_written_and_a_second_pass_changes_nothing() -> None:
    host = machine()
    first = go(host, WANTED)
    assert (first.changed, first.state, first.failure) == (True, "converged", None)
    assert actions(first) == [
        "set net.ipv4.ip_forward to 1 (now: 0)",
        "set vm.swappiness to 10 (now: 60)",
        f"write {FILE}",
    ]
    assert (host.text(SWAP), host.text(FORWARD), host.text(FILE)) == ("10\n", "1\n", WRITTEN)
    assert host.files[FILE].mode == 0o644
    host.calls.clear()
    second = go(host, WANTED)
    assert (second.changed, second.state, second.steps, second.notes) == (False, "converged", (), ())
    assert host.calls == []


def test_check_mode_takes_the_same_steps_and_changes_nothing() -> None:
    host = machine()
    predicted = go(PredictedHost(host), WANTED)
    assert host.calls == []
    assert predicted.changed
    real = go(host, WANTED)
    assert actions(predicted) == actions(real)
    assert predicted.diff == real.diff


def test_drift_is_repaired_and_nothing_else() -> None:
    host = machine()
    go(host, WANTED)
    host.calls.clear()
    host.put(SWAP, "61\n")
    drifted = go(host, WANTED)
    assert actions(drifted) == ["set vm.swappiness to 10 (now: 61)"]
    assert own_changes(host) == [f"set {SWAP} 10"]
    host.put(FILE, WRITTEN + "kernel.panic = 1\n")
    assert actions(go(host, WANTED)) == [f"write {FILE} again: it is not as we keep it"]
    assert host.text(FILE) == WRITTEN


def test_an_empty_mapping_and_a_removal_take_the_file_away_and_leave_the_values() -> None:
    both: tuple[dict[str, Any] | None, ...] = ({}, None)
    for settings in both:
        host = machine()
        go(host, WANTED)
        outcome = go(host, settings)
        assert (actions(outcome), outcome.state, outcome.changed) == ([f"remove {FILE}"], "converged", True)
        assert outcome.notes == ("live values stay as they are until a reboot",)
        assert (host.text(FILE), host.text(SWAP)) == (None, "10\n")
        assert not go(host, settings).changed


def test_a_key_that_leaves_the_settings_leaves_the_file() -> None:
    host = machine()
    go(host, WANTED)
    go(host, {"vm.swappiness": 10})
    assert host.text(FILE) == HEADER + "vm.swappiness = 10\n"


def test_one_refused_key_stops_the_unit_before_anything_is_written() -> None:
    host = machine()
    outcome = go(host, {**WANTED, "kernel.core_pattern": "core"})
    assert outcome.failure is not None
    assert (outcome.failure.reason, outcome.failure.retryable, outcome.state) == ("Refused", False, "failed")
    assert outcome.failure.message.startswith("kernel.core_pattern is refused: ")
    assert host.calls == []


# -- what kernels do with a value


def test_a_value_that_the_kernel_refuses_is_not_persisted_and_the_others_are_set() -> None:
    bits = "/proc/sys/vm/mmap_rnd_bits"
    host = machine({bits: "28\n"}, {bits: refuses(errno.EINVAL)})
    outcome = go(host, {**WANTED, "vm.mmap_rnd_bits": 1024})
    assert outcome.failure is not None
    assert (outcome.failure.reason, outcome.failure.message) == (
        "StepFailed",
        "cannot set vm.mmap_rnd_bits to 1024 (now: 28): Invalid argument (the kernel does not take this value)",
    )
    assert (host.text(FILE), host.text(SWAP), host.text(FORWARD)) == (WRITTEN, "10\n", "1\n")
    host.calls.clear()
    again = go(host, {**WANTED, "vm.mmap_rnd_bits": 1024})
    assert again.failure == outcome.failure
    assert not again.changed
    assert own_changes(host) == [f"set {bits} 1024"]  # tried once a pass
    assert go(host, {**WANTED, "vm.mmap_rnd_bits": 28}).state == "converged"
    assert host.text(FILE) == HEADER + "net.ipv4.ip_forward = 1\nvm.mmap_rnd_bits = 28\nvm.swappiness = 10\n"


def test_a_value_that_the_kernel_refuses_leaves_an_older_file_of_ours() -> None:
    host = machine({FILE: HEADER + "vm.swappiness = 1024\n"}, {SWAP: refuses(errno.EINVAL)})
    outcome = go(host, {"vm.swappiness": 1024})
    assert outcome.failure is not None
    assert host.text(FILE) is None


def test_a_passing_fault_takes_nothing_out_of_our_file() -> None:
    host = machine()
    assert go(host, {"vm.swappiness": 10}).state == "converged"
    ours = host.text(FILE)
    host.put(SWAP, "60\n")
    host.kernel[SWAP] = refuses(errno.EIO)
    assert go(host, {"vm.swappiness": 10}).state == "progressing"
    assert host.text(FILE) == ours
    del host.kernel[SWAP]
    assert go(host, {"vm.swappiness": 10}).state == "converged"


def test_a_read_only_parameter_fails_alone() -> None:
    groups = "/proc/sys/kernel/ngroups_max"
    host = machine({groups: "65536\n"}, {groups: refuses(errno.EACCES)})
    outcome = go(host, {**WANTED, "kernel.ngroups_max": 1})
    assert outcome.failure is not None
    assert "cannot set kernel.ngroups_max to 1 (now: 65536): Permission denied" in outcome.failure.message
    assert host.text(FILE) == WRITTEN
    assert go(host, {**WANTED, "kernel.ngroups_max": 65536}).failure is None


def test_a_value_that_the_kernel_rounds_is_told_with_what_it_keeps() -> None:
    buckets = "/proc/sys/net/netfilter/nf_conntrack_buckets"
    host = machine({buckets: "1024\n"}, {buckets: lambda _host, _path, _value: "4096\n"})
    outcome = go(host, {**WANTED, "net.netfilter.nf_conntrack_buckets": 4100})
    assert outcome.failure is not None
    assert outcome.failure.message == (
        "done without effect: set net.netfilter.nf_conntrack_buckets to 4100 (now: 4096) succeeded and the kernel "
        "keeps 4096: ask for a value that it keeps"
    )
    assert outcome.changed
    assert host.text(FILE) == WRITTEN
    again = go(host, {**WANTED, "net.netfilter.nf_conntrack_buckets": 4100})
    assert (again.failure, again.changed) == (outcome.failure, False)


def test_a_list_that_the_kernel_shows_in_its_own_form_is_converged() -> None:
    ports = "/proc/sys/net/ipv4/ip_local_reserved_ports"
    host = machine({ports: "\n"}, {ports: lambda _host, _path, value: {"8080,8081": "8080-8081\n"}[value]})
    settings = {"net.ipv4.ip_local_reserved_ports": "8080,8081"}
    assert go(host, settings).state == "converged"
    assert go(host, settings).steps == ()


def test_an_empty_string_clears_a_parameter() -> None:
    ports = "/proc/sys/net/ipv4/ip_local_reserved_ports"
    host = machine({ports: "8080\n"}, {ports: lambda _host, _path, value: value})
    assert actions(go(PredictedHost(host), {"net.ipv4.ip_local_reserved_ports": ""})) == [
        "set net.ipv4.ip_local_reserved_ports to nothing (now: 8080)",
        f"write {FILE}",
    ]
    assert go(host, {"net.ipv4.ip_local_reserved_ports": ""}).state == "converged"
    assert own_changes(host)[0] == f"set {ports} \n"  # a write of no bytes would do nothing
    assert host.text(FILE) == HEADER + "net.ipv4.ip_local_reserved_ports =\n"


@pytest.mark.parametrize("make", [lambda host: host, PredictedHost])
def test_a_parameter_that_root_cannot_read_is_an_action_and_refused(make: Any) -> None:
    flush = "/proc/sys/net/ipv4/route/flush"
    host = machine({flush: ""})
    host.unreadable.add(flush)
    outcome = go(make(host), {**WANTED, "net.ipv4.route.flush": 1})
    assert outcome.failure is not None
    assert (outcome.failure.reason, outcome.state) == ("Refused", "failed")
    assert outcome.failure.message.startswith("net.ipv4.route.flush is refused: not even root can read it")
    assert host.calls == []


def test_an_unprivileged_look_says_what_only_root_sees_and_plans_the_rest() -> None:
    harden = "/proc/sys/net/core/bpf_jit_harden"
    host = machine({harden: "0\n"})
    host.unreadable.add(harden)
    host.user = 1000
    outcome = go(PredictedHost(host), {**WANTED, "net.core.bpf_jit_harden": 2})
    assert "net.core.bpf_jit_harden: known after it is seen as root" in actions(outcome)
    assert "set vm.swappiness to 10 (now: 60)" in actions(outcome)
    assert outcome.diff[-1]["after"] == HEADER + "net.core.bpf_jit_harden = 2\n" + WRITTEN[len(HEADER) :]


def test_forwarding_is_set_before_the_values_that_it_changes() -> None:
    redirects = "/proc/sys/net/ipv4/conf/all/accept_redirects"

    def forward(host: FakeHost, _path: str, value: str) -> str:
        host.put(redirects, "0\n" if value == "1" else "1\n")  # as a router, as a host
        return value + "\n"

    host = machine({FORWARD: "1\n", redirects: "1\n"}, {FORWARD: forward})
    settings = {"net.ipv4.ip_forward": 0, "net.ipv4.conf.all.accept_redirects": 0}
    assert go(host, settings).state == "converged"
    assert (host.text(FORWARD), host.text(redirects)) == ("0\n", "0\n")


# -- values and types (YAML's traps)


def test_zero_stays_zero_and_three_numbers_stay_three() -> None:
    sysrq, rmem = "/proc/sys/kernel/sysrq", "/proc/sys/net/ipv4/tcp_rmem"
    host = machine({sysrq: "16\n", rmem: "4096\t131072\t6291456\n"})
    host.kernel[rmem] = lambda _host, _path, value: "\t".join(value.split()) + "\n"
    settings = {"kernel.sysrq": 0, "net.ipv4.tcp_rmem": "4096 65536 16777216"}
    assert go(host, settings).state == "converged"
    assert (host.text(sysrq), host.text(rmem)) == ("0\n", "4096\t65536\t16777216\n")
    assert host.text(FILE) == HEADER + "kernel.sysrq = 0\nnet.ipv4.tcp_rmem = 4096 65536 16777216\n"
    assert go(host, settings).steps == ()


def test_a_string_is_never_taken_for_a_boolean() -> None:
    host = machine(kernel={FORWARD: refuses(errno.EINVAL)})
    outcome = go(host, {"net.ipv4.ip_forward": "yes"})
    assert outcome.failure is not None
    assert own_changes(host) == [f"set {FORWARD} yes"]


# -- keys that the kernel lacks


BRIDGE = {"net.bridge.bridge-nf-call-iptables": 1, "net.bridge.bridge-nf-call-ip6tables": 1}
TABLES = ("/proc/sys/net/bridge/bridge-nf-call-ip6tables", "/proc/sys/net/bridge/bridge-nf-call-iptables")


def test_missing_keys_are_told_the_others_are_set_and_the_file_has_all() -> None:
    host = machine()
    outcome = go(host, {**WANTED, **BRIDGE})
    assert (outcome.state, outcome.failure) == ("progressing", None)
    assert [wait.reason for wait in outcome.pending] == ["NotReady"]
    assert outcome.pending[0].message == (
        "this kernel has no net.bridge.bridge-nf-call-ip6tables, net.bridge.bridge-nf-call-iptables "
        "(is the module that provides it loaded?)"
    )
    assert host.text(SWAP) == "10\n"
    assert host.text(FILE) == HEADER + (
        "net.bridge.bridge-nf-call-ip6tables = 1\nnet.bridge.bridge-nf-call-iptables = 1\n"
        "net.ipv4.ip_forward = 1\nvm.swappiness = 10\n"
    )
    assert not go(host, {**WANTED, **BRIDGE}).changed
    for path in TABLES:
        host.put(path, "0\n")
    assert go(host, {**WANTED, **BRIDGE}).state == "converged"
    assert [host.text(path) for path in TABLES] == ["1\n", "1\n"]


def test_after_a_predicted_module_they_are_known_after_it() -> None:
    def load(_settings: Any, now: Any, _past: Any) -> Plan:
        todo = Todo()
        effects = (
            Effect("file", "/sys/module/br_netfilter/refcnt", "0\n"),
            Effect("appears", "/proc/sys", "the module br_netfilter is loaded"),
        )
        if not now:
            todo.add(run(("modprobe", "--", "br_netfilter"), "load the module br_netfilter", effects=effects))
        return todo.plan()

    modules = Unit(
        "kernel-modules",
        (),
        lambda given: given,
        lambda host, _settings, _past: host.exists("/sys/module/br_netfilter/refcnt"),
        load,
        lambda _now, _past: Plan(),
    )
    host = machine()
    predicted = PredictedHost(host)
    records = Records(predicted)
    converge(Goal(modules, {}), predicted, records)
    outcome = converge(Goal(UNIT, {**WANTED, **BRIDGE}), predicted, records)
    assert actions(outcome) == [
        "set net.ipv4.ip_forward to 1 (now: 0)",
        "net.bridge.bridge-nf-call-ip6tables: known after the module br_netfilter is loaded",
        "net.bridge.bridge-nf-call-iptables: known after the module br_netfilter is loaded",
        "set vm.swappiness to 10 (now: 60)",
        f"write {FILE}",
    ]
    assert outcome.pending == ()
    assert "net.bridge.bridge-nf-call-iptables = 1\n" in outcome.diff[-1]["after"]
    assert host.calls == []


# -- a pass that dies


def test_a_pass_killed_at_any_change_is_completed_by_the_next() -> None:
    bits = "/proc/sys/vm/mmap_rnd_bits"
    wanted = {**WANTED, "vm.mmap_rnd_bits": 1024}
    for at in range(1, 20):
        host = machine({bits: "28\n"}, {bits: refuses(errno.EINVAL)})
        host.kill_at = at
        try:
            go(host, wanted)
        except Killed:
            host.kill_at = 0
            go(host, wanted)
            assert (host.text(SWAP), host.text(FORWARD), host.text(FILE)) == ("10\n", "1\n", WRITTEN)
        else:
            break
    else:
        pytest.fail("the pass never ended")
    assert at > 4


# -- who else sets our keys


def notes(host: FakeHost) -> tuple[str, ...]:
    before = dict(host.files)
    outcome = go(host, {"vm.swappiness": 10})
    foreign = {path: file for path, file in before.items() if path.startswith("/") and "/90-bcd" not in path}
    assert all(host.files[path] == file for path, file in foreign.items() if "sysctl" in path)
    assert outcome.state == "converged"
    return outcome.notes


def wins(file: str, value: str) -> str:
    sets = f"{file} sets vm.swappiness = {value} after {FILE}"
    return f"{sets}, and wins at a boot until the next pass: take it out of there"


def test_a_later_file_with_another_value_is_named_and_left_alone() -> None:
    text = "# ours\n\n  # indented\nvm.swappiness = 0\nvm.swappiness = 30\n"
    assert notes(machine({"/etc/sysctl.d/99-site.conf": text})) == (wins("/etc/sysctl.d/99-site.conf", "30"),)


@pytest.mark.parametrize(
    "directory", ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"]
)
def test_the_name_decides_the_order_and_not_the_directory(directory: str) -> None:
    assert notes(machine({f"{directory}/90-bca.conf": "vm.swappiness = 30\n"})) == ()
    assert notes(machine({f"{directory}/90-bcd-k8s.conf": "vm.swappiness = 30\n"})) == ()
    assert notes(machine({f"{directory}/90-bce.conf": "vm/swappiness=30"})) == (wins(f"{directory}/90-bce.conf", "30"),)
    assert notes(machine({f"{directory}/99-x.conf.bak": "vm.swappiness = 30\n"})) == ()


def test_the_last_file_decides() -> None:
    other, ours = "vm.swappiness = 30\n", "vm.swappiness = 10\n"
    assert notes(machine({"/etc/sysctl.d/95.conf": other, "/usr/lib/sysctl.d/96.conf": ours})) == ()
    assert notes(machine({"/etc/sysctl.d/95.conf": ours, "/usr/lib/sysctl.d/96.conf": other})) == (
        wins("/usr/lib/sysctl.d/96.conf", "30"),
    )


def test_a_file_that_another_of_its_name_hides_does_not_count() -> None:
    hidden = {"/etc/sysctl.d/99-x.conf": "", "/usr/lib/sysctl.d/99-x.conf": "vm.swappiness = 30\n"}
    assert notes(machine(hidden)) == ()


def test_a_pattern_does_not_win_over_a_name() -> None:
    assert notes(machine({"/etc/sysctl.d/99-x.conf": "vm.swap* = 30\n"})) == ()


def test_sysctl_conf_is_named_once_by_the_way_in_which_it_is_read() -> None:
    text = "vm.swappiness = 30\n"
    assert notes(machine({"/etc/sysctl.conf": text})) == (
        "/etc/sysctl.conf sets vm.swappiness = 30, and wins whenever sysctl --system reads it: take it out of there",
    )

    class Debian(FakeHost):
        def link(self, path: str) -> str | None:
            return "../sysctl.conf" if path == "/etc/sysctl.d/99-sysctl.conf" else None

    linked = Debian({SWAP: "60\n", "/etc/sysctl.conf": text, "/etc/sysctl.d/99-sysctl.conf": text})
    assert notes(linked) == (wins("/etc/sysctl.d/99-sysctl.conf", "30"),)


def test_a_file_that_cannot_be_read_is_named() -> None:
    host = machine({"/etc/sysctl.d/99-secret.conf": "vm.swappiness = 30\n"})
    host.unreadable.add("/etc/sysctl.d/99-secret.conf")
    (note,) = notes(host)
    assert note == (
        f"/etc/sysctl.d/99-secret.conf cannot be read: whether it sets a parameter to another value than {FILE} is "
        "not known"
    )


# -- the module's form


def test_the_modules_mapping_is_the_wire_form_itself() -> None:
    assert wire_settings(UNIT, {"state": "present", "values": WANTED}) == WANTED
    assert wire_settings(UNIT, {"state": "present", "values": None}) == {}
