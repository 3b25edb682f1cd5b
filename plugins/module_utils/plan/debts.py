# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How follow-ups about one of several things are named: a verb, a blank, and a name without blanks ("start dcgm").

What a run came to in this boot is named so too, where it has to be found by what it was about.
"""

from __future__ import annotations

from collections.abc import Iterable


def debt(verb: str, name: str) -> str:
    """The name of a follow-up."""
    return f"{verb} {name}"


def owed(debts: Iterable[str], verb: str) -> tuple[str, ...]:
    """The names, sorted, that follow-ups of the verb are about; those of other verbs are passed over."""
    pairs = (one.rpartition(" ") for one in debts)
    return tuple(sorted({name for known, _blank, name in pairs if known == verb}))
