# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts about swap: fstab there and back, /proc/swaps, zram-generator's files, a kubelet's settings, the record."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.swap_sources import parse_available, parse_zram
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.fstab import MARK, starts_swap, swap_lines
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.fstab_swap import turned_off, turned_on
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kubelet_swap import fails_on_swap
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.swap_areas import Area, parse_swaps
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.swap_off import unit_name
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.swap_record import (
    RECORD,
    Record,
    Was,
    parse_record,
    render_record,
)

DEBIAN = (
    "# /etc/fstab: static file system information.\n"
    "UUID=0b0f / ext4 errors=remount-ro 0 1\n"
    "# swap was on /dev/sda5 during installation\n"
    "UUID=9d1c none            swap    sw              0       0\n"
    "\t/swapfile\tnone\tswap\tsw,pri=5\t0 0   # trailing \n"
    "/dev/sr0 /media/cdrom0 udf,iso9660 user,noauto 0 0"
)
WORDS = st.sampled_from(("swap", "none", "ext4", "UUID=9d1c", "/swapfile", "#", "noauto", "sw", "0", "\t", "  ", ""))
LINES = st.lists(st.lists(WORDS, max_size=7).map(" ".join) | st.text(max_size=20)).map("\n".join)


@pytest.mark.parametrize(
    ("line", "starts"),
    [
        ("UUID=9d1c none swap sw 0 0", True),
        ("/dev/sda3 swap swap", True),
        ("  /swapfile\tnone\tswap\tdefaults,nofail,pri=10 0 0", True),
        ("/swapfile none swap noauto 0 0", False),
        ("/swapfile none swap sw,noauto,pri=1 0 0", False),
        ("#/swapfile none swap sw 0 0", False),
        ("  # /swapfile none swap sw 0 0", False),
        ("/dev/sda1 /swap ext4 defaults 0 0", False),
        ("tmpfs /swap tmpfs swap 0 0", False),
        ("", False),
    ],
)
def test_which_lines_a_boot_turns_swap_on_for(line: str, starts: bool) -> None:
    assert starts_swap(line) is starts


def test_only_the_swap_lines_are_commented_and_come_back_to_the_byte() -> None:
    off = turned_off(DEBIAN)
    assert off.split("\n")[3] == MARK + "UUID=9d1c none            swap    sw              0       0"
    assert off.split("\n")[4] == MARK + "\t/swapfile\tnone\tswap\tsw,pri=5\t0 0   # trailing "
    assert [line for line in off.split("\n") if not line.startswith(MARK)] == [
        line for number, line in enumerate(DEBIAN.split("\n")) if number not in (3, 4)
    ]
    assert swap_lines(off) == ()
    assert turned_on(off, swap_lines(DEBIAN)) == DEBIAN


@given(LINES)
def test_off_and_on_again_is_the_same_text(text: str) -> None:
    off = turned_off(text)
    assert swap_lines(off) == ()
    assert turned_off(off) == off
    assert turned_on(off, swap_lines(text)) == text


@given(LINES, LINES)
def test_what_others_add_meanwhile_stays(text: str, more: str) -> None:
    both = turned_off(text) + "\n" + more
    assert turned_on(both, swap_lines(text)) == text + "\n" + more


def test_a_comment_that_somebody_changed_stays_theirs() -> None:
    lines = swap_lines(DEBIAN)
    changed = turned_off(DEBIAN).replace("pri=5", "pri=7")
    assert turned_on(changed, lines).count(MARK) == 1
    assert "pri=7" in turned_on(changed, lines)


def test_the_kernels_list_of_swap() -> None:
    text = (
        "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
        "/dev/sda3                               partition\t2097148\t\t512\t\t-2\n"
        "/var/my\\040swap                         file\t\t1048572\t\t0\t\t10\n"
        "/swapfile\\040(deleted)                  file\t\t4\t\t0\t\t-3\n"
        "/odd\n"
    )
    assert parse_swaps(text) == (
        Area("/dev/sda3", "partition", 2097148, 512, -2),
        Area("/var/my swap", "file", 1048572, 0, 10),
        Area("/swapfile (deleted)", "file", 4, 0, -3),
        Area("/odd"),
    )
    assert parse_swaps("") == ()
    assert parse_swaps(text.splitlines()[0]) == ()


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        ("", ()),
        ("# comment\n[zram0]\n", ("zram0",)),
        ("[zram0]\nzram-size = min(ram, 8192)\n[zram1]\nfs-type = ext2\nmount-point = /run/x\n", ("zram0",)),
        ("[zram1]\nfs-type=swap\n", ("zram1",)),
        ("[zram1]\n#mount-point = /x\nmount-point =\n", ("zram1",)),
        ("[zram0]\nzram-size=1\n[zram0]\nmount-point=/x\n", ()),
        ("[other]\nmount-point=/x\n", ()),
    ],
)
def test_which_devices_zram_generator_makes_swap_of(text: str, devices: tuple[str, ...]) -> None:
    assert parse_zram(text) == devices


@pytest.mark.parametrize(
    "config",
    [
        "apiVersion: kubelet.config.k8s.io/v1beta1\nfailSwapOn: false\nkind: KubeletConfiguration\n",
        "failSwapOn:  False  # LimitedSwap\nmemorySwap:\n  swapBehavior: LimitedSwap\n",
        "---\n# failSwapOn: true\nfailSwapOn: false",
    ],
)
def test_kubelets_that_run_beside_swap(config: str) -> None:
    assert fails_on_swap(config) is False


@pytest.mark.parametrize(
    "config",
    [
        "",
        "failSwapOn: true\n",
        "kind: KubeletConfiguration\n",
        " failSwapOn: false\n",
        "nested:\n  failSwapOn: false\n",
        "failSwapOn: false\nfailSwapOn: true\n",
        "failSwapOn: &x false\n",
        '"failSwapOn": false\n',
        '{"failSwapOn": false}\n',
        "failSwapOn: no\n",
        "failSwapOn: falsey\n",
        "failSwapOn:false\n",
        "#failSwapOn: false\n",
        "failSwapOn: false\n---\nkind: other\n",
        "failSwapOn:\n  false\n",
    ],
)
def test_whatever_else_it_says_is_taken_for_kubelets_that_do_not(config: str) -> None:
    assert fails_on_swap(config) is True


def test_what_memory_there_is() -> None:
    assert parse_available("MemTotal:  100 kB\nMemAvailable:   42 kB\n") == 42
    assert parse_available("MemTotal:  100 kB\n") == 0


def test_the_record_is_read_as_it_was_written() -> None:
    record = Record(
        (Was("/swapfile", 5, "boot"), Was("/dev/zram0", -1, "dev-zram0.swap")),
        ("/swapfile none swap sw,pri=5 0 0",),
        ("swap.target",),
        ("var-swap.swap",),
        ("zramswap.service",),
    )
    assert parse_record(render_record(record)) == record
    assert parse_record(render_record(Record())) == Record()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"version": 2, "areas": [], "fstab": [], "masked": [], "disabled": [], "stopped": []}',
        '{"version": 1, "areas": [{"path": "/x"}], "fstab": [], "masked": [], "disabled": [], "stopped": []}',
        '{"version": 1, "areas": [], "fstab": [1], "masked": [], "disabled": [], "stopped": []}',
    ],
)
def test_a_damaged_record_says_what_is_lost(text: str) -> None:
    with pytest.raises(StepFailed) as failed:
        parse_record(text)
    assert failed.value.message == (
        f"{RECORD} is not a record of version 1: look at it, then move it away "
        "(swap then stays off when this machine leaves its cluster)"
    )
    assert failed.value.retryable is False


@pytest.mark.parametrize(
    ("path", "name"),
    [  # as `systemd-escape --path --suffix=swap` prints them
        ("/swapfile", "swapfile.swap"),
        ("/dev/sda3", "dev-sda3.swap"),
        ("/var/my-swap", r"var-my\x2dswap.swap"),
        ("/mnt//big swap/", r"mnt-big\x20swap.swap"),
        ("/.swap", r"\x2eswap.swap"),
        ("/srv/ä", r"srv-\xc3\xa4.swap"),
    ],
)
def test_the_swap_unit_of_a_path(path: str, name: str) -> None:
    assert unit_name(path) == name
