# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""gpu-settings on whole simulated machines: real ranges, dead GPUs, reboots, and its place beside mig-layout."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.runner import Goal, converge
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.gpu_settings import UNIT
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.mig_layout import UNIT as MIG_LAYOUT
from tests.gpu.fake import GpuHost, gpu_host
from tests.gpu.model import Fault, Machine
from tests.unit.promises import a_kill_loses_nothing, check_is_truthful, go, lines, second_pass_is_quiet

# Watts that boards take, as hardware shows them.
RANGES = {
    "A100-40GB": (100, 400),
    "H100-80GB": (200, 700),
    "B200-180GB": (200, 1000),
    "GB200-186GB": (200, 1200),
    "GB300": (200, 1400),
    "L40S": (100, 350),
    "T4": (60, 70),
}
SETTINGS = {"powerLimitWatts": 300, "ecc": False}


def host_of(*products: str) -> GpuHost:
    return gpu_host(Machine.from_products(products))


def watts(host: GpuHost) -> list[float]:
    return [card.power for card in host.machine.cards]


@pytest.mark.parametrize(("product", "low", "high"), [(name, *limits) for name, limits in RANGES.items()])
def test_each_board_is_held_to_its_own_range(product: str, low: int, high: int) -> None:
    for limit in (low, high):
        host = host_of(product)
        assert (go(UNIT, host, {"powerLimitWatts": limit}).state, watts(host)) == ("converged", [limit])
    for limit in (low - 1, high + 1):
        host = host_of(product)
        outcome = go(UNIT, host, {"powerLimitWatts": limit})
        assert outcome.failure is not None
        assert outcome.failure.reason == "Refused"
        assert f"GPU 0 takes {low} to {high} W, not {limit}" in outcome.failure.message
        assert host.calls == []


def test_mixed_boards_take_a_limit_by_model() -> None:
    host = host_of("H100-80GB", "T4", "L40S")
    outcome = go(UNIT, host, SETTINGS)
    assert outcome.failure is not None
    assert "GPU 1 takes 60 to 70 W, not 300" in outcome.failure.message
    settings = {**SETTINGS, "gpus": [{"select": {"model": "*T4"}, "powerLimitWatts": 65, "ecc": True}]}
    go(UNIT, host, settings)
    assert watts(host) == [300, 65, 300]
    assert [card.ecc_pending for card in host.machine.cards] == [False, True, False]


def test_a_board_without_power_management_and_ecc_is_passed_over() -> None:
    host = host_of("GT-1030", "L40S")
    outcome = go(UNIT, host, {"powerLimitWatts": 300, "ecc": True})
    assert (outcome.state, watts(host)[1]) == ("converged", 300)
    assert outcome.notes == (
        "GPU 0 has no power management: its power limit is left as it is",
        "GPU 0 has no ECC: its mode is left as it is",
    )


@pytest.mark.parametrize("dead", ["fields", "handle"])
def test_one_dead_gpu_does_not_stop_the_others(dead: str) -> None:
    host = host_of("H100-80GB", "H100-80GB", "H100-80GB")
    host.machine.cards[1].dead = dead
    outcome = go(UNIT, host, SETTINGS)
    assert outcome.failure is not None
    assert (outcome.state, outcome.failure.retryable, watts(host)) == ("progressing", True, [300, 700, 300])
    assert "GPU is lost" in outcome.failure.message
    assert len(outcome.failure.message) < 250
    assert "--query-gpu" not in outcome.failure.message
    assert [wait.message for wait in outcome.pending] == [
        "gpu-settings: the ECC mode of GPU(s) 0, 2 changes at their next reset: reboot the node"
    ]
    host.machine.cards[1].dead = ""
    assert go(UNIT, host, SETTINGS).failure is None
    assert watts(host) == [300, 300, 300]


def test_a_reboot_brings_the_ecc_mode_and_takes_the_limit_which_the_next_pass_sets_again() -> None:
    host = host_of("A100-40GB", "A100-40GB")
    assert go(UNIT, host, SETTINGS).state == "progressing"
    host.boot()
    assert (watts(host), [card.ecc for card in host.machine.cards]) == ([400, 400], [False, False])
    outcome = go(UNIT, host, SETTINGS)
    assert (outcome.state, outcome.changed, watts(host)) == ("converged", True, [300, 300])
    second_pass_is_quiet(UNIT, host, SETTINGS)


def test_a_gpu_with_mig_takes_a_limit_too() -> None:
    host = host_of("H100-80GB")
    host.machine.cards[0].mig = host.machine.cards[0].mig_pending = True
    assert (go(UNIT, host, {"powerLimitWatts": 300}).state, watts(host)) == ("converged", [300])


def test_in_check_mode_a_layout_behind_it_is_planned_all_the_same() -> None:
    """What these settings make unknown is their own question alone."""
    host = PredictedHost(host_of("H100-80GB"))
    records = Records(host)
    first = converge(Goal(UNIT, SETTINGS), host, records)
    second = converge(Goal(MIG_LAYOUT, {"layout": "all-1g.10gb"}), host, records)
    assert len(lines(first)) == 2
    assert lines(second)
    assert not [line for line in second.steps if line.later]


def test_a_driver_that_is_gone_between_two_calls_is_waited_for() -> None:
    host = host_of("H100-80GB")
    host.machine.faults.append(Fault("-pl", rc=9, text="NVIDIA-SMI has failed because it couldn't communicate ...\n\n"))
    outcome = go(UNIT, host, {"powerLimitWatts": 300})
    assert outcome.failure is not None
    assert (outcome.state, outcome.failure.retryable) == ("progressing", True)


def test_check_mode_says_the_steps_that_are_then_taken() -> None:
    check_is_truthful(UNIT, lambda: host_of("H100-80GB", "L40S"), SETTINGS)


def test_a_pass_killed_anywhere_is_finished_by_the_next() -> None:
    def shown(host: object) -> object:
        assert isinstance(host, GpuHost)
        return watts(host), [card.ecc_pending for card in host.machine.cards]

    assert a_kill_loses_nothing(UNIT, lambda: host_of("H100-80GB", "L40S"), SETTINGS, shown) >= 4
