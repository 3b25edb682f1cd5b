# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root's configuration: read strictly, believed only when no one else could have written it."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.config import (
    CONFIG,
    parse_config,
    refuse_if_outside,
    refuse_where_signed,
)
from tests.unit.fake_host import FakeHost

OUTSIDE = "host.unit: this host's configuration is managed outside bcd ([host] units = false in root's config.toml)"


def test_tables_of_strings_integers_and_booleans() -> None:
    text = """
# a comment
join_signing_key_pin = "sha256/ab+/="  # kept out of band
command_root_sha256 = 'x'

[host]
units = true
[kubernetes]
allowed_clusters = "https://a:6443#sha256:00"
retries = 3
"""
    assert parse_config(text) == {
        "": {"join_signing_key_pin": "sha256/ab+/=", "command_root_sha256": "x"},
        "host": {"units": True},
        "kubernetes": {"allowed_clusters": "https://a:6443#sha256:00", "retries": 3},
    }


@pytest.mark.parametrize(
    "line",
    [
        "units",
        "units = ",
        "units = flase",
        'units = "a',
        "units = true false",
        "[host",
        "[[host]]",
        "units = [1]",
        "a = 1\na = 2",
    ],
)
def test_anything_else_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_config("\n" + line)
    assert refused.value.message.startswith(f"{CONFIG} line ")


def test_a_host_that_is_managed_outside_is_left_alone() -> None:
    with pytest.raises(Refused) as refused:
        refuse_if_outside(FakeHost({CONFIG: "[host]\nunits = false\n"}))
    assert refused.value.message == OUTSIDE
    refuse_if_outside(FakeHost({CONFIG: "[host]\nunits = true\n"}))
    refuse_if_outside(FakeHost({CONFIG: ""}))
    refuse_if_outside(FakeHost())
    with pytest.raises(Refused, match="set it to true or false"):
        refuse_if_outside(FakeHost({CONFIG: "[host]\nunits = 0\n"}))


@pytest.mark.parametrize("directory", ["/", "/etc", "/etc/bcd"])
@pytest.mark.parametrize("seen", [File("", 0o777, regular=False), File("", 0o755, uid=1000, regular=False)])
@pytest.mark.parametrize("there", [True, False])
def test_a_directory_in_which_others_could_have_swapped_it_is_refused(directory: str, seen: File, there: bool) -> None:
    host = FakeHost({CONFIG: "[host]\nunits = false\n"} if there else {})
    host.files[directory] = seen
    with pytest.raises(Refused, match=f"^{directory} is not a directory only root can write"):
        refuse_if_outside(host)
    host.files[directory] = File("", 0o755, regular=False)
    if not there:
        refuse_if_outside(host)


@pytest.mark.parametrize(
    "seen", [File("", mode=0o664), File("", mode=0o646), File("", uid=1000), File("", regular=False)]
)
def test_a_configuration_that_others_could_have_written_is_refused(seen: File) -> None:
    host = FakeHost()
    host.files[CONFIG] = seen
    with pytest.raises(Refused) as refused:
        refuse_if_outside(host)
    assert refused.value.message == f"{CONFIG} must be a regular file root owns that no one else can write"


@pytest.mark.parametrize(
    "text",
    [
        'command_root_sha256 = "00"\n',
        'join_signing_key_pin = "sha256/ab+/="\n',
        '[helper]\ncommand_root_sha256 = "00"\n',
        "command_root_sha256 = 0\n",
    ],
)
def test_nothing_unsigned_is_applied_where_root_demands_signed_intent(text: str) -> None:
    with pytest.raises(Refused, match=r"^/etc/bcd/config.toml demands a signed spec .*this version cannot verify"):
        refuse_where_signed(FakeHost({CONFIG: text}))


def test_no_pin_demands_nothing() -> None:
    refuse_where_signed(FakeHost())
    refuse_where_signed(FakeHost({CONFIG: 'command_root_sha256 = ""\n[host]\nunits = true\n'}))
