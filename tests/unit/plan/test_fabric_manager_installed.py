# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the packages of Fabric Manager are as needed, so that nothing of how packages change is looked at."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Past
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.debts import debt
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.fabric_manager_installed import as_needed, whole_at
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.package_rows import Package

DRIVER = "580.95.05"
MANAGER = Package("nvidia-fabricmanager-580", "580.95.05-0ubuntu0.24.04.1", held=True)
NVLSM = Package("nvlsm", "2025.06.11-1", held=False)
DIAGS = Package("infiniband-diags", "2404mlnx51-1", held=False)


def needed(*packages: Package, beside: bool = False, owed: frozenset[str] = frozenset()) -> bool:
    return as_needed({one.name: one for one in packages}, DRIVER, beside, Past(owed=owed))


def test_held_and_whole_at_the_drivers_version_is_as_needed() -> None:
    assert needed(MANAGER)
    assert needed(MANAGER, NVLSM, DIAGS, beside=True)
    assert needed(MANAGER, NVLSM._replace(whole=False))  # which only NVLink 5 needs


@pytest.mark.parametrize(
    "packages",
    [
        (),
        (MANAGER._replace(held=False),),
        (MANAGER._replace(whole=False),),
        (MANAGER._replace(version="580.82.07-1"),),
        (MANAGER._replace(name="nvidia-fabricmanager-dev-580"),),
        (NVLSM, DIAGS),
    ],
)
def test_anything_else_of_fabric_manager_is_not(packages: tuple[Package, ...]) -> None:
    assert not needed(*packages)


@pytest.mark.parametrize(
    "beside", [(), (NVLSM,), (DIAGS,), (NVLSM._replace(whole=False), DIAGS), (NVLSM, DIAGS._replace(whole=False))]
)
def test_nvlink_5_needs_both_packages_beside_it_and_whole(beside: tuple[Package, ...]) -> None:
    assert not needed(MANAGER, *beside, beside=True)


def test_a_hold_that_a_pass_owes_is_due_again() -> None:
    owed = frozenset((debt("hold", NVLSM.name),))
    assert not needed(MANAGER, NVLSM, owed=owed)
    assert needed(MANAGER, NVLSM._replace(held=True), owed=owed)
    assert needed(MANAGER, DIAGS, owed=owed)


def test_headers_of_the_same_version_are_no_fabric_manager() -> None:
    headers = Package("nvidia-fabricmanager-devel", "580.95.05-1", held=True)
    assert whole_at({headers.name: headers, MANAGER.name: MANAGER}, DRIVER) == (MANAGER.name,)
