# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The doctor: what is wrong on a host, or can go wrong, each with the next move.

Pure: a snapshot comes in, findings go out. A check that needs what this account cannot see is named in one finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Callable

from ..core.errors import SEEN_AS_ROOT, Fault, NotKnownYet
from .doctor_gpus import GPU_CHECKS
from .doctor_host import HOST_CHECKS
from .doctor_seen import FAILURE, OK, WARNING, Finding, Snapshot, Told
from .doctor_trust import TRUST_CHECKS

LEVELS = (FAILURE, WARNING, OK)  # the worst first
UNSEEN = "account"  # the check that names what was not seen
FAIL_ON = ("failure", "warning", "never")

Check = Callable[[Snapshot], Iterable[Told]]
CHECKS: dict[str, Check] = {**TRUST_CHECKS, **HOST_CHECKS, **GPU_CHECKS}


def findings(seen: Snapshot) -> tuple[Finding, ...]:
    """Every finding, the worst first, then by check and message; a check that has nothing to do with the host has none.

    What a look could not tell is a warning of the check that needs it.
    """
    found: list[Finding] = []
    hidden: list[str] = []
    for name, check in CHECKS.items():
        try:
            found += [Finding(name, level, message) for level, message in check(seen)]
        except NotKnownYet:
            hidden.append(name)
        except Fault as fault:
            found.append(Finding(name, WARNING, f"this could not be looked at: {fault.message}"))
    found += _account(seen, hidden)
    return in_order(found)


def in_order(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each finding once, the worst first, then by check and message."""
    return tuple(sorted(set(found), key=lambda one: (LEVELS.index(one.level), one.check, one.message)))


def _account(seen: Snapshot, hidden: list[str]) -> Iterator[Finding]:
    if hidden:
        yield Finding(
            UNSEEN,
            WARNING,
            f"this account is not root, and did not see what {', '.join(sorted(hidden))} look at: {SEEN_AS_ROOT}: set "
            "become: true, or enroll the host with its helper",
        )


def state_of(found: Iterable[Finding]) -> str:
    """The worst level; ok where nothing was found."""
    return min((one.level for one in found), key=LEVELS.index, default=OK)


def verdict(found: Iterable[Finding], fail_on: str) -> str:
    """Why the findings fail a run, "" where they do not. `fail_on`: failure, warning (both levels), or never."""
    levels = {"failure": (FAILURE,), "warning": (FAILURE, WARNING), "never": ()}[fail_on]
    return "; ".join(f"{one.check}: {one.message}" for one in found if one.level in levels)
