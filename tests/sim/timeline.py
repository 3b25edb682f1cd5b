# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a simulated host was down: each going down and coming up is a line of its tree, `<unix time> down|up`.

A host that is told to be down for some seconds says at once when it will be up. From these the tests tell how many
hosts of a pool were down together, at any instant.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import NamedTuple

from .machine import put, read

PATH = "/var/lib/sim/timeline"
DOWN, UP = "down", "up"


class Span(NamedTuple):
    """From when until when a host was down: unix times; math.inf where it never came back."""

    since: float
    until: float


class Most(NamedTuple):
    """The most hosts that were down together, which ones, and since when; 0 of none."""

    number: int
    at: float
    hosts: tuple[str, ...]


def note(root: str, what: str, at: float | None = None) -> None:
    """Add a line, of now or of a time to come."""
    put(root, PATH, (read(root, PATH) or "") + f"{time.time() if at is None else at:.6f} {what}\n")


def spans(root: str) -> list[Span]:
    """When the host in a tree was down. ValueError for a line that is none."""
    found: list[Span] = []
    since: float | None = None
    for line in (read(root, PATH) or "").splitlines():
        at, _unused, what = line.partition(" ")
        if what not in (DOWN, UP):
            raise ValueError(f"{root}: {line!r} is no line of a timeline")
        if what == DOWN and since is None:
            since = float(at)
        elif what == UP and since is not None:
            found.append(Span(since, float(at)))
            since = None
    return found if since is None else [*found, Span(since, math.inf)]


def most_down(hosts: Iterable[tuple[str, Iterable[Span]]]) -> Most:
    """The most of these hosts that were down together. One that comes up as another goes down has made room for it."""
    down = {host: list(given) for host, given in hosts}
    moments = sorted({span.since for given in down.values() for span in given})
    most = Most(0, 0.0, ())
    for at in moments:
        here = tuple(sorted(host for host, given in down.items() if any(one.since <= at < one.until for one in given)))
        if len(here) > most.number:
            most = Most(len(here), at, here)
    return most
