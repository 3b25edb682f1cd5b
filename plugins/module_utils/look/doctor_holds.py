# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the doctor looks at of holds: their files, releases that wait, reports that nobody took."""

from __future__ import annotations

from ..core.errors import SEEN_AS_ROOT, NotKnownYet
from ..core.host import Host
from ..plan.assignment import HOLD
from ..plan.devices_seen import Held
from ..plan.doctor_seen import Holds
from ..plan.holds import EVERY, LOST_RELEASES
from .devices import held
from .events import events
from .kube_releases import pending


def holds(host: Host) -> Holds:
    """Raises NotKnownYet for an account that is not root: records of holds are root's."""
    if host.uid() != 0:
        raise NotKnownYet(SEEN_AS_ROOT)
    live = held(host)
    waiting = pending(host)
    unread = f"{waiting.fault}, and {EVERY}" if waiting.fault else ""
    if waiting.lost and not unread:
        unread = f"{LOST_RELEASES} is there: pending releases could not be read, and {EVERY} once no pod has a GPU"
    return Holds(
        faults=tuple(one.fault for one in live.values() if one.fault),
        bare=tuple((name, lack) for name, one in live.items() for lack in _lacks(one)),
        askew=tuple(path for one in live.values() if not one.fault for path in one.askew),
        releases=tuple((release.allocation, release.asked) for release in waiting.releases),
        unread=unread,
        events=sum(not (event.fault or event.acknowledged) for event in events(host)),
    )


def _lacks(one: Held) -> tuple[str, ...]:
    if one.fault:
        return ()
    texts = {"record": one.record_text, "CDI specification": one.spec_text}
    if one.binding == HOLD:
        texts["env file"] = one.env_text
    return tuple(what for what, text in texts.items() if text is None)
