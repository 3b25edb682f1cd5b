# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd's manager says of services: sights, so that one question serves a pass, and each look has its part."""

from __future__ import annotations

from ..core.errors import StepFailed
from ..core.host import Host
from ..plan.systemd_asks import LOOKED_AT, RUNS, asks_shown
from .installed_units import has_unit

# Whatever else stands for a state is no answer; the last is an older systemd's word for what is not there.
STATES = (*RUNS, "inactive", "failed", "activating", "deactivating", "maintenance", "unknown")
STATE, BEHIND = "ActiveState", "NeedDaemonReload"


def active_state(host: Host, name: str) -> str:
    """The state of a unit, a word of STATES. Raises StepFailed where systemd does not say."""
    return _shown(host, name)[STATE]


def is_behind(host: Host, name: str) -> bool:
    """Whether the manager has loaded another version of a unit than is on disk. Raises StepFailed as above."""
    return _shown(host, name)[BEHIND] == "yes"


def _shown(host: Host, name: str) -> dict[str, str]:
    """Both properties of a unit, by the question that has all the installed ones of those that a pass looks at."""
    names = tuple(one for one in LOOKED_AT if has_unit(host, one)) if name in LOOKED_AT else ()
    question = asks_shown(names if name in names else (name,))
    answer = host.ask(question)
    units = [_properties(block) for block in answer.out.split("\n\n")]
    told = answer.rc == 0 and len(units) == len(question) - question.index("--") - 1
    if not told or not all(unit.get(STATE) in STATES and unit.get(BEHIND) in ("yes", "no") for unit in units):
        words = " ".join(f"{answer.out} {answer.err}".split()) or "nothing"
        raise StepFailed(f"{' '.join(question)} exited with {answer.rc} and said {words}: see that systemd answers")
    return units[question.index(name) - question.index("--") - 1]


def _properties(block: str) -> dict[str, str]:
    """Lines `Property=value`, in whichever order."""
    pairs = (line.partition("=") for line in block.splitlines())
    return {key: value for key, _sign, value in pairs}
