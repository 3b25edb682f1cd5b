# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words and marks of the fleet page: every state by name, never by its colour alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .markup import Html, element
from .report import is_failing
from .said import reasons

# A state's mark and word, in the order of how much it needs a person.
MARKS = {
    "failed": ("✕", "failed"),
    "unreachable": ("!", "unreachable"),
    "unknown": ("?", "no result"),
    "progressing": ("●", "progressing"),
    "converged": ("✓", "converged"),
}
RANKS = tuple(MARKS)
# A reason in a cell of the matrix, where a word has to do; the whole of it stands below and in the host's own part.
SHORT = {
    "Refused": "refused",
    "StepFailed": "step failed",
    "AssignmentFailed": "assignment failed",
    "HeldBack": "held back",
    "RebootRequired": "reboot",
    "Busy": "busy",
    "NotReady": "not ready",
}


def shown(host: Mapping[str, Any]) -> str:
    """The state that the page shows: a host with a failed unit is failed, though its other units go on."""
    return "failed" if is_failing(host) else str(host["state"])


def shown_unit(unit: Mapping[str, Any]) -> str:
    """The same of a unit."""
    return "failed" if "reason" in unit else str(unit["state"])


def failing_first(hosts: Mapping[str, Any]) -> dict[str, Any]:
    """The hosts in the order of the page: by how much they need a person, those alike by name."""
    return dict(sorted(hosts.items(), key=lambda item: (_rank(shown(item[1])), item[0])))


def _rank(state: str) -> int:
    return RANKS.index(state) if state in RANKS else len(RANKS)


def badge(state: str) -> Html:
    """A state with its mark, and in words."""
    mark, word = MARKS.get(state, ("?", state))
    return element("span", f"{mark} {word}", class_=f"badge {state}")


def short(unit: Mapping[str, Any]) -> str:
    """A unit in a few words: what it is refused for, waits for, or has left to do."""
    due = sum(1 for step in unit["steps"] if not step["done"])
    words = list(dict.fromkeys(SHORT.get(reason, reason) for reason, _message in reasons(unit)))
    if due:
        words.insert(len(words) if "reason" in unit else 0, counted(due, "step"))
    return ", ".join(words) or str(unit["state"])


def counted(count: int, noun: str) -> str:
    """The number with its noun: "1 step", "2 steps"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def table(header: Iterable[str], rows: Iterable[Iterable[str]], **attributes: str) -> Html:
    """A table whose rows begin with their heading."""
    head = element("tr", *(element("th", word) for word in header))
    body = []
    for row in rows:
        first, *others = row
        body.append(element("tr", element("th", first), *(element("td", cell) for cell in others)))
    return element("table", element("thead", head), element("tbody", *body), **attributes)


def wide(content: str, label: str) -> Html:
    """A part that may be wider than the screen: it scrolls by itself, by keys as well."""
    return element("div", content, class_="wide", tabindex="0", role="region", aria_label=label)
