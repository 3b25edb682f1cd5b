# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of others in the CDI folders that are no specification of any kind."""

from __future__ import annotations

import json

from ..core.host import Host
from .cdi import ENDINGS, FOLDER, HOLDS, runtime_folder

KEYS = ("cdiVersion", "kind")  # what every specification has


def broken(host: Host, known: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """The path of each, and what is wrong with it; `known` are paths that are told of elsewhere."""
    found = []
    for folder in (FOLDER, runtime_folder(host)):
        for name in host.names(folder):
            path = f"{folder}/{name}"
            if name.endswith(ENDINGS) and not name.startswith(HOLDS) and path not in known:
                fault = fault_of(path, host.read(path) or "")
                found += [(path, fault)] if fault else []
    return tuple(found)


def fault_of(path: str, text: str) -> str:
    """Why a text is no specification, "" where it may be one: YAML is not read here beyond the words of its keys."""
    if not text.strip():
        return "it is empty"
    spec = None
    if path.endswith(".json"):
        try:
            spec = json.loads(text)
        except (ValueError, RecursionError) as fault:
            return f"it is no JSON: {fault}"
        if not isinstance(spec, dict):
            return "it is no mapping"
    missing = [key for key in KEYS if key not in (text if spec is None else spec)]
    return f"it has no {' and no '.join(missing)}" if missing else ""
