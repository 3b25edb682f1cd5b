# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate of MIG layouts: what a host with GPUs in use is asked for while the pool's layout is another."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.units import catalog
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.host_units import render

H100, A30 = "NVIDIA H100 80GB HBM3", "NVIDIA A30"
PROCESS = [{"pid": 4242, "name": "/usr/bin/python3"}]


def uuid(number: int) -> str:
    return f"GPU-5f1c2a90-0000-4000-8000-{number:012d}"


def gpu(layout: str | None, number: int = 0, name: str = H100, **facts: Any) -> dict[str, Any]:
    """A GPU as host_info returns it; layout None is one without MIG, or one that does not tell."""
    return {
        "index": number,
        "uuid": uuid(number),
        "pci": f"00000000:{0x17 + number:02X}:00.0",
        "name": name,
        "mig_mode": None if layout is None else "disabled" if layout == "off" else "enabled",
        "layout": layout,
        "mig_devices": [],
        "atoms": [],
        "allocations": [],
        "holders": [],
        "processes": [],
        **facts,
    }


def used(layout: str | None, number: int = 0, **facts: Any) -> dict[str, Any]:
    return gpu(layout, number, **{"allocations": ["alloc_1"], **facts})


def rendered(wanted: Any, gpus: Any, beside: dict[str, Any] | None = None, frozen: Any = None) -> Any:
    pool = {"policy": {"migLayout": wanted}}
    profile = {"hostConfig": {"mig-layout": {"from": "pool", **(beside or {})}}}
    settings = render(pool, profile, None, gpus, frozen)["mig-layout"]
    catalog.unit("mig-layout").check(dict(settings))  # whatever it says, a host takes it
    return settings


POOLS = "3g.40gb:2"


@pytest.mark.parametrize(
    ("gpus", "settings"),
    [
        # nobody looked, or nothing is there
        (None, {"layout": POOLS}),
        ([], {"layout": POOLS}),
        # free GPUs are changed whatever they show
        ([gpu("all-1g.10gb"), gpu("off", 1)], {"layout": POOLS}),
        ([gpu("1g.10gb:7"), gpu("1g.10gb:7", 1)], {"layout": POOLS}),
        # who only watches a GPU is not in the way
        ([gpu("1g.10gb:7", holders=[{"pid": 1, "program": "dcgm-exporter"}])], {"layout": POOLS}),
        # in use, by an allocation or by a process: what it shows is kept
        ([used("1g.10gb:7")], {"layout": "1g.10gb:7"}),
        ([gpu("1g.10gb:7", processes=PROCESS)], {"layout": "1g.10gb:7"}),
        ([used("off")], {"layout": "off"}),
        ([used("empty")], {"layout": "empty"}),
        # one GPU in use keeps the whole host
        ([gpu("1g.10gb:7"), used("1g.10gb:7", 1)], {"layout": "1g.10gb:7"}),
        (
            [gpu("1g.10gb:7"), used("2g.20gb,1g.10gb", 1)],
            {
                "gpus": [
                    {"select": {"uuid": uuid(0)}, "layout": "1g.10gb:7"},
                    {"select": {"uuid": uuid(1)}, "layout": "2g.20gb,1g.10gb"},
                ]
            },
        ),
        # also those that have the pool's already, and those that have no instances yet
        (
            [gpu("3g.40gb:2"), used("off", 1)],
            {
                "gpus": [
                    {"select": {"uuid": uuid(0)}, "layout": "3g.40gb:2"},
                    {"select": {"uuid": uuid(1)}, "layout": "off"},
                ]
            },
        ),
        # in use with the pool's own layout is no reason to wait
        ([used("3g.40gb:2"), gpu("off", 1)], {"layout": POOLS}),
        (
            [used("3g.40gb:2"), used("1g.10gb:7", 1)],
            {
                "gpus": [
                    {"select": {"uuid": uuid(0)}, "layout": "3g.40gb:2"},
                    {"select": {"uuid": uuid(1)}, "layout": "1g.10gb:7"},
                ]
            },
        ),
        # a GPU without MIG, or one that does not tell, has no layout to keep
        ([used(None)], {"layout": POOLS}),
        ([used(None), gpu("off", 1)], {"layout": POOLS}),
        ([used(None), used("off", 1)], {"layout": "off"}),
        # nobody knows whether it is in use: the host itself changes no such GPU
        ([gpu("off", allocations=None, processes=None)], {"layout": POOLS}),
        ([gpu("off", allocations=None, processes=PROCESS)], {"layout": "off"}),
    ],
)
def test_a_host_keeps_what_it_shows_while_a_gpu_in_use_would_change(gpus: Any, settings: Any) -> None:
    assert rendered(POOLS, gpus) == settings


@pytest.mark.parametrize(
    ("wanted", "shown", "same"),
    [
        ("3g.40gb,1g.10gb:4", "3g.40gb,1g.10gb:4", True),
        ("1g.10gb:4, 3g.40gb", "3g.40gb,1g.10gb:4", True),
        ("1g.10gb:2,3g.40gb,1g.10gb:2", "3g.40gb,1g.10gb:4", True),
        ("3g.40gb+1g.10gb:4", "3g.40gb,1g.10gb:4", True),
        ({"1g.10gb": 4, "3g.40gb": 1}, "3g.40gb,1g.10gb:4", True),
        ("3g.40gb,1g.10gb:3", "3g.40gb,1g.10gb:4", False),
        ("3g.40gb", "3g.40gb,1g.10gb:4", False),
        ("3g.40gb,1g.10gb:4", "3g.40gb", False),
        ("3g.40gb,1g.20gb:4", "3g.40gb,1g.10gb:4", False),
        ("1c.3g.40gb:3", "3g.40gb", False),
        ("1c.3g.40gb:3", "1c.3g.40gb:3", True),
        ("1g.10gb+me,1g.10gb:6", "1g.10gb:6,1g.10gb+me", True),
        ("1g.10gb:7", "1g.10gb:6,1g.10gb+me", False),
        # one profile under two firmwares
        ("7g.80gb", "7g.79gb", True),
        ("4g.40gb,3g.40gb", "4g.39gb,3g.39gb", True),
        ("off", "off", True),
        (False, "off", True),
        ("off", "empty", False),
        ("empty", "empty", True),
        ("empty", "off", False),
        ("off", "1g.10gb", False),
        # as many as the GPU takes: nothing else is there
        ("all-1g.10gb", "1g.10gb:7", True),
        ("all-1g.10gb", "1g.10gb:6", True),
        ("all-1g.10gb", "1g.10gb:6,1g.10gb+me", False),
        ("all-1g.10gb", "2g.20gb,1g.10gb:5", False),
        ("all-1g.10gb", "empty", False),
        ("all-1g.10gb", "off", False),
        ("all-1c.2g.20gb", "1c.2g.20gb:6", True),
        ("all-7g.80gb", "7g.79gb", True),
    ],
)
def test_layouts_are_compared_by_what_they_mean(wanted: Any, shown: str, same: bool) -> None:
    free = gpu("off", 1) if shown != "off" else gpu("empty", 1)
    found = rendered(wanted, [used(shown), free])
    assert (found == {"layout": wanted}) is same
    if not same:
        assert {entry["select"]["uuid"]: entry["layout"] for entry in found["gpus"]} == {
            uuid(0): shown,
            uuid(1): free["layout"],
        }


def test_each_gpu_is_held_to_the_layout_that_is_for_it() -> None:
    beside = {
        "gpus": [{"select": {"model": "*A30*"}, "layout": "all-1g.6gb"}, {"select": {"index": 2}, "layout": "off"}]
    }
    gpus = [used("3g.40gb:2"), used("1g.6gb:4", 1, name=A30), used("off", 2)]
    assert rendered(POOLS, gpus, beside) == {**beside, "layout": POOLS}
    gpus[1] = used("2g.12gb:2", 1, name=A30)
    assert rendered(POOLS, gpus, beside) == {
        "gpus": [
            {"select": {"uuid": uuid(0)}, "layout": "3g.40gb:2"},
            {"select": {"uuid": uuid(1)}, "layout": "2g.12gb:2"},
            {"select": {"uuid": uuid(2)}, "layout": "off"},
        ]
    }


def test_a_layout_that_somebody_froze_wins_over_what_the_gpus_show() -> None:
    assert rendered(POOLS, [used("1g.10gb:7")], frozen="2g.20gb:3") == {"layout": "2g.20gb:3"}


def test_only_a_layout_of_the_pool_waits_at_the_gate() -> None:
    profile = {"hostConfig": {"mig-layout": {"layout": "off"}}}
    assert render({"policy": {"migLayout": POOLS}}, profile, None, [used("1g.10gb:7")]) == {
        "mig-layout": {"layout": "off"}
    }


def test_a_host_that_its_gpus_freed_gets_the_pools_layout() -> None:
    before = [used("1g.10gb:7"), gpu("1g.10gb:7", 1)]
    kept = rendered(POOLS, before)
    assert kept == {"layout": "1g.10gb:7"}
    assert rendered(POOLS, before) == kept  # again, with nothing changed
    assert rendered(POOLS, [gpu("1g.10gb:7"), gpu("1g.10gb:7", 1)]) == {"layout": POOLS}


@pytest.mark.parametrize("gpus", ["all", 5, [5], [{"uuid": 5, "layout": "off", "allocations": ["a"]}], {"a": 1}])
def test_gpus_that_are_none_are_refused(gpus: Any) -> None:
    with pytest.raises(ValueError, match=r"^INVALID_INPUT: \$\.gpus"):
        rendered(POOLS, gpus)
