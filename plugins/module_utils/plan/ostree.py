# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ostree: kernel arguments belong to deployments, and rpm-ostree makes a new one with other arguments."""

from __future__ import annotations

from ..core.step import Effect, Step, fail, run
from .cmdline import edited, flat, lacking, rivals, words
from .loader import Boot, Change, Work

KARGS = "rpm-ostree kargs"


def kargs(said: str) -> str:
    """The arguments of the deployment that boots next: the last line, older versions print a sentence before it."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def work(boot: Boot, change: Change) -> Work:
    """One call, or two where a word leaves and comes back in another group."""
    said = boot.answers[KARGS]
    if said.rc != 0:
        why = " ".join(said.err.split())[:200] or "it said nothing"
        message = f"{change.unit}: {KARGS} exited with {said.rc} ({why}): see rpm-ostree status, and run again"
        return Work((fail("read the kernel arguments with rpm-ostree", message),))
    line = kargs(said.out)
    missing = flat(lacking(line, change.wanted))
    gone = lacking(line, change.stale)
    leaving = flat(group for group in change.stale if group not in gone)
    foreign = tuple(group for group in change.wanted if not lacking(line, (group,)))
    notes = tuple(
        f"{change.unit}: {' '.join(group)} is a kernel argument too and is not ours: only one of the two counts, "
        f"so take it out with rpm-ostree kargs --delete={group[-1]}"
        for group in rivals(line, change.wanted)
        if group not in change.stale
    )
    between = edited(line, change.stale, ())
    delete = tuple(f"--delete-if-present={word}" for word in leaving)
    there = words(between)
    add = tuple(f"--append={word}" if word in there else f"--append-if-missing={word}" for word in missing)
    after = edited(between, (), change.wanted)
    if set(leaving) & set(missing):
        steps: tuple[Step, ...] = (_call(delete, between), _call(add, after))
    else:
        steps = (_call(delete + add, after),) if delete + add else ()
    return Work(steps, foreign, change.created, notes)


def _call(options: tuple[str, ...], after: str) -> Step:
    return run(
        ("rpm-ostree", "kargs", *options),
        f"set the kernel arguments of the next deployment: {' '.join(options)}",
        effects=(Effect("answers", KARGS, after + "\n"),),
    )
