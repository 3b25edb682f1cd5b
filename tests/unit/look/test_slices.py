# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slices as systemd and the kernel show them."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.slices import controllers, is_populated, slices
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.devices_seen import Slice
from tests.unit.fake_host import FakeHost, Program

ROOT = "/sys/fs/cgroup"
PARENT = f"{ROOT}/bcd.slice/bcd-alloc.slice"
CONTROL = "/run/systemd/system.control"


def _systemctl(said: str, rc: int = 0) -> dict[str, Program]:
    return {"systemctl": lambda _host, _argv: Answer(rc, said if rc == 0 else "", said)}


def test_what_is_there() -> None:
    host = FakeHost(
        {
            f"{PARENT}/bcd-alloc-a1.slice/cgroup.events": "populated 1\nfrozen 0\n",
            f"{PARENT}/bcd-alloc-a1.slice/memory.max": "4096\n",
            f"{PARENT}/bcd-alloc-a2.slice/cgroup.events": "populated 0\nfrozen 0\n",
            f"{PARENT}/bcd-alloc-a-b.slice/cgroup.events": "populated 0\nfrozen 0\n",
            f"{PARENT}/other.slice/cgroup.events": "populated 0\n",
            f"{PARENT}/cgroup.subtree_control": "memory\n",
            f"{CONTROL}/bcd-alloc-a1.slice.d/50-MemoryMax.conf": "",
            f"{CONTROL}/bcd-alloc-a3.slice.d/50-MemoryMax.conf": "",
            f"{CONTROL}/ssh.service.d/50-MemoryMax.conf": "",
        },
        _systemctl("bcd-alloc-a1.slice loaded active active Slice /bcd/alloc/a1\n"),
    )
    seen = slices(host)
    assert list(seen) == ["a1", "a2", "a3"]
    assert seen["a1"]._replace(files={}) == Slice(active=True, populated=True, drop_ins=True)
    assert (seen["a1"].files["memory.max"], seen["a1"].files["cpu.max"]) == ("4096\n", None)
    assert seen["a2"]._replace(files={}) == Slice()
    assert seen["a3"] == Slice(drop_ins=True)
    assert len(host.asked) == 1


def test_a_host_without_slices_asks_nobody() -> None:
    host = FakeHost({f"{CONTROL}/bcd-alloc-a3.slice.d/50-MemoryMax.conf": ""})
    assert slices(host) == {"a3": Slice(drop_ins=True)}
    assert slices(FakeHost()) == {}
    assert host.asked == []


def test_a_systemd_that_does_not_answer_fails_the_look() -> None:
    host = FakeHost({f"{PARENT}/bcd-alloc-a1.slice/cgroup.events": ""}, _systemctl("Failed to connect to bus", 1))
    with pytest.raises(StepFailed, match=r"list-units .* exited with 1 and said Failed to connect to bus"):
        slices(host)


@pytest.mark.parametrize(
    ("text", "populated"),
    [
        ("populated 1\nfrozen 0\n", True),
        ("populated 0\nfrozen 0\n", False),
        ("frozen 0\npopulated 0\n", False),
        ("", True),
        ("frozen 0\n", True),
        (None, False),
    ],
)
def test_what_does_not_say_that_it_is_empty_is_not(text: str | None, populated: bool) -> None:
    assert is_populated(text) is populated


def test_the_controllers_by_path() -> None:
    host = FakeHost(
        {
            f"{ROOT}/cgroup.controllers": "cpu memory hugetlb\n",
            f"{ROOT}/cgroup.subtree_control": "memory\n",
            f"{PARENT}/cgroup.subtree_control": "\n",
        }
    )
    assert controllers(host) == {
        "/sys/fs/cgroup/cgroup.controllers": "cpu memory hugetlb\n",
        "/sys/fs/cgroup/cgroup.subtree_control": "memory\n",
        "/sys/fs/cgroup/bcd.slice/bcd-alloc.slice/cgroup.subtree_control": "\n",
    }
    assert controllers(FakeHost()) == {}
