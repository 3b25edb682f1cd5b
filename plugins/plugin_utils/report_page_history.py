# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runs before this one: a bar a run, and what is different since the last."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from .markup import Html, element, join
from .report_page_stories import hosts_of
from .report_page_words import MARKS, shown, table, wide

Run = Mapping[str, Any]

HEIGHT = 90  # of the bars; the width follows from their number
STEP, BAR = 20, 15
STACKED = ("converged", "progressing", "unknown", "unreachable", "failed")  # from the ground up


def history(hosts: Mapping[str, Any], runs: Sequence[Run], links: Mapping[str, Html]) -> Html:
    """The section; nothing without an earlier run. `runs`: the oldest first, this one the last."""
    if len(runs) < 2:
        return Html()
    counts = [_counts(_summary(run)) for run in runs]
    return element(
        "section",
        element("h2", "Runs", id="runs"),
        _since(hosts, runs[-2], links),
        element("figure", _bars(counts), element("figcaption", *_caption(runs, counts)), class_="bars"),
        element("details", element("summary", "The same as a table"), _table(runs, counts)),
    )


def when(at: Any) -> str:
    """2026-12-01T04:05:06Z as 2026-12-01 04:05; whatever else it is, as it is."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\dZ", str(at))
    return " ".join(found.groups()) if found else str(at)


def past(name: str, runs: Sequence[Run]) -> str:
    """A host's states over the runs, alike ones in a row as one: "converged in 9, failed in 2"; "" of a single run."""
    states = [_then(run["hosts"][name]) for run in runs if isinstance((run.get("hosts") or {}).get(name), Mapping)]
    rows = [(state, len(list(alike))) for state, alike in groupby(states)]
    told = ", then ".join(f"{MARKS.get(state, ('', state))[1]} in {count}" for state, count in rows[-PAST:])
    return told if len(states) > 1 else ""


PAST = 5  # changes of a host's state that are told


def _summary(run: Run) -> Mapping[str, Any]:
    found = run.get("summary")
    return found if isinstance(found, Mapping) else {}


def _counts(summary: Mapping[str, Any]) -> dict[str, int]:
    """Hosts by the state that the page shows: one with a failed unit is failed, though the others go on."""
    told = {state: _count(summary.get(state)) for state in STACKED}
    failing = max(told["failed"], _count(summary.get("failing")))
    told["progressing"] = max(0, told["progressing"] + told["failed"] - failing)
    return {**told, "failed": failing}


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _bars(counts: Sequence[Mapping[str, int]]) -> Html:
    most = max((sum(run.values()) for run in counts), default=0) or 1
    paths: dict[str, list[str]] = {state: [] for state in STACKED}
    for number, run in enumerate(counts):
        floor = float(HEIGHT)
        for state in STACKED:
            high = HEIGHT * run[state] / most
            if high:
                high = max(high, 1.5)  # one host of a thousand is seen too
                paths[state].append(f"M{number * STEP} {floor:.1f}v-{high:.1f}h{BAR}v{high:.1f}z")
                floor -= high
    width = max(1, len(counts)) * STEP
    last = ", ".join(f"{counts[-1][state]} {MARKS[state][1]}" for state in reversed(STACKED) if counts[-1][state])
    return element(
        "svg",
        *(element("path", d="".join(path), class_=state) for state, path in paths.items() if path),
        viewBox=f"0 -4 {width} {HEIGHT + 4}",
        role="img",
        width=str(width),
        height=str(HEIGHT + 4),
        aria_label=f"Hosts by state over {len(counts)} runs; now {last or 'none'}",
    )


def _caption(runs: Sequence[Run], counts: Sequence[Mapping[str, int]]) -> list[Html]:
    seen = [state for state in STACKED if any(run[state] for run in counts)]
    key = (element("span", f"{MARKS[state][0]} {MARKS[state][1]}", class_=f"key {state}") for state in reversed(seen))
    return [
        element("span", f"{when(runs[0]['at'])} to {when(runs[-1]['at'])}, {len(runs)} runs"),
        element("span", "from the top: ", *key, class_="keys"),
    ]


def _table(runs: Sequence[Run], counts: Sequence[Mapping[str, int]]) -> Html:
    header = ("run", "by", *(MARKS[state][1] for state in MARKS), "with drift")
    rows = (
        (
            when(run["at"]),
            str(run.get("source") or "-"),
            *(str(count[state]) for state in MARKS),
            str(_count(_summary(run).get("drifted"))),
        )
        for run, count in reversed(list(zip(runs, counts)))
    )
    return wide(table(header, rows, class_="numbers"), "Runs")


# -- what is different


def _since(hosts: Mapping[str, Mapping[str, Any]], before: Run, links: Mapping[str, Html]) -> Html:
    """Which hosts are otherwise than in the last run."""
    earlier = before.get("hosts") or {}
    then = {name: _then(host) for name, host in earlier.items() if isinstance(host, Mapping)}
    groups: dict[str, list[str]] = {}
    for name, host in hosts.items():
        now, was = shown(host), then.get(name)
        if was is None:
            groups.setdefault("new in this run", []).append(name)
        elif was != now:
            groups.setdefault(f"{MARKS.get(was, ('', was))[1]} → {MARKS.get(now, ('', now))[1]}", []).append(name)
    gone = sorted(set(then) - set(hosts))
    title = element("p", f"Since {when(before['at'])}: ", class_="since")
    if not groups and not gone:
        return element("p", f"Since {when(before['at'])} no host has changed its state.")
    rows = [element("li", f"{word}: ", hosts_of(names, links)) for word, names in sorted(groups.items())]
    if gone:
        rows.append(element("li", "not in this run: ", hosts_of(gone, {name: element("span", name) for name in gone})))
    return join(title, element("ul", *rows))


def _then(host: Mapping[str, Any]) -> str:
    """The state that the page showed."""
    return "failed" if host.get("failing") else str(host.get("state"))
