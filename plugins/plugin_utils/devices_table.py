# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds what on a host, and what the next run would make of it, as a table of the report's page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .markup import Html, element

NEXT = {"kept": "stays", "released": "would be released", "releasing": "waits for pods that have a device of it"}
HEADER = ("allocation", "devices", "binding", "next")


def devices_table(devices: Mapping[str, Any]) -> Html:
    """The table; nothing where nothing is held, nor would be."""
    rows = [
        element("tr", element("th", row[0], scope="row"), *(element("td", cell) for cell in row[1:]))
        for row in _rows(devices)
    ]
    if not rows:
        return Html()
    head = element("thead", element("tr", *(element("th", word, scope="col") for word in HEADER)))
    table = element("table", head, element("tbody", *rows))
    return element("article", element("h4", "Holds"), element("div", table, class_="wide", tabindex="0"))


def _rows(devices: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    to_come = {name: word for key, word in NEXT.items() for name in devices[key]}
    named = set()
    for hold in devices["holds"]:
        name = hold["allocation_id"]
        named.add(name)
        binding = hold["binding"].replace("BINDING_", "").lower()
        yield name, ", ".join(hold["devices"]) or "every GPU", binding, to_come.get(name, "stays")
    for name in devices["bound"]:
        if name not in named:
            yield name, "", "", "would be bound"
    for failure in devices["failures"]:
        yield failure["allocation_id"], "", "", f"{failure['reason']}: {failure['message']}"
