# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a GPU is shared, as a fact."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.gpu_shares import SERVICE as PATH
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.files import HEADER
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.gpu_shares import settings_of, share_of
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.gpu_sharing_service import SERVICE, WANTED_BY
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.systemd_seen import UnitFile

A, B = "GPU-a", "GPU-b"
MPS, SLICES = {"mode": "mps", "replicas": 6}, {"mode": "timeslice"}


def service(*uuids: str) -> File:
    """The unit file that serves these GPUs."""
    return File(f"{HEADER}\n[Service]\nEnvironment=CUDA_VISIBLE_DEVICES={','.join(uuids)}\n", 0o644)


def test_the_look_knows_where_the_unit_lies() -> None:
    assert UnitFile(SERVICE, WANTED_BY).path == PATH


def test_mps_is_on_the_gpus_that_the_service_serves() -> None:
    settings = settings_of(MPS)
    assert share_of(settings, service(A), A, False) == MPS
    assert share_of(settings, service(A), B, False) is None
    assert share_of(settings, None, A, False) is None


def test_who_may_not_read_the_record_sees_the_service() -> None:
    assert share_of(None, service(A), A, False) == {"mode": "mps", "replicas": None}


def test_a_service_that_is_not_ours_shares_nothing() -> None:
    others = File(f"[Service]\nEnvironment=CUDA_VISIBLE_DEVICES={A}\n", 0o644)
    assert share_of(settings_of(MPS), others, A, False) is None


def test_time_slices_are_those_of_every_gpu_that_is_whole() -> None:
    settings = settings_of(SLICES)  # four of them where none is named, as the control plane has it
    assert share_of(settings, None, A, False) == {"mode": "timeslice", "replicas": 4}
    assert share_of(settings, None, A, True) is None


def test_a_service_that_is_still_there_after_a_change_of_mode_is_told() -> None:
    assert share_of(settings_of(SLICES), service(A), A, False) == {"mode": "mps", "replicas": None}


@pytest.mark.parametrize("recorded", [None, {}, {"mode": "other"}, {"mode": "mps", "replicas": 49}, "mps"])
def test_a_record_that_names_no_sharing_is_none(recorded: Any) -> None:
    assert settings_of(recorded) is None
