# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The matrix of hosts against units, and the form by which a script filters it. Without one it is a plain table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..module_utils.plan.assignment import UNIT
from ..module_utils.plan.unit_names import ORDER
from .markup import Html, element
from .report_page_stories import Stories
from .report_page_words import MARKS, badge, short, shown, shown_unit
from .said import WAITS, titles

PLACES = ("pool", "site", "class")
NONE_FOUND = "No host is like that: take something out of the filter."
NONE_THERE = "There is no host in this report."
LEGEND = ("✓ converged", "● waits or has steps to take", "✕ failed", "- not managed")


def units_of(hosts: Mapping[str, Any]) -> list[str]:
    """The units of all hosts, in the order of their turns."""
    named = dict.fromkeys(unit["unit"] for host in hosts.values() for unit in host["units"])
    return sorted(named, key=lambda unit: ORDER.index(unit) if unit in ORDER else len(ORDER))


def matrix(hosts: Mapping[str, Any], links: Mapping[str, Html], stories: Stories) -> Html:
    """The section with all hosts, in their order."""
    units = units_of(hosts)
    pooled = any(host.get("pool") for host in hosts.values())
    words = ("host", "state", *(("pool",) if pooled else ()), *units)
    header = element("tr", *(element("th", element("span", word), scope="col") for word in words))
    rows = (_row(name, host, links[name], units, stories, pooled) for name, host in hosts.items())
    table = element("table", element("thead", header), element("tbody", *rows), class_="matrix", id="matrix")
    return element(
        "section",
        element("h2", "Hosts and units", id="hosts"),
        _form(hosts, units),
        element("p", *(element("span", word) for word in LEGEND), class_="legend quiet"),
        element("div", table, class_="wide grid", tabindex="0", role="region", aria_label="Hosts and units"),
        element("p", NONE_FOUND, class_="empty", hidden="") if hosts else element("p", NONE_THERE),
    )


def column_names(hosts: Mapping[str, Any]) -> str:
    """The style by which a narrow screen, whose rows are cards, says beside each cell which unit it is of."""
    first = 4 if any(host.get("pool") for host in hosts.values()) else 3
    return "".join(
        f'.matrix td:nth-child({number})::before{{content:"{unit}"}}'
        for number, unit in enumerate(units_of(hosts), first)
        if unit in (*ORDER, UNIT)  # another name may be anything
    )


def _row(name: str, host: Mapping[str, Any], link: Html, units: list[str], stories: Stories, pooled: bool) -> Html:
    places = {f"data_{key}": str(host[key]) for key in PLACES if host.get(key)}
    waits = " ".join(sorted({f"{unit}:{title}" for unit, title in titles(host)}))
    marked = " ".join(word for word, holds in _flags(host) if holds)
    told = {key: value for key, value in (("data_why", waits), ("data_is", marked)) if value}
    return element(
        "tr",
        element("th", link),
        element("td", badge(shown(host)), class_="state"),
        *([element("td", str(host.get("pool") or "-"), class_="pool")] if pooled else []),
        *_cells(name, host, units, stories),
        data_state=shown(host),
        **places,
        **told,
    )


def _flags(host: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    yield "drift", bool(host["drift"])
    yield "reboot", bool(host["reboot_required"] or (host.get("reboot") or {}).get("required"))
    yield "held", bool(host.get("holds") or (host.get("devices") or {}).get("holds"))


def _cells(name: str, host: Mapping[str, Any], units: list[str], stories: Stories) -> Iterator[Html]:
    by_name = {unit["unit"]: unit for unit in host["units"]}
    for each in units:
        unit = by_name.get(each)
        if unit is None:
            yield element("td", "-")
            continue
        state = shown_unit(unit)
        mark = MARKS.get(state, ("?", ""))[0]
        # A converged unit is quiet: the legend says what its mark means.
        words = mark if state == "converged" else f"{mark} {short(unit)}"
        anchor = stories.anchors.get((name, each))
        yield element("td", element("a", words, href=f"#{anchor}") if anchor else words, class_=state)


# -- the form; a script shows it


def _form(hosts: Mapping[str, Any], units: list[str]) -> Html:
    states = [shown(host) for host in hosts.values()]
    why = {title for host in hosts.values() for _unit, title in titles(host)}
    selects = [
        _select("state", "State", [(state, MARKS[state][1]) for state in MARKS if state in states]),
        *(_select(key, key.capitalize(), [(value, value) for value in _values(hosts, key)]) for key in PLACES),
        _select("unit", "Unit not converged", [(unit, unit) for unit in units]),
        _select(
            "why",
            "Needs",
            [(title, WAITS.get(title, title)) for title in [*WAITS, *sorted(why - set(WAITS))] if title in why],
        ),
        _select("is", "Only", [("drift", "with drift"), ("reboot", "waiting for a reboot"), ("held", "with holds")]),
    ]
    search = element(
        "input", type="search", id="q", name="q", autocomplete="off", placeholder="name, message, allocation, UUID"
    )
    return element(
        "form",
        element("div", element("label", "Search ", element("kbd", "/"), for_="q"), search, class_="field search"),
        *selects,
        element("button", "Clear", type="reset"),
        element("p", element("output", "", id="count", aria_live="polite"), class_="count"),
        id="filter",
        role="search",
        hidden="",
    )


def _values(hosts: Mapping[str, Any], key: str) -> list[str]:
    return sorted({str(host[key]) for host in hosts.values() if host.get(key)})


def _select(name: str, label: str, options: list[tuple[str, str]]) -> Html:
    """One choice; nothing where there is nothing to choose."""
    if len(options) < 2:
        return Html()
    listed = (element("option", word, value=value) for value, word in options)
    choice = element("select", element("option", "any", value=""), *listed, name=name, id=f"f-{name}")
    return element("div", element("label", label, for_=f"f-{name}"), choice, class_="field")
