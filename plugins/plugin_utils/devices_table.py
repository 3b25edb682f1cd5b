# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds what on a host, and what the next run would make of it, as a table of the report's page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .markup import Html, element
from .report_page_words import table, wide

NEXT = {"kept": "stays", "released": "would be released", "releasing": "waits for pods that have a device of it"}
STAYS = "stays"
HEADER = ("allocation", "devices", "binding", "next")


def devices_table(devices: Mapping[str, Any], gpus: Mapping[str, str]) -> Html:
    """The table; nothing where nothing is held, nor would be. `gpus`: what to call a GPU, by its UUID."""
    rows = list(_rows(devices, gpus))
    if not rows:
        return Html()
    columns = 3 if all(row[3] == STAYS for row in rows) else 4
    told = table(HEADER[:columns], (row[:columns] for row in rows))
    return element("article", element("h4", "Holds"), wide(told, "Holds"))


def _rows(devices: Mapping[str, Any], gpus: Mapping[str, str]) -> Iterator[tuple[str, str, str, str]]:
    to_come = {name: word for key, word in NEXT.items() for name in devices[key]}
    named = set()
    for hold in devices["holds"]:
        name = hold["allocation_id"]
        named.add(name)
        binding = hold["binding"].replace("BINDING_", "").lower()
        parts = ", ".join(_device(device, gpus) for device in hold["devices"])
        yield name, hold.get("fault") or parts or "every GPU", binding, to_come.get(name, STAYS)
    for name in devices["bound"]:
        if name not in named:
            yield name, "", "", "would be bound"
    for failure in devices["failures"]:
        yield failure["allocation_id"], "", "", f"{failure['reason']}: {failure['message']}"


def _device(device: str, gpus: Mapping[str, str]) -> str:
    """GPU-<uuid>/gi7/ci0 as "GPU 3 gi7/ci0"."""
    gpu, _slash, part = device.partition("/")
    return f"{gpus[gpu]} {part}".rstrip() if gpu in gpus else device
