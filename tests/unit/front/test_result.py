# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A result that Ansible can take whatever the host's files hold."""

from __future__ import annotations

import json

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Fault, NotReady, Refused, StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.result import failed, render, valid


def test_bytes_that_are_no_text_do_not_lose_the_result() -> None:
    found = valid({"diff": [{"before": "caf\udce9", "n": 1}], "steps": ("a", True, None)})
    assert found == {"diff": [{"before": "caf\ufffd", "n": 1}], "steps": ["a", True, None]}
    assert json.dumps(found, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("fault", "reason", "retryable"),
    [
        (Refused("no"), "Refused", False),
        (StepFailed("no", retryable=False), "StepFailed", False),
        (StepFailed("no"), "StepFailed", True),
        (NotReady("no driver runs"), "StepFailed", True),
    ],
)
def test_what_came_to_nothing_says_whether_to_try_again(fault: Fault, reason: str, retryable: bool) -> None:
    result = render(failed("mig-layout", fault))
    assert (result["reason"], result["retryable"], result["msg"]) == (reason, retryable, fault.message)
    assert result["state"] == ("progressing" if retryable else "failed")
