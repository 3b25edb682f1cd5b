# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What bcd agent came to and what it repaired, remembered by root until an Ansible run has told it.

The record ``agent.json``: `last` (how its last pass ended), `repairs` (the newest, each with its `number`), `told` (the
number up to which a run of Ansible has told them). It is written when something was repaired or the state is another
one, and not on each pass: systemd knows when the last one was.
"""

from __future__ import annotations

from ..core.errors import Fault, NotKnownYet
from ..core.host import Host
from ..core.state import AGENT as RECORD
from ..core.state import parse, render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, NamedTuple
else:
    from ..core.named import NamedTuple

AGENT = RECORD
MOST = 100  # repairs that are kept
LONGEST = 1000  # characters of a text that is kept


class Repair(NamedTuple):
    """A step that an unattended pass took, which changed something: its unit's name, and its sentence."""

    unit: str
    action: str


def news(host: Host) -> dict[str, Any] | None:
    """What there is to tell: `last`, and the `repairs` that no run has told yet; None when all is well, and told.

    `last` has `at` (unix time at which it came to be so), `boot_id`, and for `host` and `devices` a `state` and a
    `message`, None for one that is not kept.
    """
    found = _read(host)
    fresh = [repair for repair in found["repairs"] if repair["number"] > found["told"]]
    if found["last"] is None or not (fresh or any(map(_is_unwell, _ends(found["last"])))):
        return None
    return {
        "last": found["last"],
        "repairs": [{key: repair[key] for key in ("at", "unit", "action")} for repair in fresh],
    }


def told(host: Host) -> None:
    """Remember that the news were told; a record that cannot be written is told once more."""
    found = _read(host)
    newest = max((repair["number"] for repair in found["repairs"]), default=0)
    if newest > found["told"]:
        try:
            host.write(AGENT, render({**found, "told": newest}), 0o600)
        except (Fault, OSError):
            return


def heard(host: Host, settles: bool) -> dict[str, Any] | None:
    """The news; `settles`: they count as told from now on, since a run's own last pass over the host tells them."""
    found = news(host)
    if found and settles and not host.predicted:
        told(host)
    return found


def seen(host: Host) -> dict[str, Any]:
    """The whole record: `last` (None: no pass yet), `repairs`, `told`."""
    return _read(host)


def remember(host: Host, part: str, state: str, message: str, repairs: Iterable[Repair]) -> None:
    """Record how a pass over "host" or "devices" ended ("" where it is not kept any more), and what it repaired."""
    found, now = _read(host), host.time()
    before = {key: value for key, value in (found["last"] or {}).items() if key != "at"}
    end = {"state": state, "message": _short(message)} if state else None
    last = {"host": None, "devices": None, **before, "boot_id": host.boot_id(), part: end}
    first = 1 + max((repair["number"] for repair in found["repairs"]), default=found["told"])
    added = [
        {"number": number, "at": now, "unit": repair.unit, "action": _short(repair.action)}
        for number, repair in enumerate(repairs, first)
    ]
    if added or last != before:
        kept = [*found["repairs"], *added][-MOST:]
        host.write(AGENT, render({"last": {"at": now, **last}, "repairs": kept, "told": found["told"]}), 0o600)


def _read(host: Host) -> dict[str, Any]:
    """The record; one that is damaged, or that this account cannot see, tells nothing, and is written anew."""
    nothing: dict[str, Any] = {"last": None, "repairs": [], "told": 0}
    try:
        text = host.read(AGENT)
        return nothing if text is None else parse(AGENT, text, _is_whole)
    except (Fault, NotKnownYet):
        return nothing


def _is_whole(found: Mapping[str, Any]) -> bool:
    last, repairs = found.get("last"), found.get("repairs")
    return (
        _is_count(found.get("told"))
        and (last is None or (isinstance(last, dict) and _is_last(last)))
        and isinstance(repairs, list)
        and all(isinstance(repair, dict) and _is_repair(repair) for repair in repairs)
    )


def _is_last(last: Mapping[str, Any]) -> bool:
    parts = (last.get("host"), last.get("devices"))
    return (
        _is_count(last.get("at"))
        and isinstance(last.get("boot_id"), str)
        and all(part is None or (isinstance(part, dict) and _has_texts(part, "state", "message")) for part in parts)
    )


def _is_repair(repair: Mapping[str, Any]) -> bool:
    return _is_count(repair.get("number")) and _is_count(repair.get("at")) and _has_texts(repair, "unit", "action")


def _has_texts(found: Mapping[str, Any], *names: str) -> bool:
    return all(isinstance(found.get(name), str) for name in names)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _ends(last: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [part for part in (last.get("host"), last.get("devices")) if part is not None]


def _is_unwell(end: Mapping[str, Any]) -> bool:
    return bool(end["state"] != "CONVERGED")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."
