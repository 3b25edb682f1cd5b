# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a report: the document, its page, a document a host, and what is kept of each run."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from . import report_history as history
from .report import VERSION
from .whole_file import PUBLIC, as_json, write_whole

HOST = "HostReport"
SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
PAGE = "fleet.html"


class Unwritten(Exception):
    """The report cannot be written, in one sentence."""


def write_report(folder: Path, document: Mapping[str, Any], now: datetime, keep: int) -> Path:
    """Write all files below the folder, each at once as a whole, and return the path of the page.

    `now` is in UTC. Of earlier runs the newest are kept, with this one `keep`. Raises Unwritten.
    """
    from .report_page import render_page

    try:
        runs = _keep(folder / "history", document, now, keep)
        _write(folder / "fleet.json", as_json(document))
        _write(folder / PAGE, render_page(document, f"{now:%Y-%m-%d %H:%M} UTC", runs))
        _hosts(folder / "hosts", document)
    except OSError as fault:
        raise Unwritten(
            f"cannot write the report below {folder}: {fault.filename or ''}: {fault.strerror or fault}: "
            "give another directory as bcd_report_dir"
        ) from fault
    return folder / PAGE


def file_names(hosts: Iterable[str]) -> dict[str, str]:
    """A file's name for each host, whatever it is called, and none twice where case makes no difference.

    A name that is plain stays as it is; any other gets a ~, which none that is plain has, and a digest of itself.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for host in sorted(hosts, key=lambda host: (SAFE.fullmatch(host) is None, host)):
        stem = host
        if not SAFE.fullmatch(host) or f"{host}.json".casefold() in taken:
            digest = hashlib.sha256(host.encode("utf-8", "replace")).hexdigest()
            stem = f"{re.sub('[^A-Za-z0-9._-]+', '_', host).lstrip('._-')[:60] or 'host'}~{digest[:16]}"
        names[host] = f"{stem}.json"
        taken.add(names[host].casefold())
    return names


def _keep(folder: Path, document: Mapping[str, Any], now: datetime, keep: int) -> list[dict[str, Any]]:
    """Keep this run, drop those that are too old, and return what is left, oldest first."""
    if keep > 0:
        _write(folder / history.name_of(document, now), as_json(history.run_of(document, now)))
    kept, old = history.newest(_names(folder), keep)
    for name in old:
        (folder / name).unlink(missing_ok=True)
    return history.read(folder / name for name in kept)


def _hosts(folder: Path, document: Mapping[str, Any]) -> None:
    """A document a host; those of hosts that are not in this report go, as far as we wrote them."""
    names = file_names(document["hosts"])
    for host, name in names.items():
        told = {"kind": HOST, "version": VERSION, "source": document["source"], "name": host}
        _write(folder / name, as_json({**told, "host": document["hosts"][host]}))
    written = {name.casefold() for name in names.values()}
    for name in _names(folder):
        if name.endswith(".json") and name.casefold() not in written and _is_ours(folder / name):
            (folder / name).unlink(missing_ok=True)


def _is_ours(path: Path) -> bool:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("kind") == HOST


def _names(folder: Path) -> list[str]:
    """Of the files in the folder; it need not be there."""
    return [entry.name for entry in os.scandir(folder) if entry.is_file()] if folder.is_dir() else []


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    write_whole(path, content, PUBLIC)
