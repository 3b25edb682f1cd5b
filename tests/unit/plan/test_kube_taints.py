# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Taints: their form, and how a Node's differ from those of the settings."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import Taint
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_taints import (
    Drift,
    command,
    drift,
    parse,
    registered,
)

GPU = Taint("nvidia.com/gpu", "present", "NoSchedule")
OLD = Taint("old", "", "NoExecute")
NOT_READY = Taint("node.kubernetes.io/not-ready", "", "NoSchedule")  # a controller's


@pytest.mark.parametrize(
    ("text", "taint"),
    [
        ("nvidia.com/gpu=present:NoSchedule", GPU),
        ("old:NoExecute", OLD),
        ("old=:NoExecute", OLD),
        ("a=b:PreferNoSchedule", Taint("a", "b", "PreferNoSchedule")),
    ],
)
def test_the_form(text: str, taint: Taint) -> None:
    assert parse([text]) == (taint,)
    assert parse([taint.words]) == (taint,)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a=b:Bogus", "'a=b:Bogus' does not end in :NoSchedule, :PreferNoSchedule or :NoExecute"),
        ("a=b:noschedule", "does not end in"),
        ("a=b", "does not end in"),
        ("a:", "does not end in"),
        ("", "does not end in"),
        (":NoSchedule", "the key '' has no name"),
        ("a b:NoSchedule", "the key 'a b' has no name"),
        ("A.com/b:NoSchedule", "no domain of up to 253"),
        ("a:b:NoSchedule", "the key 'a:b' has no name"),
        ("a=b c:NoSchedule", "the value is not up to 63"),
        ("a=b=c:NoSchedule", "the value is not up to 63"),
        ("a=-:NoSchedule", "the value is not up to 63"),
        (f"a={'v' * 64}:NoSchedule", "the value is not up to 63"),
        (7, "7 is not text"),
    ],
)
def test_what_is_no_taint(text: Any, why: str) -> None:
    with pytest.raises(Refused) as fault:
        parse([text])
    assert why in fault.value.message


def test_all_that_is_wrong_is_named_at_once_and_a_key_with_its_effect_is_there_once() -> None:
    with pytest.raises(Refused) as fault:
        parse(["a=1:NoSchedule", "a=2:NoSchedule", "a=1:NoExecute", "b"])
    assert "'a=2:NoSchedule' is a second taint with the key 'a' and the effect NoSchedule" in fault.value.message
    assert "'b' does not end in" in fault.value.message
    assert "'a=1:NoExecute'" not in fault.value.message


def test_taints_of_others_are_no_drift() -> None:
    assert drift((GPU,), (GPU,), (NOT_READY, GPU)) == Drift()
    assert drift((), (), (NOT_READY,)) == Drift()


def test_what_the_node_lacks_shows_otherwise_or_keeps_too_long() -> None:
    assert drift((GPU,), (), ()) == Drift(due=(GPU,))
    assert drift((GPU,), (GPU,), (GPU._replace(value="other"),)) == Drift(due=(GPU,))
    assert drift((GPU,), (GPU,), (GPU._replace(effect="NoExecute"),)) == Drift(due=(GPU,))
    assert drift((), (OLD,), (OLD, NOT_READY)) == Drift(gone=(OLD,))
    assert drift((), (OLD,), (NOT_READY,)) == Drift()  # an admin has taken it away


def test_the_record_follows_what_the_node_shows() -> None:
    changed = GPU._replace(value="other")
    assert registered((GPU,), (), (NOT_READY,)) == ()
    assert registered((GPU,), (OLD,), (OLD, changed, NOT_READY)) == (changed, OLD)
    assert registered((GPU,), (OLD,), (GPU,)) == (GPU,)


def test_the_command_of_the_admin() -> None:
    assert command("gpu-01", (GPU, Taint("a", "", "NoExecute")), (OLD,)) == (
        "kubectl taint node gpu-01 nvidia.com/gpu=present:NoSchedule a:NoExecute old:NoExecute- --overwrite"
    )
