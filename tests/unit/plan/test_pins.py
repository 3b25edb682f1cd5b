# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may sign for a host, as root's configuration says it."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.installed import CONFIG
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.pins import Pins, pins

ONE, TWO = "0f" * 32, "a1" * 32
KEY = "sha256/" + base64.b64encode(bytes(range(32))).decode()


def refused(tables: Any) -> str:
    with pytest.raises(Refused) as raised:
        pins(tables)
    assert raised.value.message.startswith(CONFIG)
    return raised.value.message


def test_roots_and_the_join_key_in_whichever_table() -> None:
    assert pins({"": {"command_root_sha256": ONE}, "helper": {"join_signing_key_pin": KEY}}) == (
        Pins(frozenset({ONE}), KEY)
    )
    assert pins({"": {"command_root_sha256": f" {ONE.upper()} , {TWO}"}}) == Pins(frozenset({ONE, TWO}))


def test_either_of_them_pins() -> None:
    assert Pins(frozenset({ONE}))
    assert Pins(join_key=KEY)
    assert not Pins()


@pytest.mark.parametrize("tables", [{}, {"": {}}, {"": {"command_root_sha256": " ", "join_signing_key_pin": ""}}])
def test_none_is_pinned(tables: Any) -> None:
    assert not pins(tables)
    assert pins(tables) == Pins()


@pytest.mark.parametrize(
    "text",
    ["0f", ONE + "0", ONE[:-1] + "g", f"sha256:{ONE}", f"{ONE},", f",{ONE}", f"{ONE} {TWO}", f"{ONE};{TWO}", "\u0445"],
)
def test_what_is_no_digest(text: str) -> None:
    assert "command_root_sha256 has " in refused({"": {"command_root_sha256": text}})


@pytest.mark.parametrize(
    "text",
    [
        KEY[7:],
        "sha512/" + KEY[7:],
        "SHA256/" + KEY[7:],
        "sha256:" + KEY[7:],
        KEY[:-1],
        KEY + "=",
        f" {KEY}",
        f"{KEY}\n",
        "sha256/",
        "sha256/" + "é" * 43 + "=",
        "sha256/" + KEY[7:-2] + "9=",  # the same bytes in another text: the unused bits are set
        "sha256/" + base64.b64encode(bytes(31)).decode(),
        "sha256/" + base64.urlsafe_b64encode(b"\xff" * 32).decode(),
        ONE,
    ],
)
def test_what_is_no_pin_of_a_key(text: str) -> None:
    assert "join_signing_key_pin is " in refused({"": {"join_signing_key_pin": text}})


@pytest.mark.parametrize("key", ["command_root_sha256", "join_signing_key_pin"])
def test_a_pin_is_one_string(key: str) -> None:
    value = ONE if key == "command_root_sha256" else KEY
    assert f"has {key} in 2 tables" in refused({"": {key: value}, "helper": {key: value}})
    for other in (0, True, False):
        assert f"{key} is {other!r}, and takes a string" in refused({"": {key: other}})


@pytest.mark.parametrize(
    "key",
    (
        "command_roots_sha256 command_root Command_Root_SHA256 command-root-sha256 join_signing_pin join_signing_key "
        "join_pin join_key_pin JOIN_SIGNING_KEY_PIN"
    ).split(),
)
def test_a_slip_of_the_pen_does_not_leave_the_host_open(key: str) -> None:
    assert refused({"helper": {key: ONE}}) == (
        f"{CONFIG} has the key {key}, and pins are command_root_sha256 and join_signing_key_pin: have root correct it"
    )


def test_other_keys_are_let_be() -> None:
    assert not pins({"": {"data_dir": "/x", "signing_key": "/y", "join_url": "z", "node_id": "n"}})
