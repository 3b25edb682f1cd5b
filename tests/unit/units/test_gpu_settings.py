# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""gpu-settings on GPUs in memory whose nvidia-smi says what the recorded one says."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import NotKnownYet, Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.runner import Goal, converge
from ansible_collections.bettercompute.bcd.plugins.module_utils.look import smi
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import gpu_settings as planner
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.gpu_settings import UNIT
from tests.unit.fake_host import FakeHost
from tests.unit.gpu_cards import HANG, LIE, Cards, card, uuid
from tests.unit.promises import a_kill_loses_nothing, check_is_truthful, go, lines, second_pass_is_quiet

T4 = {"name": "Tesla T4", "power_limit": "70.00", "power_min_limit": "60.00", "power_max_limit": "70.00"}
NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA "
    "driver is installed and running.\n\n"
)


def host_of(*cards: dict[str, str]) -> tuple[FakeHost, Cards]:
    gpus = Cards(*cards)
    files = {
        f"/proc/driver/nvidia/gpus/{values['pci.bus_id'][4:].lower()}/information": (
            f"Model: \t\t {values['name']}\nIRQ:   \t\t 42\nGPU UUID: \t {values['uuid']}\nBus Type: \t PCIe\n"
            f"Bus Location: \t {values['pci.bus_id'][4:].lower()}\nGPU Excluded:\t No\n"
        )
        for values in cards
    }
    return FakeHost(files, {"nvidia-smi": gpus}), gpus


def two() -> FakeHost:
    return host_of(card(0), card(1))[0]


def values(gpus: Cards, field: str) -> list[str]:
    return [one[field] for one in gpus.cards]


# -- settings


def test_no_setting_runs_no_program() -> None:
    host, _gpus = host_of(card(0))
    nothing: tuple[dict[str, Any] | None, ...] = ({}, None, {"gpus": []})
    for settings in nothing:
        outcome = go(UNIT, host, settings)
        assert (outcome.state, outcome.steps, host.asked) == ("converged", (), [])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"powerLimitWatts": True}, "powerLimitWatts is true or false"),
        ({"powerLimitWatts": 300.5}, "takes an integer"),
        ({"powerLimitWatts": 0}, "powerLimitWatts is 0"),
        ({"powerLimitWatts": 10**400}, "powerLimitWatts is more than 100000"),
        ({"ecc": "on"}, "ecc is a string"),
        ({"power": 3}, "'power' is no setting"),
        ({"gpus": {}}, "gpus is a mapping"),
        ({"gpus": [{"ecc": True}]}, "gpus[0] has no select"),
        ({"gpus": [{"select": {"index": 0}}]}, "gpus[0] sets neither"),
        ({"gpus": [{"select": {"index": 0, "model": "*"}, "ecc": True}]}, "exactly one of"),
        (
            {"gpus": [{"select": {"index": 0}, "ecc": True}, {"select": {"index": 1}, "powerLimitWatts": -5}]},
            "gpus[1].",
        ),
        ({"gpus": [{"select": {"index": 0}, "watts": 5}]}, "gpus[0].watts"),
    ],
)
def test_settings_are_strict(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused, match="gpu-settings: ") as refused:
        planner.check(settings)
    assert said in refused.value.message


# -- power


def test_every_gpu_gets_the_limit_and_the_second_pass_is_quiet() -> None:
    host, gpus = host_of(card(0), card(1))
    outcome = go(UNIT, host, {"powerLimitWatts": 500})
    assert (outcome.state, outcome.changed) == ("converged", True)
    assert values(gpus, "power.limit") == ["500.00", "500.00"]
    assert host.calls[1:] == [f"nvidia-smi -i {uuid(0)} -pl 500", f"nvidia-smi -i {uuid(1)} -pl 500"]
    assert {line.disruption for line in outcome.steps} == {"none"}
    second_pass_is_quiet(UNIT, host, {"powerLimitWatts": 500})


@pytest.mark.parametrize(("shown", "sets"), [("400.00", 0), ("400.99", 0), ("399.01", 0), ("401.00", 1), ("399.00", 1)])
def test_a_limit_that_differs_by_a_watt_or_more_is_set(shown: str, sets: int) -> None:
    host, _gpus = host_of(card(0, power_limit=shown))
    assert len(go(UNIT, host, {"powerLimitWatts": 400}).steps) == sets


def test_the_driver_forgets_the_limit_and_the_next_pass_sets_it_again() -> None:
    host, gpus = host_of(card(0))
    go(UNIT, host, {"powerLimitWatts": 500})
    gpus.cards[0]["power.limit"] = "700.00"
    again = go(UNIT, host, {"powerLimitWatts": 500})
    assert (again.state, again.changed, values(gpus, "power.limit")) == ("converged", True, ["500.00"])


def test_a_limit_out_of_range_is_refused_and_nothing_is_written_on_any_gpu() -> None:
    host, gpus = host_of(card(0), card(1, **T4))
    outcome = go(UNIT, host, {"powerLimitWatts": 400, "ecc": False})
    assert outcome.failure is not None
    assert (outcome.state, outcome.failure.reason, outcome.failure.retryable) == ("failed", "Refused", False)
    assert outcome.failure.message.startswith("gpu-settings: GPU 1 takes 60 to 70 W, not 400")
    assert (host.calls, values(gpus, "power.limit")) == ([], ["700.00", "70.00"])


@pytest.mark.parametrize(("watts", "fits"), [(199, False), (200, True), (700, True), (701, False)])
def test_the_ends_of_the_range_belong_to_it(watts: int, fits: bool) -> None:
    host, _gpus = host_of(card(0))
    assert (go(UNIT, host, {"powerLimitWatts": watts}).state == "converged") is fits


def test_a_gpu_without_power_management_is_passed_over_with_a_note() -> None:
    bare = {"power_limit": "[N/A]", "power_min_limit": "[N/A]", "power_max_limit": "[N/A]"}
    for limit in ("[N/A]", "[Not Supported]", "[Unknown Error]"):
        host, gpus = host_of(card(0), card(1, **{**bare, "power_limit": limit}))
        outcome = go(UNIT, host, {"powerLimitWatts": 500})
        assert (outcome.state, values(gpus, "power.limit")) == ("converged", ["500.00", limit])
        assert outcome.notes == ("GPU 1 has no power management: its power limit is left as it is",)


def test_a_limit_asked_of_a_gpu_by_itself_that_has_none_is_refused() -> None:
    bare = {"power_limit": "[Unknown Error]", "power_min_limit": "[N/A]", "power_max_limit": "[N/A]"}
    host, _gpus = host_of(card(0), card(1, **bare))
    outcome = go(UNIT, host, {"gpus": [{"select": {"index": 1}, "powerLimitWatts": 300}]})
    assert outcome.failure
    assert outcome.failure.reason == "Refused"
    assert "GPU 1 (NVIDIA H100 80GB HBM3) has no power management" in outcome.failure.message
    assert host.calls == []


def test_a_range_that_is_not_shown_leaves_the_driver_to_judge() -> None:
    host, gpus = host_of(card(0, power_min_limit="[N/A]", power_max_limit="[N/A]"))
    assert go(UNIT, host, {"powerLimitWatts": 500}).state == "converged"
    assert values(gpus, "power.limit") == ["500.00"]


def test_persistence_mode_that_is_off_is_said() -> None:
    host, _gpus = host_of(card(0), card(1, persistence_mode="Disabled"))
    outcome = go(UNIT, host, {"powerLimitWatts": 700})
    assert len(outcome.notes) == 1
    assert outcome.notes[0].startswith("persistence mode is off on GPU(s) 1")
    assert go(UNIT, host, {"ecc": True}).notes == ()


# -- per-GPU values


def test_the_first_selector_that_takes_a_gpu_counts_for_it() -> None:
    host, gpus = host_of(card(0), card(1), card(2, **T4), card(3))
    settings = {
        "powerLimitWatts": 600,
        "gpus": [
            {"select": {"pci": "0000:1d:00.0"}, "ecc": False},
            {"select": {"model": "Tesla*"}, "powerLimitWatts": 65},
            {"select": {"uuid": uuid(1)}, "powerLimitWatts": 300},
            {"select": {"index": 1}, "powerLimitWatts": 200},
        ],
    }
    outcome = go(UNIT, host, settings)
    assert values(gpus, "power.limit") == ["600.00", "300.00", "65.00", "600.00"]
    assert values(gpus, "ecc.mode.pending") == ["Enabled", "Enabled", "Enabled", "Disabled"]
    assert [wait.reason for wait in outcome.pending] == ["RebootRequired"]


def test_a_selector_without_a_gpu_is_terminal_once_nvidia_smi_answers() -> None:
    host, gpus = host_of(card(0))
    settings = {"powerLimitWatts": 500, "gpus": [{"select": {"index": 4}, "ecc": True}]}
    outcome = go(UNIT, host, settings)
    assert outcome.failure
    assert outcome.failure.reason == "Refused"
    assert (
        "gpus[0].select takes none of this host's GPUs (index 4), which have the indexes 0: correct"
        in outcome.failure.message
    )
    assert host.calls == []
    gpus.faults["nvidia-smi"] = Answer(9, NO_DRIVER)
    assert [wait.reason for wait in go(UNIT, host, settings).pending] == ["NotReady"]


# -- ECC


def test_ecc_is_set_for_the_next_reset_and_waits_for_it() -> None:
    host, gpus = host_of(card(0), card(1), card(2, ecc_mode_current="Disabled", ecc_mode_pending="Disabled"))
    outcome = go(UNIT, host, {"ecc": False})
    assert host.calls[1:3] == [f"nvidia-smi -i {uuid(0)} -e 0", f"nvidia-smi -i {uuid(1)} -e 0"]
    assert (outcome.state, outcome.changed) == ("progressing", True)
    assert [(wait.reason, wait.message) for wait in outcome.pending] == [
        (
            "RebootRequired",
            "gpu-settings: the ECC mode of GPU(s) 0, 1 changes at their next reset: reboot the node",
        )
    ]
    again = second_pass_is_quiet(UNIT, host, {"ecc": False})
    assert again.pending == outcome.pending
    for one in gpus.cards:
        one["ecc.mode.current"] = one["ecc.mode.pending"]
    host.reboot()
    assert go(UNIT, host, {"ecc": False}).state == "converged"


def test_a_mode_armed_by_someone_else_is_taken_back_without_a_reboot() -> None:
    host, gpus = host_of(card(0, ecc_mode_pending="Disabled"))
    outcome = go(UNIT, host, {"ecc": True})
    assert (outcome.state, outcome.pending, values(gpus, "ecc.mode.pending")) == ("converged", (), ["Enabled"])


def test_a_gpu_without_ecc_is_passed_over_unless_it_is_asked_by_itself() -> None:
    bare = {"ecc_mode_current": "[N/A]", "ecc_mode_pending": "[N/A]"}
    host, _gpus = host_of(card(0), card(1, **bare))
    outcome = go(UNIT, host, {"ecc": True})
    assert (outcome.state, outcome.notes) == ("converged", ("GPU 1 has no ECC: its mode is left as it is",))
    refused = go(UNIT, host, {"gpus": [{"select": {"index": 1}, "ecc": True}]})
    assert refused.failure
    assert refused.failure.reason == "Refused"
    assert go(UNIT, host, {"gpus": [{"select": {"index": 1}, "ecc": False}]}).state == "converged"


# -- one dead GPU


@pytest.mark.parametrize(
    "text",
    [
        "[GPU is lost]",
        "[GPU requires reset]",
        "[Unknown Error]",
        "[Insufficient Permissions]",
        "[Resource not in correct state to perform requested operation]",
        "[Requested functionality has been deprecated]",
        "nan",
        "inf",
        "-400.00",
        "400.00 W",
        "",
    ],
)
def test_a_gpu_with_a_fault_for_a_value_fails_by_itself(text: str) -> None:
    host, gpus = host_of(card(0, power_limit=text), card(1))
    outcome = go(UNIT, host, {"powerLimitWatts": 500})
    assert outcome.failure is not None
    assert outcome.failure.retryable
    assert text in outcome.failure.message
    assert uuid(0) in outcome.failure.message
    assert (outcome.state, values(gpus, "power.limit")) == ("progressing", [text, "500.00"])
    host, gpus = host_of(card(0, ecc_mode_current=text, ecc_mode_pending=text), card(1))
    outcome = go(UNIT, host, {"ecc": False})
    assert outcome.failure is not None
    assert text in outcome.failure.message
    assert values(gpus, "ecc.mode.pending") == [text, "Disabled"]
    assert [wait.message.split(":")[1] for wait in outcome.pending] == [
        " the ECC mode of GPU(s) 1 changes at their next reset"
    ]


def test_a_query_that_fails_for_one_gpu_is_asked_of_each() -> None:
    host, gpus = host_of(card(0), card(1), card(2))
    lost = "Unable to determine the device handle for GPU1: 0000:1B:00.0: GPU is lost.  Reboot the system to recover\n"
    gpus.faults["--format=csv,noheader,nounits -i 00000000:1B:00.0"] = Answer(15, lost)
    whole = Answer(15, lost)
    host.programs["nvidia-smi"] = lambda seen, argv: whole if "-i" not in argv else gpus(seen, argv)
    outcome = go(UNIT, host, {"powerLimitWatts": 500})
    assert values(gpus, "power.limit") == ["500.00", "700.00", "500.00"]
    assert outcome.failure is not None
    assert "GPU is lost" in outcome.failure.message
    assert outcome.state == "progressing"


def test_where_no_gpu_answers_the_unit_fails_with_what_nvidia_smi_said() -> None:
    host, gpus = host_of(card(0), card(1))
    gpus.faults["nvidia-smi"] = Answer(15, "Failed to initialize NVML: GPU is lost\n")
    outcome = go(UNIT, host, {"powerLimitWatts": 500})
    assert outcome.failure is not None
    assert outcome.failure.retryable
    assert "GPU is lost" in outcome.failure.message


# -- faults of every call


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(127, "", "nvidia-smi: no such program"), "NotReady"),
        (Answer(9, NO_DRIVER), "NotReady"),
        (Answer(12, "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n"), "NotReady"),
        (Answer(6, "No devices were found\n"), "NotReady"),
        (Answer(0, "No devices found.\n"), "NotReady"),
        (Answer(0, ""), ""),
        (Answer(18, "Failed to initialize NVML: Driver/library version mismatch\nNVML library: 550.163\n"), "NotReady"),
        (Answer(255, "Failed to initialize NVML: Driver/library version mismatch\n"), "NotReady"),
        (Answer(4, "Failed to initialize NVML: Insufficient Permissions\n"), ""),
        (Answer(17, "Failed to initialize NVML: GPU access blocked by the operating system\n"), ""),
        (Answer(255, "Failed to initialize NVML: Unknown Error\n"), ""),
        (Answer(255, "Failed to initialize NVML: Timeout\n"), ""),
        (Answer(2, 'Field "power.limit" is not a valid field to query.\n\n'), ""),
        (Answer(0, "0, GPU-01000100-0000-0000-0000-000000000000, NVIDIA H100 80GB HBM3\n"), ""),
        (Answer(139, ""), ""),
        (HANG, ""),
    ],
)
def test_a_query_that_does_not_answer_never_converges(answer: Any, reason: str) -> None:
    host, gpus = host_of(card(0))
    gpus.faults["nvidia-smi"] = answer
    outcome = go(UNIT, host, {"powerLimitWatts": 500, "ecc": True})
    assert outcome.state == "progressing"
    assert [wait.reason for wait in outcome.pending] == ([reason] if reason else [])
    assert (outcome.failure is None) is bool(reason)
    gpus.faults.clear()
    assert go(UNIT, host, {"powerLimitWatts": 500, "ecc": True}).state == "converged"


UNSUPPORTED = (
    "Changing power management limit is not supported for GPU: 00000000:1A:00.0.\n"
    "Treating as warning and moving on.\nAll done.\n"
)
SETTERS = [
    ("-pl 500", LIE),
    ("-pl 500", HANG),
    ("-pl 500", Answer(0, UNSUPPORTED)),
    ("-pl 500", Answer(2, "Provided power limit 500.00 W is not a valid power limit which should be between ...\n")),
    ("-pl 500", Answer(4, "Failed to set power management limit for GPU 00000000:1A:00.0: Insufficient Permissions\n")),
    ("-pl 500", Answer(2, "Failed to set power management limit for GPU 00000000:1A:00.0: Invalid Argument\n")),
    ("-pl 500", Answer(15, "GPU is lost\n")),
    ("-e 0", LIE),
    ("-e 0", HANG),
    ("-e 0", Answer(4, "Unable to set ECC config for GPU 00000000:1A:00.0: Insufficient Permissions\n")),
    ("-e 0", Answer(0, "Unable to set ECC config for GPU 00000000:1A:00.0: Not Supported\nTreating as warning\n")),
    ("-e 0", Answer(0, "ECC features not supported for GPU 00000000:1A:00.0.\nTreating as warning and moving on.\n")),
]


@pytest.mark.parametrize(("words", "fault"), SETTERS)
def test_a_setter_that_fails_or_lies_fails_its_gpu_and_the_next_pass_makes_it_good(words: str, fault: Any) -> None:
    host, gpus = host_of(card(0), card(1))
    settings = {"powerLimitWatts": 500, "ecc": False}
    gpus.faults[f"-i {uuid(0)} {words}"] = fault
    outcome = go(UNIT, host, settings)
    assert outcome.failure is not None
    assert outcome.failure.retryable
    assert outcome.state == "progressing"
    other = gpus.cards[1]
    assert (other["power.limit"], other["ecc.mode.pending"]) == ("500.00", "Disabled")
    armed = ", ".join(one["index"] for one in gpus.cards if one["ecc.mode.pending"] == "Disabled")
    assert [f"the ECC mode of GPU(s) {armed} changes" in wait.message for wait in outcome.pending] == [True]
    gpus.faults.clear()
    again = go(UNIT, host, settings)
    assert again.failure is None
    assert [wait.reason for wait in again.pending] == ["RebootRequired"]
    assert (values(gpus, "power.limit"), values(gpus, "ecc.mode.pending")) == (["500.00"] * 2, ["Disabled"] * 2)


# -- what every unit promises


def test_check_mode_says_the_steps_that_are_then_taken() -> None:
    real = check_is_truthful(UNIT, two, {"powerLimitWatts": 500, "ecc": False})
    assert len(real.steps) == 4
    planned = go(UNIT, two(), {"powerLimitWatts": 500, "ecc": False}, check=True)
    assert planned.pending == real.pending


def test_a_pass_killed_anywhere_is_finished_by_the_next() -> None:
    def shown(host: FakeHost) -> object:
        gpus = host.programs["nvidia-smi"]
        assert isinstance(gpus, Cards)
        return values(gpus, "power.limit"), values(gpus, "ecc.mode.pending")

    assert a_kill_loses_nothing(UNIT, two, {"powerLimitWatts": 500, "ecc": False}, shown) >= 4


def test_removal_undoes_nothing_and_says_so() -> None:
    host, gpus = host_of(card(0))
    go(UNIT, host, {"powerLimitWatts": 500})
    asked = len(host.asked)
    outcome = go(UNIT, host, None)
    assert (outcome.state, values(gpus, "power.limit"), len(host.asked)) == ("converged", ["500.00"], asked)
    assert outcome.notes == ("power limits stay until the driver is loaded again, and ECC modes stay",)


def test_our_effects_name_the_line_that_the_look_asks() -> None:
    host, _gpus = host_of(card(0))
    predicted = PredictedHost(host)
    converge(Goal(UNIT, {"powerLimitWatts": 500}), predicted, Records(predicted))
    (row,) = smi.told(host, planner.QUERIED)
    assert row["power.limit"] == "700.00"
    with pytest.raises(NotKnownYet, match="the power limit of GPU 0 is set"):
        smi.told(predicted, planner.QUERIED)
    others = ("index", "uuid", "pci.bus_id", "name", "power.limit")  # of a unit that does not care for our steps
    assert smi.told(predicted, others) == smi.told(host, others)


def test_a_selected_index_is_what_a_line_says() -> None:
    assert lines(go(UNIT, two(), {"gpus": [{"select": {"index": 1}, "powerLimitWatts": 250}]})) == [
        "set the power limit of GPU 1 to 250 W"
    ]


def test_a_gpu_that_nvidia_smi_leaves_out_fails_and_the_others_are_set() -> None:
    """The driver has taken it and could not start it: nvidia-smi exits with 0 and shows the rest."""
    host, _gpus = host_of(card(0))
    for pci, known in (("0000:1a:00.0", uuid(0)), ("0000:c1:00.0", "GPU-????????")):
        host.put(f"/proc/driver/nvidia/gpus/{pci}/information", f"Model: \t\t NVIDIA H100\nGPU UUID: \t {known}\n")
    outcome = go(UNIT, host, {"powerLimitWatts": 500})
    assert outcome.state == "progressing"
    assert outcome.failure is not None
    assert "00000000:C1:00.0" in outcome.failure.message
    assert "nvidia-smi does not list it" in outcome.failure.message
    host.put("/proc/driver/nvidia/gpus/0000:c1:00.0/information", "Model: \t\t NVIDIA H100\nGPU Excluded:\t Yes\n")
    assert go(UNIT, host, {"powerLimitWatts": 500}).state == "converged"
