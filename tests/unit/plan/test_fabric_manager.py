# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fabric-manager on a switched board: what each thing that is not as it should be has for a consequence."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Past, Plan
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.fabric_manager import (
    LOAD,
    RESTART,
    SERVICE,
    Board,
    Joined,
    Now,
    Settings,
    load_text,
    plan,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.service_seen import Service

JOINED = (Joined("GPU-1", "Completed", "Success"), Joined("GPU-2", None, None))
UP = Now(
    board=Board(("0000:05:00.0",), (), ("NVIDIA H100 80GB HBM3",)),
    driver="580.95.05",
    library="580.95.05",
    service=Service("loaded", "active", "enabled"),
    fabric=JOINED,
)
NVLINK_5 = UP._replace(board=Board((), ("0000:18:00.0",), ("NVIDIA B200",)), umad=True, load_file=File(load_text()))


def made(now: Now, **past: Any) -> Plan:
    return plan(Settings(), now, Past(**past))


def actions(now: Now, **past: Any) -> list[str]:
    return [step.action for step in made(now, **past).steps]


@pytest.mark.parametrize("now", [UP, NVLINK_5])
def test_a_fabric_that_is_up_needs_nothing(now: Now) -> None:
    assert not made(now).steps
    assert not made(now).pending
    assert not made(now).conditions


def test_a_service_that_runs_and_is_not_enabled_is_enabled() -> None:
    assert actions(UP._replace(service=Service("loaded", "active", "disabled"))) == [f"enable {SERVICE}"]


def test_one_that_does_not_run_is_started() -> None:
    assert actions(UP._replace(service=Service("loaded", "inactive", "enabled"))) == [f"start {SERVICE}"]


def test_one_that_owes_a_restart_is_restarted() -> None:
    assert actions(UP, owed=frozenset((RESTART,))) == [f"restart {SERVICE}"]


def test_without_a_loaded_driver_it_waits() -> None:
    assert [one.reason for one in made(UP._replace(driver=None, fabric=())).pending] == ["NotReady"]


def test_the_module_of_nvlink_5_is_loaded_now_and_at_each_boot() -> None:
    now = made(NVLINK_5._replace(umad=False)).steps
    boot = made(NVLINK_5._replace(load_file=None)).steps
    assert [step.argv for step in now] == [("modprobe", "--", "ib_umad")]
    assert [step.path for step in boot] == [LOAD]
    assert not made(UP._replace(umad=False, load_file=None)).steps


@pytest.mark.parametrize("place", [("In Progress", "N/A"), ("Completed", "Failure"), ("[GPU is lost]", None)])
def test_a_gpu_that_has_not_joined_is_waited_for(place: tuple[str, str | None]) -> None:
    found = made(UP._replace(fabric=(*JOINED, Joined("GPU-3", *place))))
    assert [one.reason for one in found.pending] == ["NotReady"]
    assert "GPU-3" in found.pending[0].message
