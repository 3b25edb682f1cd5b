# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a planner is told beside the settings and the snapshot: what happened to its unit before."""

from __future__ import annotations

from .secret import Given
from .seen import Ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NamedTuple

    from .seen import Answer
else:
    from .named import NamedTuple


class Question(Exception):
    """Raised by `Past.ask` while the answer is not there."""

    def __init__(self, ask: Ask) -> None:
        super().__init__(" ".join(ask.argv))
        self.ask = ask


class Past(NamedTuple):
    """What this host's records and this run say about earlier steps of the unit.

    `owed` names follow-ups that a killed pass left; `tried` maps what came to nothing in this boot to what came of it:
    a kernel file and the value asked of it ("<path>=<value>") to what the kernel gave, a run's name to what it
    said ("": it succeeded, and changed nothing);
    `vain` names the runs that came to nothing in this run; `given` is what this run was given beside the settings;
    `boot_id` is the running boot's; `failed` names the lanes that failed in this run, for what is decided once they
    have been tried, and `declined` those of them whose value the kernel does not take; `applied` maps each unit that
    we applied to its settings in wire form, for a unit whose goal depends on another's.
    """

    boot_id: str = ""
    owed: frozenset[str] = frozenset()
    tried: Mapping[str, str] = {}
    vain: frozenset[str] = frozenset()
    given: Given = Given()
    answers: Mapping[Ask, Answer] = {}
    failed: frozenset[str] = frozenset()
    declined: frozenset[str] = frozenset()
    applied: Mapping[str, Mapping[str, Any]] = {}

    def ask(
        self, argv: tuple[str, ...], files: tuple[tuple[str, str], ...] = (), follows: tuple[str, ...] = ()
    ) -> Answer:
        """The answer to a read-only question; the runner asks it, and plans again, when it is not known yet."""
        question = Ask(argv, files, follows)
        if question not in self.answers:
            raise Question(question)
        return self.answers[question]
