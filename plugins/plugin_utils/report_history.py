# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of each run, small, so that a report can show how the fleet came to be as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from .report import PLAN, STATUS
from .shapes import NUMBER, TEXT, ByName, Each, Misfit, fit

NAME = re.compile(rf"[0-9]{{8}}T[0-9]{{6}}Z-(?:{PLAN}|{STATUS})\.json")
COUNTS = ByName(NUMBER)
RUN = {
    "at": TEXT,
    "source": TEXT,
    "summary": COUNTS,
    "pools": ByName(COUNTS),
    "hosts": ByName({"state": TEXT, "drift": Each(TEXT), "failing": Each(TEXT), "waits": Each(TEXT)}),
}


def name_of(document: Mapping[str, Any], now: datetime) -> str:
    """The name of a run's file, by its time in UTC; names sort as the runs came."""
    return f"{now:%Y%m%dT%H%M%SZ}-{document['source']}.json"


def run_of(document: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """What is kept of a document: its `at` (UTC, "2026-12-01T04:05:06Z"), `source`, `summary`, `hosts`.

    Of each host its `state`, the units that `drift` and those `failing`, and for which reasons it `waits`, once each.
    """
    return {
        "at": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "source": document["source"],
        "summary": document["summary"],
        "hosts": {name: _host(host) for name, host in document["hosts"].items()},
    }


def _host(host: Mapping[str, Any]) -> dict[str, Any]:
    waits = {wait["reason"] for unit in host["units"] for wait in unit["pending"]}
    failing = list(host["failing"])
    return {"state": host["state"], "drift": list(host["drift"]), "failing": failing, "waits": sorted(waits)}


def newest(names: Iterable[str], keep: int) -> tuple[list[str], list[str]]:
    """Of the names in a folder those of the newest `keep` runs, oldest first; and those of older runs."""
    ours = sorted(name for name in names if NAME.fullmatch(name))
    first = max(0, len(ours) - keep)
    return ours[first:], ours[:first]


def read(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """The runs of these files, as run_of has them; a file that is none of ours, or gone meanwhile, is passed over."""
    found = []
    for path in paths:
        try:
            given = json.loads(path.read_text(encoding="utf-8"))
            told = dict(given["summary"])
            run = fit({**given, "pools": told.pop("pools", {}), "summary": told}, RUN)
        except (OSError, ValueError, KeyError, TypeError, RecursionError, Misfit):
            continue
        pools = run.pop("pools")
        found.append({**run, "summary": {**run["summary"], "pools": pools}})
    return found
