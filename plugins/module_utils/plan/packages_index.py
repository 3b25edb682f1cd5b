# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The package index: how old it is, its refresh, and what it offers, for hosts on which something is missing."""

from __future__ import annotations

from typing import NamedTuple

from ..core.errors import StepFailed
from ..core.plan import Answer, Past, Todo
from ..core.state import STATE
from ..core.step import Effect, Step, command_line, fail, known_after, run, write
from .packages import Offer, tool_of, version_key
from .packages_seen import Packages

REFRESHED = "the package index is refreshed"  # a clause: what is not offered now is known after it
STAMP = f"{STATE}/package-index"  # its time of writing is that of the last refresh
STAMP_TEXT = "The package index was refreshed when this file was written.\n"
MINUTES = 10  # how old an index may be when something is to be installed


class Source(NamedTuple):
    """One repository whose index is refreshed by itself: `where` it is named (apt: its file; dnf: its id), `words` for
    a sentence, and the `debt` of its refresh, which is the name too under which a refresh that failed is remembered."""

    where: str
    words: str
    debt: str


def _asks_index() -> tuple[str, ...]:
    return ("find", STAMP, "-mmin", f"-{MINUTES}")


def _index(past: Past) -> str:
    """STAMP when the index is fresh, REFRESHED when it will be (in check mode), "" when it is stale."""
    answer = past.ask(_asks_index())
    if answer.rc == 127:
        raise StepFailed("find is not installed, which tells the age of the package index: install findutils")
    return answer.out.strip()


def is_fresh(past: Past) -> bool:
    """Whether the index is no older than ten minutes."""
    return _index(past) == STAMP


def refresh(
    todo: Todo,
    now: Packages,
    past: Past,
    source: Source | None = None,
    changed: bool = False,
    effects: tuple[Effect, ...] = (),
) -> str:
    """Plan the refresh of the package index when it is older than ten minutes; call it when something is due.

    A `source` comes first by itself, where it has `changed` also into a fresh index: how a manager takes a repository
    that it cannot read among others differs, and so it is known. That it failed, `past.vain` says by its debt.
    Returns "" when the index is fresh, else REFRESHED: what the index does not offer now is then known after it (see
    `not_offered`). Behind the steps, which have the `effects` too, the runner looks and plans again.
    """
    seen = _index(past)
    new = source is not None and (changed or source.debt in past.owed)
    if seen == STAMP and not new:
        return ""
    if seen and not new:
        return REFRESHED
    done = (Effect("answers", command_line(_asks_index()), REFRESHED), *effects)
    if source is not None:
        todo.add(_refresh_one(now, source, done, last=seen != ""))
    if not seen:
        argv = tool_of(now.manager).refresh
        todo.add(
            run(argv, f"refresh the package index ({argv[0]})", effects=done, retry=True),
            write(STAMP, STAMP_TEXT, f"note in {STAMP} that the package index is fresh", barrier=True),
        )
    return REFRESHED


def _refresh_one(now: Packages, source: Source, done: tuple[Effect, ...], last: bool) -> Step:
    argv = tool_of(now.manager).refresh_one(source.where)
    action = f"refresh the index of {source.words} ({argv[0]})"
    return run(argv, action, effects=done, retry=True, tries=source.debt, pays=(source.debt,), barrier=last)


def asks_offers(manager: str, names: tuple[str, ...], every: bool = True, lift: str = "") -> tuple[str, ...]:
    """The question of `offers`."""
    tool = tool_of(manager)
    return tool.offers((*(tool.every if every else ()), *(tool.lift(lift) if lift else ()), *names))


def offers(now: Packages, past: Past, names: tuple[str, ...], every: bool = True, lift: str = "") -> tuple[Offer, ...]:
    """What the index offers of the named packages, newest first of each; asks the manager.

    `every`: also what a module stream that is not enabled yet would offer; `lift`: also what this repository excludes.
    An index that is not there yet offers nothing; one that is fresh and cannot be read is a StepFailed.
    """
    tool = tool_of(now.manager)
    argv = asks_offers(now.manager, names, every, lift)
    answer = past.ask(argv)
    if answer.rc not in tool.nothing:
        if _index(past) == STAMP:
            raise StepFailed(f"{' '.join(argv[:2])} cannot tell what is offered: {said(answer)}")
        return ()
    found = tool.read_offers(answer.out)
    return tuple(sorted(found, key=lambda offer: (offer.name, version_key(offer.version)), reverse=True))


def not_offered(todo: Todo, action: str, message: str, refreshed: str, retryable: bool = True) -> None:
    """Say that a package is not offered: a failed step with the message, or what is known after the refresh.

    `refreshed` is what `refresh` returned.
    """
    if refreshed:
        todo.add(known_after(action, refreshed))
    else:
        todo.add(fail(action, message, retryable=retryable))


def said(answer: Answer) -> str:
    """What a program said about its failure, on one line."""
    words = " ".join((answer.err.strip() or answer.out.strip()).split())
    return words[-600:] or f"it exited with {answer.rc} and said nothing"
