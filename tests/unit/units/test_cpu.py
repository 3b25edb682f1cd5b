# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit cpu: governors, which CPUs may be isolated, and what the kernel makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.runner import Goal, converge
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.cpu import AT_BOOT, arguments, check
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.cpu import UNIT
from tests.unit.boot_machines import machine, reboot, show_cpus
from tests.unit.fake_host import FakeHost
from tests.unit.shown_units import shown_units

SYS = "/sys/devices/system/cpu"
PSTATE = "performance powersave"


def go(host: FakeHost, settings: dict[str, Any] | None, *, check_mode: bool = False) -> Outcome:
    seen = PredictedHost(host) if check_mode else host
    return converge(Goal(UNIT, settings), seen, Records(seen))


class Scaling(FakeHost):
    """A host with cpufreq: `shared` CPUs have one policy, whose governor every one of them shows."""

    shared: dict[str, str]

    def link(self, path: str) -> str | None:
        return self.shared.get(path)


def scaling(cpus: int, governor: str = "powersave", offered: str | None = PSTATE) -> Scaling:
    host = Scaling({f"{SYS}/online": f"0-{cpus - 1}\n", f"{SYS}/present": f"0-{cpus - 1}\n", f"{SYS}/isolated": "\n"})
    host.shared = {}
    for cpu in range(cpus):
        host.put(f"{SYS}/cpu{cpu}/cpufreq/scaling_governor", governor + "\n")
        if offered is not None:
            host.put(f"{SYS}/cpu{cpu}/cpufreq/scaling_available_governors", offered + " \n")
    return host


def governors(host: FakeHost) -> list[str | None]:
    paths = sorted(path for path in host.files if path.endswith("scaling_governor"))
    return [(host.text(path) or "").strip() for path in paths]


# -- settings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"isolate": "0-3"}, "must not include CPU 0"),
        ({"isolate": "4,0"}, "must not include CPU 0"),
        ({"isolate": "4-3"}, "4-3 runs backwards"),
        ({"isolate": "4-x"}, "'4-x'"),
        ({"isolate": "all"}, "'all'"),
        ({"isolate": [4, 5]}, "isolate is a list"),
        ({"isolate": 4}, "isolate is an integer"),
        ({"governor": ""}, "''"),
        ({"governor": "Performance"}, "'Performance'"),
        ({"governor": "perf\nsave"}, "governor"),
        ({"governor": True}, "governor is true or false"),
        ({"isolated": "4"}, "'isolated' is no setting"),
    ],
)
def test_settings_that_no_host_takes(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused) as refused:
        check(settings)
    assert said in refused.value.message
    assert refused.value.message.startswith("cpu: ")


def test_the_arguments_of_a_list() -> None:
    assert arguments("4-63,68-127") == (
        "isolcpus=managed_irq,domain,4-63,68-127",
        "nohz_full=4-63,68-127",
        "rcu_nocbs=4-63,68-127",
    )
    assert arguments("") == ()


# -- governors


def test_every_governor_that_differs_is_set() -> None:
    host = scaling(3)
    host.put(f"{SYS}/cpu1/cpufreq/scaling_governor", "performance\n")
    outcome = go(host, {"governor": "performance"})
    assert outcome.state == "converged"
    assert outcome.changed
    assert governors(host) == ["performance"] * 3
    assert [call for call in host.calls if call.startswith("set ")] == [
        f"set {SYS}/cpu0/cpufreq/scaling_governor performance",
        f"set {SYS}/cpu2/cpufreq/scaling_governor performance",
    ]
    again = go(host, {"governor": "performance"})
    assert (again.changed, again.steps) == (False, ())


def test_a_governor_that_a_driver_lacks_is_refused_before_anything_is_written() -> None:
    host = scaling(2)
    outcome = go(host, {"governor": "schedutil"})
    assert outcome.failure is not None
    assert (outcome.failure.reason, outcome.failure.retryable) == ("Refused", False)
    assert "CPU 0-1 does not have the governor schedutil: it offers performance powersave" in outcome.failure.message
    assert governors(host) == ["powersave"] * 2
    assert not any(call.startswith("set ") for call in host.calls)


def test_a_machine_without_cpufreq_has_nothing_to_set() -> None:
    host = FakeHost({f"{SYS}/online": "0-3\n", f"{SYS}/cpu0/topology/core_id": "0\n"})
    assert go(host, {"governor": "performance"}).state == "converged"


def test_an_offline_cpu_is_left_alone() -> None:
    host = scaling(3)
    host.put(f"{SYS}/online", "0-1\n")
    go(host, {"governor": "performance"})
    assert governors(host) == ["performance", "performance", "powersave"]


def test_cpus_of_one_policy_are_set_once_in_check_mode_too() -> None:
    host = scaling(4)
    host.shared = {f"{SYS}/cpu{cpu}/cpufreq": f"../cpufreq/policy{cpu // 2 * 2}" for cpu in range(4)}
    foreseen = go(host, {"governor": "performance"}, check_mode=True)
    assert [line.action for line in foreseen.steps] == [
        "set the governor of CPU 0-1 to performance (now: powersave)",
        "set the governor of CPU 2-3 to performance (now: powersave)",
    ]
    assert foreseen.failure is None
    assert governors(host) == ["powersave"] * 4


def test_one_cpu_that_fails_does_not_keep_the_others() -> None:
    host = scaling(3)

    def refuse(_host: FakeHost, _path: str, _value: str) -> str:
        raise OSError(5, "Input/output error")

    host.kernel[f"{SYS}/cpu1/cpufreq/scaling_governor"] = refuse
    outcome = go(host, {"governor": "performance"})
    assert governors(host) == ["performance", "powersave", "performance"]
    assert outcome.failure is not None
    assert outcome.failure.retryable


def test_a_driver_that_keeps_its_governor_is_found_out() -> None:
    host = scaling(1)
    host.kernel[f"{SYS}/cpu0/cpufreq/scaling_governor"] = lambda _host, _path, _value: None
    outcome = go(host, {"governor": "performance"})
    assert outcome.failure is not None
    assert "done without effect" in outcome.failure.message


@pytest.mark.parametrize(("active", "named"), [("tuned", True), ("power-profiles-daemon", True), ("", False)])
def test_a_service_that_sets_governors_too_is_named(active: str, named: bool) -> None:
    host = scaling(1, "performance")
    host.put("/run/systemd/system/x", "")
    for name in ("tuned", "power-profiles-daemon"):
        host.put(f"/usr/lib/systemd/system/{name}.service", "[Service]\n")

    def systemctl(_host: FakeHost, argv: tuple[str, ...]) -> Answer:
        assert argv[1] == "show"
        return shown_units(argv, lambda unit: "active" if unit == f"{active}.service" else "inactive")

    host.programs["systemctl"] = systemctl
    outcome = go(host, {"governor": "performance"})
    assert outcome.state == "converged"
    assert any(f"{active} is active and sets governors too" in note for note in outcome.notes) == named
    assert go(host, {}).notes == ()


def test_systemd_is_not_asked_about_services_that_are_not_there() -> None:
    host = scaling(1, "performance")
    host.put("/run/systemd/system/x", "")
    go(host, {"governor": "performance"})
    assert host.asked == []


def test_the_governor_is_there_at_the_next_boot_before_a_pass_comes() -> None:
    host = scaling(2)
    host.put("/run/systemd/system/x", "")
    planned = go(host, {"governor": "performance"}, check_mode=True)
    taken = go(host, {"governor": "performance"})
    assert [line.action for line in planned.steps] == [line.action for line in taken.steps]
    assert (host.text(AT_BOOT) or "").splitlines()[1:] == [
        "w /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor - - - - performance"
    ]
    go(host, {"governor": "powersave"})
    assert (host.text(AT_BOOT) or "").endswith(" powersave\n")
    assert go(host, {"governor": "powersave"}).changed is False
    go(host, {})
    assert host.text(AT_BOOT) is None


def test_what_no_driver_took_is_not_set_at_boot() -> None:
    host = scaling(1)
    host.put("/run/systemd/system/x", "")
    host.kernel[f"{SYS}/cpu0/cpufreq/scaling_governor"] = lambda _host, _path, _value: "powersave\n"
    go(host, {"governor": "performance"})
    assert host.text(AT_BOOT) is None


def test_removal_leaves_the_governor_and_says_so() -> None:
    host = scaling(1)
    host.put("/run/systemd/system/x", "")
    go(host, {"governor": "performance"})
    outcome = go(host, None)
    assert governors(host) == ["performance"]
    assert "cpu: the governor stays as it is until the next boot" in outcome.notes
    assert host.text(AT_BOOT) is None
    assert not go(host, None).changed


# -- isolation


@pytest.mark.parametrize(
    ("isolate", "said"),
    [
        ("4-8", "isolate names 8, and this host has the CPUs 0-7"),
        ("9-N", "the range 9-N runs backwards (N is 7 here)"),
        ("64", "isolate names 64"),
    ],
)
def test_a_cpu_that_this_host_lacks_is_refused(isolate: str, said: str) -> None:
    host = machine("grub")
    before = dict(host.files)
    outcome = go(host, {"isolate": isolate})
    assert outcome.failure is not None
    assert (outcome.failure.reason, outcome.failure.retryable) == ("Refused", False)
    assert said in outcome.failure.message
    written = set(host.files) - set(before)
    assert not {path for path in written if "grub" in path or "bootargs" in path}


def test_all_cpus_that_are_online_are_refused() -> None:
    host = machine("grub")
    host.put(f"{SYS}/online", "1-7\n")
    outcome = go(host, {"isolate": "1-7"})
    assert outcome.failure is not None
    assert "leaves no CPU for the host" in outcome.failure.message


def test_the_last_cpu_is_this_hosts() -> None:
    host = machine("grub")
    outcome = go(host, {"isolate": "6-N"})
    assert outcome.pending[0].message.startswith("cpu: CPUs 6-7 are isolated from the next boot")
    reboot(host)
    assert go(host, {"isolate": "6-N"}).state == "converged"


def test_an_offline_cpu_may_be_isolated() -> None:
    host = machine("grub")
    host.put(f"{SYS}/online", "0-5\n")
    assert go(host, {"isolate": "6-7"}).failure is None


def test_isolated_by_others_without_the_rest_says_what_is_missing() -> None:
    host = machine("grub")
    host.put("/proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz root=/dev/vda isolcpus=4-5\n")
    show_cpus(host)
    outcome = go(host, {"isolate": "4-5"})
    assert [wait.message for wait in outcome.pending] == [
        "cpu: CPUs 4-5 are isolated, and nohz_full=4-5 rcu_nocbs=4-5 take effect from the next boot: reboot the node"
    ]


def test_booted_with_it_and_overruled_says_so() -> None:
    host = machine("grub")
    go(host, {"isolate": "4-5"})
    reboot(host)
    host.put("/proc/cmdline", (host.text("/proc/cmdline") or "").strip() + " isolcpus=2-3\n")
    show_cpus(host)
    (wait,) = go(host, {"isolate": "4-5"}).pending
    assert wait.message.startswith('cpu: CPUs 4-5 are isolated from the next boot (now: "2-3"): reboot the node')
    assert "booted with the argument" in wait.message


@pytest.mark.parametrize("shown", ["(null)\n", None])
def test_a_kernel_without_nohz_full_is_noted(shown: str | None) -> None:
    host = machine("grub")
    go(host, {"isolate": "4-5"})
    reboot(host)
    if shown is None:
        del host.files[f"{SYS}/nohz_full"]
    else:
        host.put(f"{SYS}/nohz_full", shown)
    outcome = go(host, {"isolate": "4-5"})
    assert outcome.state == "converged"
    assert any("keep their tick" in note for note in outcome.notes)


@pytest.mark.parametrize("settings", [None, {"isolate": ""}, {}])
def test_without_a_list_the_arguments_go_and_the_cpus_stay_isolated_till_the_boot(
    settings: dict[str, Any] | None,
) -> None:
    host = machine("grub")
    go(host, {"isolate": "4-5"})
    reboot(host)
    outcome = go(host, settings)
    assert outcome.changed
    assert outcome.pending == ()
    assert "cpu: CPUs 4-5 stay isolated at least until the next boot" in outcome.notes
    reboot(host, "third-boot")
    assert (host.text(f"{SYS}/isolated") or "").strip() == ""
    last = go(host, settings)
    assert last.changed is False
    assert not any("isolated" in note for note in last.notes)


def test_governors_are_set_where_no_loader_can_be_changed() -> None:
    host = scaling(6)
    host.put("/proc/cmdline", "root=/dev/vda\n")
    outcome = go(host, {"governor": "performance", "isolate": "4-5"})
    assert governors(host) == ["performance"] * 6
    assert outcome.failure is not None
    assert outcome.failure.retryable


def test_a_broken_record_is_terminal() -> None:
    host = machine("grub")
    host.put("/var/lib/bcd-hostconfig/bootargs/cpu", '{"version": 9}')
    outcome = go(host, {"isolate": "4-5"})
    assert outcome.failure is not None
    assert not outcome.failure.retryable
    assert "/var/lib/bcd-hostconfig/bootargs/cpu" in outcome.failure.message


def test_a_failing_generator_leaves_its_run_owed() -> None:
    host = machine("grub")
    real = host.programs["update-grub"]
    host.programs["update-grub"] = lambda _host, _argv: Answer(1, "", "no space left on device")
    outcome = go(host, {"isolate": "4-5"})
    assert outcome.failure is not None
    assert outcome.failure.retryable
    assert "no space left on device" in outcome.failure.message
    assert outcome.pending == ()
    host.programs["update-grub"] = real
    assert [line.action for line in go(host, {"isolate": "4-5"}).steps] == [
        "write /boot/grub/grub.cfg with update-grub"
    ]
