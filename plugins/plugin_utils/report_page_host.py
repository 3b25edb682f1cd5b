# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One host on the page: what it is, what it says, its GPUs, holds and pages; its units lead to their stories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .devices_table import devices_table
from .markup import Html, element
from .report_page_devices import Pictures, numa_part
from .report_page_stories import Stories, condition, has_something_to_say
from .report_page_words import badge, shown, shown_unit
from .said import ALL, of_all_units, reasons

Host = Mapping[str, Any]


def host_part(name: str, host: Host, anchor: str, stories: Stories, pictures: Pictures, past: str) -> Html:
    """A part that opens and closes; a script shows the same in a panel, with the stories in the place of the links."""
    told = [
        (unit, stories.anchors[name, unit["unit"]]) for unit in host["units"] if (name, unit["unit"]) in stories.anchors
    ]
    quiet = [unit["unit"] for unit in host["units"] if not has_something_to_say(unit)]
    once = of_all_units(host)
    content = [
        _facts(host, past),
        *(_as_a_whole(host) if not told else ()),
        *(element("p", element("strong", f"{ALL}: {reason}"), f": {message}") for reason, message in once),
        _links(told),
        *_reboot(host),
        pictures.of(host.get("gpus") or ()),
        _holds(host),
        numa_part(host.get("numa") or ()),
        element("p", f"Nothing to do: {', '.join(quiet)}.", class_="quiet") if quiet else Html(),
        *(element("p", f"Not seen: {sentence}", class_="note") for sentence in host.get("unreadable") or ()),
    ]
    summary = element("summary", element("h3", name), badge(shown(host)))
    return element("details", summary, *content, id=anchor, class_="host")


def _links(told: list[tuple[Mapping[str, Any], str]]) -> Html:
    items = (
        element("li", element("a", unit["unit"], href=f"#{anchor}"), " ", badge(shown_unit(unit)))
        for unit, anchor in told
    )
    return element("ul", *items, class_="units") if told else Html()


def _as_a_whole(host: Host) -> Iterator[Html]:
    """The section's message and conditions, where its units do not say them."""
    if host["message"]:
        yield element("p", host["message"])
    yield from map(condition, host["conditions"])


def _reboot(host: Host) -> Iterator[Html]:
    """Reasons for a reboot that the host remembers, and no unit says."""
    said = {unit["unit"] for unit in host["units"] for reason, _message in reasons(unit) if reason == "RebootRequired"}
    for unit, message in ((host.get("reboot") or {}).get("reasons") or {}).items():
        if unit not in said:
            yield element("p", element("strong", f"{unit}: RebootRequired"), f": {message}")


def _facts(host: Host, past: str) -> Html:
    pairs = [(word, text) for word, text in (*_told(host), ("runs", past)) if text]
    items = (element("div", element("dt", word), element("dd", text)) for word, text in pairs)
    return element("dl", *items, class_="facts") if pairs else Html()


def _told(host: Host) -> Iterator[tuple[str, str]]:
    for key in ("pool", "site", "class", "kernel", "driver"):
        yield key, str(host.get(key) or "")
    if host["observed_generation"] is not None:
        yield "generation", str(host["observed_generation"])
    yield "trust", _trust(host.get("trust") or {})
    yield "agent", _agent(host.get("agent") or {})


def _trust(told: Mapping[str, Any]) -> str:
    if told.get("fault"):
        return str(told["fault"])
    return str(told.get("demand") or "nothing demands a signed spec") if told else ""


def _agent(told: Mapping[str, Any]) -> str:
    if told.get("fault"):
        return str(told["fault"])
    ends = [
        f"{part} {str(end.get('state')).lower()}"
        for part, end in (told.get("last") or {}).items()
        if isinstance(end, Mapping)
    ]
    repairs = [f"{each.get('unit')}: {each.get('action')}" for each in told.get("repairs") or ()]
    return "; ".join([", ".join(ends), *(f"repaired {each}" for each in repairs[-3:])]).strip("; ")


def _holds(host: Host) -> Html:
    """Who holds what: what a run would make of it where that was planned, else what is there."""
    gpus = {
        str(gpu.get("uuid")): f"GPU {gpu['index']}" for gpu in host.get("gpus") or () if gpu.get("index") is not None
    }
    if host.get("devices"):
        return devices_table(host["devices"], gpus)
    holds = [
        {**hold, "allocation_id": str(hold.get("allocation_id")), "binding": str(hold.get("binding") or "")}
        for hold in host.get("holds") or ()
    ]
    going = [hold["allocation_id"] for hold in holds if hold.get("releasing")]
    empty: dict[str, Any] = {"bound": [], "kept": [], "released": [], "failures": []}
    return devices_table({**empty, "releasing": going, "holds": holds}, gpus)
