# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A result that Ansible can take whatever the host's files hold."""

from __future__ import annotations

import json

from ansible_collections.bettercompute.bcd.plugins.module_utils.front.result import valid


def test_bytes_that_are_no_text_do_not_lose_the_result() -> None:
    found = valid({"diff": [{"before": "caf\udce9", "n": 1}], "steps": ("a", True, None)})
    assert found == {"diff": [{"before": "caf\ufffd", "n": 1}], "steps": ["a", True, None]}
    assert json.dumps(found, ensure_ascii=False).encode()
