# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""hugepages' settings, and what restores the pools at boot."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.memory_shown import mounted
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import bootargs, hugepages_boot
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.hugepages import (
    Settings,
    check,
    chosen,
    release_of,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.hugepages_units import (
    MOUNTS,
    POINT,
    Mount,
    lines,
    parse_mount,
    render_service,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.pages import G1, M2
from tests.unit.fake_host import FakeHost

SMALL_0 = "ExecStart=-/bin/sh -c 'echo 8 >/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages'"
SMALL_1 = "ExecStart=-/bin/sh -c 'echo 0 >/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages'"
LARGE = "ExecStart=-/bin/sh -c 'echo 4 >/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages'"
POLICY = "ExecStart=-/bin/sh -c 'echo never >/sys/kernel/mm/transparent_hugepage/enabled'"


@pytest.mark.parametrize(
    ("wire", "settings"),
    [
        ({}, Settings({})),
        ({"pages2m": 0}, Settings({M2: (0,)})),
        ({"pages2m": 1024, "pages1g": 4}, Settings({M2: (1024,), G1: (4,)})),
        ({"pages1g": [4]}, Settings({G1: (4,)})),
        ({"pages1g": [1, 3]}, Settings({G1: (1, 3)})),
        ({"pages1g": [1, 3], "perNuma": False}, Settings({G1: (1, 3)})),
        ({"pages1g": 4, "perNuma": True}, Settings({G1: (4,)}, True)),
        ({"pages1g": [4], "perNuma": True}, Settings({G1: (4,)}, True)),
        ({"transparent": "madvise"}, Settings({}, False, "madvise")),
    ],
)
def test_settings(wire: dict[str, Any], settings: Settings) -> None:
    assert check(wire) == settings


@pytest.mark.parametrize(
    ("wire", "named"),
    [
        ({"pages2m": -1}, "-1"),
        ({"pages1g": [1, -3]}, "-3"),
        ({"pages2m": 2**40}, "1099511627776"),
        ({"pages2m": True}, "true or false"),
        ({"pages2m": "8"}, "'8'"),
        ({"pages2m": 8.0}, "8.0"),
        ({"pages2m": [1, True]}, "True"),
        ({"pages2m": [1, "2"]}, "'2'"),
        ({"pages2m": []}, "empty"),
        ({"pages2m": None}, "null"),
        ({"pages1g": [1, 3], "perNuma": True}, "perNuma"),
        ({"perNuma": 1}, "perNuma"),
        ({"transparent": "Always"}, "'Always'"),
        ({"transparent": ""}, "''"),
        ({"pages_2m": 8}, "'pages_2m'"),
        ({"pages4k": 8}, "'pages4k'"),
    ],
)
def test_settings_that_are_refused(wire: dict[str, Any], named: str) -> None:
    with pytest.raises(Refused) as refused:
        check(wire)
    assert refused.value.message.startswith("hugepages: ")
    assert named in refused.value.message


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("always [madvise] never\n", "madvise"),
        ("[always] madvise never\n", "always"),
        ("never\n", "never"),
        (None, None),
    ],
)
def test_the_chosen_policy(text: str | None, policy: str | None) -> None:
    assert chosen(text) == policy


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("6.12.48+deb13-amd64", (6, 12)),
        ("5.14.0-570.el9.x86_64", (5, 14)),
        ("4.18.0-553.el8", (4, 18)),
        ("", (0, 0)),
    ],
)
def test_the_kernel_release(text: str, release: tuple[int, ...]) -> None:
    assert release_of(text) == release


def test_the_record_of_arguments_is_where_boot_arguments_keep_it() -> None:
    assert bootargs.record_path("hugepages") == hugepages_boot.ARGUMENTS


def test_the_service_sets_large_pages_first_and_the_policy_last() -> None:
    assert lines({M2: {0: 8, 1: 0}, G1: {None: 4}}, "never", None) == (LARGE, SMALL_0, SMALL_1, POLICY)


def test_no_pages_need_no_command() -> None:
    assert lines({M2: {None: 0}, G1: {None: 0}}, "", None) == ()


def test_what_is_not_managed_keeps_its_commands() -> None:
    before = File(render_service((LARGE, SMALL_0, SMALL_1, POLICY)))
    assert lines({M2: {None: 0}}, "", before) == (LARGE, POLICY)
    assert lines({G1: {None: 0}}, "", before) == (SMALL_0, SMALL_1, POLICY)
    assert lines({}, "never", before) == (LARGE, SMALL_0, SMALL_1, POLICY)


@pytest.mark.parametrize(
    "line",
    [
        "ExecStart=/bin/sh -c 'echo 4 >/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages'",
        "ExecStart=-/bin/sh -c 'echo 4 >/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages; reboot'",
        "ExecStart=-/bin/sh -c 'echo $(id) >/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages'",
        "ExecStart=-/bin/sh -c 'echo 4 >/etc/hugepages-1048576kB/nr_hugepages'",
        "ExecStart=-/bin/sh -c 'echo 4 >/sys/devices/system/node/node0/../../hugepages-1048576kB/nr_hugepages'",
    ],
)
def test_a_line_that_is_not_ours_is_not_taken_over(line: str) -> None:
    assert lines({M2: {None: 0}}, "", File(render_service((line,)))) == ()


def test_a_link_in_place_of_the_service_has_no_commands() -> None:
    assert lines({M2: {None: 0}}, "", File(render_service((LARGE,)), regular=False)) == ()


def test_the_service_runs_once_and_early_and_is_wanted_at_boot() -> None:
    text = render_service((LARGE,))
    assert text.startswith("# Managed by bettercompute.bcd: local edits are replaced.\n")
    for line in ("DefaultDependencies=no", "Before=sysinit.target", "Type=oneshot", "WantedBy=sysinit.target", LARGE):
        assert f"\n{line}\n" in text
    assert "systemd-sysctl.service" in text.partition("After=")[2].partition("\n")[0]  # it sets vm.nr_hugepages
    assert "python" not in text


@pytest.mark.parametrize(
    ("text", "shown", "right"),
    [
        ("proc /proc proc rw 0 0\n", False, False),
        ("hugetlbfs /dev/hugepages hugetlbfs rw,relatime,pagesize=2M 0 0\n", False, False),
        ("hugetlbfs /dev/hugepages1G hugetlbfs rw,relatime,pagesize=1024M 0 0\n", True, True),
        ("none /dev/hugepages1G hugetlbfs rw,nosuid,gid=36,pagesize=1024M 0 0\n", True, True),
        ("hugetlbfs /dev/hugepages1G hugetlbfs rw,relatime,pagesize=2M 0 0\n", True, False),
        ("tmpfs /dev/hugepages1G tmpfs rw,size=1024M 0 0\n", True, False),
        (
            "hugetlbfs /dev/hugepages1G hugetlbfs rw,pagesize=1024M 0 0\ntmpfs /dev/hugepages1G tmpfs rw 0 0\n",
            True,
            False,
        ),
        ("", False, False),
    ],
)
def test_the_mount_as_proc_mounts_shows_it(text: str, shown: bool, right: bool) -> None:
    seen = parse_mount(mounted(FakeHost({MOUNTS: text}), MOUNTS, POINT))
    assert (bool(seen.shown), seen.right) == (shown, right)
    assert isinstance(seen, Mount)
