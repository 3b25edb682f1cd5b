# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""gpu-sharing on simulated GPUs, whose systemd runs the unit file that it wrote."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Condition
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.runner import Goal, converge
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import gpu_sharing as planner
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.gpu_sharing import UNIT
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.mig_layout import UNIT as MIG_LAYOUT
from tests.gpu.fake import GpuHost, gpu_host
from tests.gpu.model import Fault, Machine, Process
from tests.unit.promises import a_kill_loses_nothing, check_is_truthful, go, lines, second_pass_is_quiet
from tests.unit.shown_units import shown_units

FILE = "/etc/systemd/system/bcd-mps.service"
LINK = "/etc/systemd/system/multi-user.target.wants/bcd-mps.service"
PIPE = "/run/nvidia-mps"
MPS = {"mode": "mps", "replicas": 8}
TIMESLICE = {"mode": "timeslice", "replicas": 4}
APPLIED = "/var/lib/bcd-hostconfig/applied.json"


def host_of(*products: str) -> GpuHost:
    return gpu_host(Machine.from_products(products))


def two() -> GpuHost:
    return host_of("L40S", "L40S")


def shared() -> GpuHost:
    """Two GPUs that MPS shares already, with a reboot's worth of nothing owed."""
    host = two()
    assert go(UNIT, host, MPS).state == "converged"
    host.calls.clear()
    return host


def uuids(host: GpuHost) -> list[str]:
    return [card.uuid for card in host.machine.cards]


def modes(host: GpuHost) -> list[str]:
    return [card.compute_mode for card in host.machine.cards]


def daemon(host: GpuHost) -> Any:
    return host.machine.mps.get(PIPE)


def state(host: GpuHost) -> str:
    return host.services.state.get("bcd-mps.service", "inactive")


def unit_lines(host: GpuHost) -> list[str]:
    return (host.text(FILE) or "").splitlines()


def hold(host: GpuHost, allocation: str, device: str) -> None:
    """A live hold: root's record of it."""
    text = json.dumps({"version": 1, "allocation_id": allocation, "devices": [device]})
    host.put(f"/var/lib/bcd-hostconfig/holds/{allocation}.json", text)


def apply_layout(host: GpuHost, settings: dict[str, Any]) -> None:
    """The record of what mig-layout applied."""
    host.put(APPLIED, json.dumps({"version": 1, "units": {"mig-layout": settings}}))


def reasons(outcome: Outcome) -> list[str]:
    return [wait.reason for wait in outcome.pending]


# -- settings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "mode is not given, and takes mps or timeslice: give one of them"),
        ({"mode": None}, "mode is not given, and takes mps or timeslice: give one of them"),
        ({"mode": "mps", "replicas": None}, "replicas is null, and takes an integer"),
        ({"mode": "exclusive"}, "mode is 'exclusive'"),
        ({"mode": "mps", "replicas": 0}, "replicas is 0, and takes 1 to 48"),
        ({"mode": "mps", "replicas": 49}, "replicas is 49"),
        ({"mode": "mps", "replicas": "8"}, "replicas is a string"),
        ({"mode": "mps", "slots": 8}, "'slots' is no setting"),
    ],
)
def test_settings_are_strict(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused, match="gpu-sharing: ") as refused:
        planner.check(settings)
    assert said in refused.value.message


def test_replicas_have_the_control_planes_defaults() -> None:
    assert planner.check({"mode": "mps"}).replicas == 10
    assert planner.check({"mode": "timeslice"}).replicas == 4


# -- MPS from bare


def test_mps_is_a_service_that_answers_with_its_limits() -> None:
    host = two()
    outcome = go(UNIT, host, MPS)
    assert (outcome.state, outcome.changed, outcome.failure, outcome.conditions) == ("converged", True, None, ())
    # 100 // 8 percent of the SMs, and an eighth of 46068 MiB, of each GPU by the number that the daemon gives it
    assert daemon(host)["percentage"] == "12.0"
    assert daemon(host)["limits"] == {"0": "5758M", "1": "5758M"}
    assert daemon(host)["visible"] == uuids(host)
    assert modes(host) == ["EXCLUSIVE_PROCESS", "EXCLUSIVE_PROCESS"]
    assert LINK in host.links
    assert lines(outcome) == [
        f"write {FILE}",
        "enable bcd-mps.service",
        "let systemd load its unit files again (daemon-reload)",
        "start bcd-mps.service",
    ]
    assert [line.disruption for line in outcome.steps] == ["none", "none", "none", "gpu"]
    second_pass_is_quiet(UNIT, host, MPS)


def test_the_unit_file_is_what_the_specification_asks_for() -> None:
    host = two()
    go(UNIT, host, MPS)
    first, second = uuids(host)
    text = unit_lines(host)
    assert text[0] == "# Managed by bettercompute.bcd: local edits are replaced."
    for line in (
        "Environment=CUDA_MPS_PIPE_DIRECTORY=/run/nvidia-mps",
        "Environment=CUDA_MPS_LOG_DIRECTORY=/var/log/nvidia-mps",
        f"Environment=CUDA_VISIBLE_DEVICES={first},{second}",
        "RuntimeDirectory=nvidia-mps",
        "LogsDirectory=nvidia-mps",
        f"ExecStartPre=-/usr/sbin/nvidia-smi -i {first} -c EXCLUSIVE_PROCESS",
        f"ExecStartPre=-/usr/sbin/nvidia-smi -i {second} -c EXCLUSIVE_PROCESS",
        "ExecStart=/usr/sbin/nvidia-cuda-mps-control -d",
        f"ExecStopPost=-/usr/sbin/nvidia-smi -i {first} -c DEFAULT",
        f"ExecStopPost=-/usr/sbin/nvidia-smi -i {second} -c DEFAULT",
        "Restart=on-failure",
        "RestartSec=5",
        "WantedBy=multi-user.target",
    ):
        assert line in text
    # Nothing of a stop may fail for a missing program.
    assert all(line.partition("=")[2].startswith("-") for line in text if line.startswith("ExecStop"))
    assert not any("$" in line or "%" in line for line in text)  # systemd reads these in its own way


@pytest.mark.parametrize(("replicas", "percent", "memory"), [(1, "100.0", 15360), (3, "33.0", 5120), (48, "2.0", 320)])
def test_limits_by_replicas(replicas: int, percent: str, memory: int) -> None:
    host = host_of("T4")
    assert go(UNIT, host, {"mode": "mps", "replicas": replicas}).state == "converged"
    assert (daemon(host)["percentage"], daemon(host)["limits"]) == (percent, {"0": f"{memory}M"})


def test_each_gpu_has_the_limit_of_its_own_memory() -> None:
    host = host_of("T4", "L40S")
    go(UNIT, host, {"mode": "mps", "replicas": 4})
    assert daemon(host)["limits"] == {"0": "3840M", "1": "11517M"}


def test_the_service_comes_back_with_its_limits_after_a_boot_and_after_a_crash() -> None:
    host = shared()
    host.boot()
    assert (state(host), daemon(host)["percentage"], modes(host)) == ("active", "12.0", ["EXCLUSIVE_PROCESS"] * 2)
    assert go(UNIT, host, MPS).changed is False
    host.services.crash("bcd-mps.service")
    assert modes(host) == ["DEFAULT", "DEFAULT"]
    down = go(UNIT, host, MPS, max_disruption="service")
    said = "bcd-mps.service is failed: clients of the shared GPUs fail until it runs"
    assert down.conditions == (Condition("MPSDown", "true", "NotRunning", said),)
    outcome = go(UNIT, host, MPS)
    assert (outcome.state, outcome.conditions, lines(outcome)) == ("converged", (), ["start bcd-mps.service"])


# -- what it needs


def test_without_its_program_it_waits_and_names_the_package() -> None:
    host = two()
    program = host.programs.pop("nvidia-cuda-mps-control")
    outcome = go(UNIT, host, MPS)
    assert (outcome.state, reasons(outcome), outcome.steps) == ("progressing", ["NotReady"], ())
    assert "nvidia-cuda-mps-control is not installed yet" in outcome.pending[0].message
    assert "nvidia-compute-utils on Ubuntu" in outcome.pending[0].message
    assert [condition.type for condition in outcome.conditions] == ["MPSDown"]
    host.programs["nvidia-cuda-mps-control"] = program
    assert go(UNIT, host, MPS).state == "converged"


@pytest.mark.parametrize(
    ("rc", "text"),
    [
        (9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure ...\n\n"),
        (12, "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n"),
        (6, "No devices were found\n"),
    ],
)
def test_without_a_driver_it_waits(rc: int, text: str) -> None:
    host = two()
    host.machine.faults.append(Fault("--query-gpu", rc=rc, text=text))
    outcome = go(UNIT, host, MPS)
    assert (reasons(outcome), outcome.steps) == (["NotReady"], ())
    assert [condition.type for condition in outcome.conditions] == ["MPSDown"]


def test_without_systemd_it_waits() -> None:
    host = two()
    del host.files["/run/systemd/system"]
    assert reasons(go(UNIT, host, MPS)) == ["NotReady"]


# -- MIG


def test_mps_is_refused_where_every_gpu_has_mig() -> None:
    host = host_of("H100-80GB", "H100-80GB")
    for card in host.machine.cards:
        card.mig = card.mig_pending = True
    outcome = go(UNIT, host, MPS)
    assert outcome.failure is not None
    assert (outcome.failure.reason, outcome.failure.retryable, host.calls) == ("Refused", False, [])
    assert "every GPU of this host has or is to have MIG" in outcome.failure.message


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({"layout": "all-1g.10gb"}, True),
        ({"layout": {"3g.40gb": 2}}, True),
        ({"layout": "off"}, False),
        ({"layout": False}, False),
        ({"gpus": [{"select": {"index": 0}, "layout": "all-1g.10gb"}]}, False),
        ({"gpus": [{"select": {"model": "*H100*"}, "layout": "all-1g.10gb"}]}, True),
        ({"layout": "all-1g.10gb", "gpus": [{"select": {"index": 1}, "layout": "off"}]}, False),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_mps_is_refused_where_every_gpu_is_to_have_mig(settings: dict[str, Any], refused: bool, check: bool) -> None:
    host = host_of("H100-80GB", "H100-80GB")
    apply_layout(host, settings)
    outcome = go(UNIT, host, MPS, check=check)
    assert (outcome.failure is not None) is refused


def test_gpus_without_mig_are_covered_and_the_rest_is_noted() -> None:
    host = host_of("L40S", "H100-80GB", "H100-80GB", "T4")
    host.machine.cards[1].mig = host.machine.cards[1].mig_pending = True
    apply_layout(host, {"gpus": [{"select": {"index": 2}, "layout": "all-1g.10gb"}]})
    outcome = go(UNIT, host, MPS)
    first, _mig, _to_be, last = uuids(host)
    assert (outcome.state, daemon(host)["visible"]) == ("converged", [first, last])
    assert daemon(host)["limits"] == {"0": "5758M", "1": "1920M"}  # by the numbers that the daemon gives them
    assert modes(host) == ["EXCLUSIVE_PROCESS", "DEFAULT", "DEFAULT", "EXCLUSIVE_PROCESS"]
    assert outcome.notes == ("MPS leaves out GPU(s) 1, 2, which have or are to have MIG",)


def test_a_gpu_that_gets_mig_later_leaves_the_service_and_its_mode_goes_back() -> None:
    host = host_of("H100-80GB", "H100-80GB")
    go(UNIT, host, MPS)
    settings = {"gpus": [{"select": {"index": 1}, "layout": "all-1g.10gb"}]}
    record = json.loads(host.text(APPLIED) or "")
    record["units"]["mig-layout"] = settings
    host.put(APPLIED, json.dumps(record))
    outcome = go(UNIT, host, MPS)
    assert (outcome.state, daemon(host)["visible"], modes(host)) == (
        "converged",
        uuids(host)[:1],
        ["EXCLUSIVE_PROCESS", "DEFAULT"],
    )
    assert lines(outcome)[-1] == "restart bcd-mps.service"
    second_pass_is_quiet(UNIT, host, MPS)


def test_a_gpu_that_came_changes_the_service() -> None:
    host = shared()
    host.machine.cards += Machine.from_products(["L40S"] * 3).cards[2:]
    outcome = go(UNIT, host, MPS)
    assert (outcome.state, daemon(host)["visible"]) == ("converged", uuids(host))
    assert sorted(daemon(host)["limits"]) == ["0", "1", "2"]


# -- under live holds and processes


@pytest.mark.parametrize("settings", [{"mode": "mps", "replicas": 4}, TIMESLICE, None])
def test_a_running_service_is_left_alone_while_a_slot_is_held(settings: dict[str, Any] | None) -> None:
    host = shared()
    hold(host, "alloc_1", f"{uuids(host)[1]}/s3")
    before = host.text(FILE)
    outcome = go(UNIT, host, settings)
    assert (outcome.state, reasons(outcome), outcome.steps) == ("progressing", ["Busy"], ())
    assert f"the allocation alloc_1 has {uuids(host)[1]}/s3" in outcome.pending[0].message
    assert (host.text(FILE), state(host), daemon(host)["percentage"]) == (before, "active", "12.0")
    del host.files["/var/lib/bcd-hostconfig/holds/alloc_1.json"]
    assert go(UNIT, host, settings).state == "converged"


def test_a_release_that_waits_for_its_pods_keeps_the_service_as_a_hold_does() -> None:
    host = shared()
    entry = {"devices": [{"id": f"{uuids(host)[1]}/s3", "device_class": "gpu.slot"}], "generation": 1, "asked": 1}
    host.put("/var/lib/bcd-hostconfig/releasing.json", json.dumps({"version": 1, "releases": {"alloc_1": entry}}))
    outcome = go(UNIT, host, {"mode": "mps", "replicas": 4})
    assert (reasons(outcome), outcome.steps) == (["Busy"], ())
    assert f"the allocation alloc_1 has {uuids(host)[1]}/s3" in outcome.pending[0].message
    del host.files["/var/lib/bcd-hostconfig/releasing.json"]
    host.put("/var/lib/bcd-hostconfig/releasing.unreadable", "lost\n")
    assert reasons(go(UNIT, host, {"mode": "mps", "replicas": 4})) == ["Busy"]
    del host.files["/var/lib/bcd-hostconfig/releasing.unreadable"]
    assert go(UNIT, host, {"mode": "mps", "replicas": 4}).state == "converged"


def test_a_hold_that_cannot_be_made_out_counts_as_every_gpu() -> None:
    host = shared()
    host.put("/var/lib/bcd-hostconfig/holds/alloc_2.json", "{")
    assert reasons(go(UNIT, host, {"mode": "mps", "replicas": 4})) == ["Busy"]


def test_held_slots_wait_for_a_service_that_is_down_and_do_not_keep_it_down() -> None:
    host = shared()
    hold(host, "alloc_1", f"{uuids(host)[1]}/s3")
    host.services.crash("bcd-mps.service")
    assert (go(UNIT, host, MPS).state, state(host)) == ("converged", "active")


def test_an_allocation_of_a_whole_gpu_keeps_the_service_from_starting() -> None:
    host = two()
    hold(host, "alloc_1", uuids(host)[0])
    outcome = go(UNIT, host, MPS)
    assert (reasons(outcome), host.text(FILE), modes(host)) == (["Busy"], None, ["DEFAULT", "DEFAULT"])


@pytest.mark.parametrize("running", [True, False])
def test_a_process_that_computes_is_not_cut_off(running: bool) -> None:
    host = shared() if running else two()
    host.machine.occupy(1, 4242, "python3")
    outcome = go(UNIT, host, {"mode": "mps", "replicas": 4})
    assert (reasons(outcome), outcome.steps) == (["Busy"], ())
    assert "process 4242 (python3) computes on" in outcome.pending[0].message
    host.machine.free(1)
    assert go(UNIT, host, {"mode": "mps", "replicas": 4}).state == "converged"


def test_who_computes_on_a_gpu_that_was_served_once_keeps_no_service_from_starting() -> None:
    host = host_of("H100-80GB", "H100-80GB")
    go(UNIT, host, MPS)
    host.services.crash("bcd-mps.service")
    for card in host.machine.cards:
        card.compute_mode = "EXCLUSIVE_PROCESS"
    record = json.loads(host.text(APPLIED) or "")
    record["units"]["mig-layout"] = {"gpus": [{"select": {"index": 1}, "layout": "all-1g.10gb"}]}
    host.put(APPLIED, json.dumps(record))
    host.machine.occupy(1, 4242, "python3")
    outcome = go(UNIT, host, MPS)
    assert (outcome.state, daemon(host)["visible"], modes(host)) == (
        "converged",
        uuids(host)[:1],
        ["EXCLUSIVE_PROCESS", "DEFAULT"],
    )
    second_pass_is_quiet(UNIT, host, MPS)


@pytest.mark.parametrize("node", ["/dev/nvidia1", None])
def test_a_client_that_nvidia_smi_does_not_list_is_not_cut_off(node: str | None) -> None:
    """nvidia-smi lists CUDA contexts, which under MPS are the server's; who has the nodes open is a client."""
    host = shared()
    host.machine.occupy(1, 4243, "nvidia-cuda-mps-server")
    host.links["/proc/4244/exe"] = "/usr/bin/python3"
    for number, path in enumerate(["/dev/nvidia-uvm", *([node] if node else [])], 3):
        host.links[f"/proc/4244/fd/{number}"] = path
    before = host.text(FILE)
    outcome = go(UNIT, host, {"mode": "mps", "replicas": 4})
    assert (reasons(outcome), outcome.steps, host.text(FILE)) == (["Busy"], (), before)
    assert f"process 4244 (python3) computes on {uuids(host)[1]}" in outcome.pending[0].message
    assert (uuids(host)[0] in outcome.pending[0].message) == (node is None)
    assert go(UNIT, host, MPS).state == "converged"  # where nothing is to be done, nobody is waited for
    for path in [path for path in host.links if path.startswith("/proc/4244/")]:
        del host.links[path]
    assert go(UNIT, host, {"mode": "mps", "replicas": 4}).state == "converged"


def test_the_daemons_own_server_is_no_client() -> None:
    host = shared()
    host.machine.occupy(1, 4243, "nvidia-cuda-mps-server")
    assert go(UNIT, host, {"mode": "mps", "replicas": 4}).state == "converged"


def test_what_may_not_disturb_gpus_is_held_back() -> None:
    host = two()
    outcome = go(UNIT, host, MPS, max_disruption="service")
    assert (outcome.state, reasons(outcome), state(host)) == ("progressing", ["HeldBack"], "inactive")
    assert [condition.type for condition in outcome.conditions] == ["MPSDown"]


# -- drift


def test_other_replicas_restart_the_service() -> None:
    host = shared()
    outcome = go(UNIT, host, {"mode": "mps", "replicas": 4})
    assert (outcome.state, daemon(host)["percentage"], daemon(host)["limits"]["1"]) == ("converged", "25.0", "11517M")
    assert [line.action for line in outcome.steps if line.disruption == "gpu"] == ["restart bcd-mps.service"]


def test_limits_that_someone_changed_are_told_again_without_a_restart() -> None:
    host = shared()
    daemon(host).update(percentage="50.0", limits={"0": "5758M", "1": "40000M"})
    outcome = go(UNIT, host, MPS)
    assert (outcome.state, daemon(host)["percentage"], daemon(host)["limits"]["1"]) == ("converged", "12.0", "5758M")
    assert lines(outcome) == [
        "tell the MPS daemon: set_default_active_thread_percentage 12",
        "tell the MPS daemon: set_default_device_pinned_mem_limit 1 5758M",
    ]
    assert {line.disruption for line in outcome.steps} == {"none"}


def test_a_limit_is_compared_as_a_size() -> None:
    host = host_of("T4")
    go(UNIT, host, {"mode": "mps", "replicas": 5})
    daemon(host)["limits"]["0"] = "3G"
    assert go(UNIT, host, {"mode": "mps", "replicas": 5}).changed is False


def test_a_compute_mode_that_someone_changed_is_set_again() -> None:
    host = shared()
    host.machine.cards[1].compute_mode = "DEFAULT"
    outcome = go(UNIT, host, MPS)
    assert (outcome.state, modes(host)) == ("converged", ["EXCLUSIVE_PROCESS"] * 2)
    assert lines(outcome) == ["set the compute mode of GPU 1 to EXCLUSIVE_PROCESS"]
    assert host.calls == [f"nvidia-smi -i {uuids(host)[1]} -c EXCLUSIVE_PROCESS"]


def test_a_file_that_someone_edited_is_written_again() -> None:
    host = shared()
    text = host.text(FILE) or ""
    host.put(FILE, text + "# mine\n")
    assert go(UNIT, host, MPS).state == "converged"
    assert (host.text(FILE), state(host)) == (text, "active")


def test_persistence_mode_that_is_off_is_said() -> None:
    host = two()
    host.machine.cards[1].persistence = False
    assert [note for note in go(UNIT, host, MPS).notes if "persistence mode is off on GPU(s) 1" in note]


def test_gpus_that_limit_no_client_are_named() -> None:
    notes = go(UNIT, host_of("P100", "V100"), MPS).notes
    assert notes == ("GPU(s) 0 are from before Volta, where MPS serves 16 clients and limits none of them",)


# -- readiness


NO_DAEMON = Fault("get_default_active", rc=1, text="Cannot find MPS control daemon process\n", after=1)


def test_a_daemon_that_takes_a_while_is_waited_for() -> None:
    host = two()
    host.machine.faults.append(copy.copy(NO_DAEMON))
    host.machine.faults[0].times = 5
    outcome = go(UNIT, host, MPS)
    assert (outcome.state, outcome.conditions, lines(outcome)[-1]) == ("converged", (), "start bcd-mps.service")
    assert 0 < host.now <= 30


def test_a_daemon_that_does_not_answer_is_down_though_its_service_runs_and_its_directory_is_there() -> None:
    host = two()
    host.machine.faults.append(copy.copy(NO_DAEMON))
    outcome = go(UNIT, host, MPS)
    assert (outcome.state, reasons(outcome), state(host)) == ("progressing", ["NotReady"], "active")
    assert [(one.type, one.status, one.reason) for one in outcome.conditions] == [("MPSDown", "true", "NotRunning")]
    assert "does not answer (Cannot find MPS control daemon process)" in outcome.pending[0].message
    assert host.now <= 40  # bounded
    host.machine.faults.clear()
    assert second_pass_is_quiet(UNIT, host, MPS).state == "converged"


def test_what_systemd_is_starting_by_itself_is_waited_for() -> None:
    host = shared()
    real = host.programs["systemctl"]
    host.programs["systemctl"] = lambda seen, argv: (
        shown_units(argv, lambda _name: "activating") if argv[1] == "show" else real(seen, argv)
    )
    outcome = go(UNIT, host, MPS)
    assert (reasons(outcome), outcome.steps) == (["NotReady"], ())
    assert [one.message.partition(":")[0] for one in outcome.conditions] == ["bcd-mps.service is activating"]


# -- behind mig-layout, in one pass


def both(host: GpuHost, layout: dict[str, Any], check: bool) -> tuple[Outcome, Outcome]:
    """The two units as one pass has them: one host, one record."""
    seen = PredictedHost(host) if check else host
    records = Records(seen)
    first = converge(Goal(MIG_LAYOUT, layout), seen, records)
    return first, converge(Goal(UNIT, MPS), seen, records)


def test_in_one_pass_the_gpus_that_the_layout_leaves_are_shared_and_check_mode_says_so() -> None:
    layout = {"gpus": [{"select": {"model": "*H100*"}, "layout": "all-1g.10gb"}]}
    planned = both(host_of("H100-80GB", "L40S"), layout, check=True)[1]
    host = host_of("H100-80GB", "L40S")
    mig, real = both(host, layout, check=False)
    assert (mig.state, real.state, daemon(host)["visible"]) == ("converged", "converged", uuids(host)[1:])
    assert lines(planned) == lines(real)
    assert planned.notes == real.notes


def test_in_one_pass_a_layout_on_every_gpu_refuses_mps_and_check_mode_says_so() -> None:
    layout = {"layout": "all-1g.10gb"}
    for check in (True, False):
        host = host_of("H100-80GB", "H100-80GB")
        outcome = both(host, layout, check)[1]
        assert outcome.failure is not None
        assert (outcome.failure.reason, state(host)) == ("Refused", "inactive")


def test_a_layout_on_every_gpu_waits_for_the_daemon_that_runs_until_it_is_told_to_go() -> None:
    layout = {"layout": "7g.80gb"}
    host = host_of("H100-80GB", "H100-80GB")
    assert go(UNIT, host, MPS).state == "converged"
    for card in host.machine.cards:
        card.processes.append(Process(4242, "nvidia-cuda-mps-server"))
    for _each in range(2):
        mig, refused = both(host, layout, check=False)
        assert reasons(mig) == ["Busy"]
        assert "process 4242 (nvidia-cuda-mps-server)" in mig.pending[0].message
        assert refused.failure is not None
        assert (refused.failure.reason, state(host), len(host.machine.mps)) == ("Refused", "active", 1)
    assert go(UNIT, host, {"mode": "timeslice"}).state == "converged"
    assert host.machine.mps == {}
    for card in host.machine.cards:
        card.processes.clear()  # its server ends with it
    assert both(host, layout, check=False)[0].state == "converged"
    assert [host.machine.instances(gpu) for gpu in (0, 1)] == [["7g.80gb"]] * 2


def test_where_the_layout_turns_mig_off_in_the_same_pass_check_mode_says_what_it_waits_to_know() -> None:
    def with_mig() -> GpuHost:
        host = host_of("H100-80GB", "H100-80GB")
        for card in host.machine.cards:
            card.mig = card.mig_pending = True
        return host

    planned = both(with_mig(), {"layout": "off"}, check=True)[1]
    assert planned.failure is None
    assert [line.action.partition(" after ")[0] for line in planned.steps] == ["bcd-mps.service: known"]
    host = with_mig()
    real = both(host, {"layout": "off"}, check=False)[1]
    assert (real.state, daemon(host)["visible"]) == ("converged", uuids(host))


def test_in_one_pass_a_gpu_goes_from_mps_to_mig_and_check_mode_says_no_step_that_is_not_taken() -> None:
    def both_shared() -> GpuHost:
        host = host_of("H100-80GB", "L40S")
        assert go(UNIT, host, MPS).state == "converged"
        return host

    layout = {"gpus": [{"select": {"index": 0}, "layout": "all-1g.10gb"}]}
    planned = both(both_shared(), layout, check=True)[1]
    assert [line.action.partition(" after ")[0] for line in planned.steps] == ["bcd-mps.service: known"]
    host = both_shared()
    real = both(host, layout, check=False)[1]
    assert (real.state, daemon(host)["visible"], modes(host)) == (
        "converged",
        uuids(host)[1:],
        ["DEFAULT", "EXCLUSIVE_PROCESS"],
    )
    assert not [line for line in lines(real) if "compute mode" in line]  # MIG took it back


# -- one dead GPU


def test_a_dead_gpu_fails_by_itself_and_the_others_are_shared() -> None:
    host = two()
    host.machine.cards[0].dead = "fields"
    outcome = go(UNIT, host, MPS)
    assert outcome.failure is not None
    assert (outcome.state, outcome.failure.retryable) == ("progressing", True)
    assert "GPU is lost" in outcome.failure.message
    assert daemon(host)["visible"] == uuids(host)[1:]


@pytest.mark.parametrize("dead", ["fields", "handle"])
@pytest.mark.parametrize("held", [True, False])
def test_a_gpu_that_dies_under_the_daemon_disturbs_no_one(dead: str, held: bool) -> None:
    host = shared()
    if held:
        hold(host, "alloc_1", f"{uuids(host)[1]}/s3")
    lost, text = uuids(host)[0], host.text(FILE)
    host.machine.cards[0].dead = dead
    outcome = go(UNIT, host, MPS)
    assert outcome.failure is not None
    assert (outcome.state, outcome.changed, outcome.failure.retryable) == ("progressing", False, True)
    assert "GPU is lost" in outcome.failure.message
    assert (reasons(outcome), host.calls, host.text(FILE)) == (["NotReady"], [], text)
    assert outcome.pending[0].message == (
        f"gpu-sharing: bcd-mps.service goes on with the GPUs that answer, and is not restarted without {lost}: reset "
        "or replace what does not answer, or reboot the node"
    )
    planned = go(UNIT, host, MPS, check=True)
    assert (planned.changed, planned.pending) == (False, outcome.pending)
    host.machine.cards[0].dead = ""
    assert (go(UNIT, host, MPS).state, host.calls) == ("converged", [])


@pytest.mark.parametrize("dead", ["fields", "handle"])
def test_what_else_differs_beside_a_dead_gpu_is_put_right_with_those_that_answer(dead: str) -> None:
    host = shared()
    host.machine.cards[0].dead = dead
    outcome = go(UNIT, host, {"mode": "mps", "replicas": 4})
    assert (reasons(outcome), daemon(host)["visible"], daemon(host)["percentage"]) == ([], uuids(host)[1:], "25.0")
    host = shared()
    host.machine.cards[0].dead = dead
    host.services.crash("bcd-mps.service")
    assert (reasons(go(UNIT, host, MPS)), daemon(host)["visible"]) == ([], uuids(host)[1:])


def test_beside_a_dead_gpu_the_limits_and_modes_of_the_others_are_held() -> None:
    host = shared()
    host.machine.cards[0].dead = "fields"
    host.machine.cards[1].compute_mode = "DEFAULT"
    daemon(host)["limits"]["1"] = "1M"
    outcome = go(UNIT, host, MPS)
    assert lines(outcome) == [
        f"look at {uuids(host)[0]}",
        "set the compute mode of GPU 1 to EXCLUSIVE_PROCESS",
        "tell the MPS daemon: set_default_device_pinned_mem_limit 1 5758M",
    ]
    assert (daemon(host)["limits"], host.machine.cards[1].compute_mode) == (
        {"0": "5758M", "1": "5758M"},
        "EXCLUSIVE_PROCESS",
    )


def test_a_gpu_that_was_taken_out_is_served_no_more() -> None:
    host = shared()
    gone = host.machine.cards.pop(0).uuid
    outcome = go(UNIT, host, MPS)
    assert (outcome.state, gone in daemon(host)["visible"], reasons(outcome)) == ("converged", False, [])


def test_a_service_of_the_name_that_is_not_ours_is_said_to_be_replaced() -> None:
    host = two()
    host.put(FILE, "[Service]\nExecStart=/usr/bin/nvidia-cuda-mps-control -f\n")
    assert lines(go(UNIT, host, MPS))[0] == f"write {FILE}, in place of a service of this name that is not ours"
    host.put(FILE, f"{host.text(FILE)}# mine\n")
    assert lines(go(UNIT, host, MPS))[0] == f"write {FILE} again: it is not as we keep it"


# -- rivals


def test_an_mps_daemon_that_is_not_ours_is_named() -> None:
    host = shared()
    for pid, unit, pipe in ((812, "nvidia-mps.service", ""), (900, "bcd-mps.service", PIPE), (901, "", "/tmp/mine")):
        host.put(f"/proc/{pid}/comm", "nvidia-cuda-mps\n")
        host.put(f"/proc/{pid}/cmdline", "/usr/bin/nvidia-cuda-mps-control\0-d\0")
        host.put(f"/proc/{pid}/cgroup", f"0::/system.slice/{unit}\n" if unit else "0::/user.slice/session-2.scope\n")
        host.put(f"/proc/{pid}/environ", f"HOME=/root\0{f'CUDA_MPS_PIPE_DIRECTORY={pipe}' if pipe else ''}\0")
    host.put("/proc/902/comm", "nvidia-cuda-mps\n")
    host.put("/proc/902/cmdline", "nvidia-cuda-mps-server\0")
    notes = go(UNIT, host, MPS).notes
    assert [note.partition(",")[0] for note in notes] == [
        "nvidia-mps.service runs an MPS daemon too (process 812",
        "process 901 runs an MPS daemon too (process 901",
    ]
    assert ["/tmp/nvidia-mps)" in notes[0], "/tmp/mine)" in notes[1]] == [True, True]


# -- time slices, and removal


@pytest.mark.parametrize("settings", [TIMESLICE, None])
def test_the_service_ends_and_the_compute_modes_go_back(settings: dict[str, Any] | None) -> None:
    host = shared()
    outcome = go(UNIT, host, settings)
    assert (outcome.state, outcome.conditions, state(host)) == ("converged", (), "inactive")
    assert (host.text(FILE), LINK in host.links, modes(host)) == (None, False, ["DEFAULT", "DEFAULT"])
    assert lines(outcome) == [
        "stop bcd-mps.service",
        "disable bcd-mps.service",
        f"remove {FILE}",
        "let systemd load its unit files again (daemon-reload)",
    ]
    second_pass_is_quiet(UNIT, host, settings)


@pytest.mark.parametrize("settings", [TIMESLICE, None])
def test_without_a_service_of_ours_nothing_is_run(settings: dict[str, Any] | None) -> None:
    host = two()
    host.machine.cards[0].compute_mode = "EXCLUSIVE_PROCESS"  # an operator's own
    outcome = go(UNIT, host, settings)
    assert (outcome.state, outcome.steps, host.asked, modes(host)[0]) == ("converged", (), [], "EXCLUSIVE_PROCESS")


@pytest.mark.parametrize("settings", [TIMESLICE, None])
def test_a_service_that_is_not_ours_stays(settings: dict[str, Any] | None) -> None:
    host = two()
    host.put(FILE, "[Service]\nExecStart=/usr/bin/nvidia-cuda-mps-control -f\n")
    outcome = go(UNIT, host, settings)
    assert (outcome.state, outcome.steps) == ("converged", ())
    assert "is not ours, and stays" in outcome.notes[0]


def test_a_stop_that_could_not_set_the_modes_back_is_made_good() -> None:
    host = shared()
    host.machine.faults.append(Fault("-c DEFAULT", rc=127, text="", times=2))
    outcome = go(UNIT, host, TIMESLICE)
    assert (outcome.state, modes(host), host.text(FILE)) == ("converged", ["DEFAULT", "DEFAULT"], None)
    assert lines(outcome)[:3] == [
        "stop bcd-mps.service",
        "set the compute mode of GPU 0 to DEFAULT",
        "set the compute mode of GPU 1 to DEFAULT",
    ]


def test_the_service_can_be_removed_when_its_programs_are_gone() -> None:
    host = shared()
    for name in ("nvidia-cuda-mps-control", "nvidia-smi"):
        del host.programs[name]
    outcome = go(UNIT, host, None)
    assert (outcome.state, outcome.failure, state(host), host.text(FILE)) == ("converged", None, "inactive", None)


# -- what every unit promises


def crashed() -> GpuHost:
    """A service that died without setting the modes back."""
    host = shared()
    host.services.crash("bcd-mps.service")
    for card in host.machine.cards:
        card.compute_mode = "EXCLUSIVE_PROCESS"
    return host


def drifted() -> GpuHost:
    host = shared()
    daemon(host).update(percentage="50.0", limits={})
    host.machine.cards[0].compute_mode = "DEFAULT"
    host.put(LINK, "")
    del host.files[LINK]
    return host


CHANGES: list[tuple[Any, dict[str, Any] | None]] = [
    (two, MPS),
    (shared, {"mode": "mps", "replicas": 4}),
    (shared, TIMESLICE),
    (shared, None),
    (crashed, MPS),
    (crashed, TIMESLICE),
    (crashed, None),
    (drifted, MPS),
]


@pytest.mark.parametrize(("machine", "settings"), CHANGES)
def test_check_mode_says_the_steps_that_are_then_taken(machine: Any, settings: dict[str, Any] | None) -> None:
    real = check_is_truthful(UNIT, machine, settings)
    assert real.state == "converged"
    assert not [line for line in go(UNIT, machine(), settings, check=True).steps if line.later]


@pytest.mark.parametrize(("machine", "settings"), CHANGES)
def test_a_pass_killed_anywhere_is_finished_by_the_next(machine: Any, settings: dict[str, Any] | None) -> None:
    def shown(host: Any) -> object:
        loaded = host.services.loaded.get("bcd-mps.service")
        return host.text(FILE), LINK in host.links, state(host), modes(host), daemon(host), loaded

    assert a_kill_loses_nothing(UNIT, machine, settings, shown) >= 1
