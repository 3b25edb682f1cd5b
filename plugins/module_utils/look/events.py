# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal of events, as root's own files have it (plan.events has their form)."""

from __future__ import annotations

from ..core.errors import StepFailed, Unreadable
from ..core.host import Host
from ..plan.devices_seen import Event
from ..plan.events import EVENTS, parse_event, path_of

SUFFIX = ".json"


def events(host: Host) -> tuple[Event, ...]:
    """The events in the order in which they were journaled; one whose file cannot be made out has its `fault`."""
    names = (name for name in host.names(EVENTS) if name.endswith(SUFFIX) and not name.startswith("."))
    found = (_event(host, name[: -len(SUFFIX)]) for name in names)
    return tuple(sorted((event for event in found if event is not None), key=lambda event: (event.sequence, event.id)))


def _event(host: Host, name: str) -> Event | None:
    path = path_of(name)
    try:
        text = host.read(path)
        event = None if text is None else parse_event(path, text)
    except StepFailed as fault:
        if isinstance(fault, Unreadable) and fault.denied and host.uid() != 0:  # root sees it: nothing is known here
            raise
        return Event(name, fault=fault.message)
    if event is not None and event.id != name:
        return Event(name, fault=f"{path} is the event {event.id} under another name: look at it, then move it away")
    return event
