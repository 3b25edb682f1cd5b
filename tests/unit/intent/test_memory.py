# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What root remembers of signed specs: read whole, or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.memory import MEMORY, Memory, parse, render

WHOLE = Memory("node-1", 4, "ab" * 32, 2, "cd" * 32, "sha256/x", True, {"body": "e30="})


def test_it_is_read_as_it_was_written() -> None:
    assert parse(None) == Memory()
    for memory in (Memory(), WHOLE):
        assert parse(render(memory)) == memory
    assert MEMORY == "/var/lib/bcd-hostconfig/helper-intent.json"


def changed(**fields: Any) -> str:
    return json.dumps({**json.loads(render(WHOLE)), **fields})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        render(WHOLE)[:-5],
        "[" * 100_000,
        changed(version=2),
        changed(node_id=None),
        changed(generation="4"),
        changed(generation=True),
        changed(generation=4.5),
        changed(body_sha256=7),
        changed(bundle_version=None),
        changed(bundle_sha256=None),
        changed(bundle_key=[]),
        changed(signed=1),
        changed(envelope=[]),
        json.dumps({key: value for key, value in json.loads(changed()).items() if key != "envelope"}),
    ],
)
def test_one_that_is_damaged_stops_everything(text: str) -> None:
    with pytest.raises(StepFailed) as raised:
        parse(text)
    assert not raised.value.retryable
    assert raised.value.message == (
        f"{MEMORY} is not a record of version 1: look at it, then move it away (without it a spec of an older "
        "generation, and where no join record names the node one of another node, could be applied: converge with the "
        "newest signed spec right after)"
    )
