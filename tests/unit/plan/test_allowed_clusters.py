# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which clusters root lets a machine join."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.allowed_clusters import clusters, refuse_others
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.k8s_join_settings import check

ONE, TWO = "1" * 64, "ab" * 32
LIST = f"https://10.0.0.1:6443#sha256:{ONE},https://k8s.example.com#sha256:{TWO}"


def asked(server: str, pin: str, allowed: object = LIST) -> None:
    refuse_others(check({"apiServer": server, "caCertSha256": pin}), allowed)


def test_the_list_is_read() -> None:
    assert clusters(LIST) == (("https://10.0.0.1:6443", ONE), ("https://k8s.example.com:443", TWO))
    assert clusters(LIST.replace(",", " , ")) == clusters(LIST)


@pytest.mark.parametrize(
    ("server", "pin"),
    [
        ("https://10.0.0.1:6443", ONE),
        ("https://K8s.Example.com:443", TWO.upper()),
        ("https://k8s.example.com", f"sha256:{TWO}"),
    ],
)
def test_a_cluster_on_the_list_in_any_form_may_be_joined(server: str, pin: str) -> None:
    asked(server, pin)


@pytest.mark.parametrize(
    ("server", "pin"),
    [("https://10.0.0.1:6443", TWO), ("https://10.0.0.1", ONE), ("https://k8s.example.com.evil.com", TWO)],
)
def test_any_other_is_refused(server: str, pin: str) -> None:
    with pytest.raises(Refused, match=r"is not among .kubernetes. allowed_clusters in /etc/bcd/config.toml"):
        asked(server, pin)


def test_the_pin_that_is_allowed_is_told() -> None:
    with pytest.raises(Refused, match=f"it is there with sha256:{ONE}"):
        asked("https://10.0.0.1:6443", TWO)


@pytest.mark.parametrize("text", ["", "  "])
def test_without_a_list_nothing_is_joined(text: str) -> None:
    with pytest.raises(Refused) as refusal:
        asked("https://10.0.0.1:6443", ONE, text)
    needed = "joining a Kubernetes cluster needs [kubernetes] allowed_clusters in bcd's config"
    entry = f"https://10.0.0.1:6443#sha256:{ONE}"
    assert f"{needed} (/etc/bcd/config.toml): have root add {entry} there" in refusal.value.message


@pytest.mark.parametrize(
    "entry",
    [
        f"http://10.0.0.1#sha256:{ONE}",
        "https://10.0.0.1",
        f"https://10.0.0.1#{ONE}",
        f"https://10.0.0.1#sha256:{ONE[1:]}",
        f"https://10.0.0.1/#sha256:{ONE}",
        f"10.0.0.1:6443#sha256:{ONE}",
        "",
    ],
)
def test_a_malformed_entry_stops_every_join(entry: str) -> None:
    with pytest.raises(Refused, match="is not https://host"):
        asked("https://10.0.0.1:6443", ONE, f"https://10.0.0.1:6443#sha256:{ONE},{entry}")


@pytest.mark.parametrize("value", [True, 5])
def test_what_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(Refused, match="takes a string"):
        asked("https://10.0.0.1:6443", ONE, value)
