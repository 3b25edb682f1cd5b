# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the playbook reboot refuses before it looks at a host, the plan refuses too, in the same words."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.reboot_budget import limit
from tests.tools.results import TOP

SHOWN = "{{ bcd_reboot_max_unavailable | default(1) | string }}"


def refusal() -> tuple[str, str]:
    """The pattern that the playbook holds a budget to, and its message, with SHOWN for the value."""
    plays = yaml.safe_load((TOP / "playbooks" / "reboot.yml").read_text(encoding="utf-8"))
    task = plays[0]["tasks"][0]["ansible.builtin.assert"]
    found = re.fullmatch(r"\(bcd_reboot_max_unavailable \| default\(1\) \| string\) is match\('(.+)'\)", task["that"])
    assert found
    return found.group(1), task["fail_msg"]


@pytest.mark.parametrize("value", [1, 9, 10, 999999, "3", "1%", "9%", "10%", "99%", "100%"])
def test_what_the_playbook_takes_the_plan_takes(value: Any) -> None:
    assert re.match(refusal()[0], str(value))
    assert limit(value)


@pytest.mark.parametrize(
    "value",
    [0, -1, 1000000, "0", "0%", "00", "01", "101%", "110%", "999%", "1000%", "10 %", " 3", "3 ", "1.5", "abc", "", "%"],
)
def test_what_the_playbook_refuses_the_plan_refuses_in_the_same_words(value: Any) -> None:
    pattern, message = refusal()
    assert not re.match(pattern, str(value))
    with pytest.raises(ValueError, match=re.escape(message.replace(SHOWN, repr(value)))):
        limit(value)
