# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host's units say, for people: under the title of what must happen, and each thing once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..module_utils.plan import section
from ..module_utils.plan.folding import alike, of_any_cpu

ALL = "all units"
ITSELF = "<its name>"  # stands for the host's own name in what many hosts say
# Every refusal by root's own configuration names it; other programs have a config.toml too.
ROOTS_FILE = ("/etc/bcd/config.toml", "root's config.toml")
# What must happen, in the order of how much it needs a person.
WAITS = {
    "Refused": "Refused: no run will help before the settings change",
    "Outside": "Refused by the host's own configuration: change it there, or leave the host out",
    "Broken": "Failed, and no run will help before a person has mended it on the host",
    "AssignmentFailed": "Assigned, and cannot be held: the assignment has failed",
    "StepFailed": "Could not be planned or done: another run may help",
    "HeldBack": "Held back by max_disruption",
    "RebootRequired": "Waiting for a reboot",
    "RebootLater": "Will wait for a reboot, after converge",
    "Busy": "Waiting for what is in use",
    "NotReady": "Waiting for what is not there yet",
}


def who(names: list[str], every: list[str]) -> str:
    """Those that say the same, or that it is all of them."""
    return ALL if len(names) == len(every) > 1 else ", ".join(names)


def of_any_host(host: str, text: str) -> str:
    """The text without the host's own name, so that a join or a Node says the same of all hosts."""
    return re.sub(rf"(?<![\w.-]){re.escape(host)}(?![\w-]|\.\w)", ITSELF, text) if host in text else text


def of_these(hosts: list[str], text: str) -> str:
    """That text again, with its name where one host alone says it."""
    return text.replace(ITSELF, hosts[0]) if len(hosts) == 1 else text


def steps_in_rows(steps: Iterable[Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """The steps with their words; what is done alike for many CPUs is one of them."""
    rows = alike(steps, lambda step: (of_any_cpu(step["action"]), step["disruption"], step["done"]))
    return [(row[0]["action"] + (f", and {len(row) - 1} more like it" if row[1:] else ""), row[0]) for row in rows]


def told(host: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """What the host's units wait for and failed by: the title (of WAITS), the units that say it, the message."""
    every = [unit["unit"] for unit in host["units"]]
    lines = [
        ((_title(reason, message, unit, host), section.unnamed(unit["unit"], message)), unit["unit"])
        for unit in host["units"]
        for reason, message in reasons(unit)
    ]
    found: dict[tuple[str, str], list[str]] = {}
    for line, unit in lines:
        found.setdefault(line, []).append(unit)
    return [(title, who(units, every), message) for (title, message), units in found.items()]


def titles(host: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each unit that waits or failed, with the title of what must happen."""
    for unit in host["units"]:
        for reason, message in reasons(unit):
            yield unit["unit"], _title(reason, message, unit, host)


def _title(reason: str, message: str, unit: Mapping[str, Any], host: Mapping[str, Any]) -> str:
    """By what must happen, and not only by the reason."""
    if reason == "Refused" and any(named in message for named in ROOTS_FILE):
        return "Outside"
    if reason == "StepFailed" and not unit["retryable"]:
        return "Broken"
    return "RebootLater" if reason == "RebootRequired" and host["drift"] else reason


def reasons(unit: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Why the unit failed and what it waits for, each a reason and a message."""
    waits = [(wait["reason"], wait["message"]) for wait in unit["pending"]]
    return [(unit["reason"], unit["msg"]), *waits] if "reason" in unit else waits


def of_all_units(host: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What every unit of the host says: a fault of the host itself, such as a lock that another pass holds."""
    said = [reasons(unit) for unit in host["units"]]
    return [line for line in said[0] if all(line in lines for lines in said)] if len(said) > 1 else []


def only_says(unit: Mapping[str, Any], once: list[tuple[str, str]]) -> bool:
    """Whether the unit has nothing to say but what all say."""
    more = any(unit[part] for part in ("steps", "conditions", "notes", "diff"))
    return bool(once) and not more and all(line in once for line in reasons(unit))
