# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Under which name a machine is a Node."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.node_name import node_name


@pytest.mark.parametrize(
    ("host_name", "name"),
    [
        ("gpu-01\n", "gpu-01"),
        ("GPU_01", "gpu-01"),
        ("my gpu", "my-gpu"),
        ("gpu-01.fra.Example.com", "gpu-01.fra.example.com"),
        ("a" * 63, "a" * 63),
        ("1", "1"),
    ],
)
def test_the_name_is_the_host_s_as_kubernetes_takes_it(host_name: str, name: str) -> None:
    assert node_name(host_name) == name


# kubeadm refuses some of these; a name of 64 characters joins, and its kubelet never registers.
@pytest.mark.parametrize(
    ("host_name", "why"),
    [
        ("", "makes no name"),
        ("gpu_", "makes no name"),
        ("_gpu", "makes no name"),
        ("gpu..fra", "makes no name"),
        ("gpu.", "makes no name"),
        ("gpu@01", "makes no name"),
        ("gpü", "makes no name"),
        ("a" * 64, "has 64 characters"),
        (".".join(["abcdefghi"] * 7), "has 69 characters"),
    ],
)
def test_what_is_no_name_of_a_node_is_refused(host_name: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        node_name(host_name)
