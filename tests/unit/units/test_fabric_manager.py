# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fabric-manager on boards in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import NotKnownYet
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.runner import Goal, converge
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import Effect, run
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.smi_fabric import fabric_states
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import fabric_manager as planner
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.fabric_manager import UNIT
from tests.unit import promises
from tests.unit.fake_host import FakeHost
from tests.unit.nvswitch_host import GPUS, Board, adapter, hold, library, load, nvlink5, nvswitch
from tests.unit.package_machine import PackageHost, age

HEADER = "# Managed by bettercompute.bcd: local edits are replaced.\n"
LOAD = "/etc/modules-load.d/bcd-fabric-manager.conf"
RELEASING = "/var/lib/bcd-hostconfig/releasing.json"
DOWN = ("FabricManagerDown", "true", "NotRunning")
KINDS = {
    "ubuntu": ("nvidia-fabricmanager-580", "580.95.05-0ubuntu0.24.04.1"),
    "debian": ("nvidia-fabricmanager", "580.95.05-1"),
    "rocky9": ("nvidia-fabricmanager", "580.95.05-1"),
    "rocky10": ("nvidia-fabricmanager", "580.95.05-1"),
    "fedora": ("nvidia-fabricmanager", "580.95.05-1"),
    "leap": ("nvidia-fabricmanager", "580.95.05-1"),
}


def go(host: FakeHost, **given: Any) -> Outcome:
    return promises.go(UNIT, host, {}, **given)


def said(outcome: Outcome) -> list[str]:
    return [line.action for line in outcome.steps]


def down(outcome: Outcome) -> bool:
    """Whether the condition lasts."""
    found = [(condition.type, condition.status, condition.reason) for condition in outcome.conditions]
    assert found in ([], [DOWN])
    return bool(found)


def commands(host: FakeHost) -> list[str]:
    """What was run, without root's own records."""
    return [call for call in host.calls if not call.startswith(("write /var/lib/", "remove /var/lib/"))]


# -- hosts that need none


def test_a_host_without_nvswitches_has_nothing_to_do_and_nobody_is_asked() -> None:
    """A bridge between two cards is no switch."""
    host = nvswitch(product="NVIDIA A40", switches=False)
    outcome = go(host)
    assert (outcome.state, outcome.changed, outcome.steps, outcome.notes) == ("converged", False, (), ())
    assert not down(outcome)
    assert host.asked == []


def test_switches_that_the_driver_alone_shows_count_too() -> None:
    """As in a virtual machine whose bus says nothing of them."""
    host = nvswitch(switches=False)
    host.put("/proc/driver/nvidia-nvswitch/devices/0000:05:00.0/information", "BIOS Version: 96.10.6B.00.01\n")
    assert "start nvidia-fabricmanager.service" in said(go(host))


@pytest.mark.parametrize("name", ["NVIDIA GB200", "NVIDIA GB300"])
def test_a_rack_is_managed_from_outside_and_its_imex_left_alone(name: str) -> None:
    host = nvswitch(product=name)
    outcome = go(host)
    assert (outcome.state, outcome.steps, commands(host)) == ("converged", (), [])
    (note,) = outcome.notes
    assert name.split()[1] in note
    assert "nvidia-imex is left as it is" in note
    assert not down(outcome)


def test_names_are_compared_by_whole_words() -> None:
    """A GH200 by itself is neither an H200 board nor a rack."""
    assert planner.Board(products=("NVIDIA GH200 480GB",)).racks == ()
    assert planner.Board(products=("NVIDIA B200", "NVIDIA H200")).racks == ()
    assert planner.Board(products=("NVIDIA GB200-NVL",)).racks == ("GB200",)
    alone = nvswitch(product="NVIDIA GH200 480GB", switches=False)
    assert (go(alone).state, go(alone).steps) == ("converged", ())


def test_it_takes_no_settings() -> None:
    outcome = promises.go(UNIT, nvswitch(), {"version": "580.95.05"})
    assert outcome.failure is not None
    assert outcome.failure.reason == "Refused"
    assert "version" in outcome.failure.message


# -- installing


@pytest.mark.parametrize("kind", KINDS)
def test_the_loaded_driver_s_exact_version_is_installed_held_and_started(kind: str) -> None:
    board = Board()
    host = nvswitch(kind, board=board)
    first = go(host)
    assert (board.enabled, board.active) == (True, True)
    name, version = KINDS[kind]
    assert (first.state, first.failure) == ("converged", None)
    assert host.shelf.installed[name] == version
    assert not down(first)
    assert "start nvidia-fabricmanager.service" in said(first)
    promises.second_pass_is_quiet(UNIT, host, {})


@pytest.mark.parametrize("kind", KINDS)
def test_a_newer_one_in_the_repository_changes_nothing(kind: str) -> None:
    """The hold is the manager's own, so that no upgrade takes it along either."""
    host = nvswitch(kind)
    go(host)
    name, version = KINDS[kind]
    host.shelf.carried[name].append("600.10.01-1")
    age(host)
    promises.second_pass_is_quiet(UNIT, host, {})
    assert host.shelf.installed[name] == version
    held = {
        "ubuntu": lambda: name in host.shelf.held,
        "debian": lambda: name in host.shelf.held,
        "rocky9": lambda: f"{name}-0:{version}.*\n" in (host.text("/etc/dnf/plugins/versionlock.list") or ""),
        "rocky10": lambda: f"{name}-0:{version}.*\n" in (host.text("/etc/dnf/plugins/versionlock.list") or ""),
        "fedora": lambda: f'name = "{name}"' in (host.text("/etc/dnf/versionlock.toml") or ""),
        "leap": lambda: f"solvable_name: {name}\n" in (host.text("/etc/zypp/locks") or ""),
    }
    assert held[kind]()


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("ubuntu", "nvidia-fabricmanager-570"),
        ("debian", "nvidia-fabricmanager-570"),
        ("rocky9", "nvidia-fabric-manager"),
        ("leap", "nvidia-fabric-manager"),
    ],
)
def test_before_580_it_has_its_older_name(kind: str, name: str) -> None:
    host = nvswitch(kind, version="570.195.03")
    assert go(host).state == "converged"
    assert [one for one in host.shelf.installed if "fabric" in one] == [name]
    assert host.shelf.installed[name].startswith("570.195.03-")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fresh", [True, False])
def test_check_mode_says_the_steps_that_are_then_taken(kind: str, fresh: bool) -> None:
    def machine() -> FakeHost:
        host = nvswitch(kind)
        if not fresh:
            age(host)
        return host

    assert promises.check_is_truthful(UNIT, machine, {}).state == "converged"


def test_check_mode_knows_the_fabric_only_after_the_start() -> None:
    outcome = go(nvswitch(), check=True)
    assert said(outcome)[-2:] == [
        "start nvidia-fabricmanager.service",
        "nvidia-fabricmanager.service: known after Fabric Manager has started",
    ]


ASKED = ("is-active", "is-enabled")


@pytest.mark.parametrize("kind", ["ubuntu", "rocky9", "leap"])
def test_a_kill_loses_nothing(kind: str) -> None:
    def shown(host: FakeHost) -> object:
        assert isinstance(host, PackageHost)
        told = [host.programs["systemctl"](host, ("systemctl", ask, planner.SERVICE)).out for ask in ASKED]
        return dict(host.shelf.installed), set(host.shelf.held), told

    assert promises.a_kill_loses_nothing(UNIT, lambda: nvswitch(kind), {}, shown) > 3


def test_a_version_that_is_not_there_is_named_beside_those_that_are() -> None:
    host = nvswitch(version="580.105.08")
    outcome = go(host)
    assert outcome.failure is not None
    assert outcome.failure.retryable
    assert "the loaded driver is 580.105.08" in outcome.failure.message
    assert "580.82.07, 580.95.05, 580.126.20" in outcome.failure.message
    assert down(outcome)
    assert commands(host) == []


def test_a_transitional_package_is_not_the_version_that_its_name_says() -> None:
    carried = {"nvidia-fabricmanager-570": ["580.126.20-0ubuntu0.26.04.1"]}
    outcome = go(nvswitch(version="570.195.03", carried=carried))
    assert outcome.failure is not None
    assert "570.195.03" in outcome.failure.message
    assert "580.126.20" in outcome.failure.message


# -- the driver


def test_without_a_loaded_driver_it_waits() -> None:
    outcome = go(nvswitch(version=None))
    assert [wait.reason for wait in outcome.pending] == ["NotReady"]
    assert outcome.state == "progressing"
    assert down(outcome)


def test_in_check_mode_it_is_known_after_the_driver() -> None:
    seen = PredictedHost(nvswitch(version=None))
    after = "the driver is installed and loaded"
    effects = tuple(Effect("appears", path, after) for path in ("/proc/driver/nvidia", "/proc/driver/nvidia-nvswitch"))
    seen.apply(run(("apt-get", "install", "x"), "install the driver", effects=effects))
    outcome = converge(Goal(UNIT, {}), seen, Records(seen))
    assert said(outcome) == [f"fabric-manager: known after {after}"]


def test_a_driver_that_is_swapped_takes_its_fabric_manager_along() -> None:
    host = nvswitch()
    go(host)
    load(host, "580.126.20")
    outcome = go(host)
    assert outcome.state == "converged"
    assert said(outcome) == [
        "take the hold off nvidia-fabricmanager-580",
        "install nvidia-fabricmanager-580 580.126.20-0ubuntu0.24.04.1",
        "hold nvidia-fabricmanager-580 at 580.126.20-0ubuntu0.24.04.1",
        "restart nvidia-fabricmanager.service",
    ]
    assert [line.disruption for line in outcome.steps] == ["none", "gpu", "none", "gpu"]


def test_while_another_driver_waits_for_its_reboot_nothing_is_downgraded() -> None:
    """apt took Fabric Manager along with the driver that is installed, and not loaded yet."""
    host = nvswitch()
    go(host)
    host.come("nvidia-fabricmanager-580", "580.126.20-0ubuntu0.24.04.1")
    library(host, "580.126.20")
    host.calls.clear()
    outcome = go(host)
    (wait,) = outcome.pending
    assert wait.reason == "NotReady"
    assert "580.95.05" in wait.message
    assert "580.126.20" in wait.message
    assert commands(host) == []
    load(host, "580.126.20")
    assert go(host).state == "converged"


# -- under a running service


def mismatched(board: Board | None = None) -> PackageHost:
    """Fabric Manager runs at another version than the driver."""
    host = nvswitch(board=board or Board())
    go(host)
    host.come("nvidia-fabricmanager-580", "580.82.07-0ubuntu0.24.04.1")
    host.calls.clear()
    return host


def busy_by_hold(host: FakeHost, _board: Board) -> str:
    hold(host, "alloc7")
    return "alloc7"


def busy_by_release(host: FakeHost, _board: Board) -> str:
    """A Kubernetes hold is gone, and its pods may have the GPUs still."""
    entry = {"devices": [{"id": "GPU-1", "device_class": "gpu"}], "generation": 1, "since": 1, "asked": 1}
    host.put(RELEASING, json.dumps({"version": 1, "releases": {"alloc8": entry}}))
    return "alloc8"


def busy_by_process(_host: FakeHost, board: Board) -> str:
    board.apps.append("4711")
    return "4711"


def busy_by_open_node(host: FakeHost, _board: Board) -> str:
    """Not a CUDA context, so that nvidia-smi lists it not."""
    return opens(host, 77, "/usr/lib/xorg/Xorg", "/dev/nvidia0")


def busy_by_mps_client(host: FakeHost, _board: Board) -> str:
    """nvidia-smi lists the server of MPS alone."""
    return opens(host, 4712, "/usr/bin/python3", "/dev/nvidia-uvm")


def opens(host: FakeHost, pid: int, program: str, *nodes: str) -> str:
    """A process has nodes open; the words that name it."""
    host.links[f"/proc/{pid}/exe"] = program
    host.links.update({f"/proc/{pid}/fd/{at}": node for at, node in enumerate(nodes)})
    return f"process {pid} ({program.rpartition('/')[2]}) has {nodes[0]} open"


def ended(host: FakeHost) -> None:
    for path in [path for path in host.links if path.startswith("/proc/")]:
        del host.links[path]


def test_who_only_watches_gpus_or_has_no_gpu_keeps_nothing_up() -> None:
    host = mismatched()
    opens(host, 70, "/usr/bin/nvidia-persistenced", "/dev/nvidia0", "/dev/nvidiactl")
    opens(host, 71, "/usr/bin/nv-fabricmanager", "/dev/nvidiactl", "/dev/nvidia-nvswitch0")
    opens(host, 72, "/usr/bin/nv-hostengine", "/dev/nvidia0", "/dev/nvidia-uvm")
    opens(host, 73, "/usr/bin/nvtop", "/dev/nvidiactl")
    assert go(host).state == "converged"


def test_where_nvidia_smi_does_not_say_who_computes_nothing_is_changed() -> None:
    board = Board()
    host = mismatched(board)
    answers = host.programs["nvidia-smi"]
    lost = Answer(15, "Unable to determine the device handle for GPU 0000:17:00.0: GPU is lost.\n")
    host.programs["nvidia-smi"] = lambda host, argv: lost if "compute-apps" in argv[1] else answers(host, argv)
    (wait,) = go(host).pending
    assert wait.reason == "Busy"
    assert "does not say who computes" in wait.message
    assert "GPU is lost" in wait.message
    assert commands(host) == []
    host.programs["nvidia-smi"] = answers
    assert go(host).state == "converged"
    assert board.restarts == 1


def test_a_board_that_is_as_it_should_be_is_not_asked_who_computes() -> None:
    host = nvswitch()
    go(host)
    host.asked.clear()
    assert go(host).steps == ()
    assert [argv for argv in host.asked if "compute-apps" in argv[1]] == []


@pytest.mark.parametrize(
    "busy", [busy_by_hold, busy_by_release, busy_by_process, busy_by_open_node, busy_by_mps_client]
)
def test_a_running_one_is_not_changed_under_anyone(busy: Callable[[FakeHost, Board], str]) -> None:
    board = Board()
    host = mismatched(board)
    who = busy(host, board)
    outcome = go(host)
    (wait,) = outcome.pending
    assert (wait.reason, outcome.state, outcome.changed) == ("Busy", "progressing", False)
    assert who in wait.message
    assert commands(host) == []
    board.apps.clear()
    ended(host)
    for path in ("/etc/cdi/bcd-alloc7.json", RELEASING):
        host.files.pop(path, None)
    assert go(host).state == "converged"
    assert board.restarts == 1


def test_a_change_under_a_running_one_is_held_back_when_gpus_must_not_be_disturbed() -> None:
    host = mismatched()
    outcome = go(host, max_disruption="service")
    assert [wait.reason for wait in outcome.pending] == ["HeldBack"]
    assert host.shelf.installed["nvidia-fabricmanager-580"].startswith("580.82.07")
    assert "nvidia-fabricmanager-580" in host.shelf.held or go(host).state == "converged"


def test_the_restart_of_a_killed_pass_waits_for_whoever_came_meanwhile() -> None:
    board = Board()
    host = mismatched(board)
    host.kill_at = next(at for at in range(1, 30) if _killed_before(at))
    with pytest.raises(BaseException, match="systemctl restart"):
        go(host)
    host.kill_at = 0
    hold(host, "alloc9")
    outcome = go(host)
    assert [wait.reason for wait in outcome.pending] == ["Busy"]
    assert board.restarts == 0
    del host.files["/etc/cdi/bcd-alloc9.json"]
    assert go(host).state == "converged"
    assert board.restarts == 1


def _killed_before(at: int) -> bool:
    """Whether the n-th change of such a pass is the restart."""
    host = mismatched()
    go(host)
    return len(host.calls) >= at and host.calls[at - 1].startswith("systemctl restart")


# -- the service and the fabric


def test_a_stopped_one_is_started_although_somebody_holds_gpus() -> None:
    board = Board()
    host = nvswitch(board=board)
    go(host)
    board.active = False
    hold(host, "alloc7")
    outcome = go(host)
    assert (outcome.state, said(outcome)) == ("converged", ["start nvidia-fabricmanager.service"])
    assert [line.disruption for line in outcome.steps] == ["none"]


def test_one_that_does_not_stay_up_is_down_whatever_systemctl_exits_with() -> None:
    board = Board()
    board.starts = False
    outcome = go(nvswitch(board=board))
    assert outcome.state == "progressing"
    assert outcome.failure is not None
    assert "done without effect" in outcome.failure.message
    assert down(outcome)


def test_a_masked_service_is_its_owner_s_decision() -> None:
    board = Board()
    host = nvswitch(board=board)
    go(host)
    board.active, board.masked = False, True
    outcome = go(host)
    assert outcome.failure is not None
    assert "systemctl unmask nvidia-fabricmanager.service" in outcome.failure.message
    assert down(outcome)


def test_gpus_are_waited_for_until_they_have_joined() -> None:
    board = Board()
    board.joins_after = 5
    host = nvswitch(board=board)
    outcome = go(host)
    assert (outcome.state, down(outcome)) == ("converged", False)
    assert host.now > 0


def test_a_fabric_that_is_not_up_is_a_condition_although_the_service_runs() -> None:
    board = Board("In Progress, [N/A]")
    host = nvswitch(board=board)
    outcome = go(host)
    (wait,) = outcome.pending
    assert (wait.reason, outcome.state) == ("NotReady", "progressing")
    assert GPUS[0] in wait.message
    assert "In Progress" in wait.message
    assert down(outcome)
    board.state = "Completed, Success"
    later = go(host)
    assert (later.state, down(later), later.changed) == ("converged", False, False)


def test_a_fabric_that_failed_is_named_by_its_status() -> None:
    outcome = go(nvswitch(board=Board("Completed, Insufficient Resources")))
    assert down(outcome)
    assert "Insufficient Resources" in outcome.pending[0].message


def test_before_hopper_gpus_say_nothing_and_the_service_alone_counts() -> None:
    outcome = go(nvswitch(product="NVIDIA A100-SXM4-80GB", board=Board("[N/A], [N/A]")))
    assert (outcome.state, down(outcome)) == ("converged", False)


@pytest.mark.parametrize("said", ["[Unknown Error], [Unknown Error]", "[GPU is lost], [GPU is lost]", "[N/A], Success"])
def test_a_gpu_that_fails_to_tell_its_place_has_not_joined(said: str) -> None:
    outcome = go(nvswitch(board=Board(said)))
    assert (outcome.state, down(outcome)) == ("progressing", True)
    assert said.partition(",")[0].strip("[]") in outcome.pending[0].message.replace("None", "N/A")


def test_a_gpu_in_mig_mode_has_no_links_and_is_not_waited_for() -> None:
    board = Board("Not Started, [N/A]")
    board.mig = set(GPUS)
    assert go(nvswitch(board=board)).state == "converged"
    board.mig = {GPUS[0]}
    outcome = go(nvswitch(board=board))
    assert GPUS[0] not in outcome.pending[0].message
    assert GPUS[1] in outcome.pending[0].message


def test_the_question_for_the_fabric_is_the_one_whose_answer_a_start_changes() -> None:
    seen = PredictedHost(nvswitch())
    converge(Goal(UNIT, {}), seen, Records(seen))
    with pytest.raises(NotKnownYet, match="Fabric Manager has started"):
        fabric_states(seen)


# -- NVLink 5


def board_of_b200(kind: str = "ubuntu") -> PackageHost:
    host = nvswitch(kind, product="NVIDIA B200")
    nvlink5(host)
    return host


@pytest.mark.parametrize("kind", KINDS)
def test_nvlink_5_has_its_subnet_manager_and_its_module(kind: str) -> None:
    host = board_of_b200(kind)
    outcome = go(host)
    assert outcome.state == "converged"
    assert {"nvlsm", "infiniband-diags", KINDS[kind][0]} <= host.shelf.installed.keys()
    assert host.text(LOAD) == f"{HEADER}ib_umad\n"
    assert host.text("/sys/module/ib_umad/refcnt") is not None
    promises.second_pass_is_quiet(UNIT, host, {})
    assert "nvlsm" not in host.shelf.held


def test_the_module_comes_before_the_service() -> None:
    actions = said(go(board_of_b200()))
    assert actions.index("load the module ib_umad, through which the NVLink switches are managed") < actions.index(
        "start nvidia-fabricmanager.service"
    )


def test_check_mode_is_truthful_on_nvlink_5() -> None:
    assert promises.check_is_truthful(UNIT, board_of_b200, {}).state == "converged"


def test_a_missing_subnet_manager_is_named() -> None:
    host = board_of_b200()
    del host.shelf.index["nvlsm"]
    outcome = go(host)
    assert outcome.failure is not None
    assert outcome.failure.retryable
    assert "nvlsm" in outcome.failure.message


def test_adapters_of_another_kind_make_no_board() -> None:
    host = nvswitch(product="NVIDIA H100 PCIe", switches=False)
    adapter(host, "0000:18:00.0", "\x82\x1aConnectX-7\udcff")
    assert go(host).steps == ()


def test_a_board_is_known_though_a_module_that_may_bring_anything_is_to_be_loaded() -> None:
    """Check mode of a whole host: kernel-modules has its turn before, and what its module brings nobody knows."""
    host = nvswitch()
    predicted = PredictedHost(host)
    appears = tuple(Effect("appears", path, "the module tun is loaded") for path in ("/sys/class", "/dev"))
    predicted.apply(run(("modprobe", "tun"), "load the module tun", effects=appears))
    outcome = converge(Goal(UNIT, {}), predicted, Records(predicted))
    assert [line.action for line in outcome.steps if "the module tun is loaded" in line.action] == []
    assert promises.lines(outcome) == said(go(host))


# -- removal


def test_leaving_keeps_it_running_and_says_so() -> None:
    host = nvswitch()
    go(host)
    host.calls.clear()
    outcome = promises.go(UNIT, host, None)
    assert (outcome.state, commands(host)) == ("converged", [])
    assert "keeps running" in outcome.notes[0]
