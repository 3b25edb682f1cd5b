# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""bcd helper over a host in memory: a request in, its answer out, as the process for one request makes it."""

from __future__ import annotations

import contextlib
import json
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.local_socket import Peer
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import (
    doctor,
    helper_files,
    holds,
    host_intent,
    info,
    opening,
    section,
    status,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import helper_service as helper
from tests.unit.fake_host import FakeHost

CONFIG = "/etc/bcd/config.toml"
PEER = Peer(4711, 1000, 1000, frozenset((990,)))
UNIT: dict[str, Any] = {
    "op": "host.unit",
    "unit": "sysctl",
    "settings": {},
    "signed_spec": None,
    "max_disruption": "gpu",
    "check": False,
}
NOTHING_OF_A_SECTION = ("units", "wire_units", "known", "generation", "only", "label", "node_id", "site", "signed_spec")
SECTION: dict[str, Any] = {
    "op": "host.section",
    **dict.fromkeys(NOTHING_OF_A_SECTION),
    "plans": False,
    "fail_on": "failed",
    "fail_on_secrets": False,
    "max_disruption": "gpu",
    "check": False,
}
NOTHING_OF_DEVICES = (
    *("assignments", "generation", "passthrough", "instances", "max_cdi_version", "slot_count", "acknowledge"),
    *("signing_key", "node_id", "signed_spec"),
)
DEVICES: dict[str, Any] = {
    "op": "devices",
    **dict.fromkeys(NOTHING_OF_DEVICES),
    "max_disruption": "gpu",
    "check": False,
}


def stand_in(monkeypatch: pytest.MonkeyPatch, host: FakeHost) -> FakeHost:
    """Have the helper's process find this host, with a lock that nobody else holds."""
    for module in (holds, host_intent, info, section):
        monkeypatch.setattr(module, "Host", lambda: host)
    there = SimpleNamespace(Host=lambda: host)  # not in core.host itself: what is imported meanwhile would keep it
    for module in (doctor, helper, helper_files, opening, status):
        monkeypatch.setattr(module, "machine", there)
    monkeypatch.setattr(opening, "only_pass", lambda *_given, **_named: contextlib.nullcontext())
    return host


def ask(request: dict[str, Any], **fields: Any) -> Any:
    """What the helper answers to the request with these fields."""
    return json.loads(helper.answer(json.dumps({**request, **fields}).encode(), PEER))


def untouched(host: FakeHost) -> bool:
    """Whether nothing was written, set or run."""
    return not host.calls
