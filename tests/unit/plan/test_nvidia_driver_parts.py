# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of nvidia-driver's plan: modules and their users, device nodes, versions."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.gpu_users import Holder
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.nvidia_driver_nodes import (
    Node,
    Permissions,
    needed,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.nvidia_driver_repair import parse_permissions
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.nvidia_driver_swap import (
    Module,
    Use,
    leaf_first,
    others_of,
    users,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.nvidia_driver_target import Target
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.nvidia_driver_version import by_number, version_in
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.nvidia_node_numbers import number_of
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.nvidia_nodes import parse_majors

# The driver's modules as on a host with RDMA and direct storage.
STACK = (
    Module("gdrdrv", 0),
    Module("nvidia", 6, ("gdrdrv", "nvidia_fs", "nvidia_modeset", "nvidia_peermem", "nvidia_uvm")),
    Module("nvidia_drm", 0),
    Module("nvidia_fs", 0),
    Module("nvidia_modeset", 1, ("nvidia_drm",)),
    Module("nvidia_peermem", 0),
    Module("nvidia_uvm", 0),
)
DEBIAN = (
    Module("nvidia_current", 2, ("nvidia_current_modeset", "nvidia_current_uvm")),
    Module("nvidia_current_drm", 0),
    Module("nvidia_current_modeset", 1, ("nvidia_current_drm",)),
    Module("nvidia_current_uvm", 0),
)
PERSISTENCED = Holder(700, "nvidia-persistenced")
DEVICES = """Character devices:
  1 mem
195 nvidia
235 nvidia-caps
511 nvidia-uvm

Block devices:
195 other
"""


def names(stack: tuple[Module, ...]) -> list[str]:
    return [module.name for module in leaf_first(stack)]


def test_nothing_goes_while_something_stands_on_it() -> None:
    assert names(STACK) == [
        "nvidia_peermem",
        "gdrdrv",
        "nvidia_fs",
        "nvidia_uvm",
        "nvidia_drm",
        "nvidia_modeset",
        "nvidia",
    ]
    assert names(DEBIAN) == [
        "nvidia_current_uvm",
        "nvidia_current_drm",
        "nvidia_current_modeset",
        "nvidia_current",
    ]
    above = (*STACK[:1], STACK[1]._replace(holders=(*STACK[1].holders, "vendor_rdma")), Module("vendor_rdma", 0))
    assert names(above)[0] == "vendor_rdma"


def test_what_is_loaded_again_comes_bottom_first() -> None:
    assert others_of(Use(STACK)) == ("nvidia_modeset", "nvidia_drm", "nvidia_fs", "gdrdrv", "nvidia_peermem")
    assert others_of(Use(DEBIAN)) == ("nvidia_modeset", "nvidia_drm")


def test_who_keeps_the_driver_in_use() -> None:
    assert users(Use(STACK)) == ("the module nvidia (refcnt 6)",)
    client = {"/dev/nvidia0": (PERSISTENCED, Holder(41, "python3")), "/dev/nvidia-uvm": (Holder(41, "python3"),)}
    served = Use(STACK, client, services=("nvidia-persistenced",))
    assert users(served) == ("process 41 (python3)",)
    assert users(Use(STACK, {"/dev/nvidia0": (PERSISTENCED,)}, services=("nvidia-persistenced",))) == ()
    assert users(Use(STACK, {"/dev/nvidia0": (PERSISTENCED,)})) == ("process 700 (nvidia-persistenced)",)
    console = (*STACK[:2], STACK[2]._replace(refcnt=1), *STACK[3:])
    assert users(Use(console, services=("nvidia-persistenced",))) == ("the module nvidia_drm (refcnt 1)",)


def test_the_nodes_that_a_driver_needs() -> None:
    majors = parse_majors(DEVICES)
    assert majors == {"mem": 1, "nvidia": 195, "nvidia-caps": 235, "nvidia-uvm": 511}
    assert needed(majors, (0, 3)) == (
        Node("/dev/nvidiactl", 195, 255),
        Node("/dev/nvidia0", 195, 0),
        Node("/dev/nvidia3", 195, 3),
        Node("/dev/nvidia-uvm", 511, 0),
        Node("/dev/nvidia-uvm-tools", 511, 1),
    )
    assert Node("/dev/nvidia-modeset", 195, 254) in needed(majors, (0,), modeset=True)
    assert needed({}, (), modeset=True) == ()
    assert needed(parse_majors("Character devices:\n195 nvidia-frontend\n"), (0,))[0] == Node(
        "/dev/nvidiactl", 195, 255
    )
    assert needed(parse_majors("Character devices:\n  1 mem\n"), (0,)) == ()


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("/dev/nvidia7", (195, 7)),
        ("/dev/nvidiactl", (195, 255)),
        ("/dev/nvidia-modeset", (195, 254)),
        ("/dev/nvidia-uvm", (511, 0)),
        ("/dev/nvidia-uvm-tools", (511, 1)),
        ("/dev/nvidia-caps/nvidia-cap30", (235, 30)),
        ("/dev/nvidia-caps-imex-channels/channel2", None),  # its module is not loaded here
        ("/dev/nvidia-caps", None),
        ("/dev/nvidia-something1", None),
        ("/dev/nvidia0.old", None),
    ],
)
def test_a_nodes_number_is_told_by_its_name(path: str, number: tuple[int, int] | None) -> None:
    assert number_of(path, parse_majors(DEVICES)) == number


def test_nodes_of_racks_and_switches_have_majors_of_their_own() -> None:
    majors = {"nvidia": 195, "nvidia-caps-imex-channels": 234, "nvidia-nvswitch": 240, "nvidia-nvlink": 241}
    assert number_of("/dev/nvidia-caps-imex-channels/channel2", majors) == (234, 2)
    assert number_of("/dev/nvidia-nvswitch3", majors) == (240, 3)
    assert number_of("/dev/nvidia-nvswitchctl", majors) == (240, 255)
    assert number_of("/dev/nvidia-nvlink", majors) == (241, 0)
    assert number_of("/dev/nvidia-uvm", majors) is None
    assert number_of("/dev/nvidia0", {"nvidia-frontend": 195}) == (195, 0)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, Permissions(0o666, 0, 0)),
        ({"ModifyDeviceFiles": "1", "DeviceFileMode": "438"}, Permissions(0o666, 0, 0)),
        ({"ModifyDeviceFiles": "1", "DeviceFileMode": "432", "DeviceFileGID": "44"}, Permissions(0o660, 0, 44)),
        ({"ModifyDeviceFiles": "0", "DeviceFileMode": "0"}, None),
    ],
)
def test_the_driver_says_who_may_open_them(params: dict[str, str], expected: Permissions | None) -> None:
    assert parse_permissions(params) == expected


def test_versions() -> None:
    assert Target("580", "open").takes("580.95.05", "open")
    assert not Target("580", "open").takes("580.95.05", "proprietary")
    assert not Target("580", "open").takes("58.1", "open")
    assert Target("580", "open", "580.95.05").takes("580.95.05", "open")
    assert not Target("580", "open", "580.95.05").takes("580.105.08", "open")
    assert max(("580.95.05", "580.105.08"), key=by_number) == "580.105.08"
    assert version_in("/usr/lib64/libnvidia-ml.so.580.95.05") == "580.95.05"
    assert version_in("libnvidia-ml.so.1") is None
