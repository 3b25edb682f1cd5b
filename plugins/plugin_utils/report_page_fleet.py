# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the fleet waits for, by what must happen; its pools; and what is different since an earlier run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .markup import Html, element, join
from .report_page_stories import hosts_of
from .report_page_words import MARKS, counted, shown, table, wide
from .said import WAITS, of_any_host, of_these, told

Hosts = Mapping[str, Mapping[str, Any]]


# -- what waits for what


def waits(hosts: Hosts, links: Mapping[str, Html]) -> Html:
    """Each thing that is waited for or refused, once, under the title of what must happen."""
    groups: dict[str, dict[tuple[str, str], list[str]]] = {}
    for name, host in hosts.items():
        if not host["units"] and host["state"] != "converged":
            groups.setdefault(host["state"], {}).setdefault(("", of_any_host(name, host["message"])), []).append(name)
        for title, unit, message in told(host):
            groups.setdefault(title, {}).setdefault((unit, of_any_host(name, message)), []).append(name)
    if not groups:
        return element("section", element("h2", "What waits"), element("p", "Nothing waits, and nothing was refused."))
    known = [title for title in (*ABSENT, *WAITS) if title in groups]
    blocks = (_group(title, groups[title], links) for title in [*known, *sorted(set(groups) - set(known))])
    return element("section", element("h2", "What waits for what", id="waits"), *blocks)


# A host that said nothing of its units.
ABSENT = {
    "unreachable": "Could not be reached",
    "unknown": "No result: see the output of the playbook",
    "failed": "Failed as a whole",
    "progressing": "Waits as a whole",
}


def _group(title: str, lines: Mapping[tuple[str, str], list[str]], links: Mapping[str, Html]) -> Html:
    ordered = sorted(lines.items(), key=lambda item: -len(item[1]))
    rows = ((unit or "host", of_these(names, message), hosts_of(names, links)) for (unit, message), names in ordered)
    count = len({name for names in lines.values() for name in names})
    word = ABSENT.get(title) or WAITS.get(title, title)
    query = f"why={title}" if title in WAITS else f"state={title}"
    head = element("h3", f"{word} ", element("span", counted(count, "host"), class_="quiet"), data_show=query)
    return join(head, wide(table(("unit", "message", "hosts"), rows, class_="said"), word))


# -- pools


def pools(hosts: Hosts) -> Html:
    """A row a pool, where the fleet has any."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for host in hosts.values():
        groups.setdefault(str(host.get("pool") or ""), []).append(host)
    if not any(groups):
        return Html()
    rows = (_pool(name, members) for name, members in sorted(groups.items(), key=lambda item: (not item[0], item[0])))
    header = ("pool", "site", "hosts", "states", "drift", "reboot", "GPUs held")
    return element("section", element("h2", "Pools", id="pools"), wide(table(header, rows, class_="pools"), "Pools"))


def _pool(name: str, members: list[Mapping[str, Any]]) -> Iterator[str]:
    states = [shown(host) for host in members]
    yield element("span", name, data_pool=name) if name else "no pool"
    yield ", ".join(sorted({str(host["site"]) for host in members if host.get("site")})) or "-"
    yield f"{len(members):,}"
    yield element(
        "ul",
        *(
            element("li", f"{MARKS[state][0]} {states.count(state):,} {MARKS[state][1]}", class_=state)
            for state in MARKS
            if state in states
        ),
        class_="states",
    )
    yield str(sum(bool(host["drift"]) for host in members) or "-")
    yield str(sum(bool(host["reboot_required"]) for host in members) or "-")
    yield _held([gpu for host in members for gpu in host.get("gpus") or ()])


def _held(gpus: Sequence[Mapping[str, Any]]) -> str:
    """How many of the GPUs somebody has, or a part of them."""
    if not gpus:
        return "-"
    if any(gpu.get("allocations") is None for gpu in gpus):
        return f"? of {len(gpus):,}"  # who has them is seen as root
    return f"{sum(bool(gpu['allocations']) for gpu in gpus):,} of {len(gpus):,}"
