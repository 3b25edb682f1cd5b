# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the playbook's variables ask for, host by host: a pool may have its own in its group's variables.

The plan is one task of one host, whose variables are not those of the other pools'. Its values hold for all where they
are not that host's own: a play's variables are above all others but extra ones, and no host's variables have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ansible.module_utils.parsing.convert_bool import boolean

from .reboot_budget import Limit, limit

FLAGS = {"again": False, "with_holds": False, "cordon": True, "drain": False, "dry_run": False}  # with their defaults
MOST = "max_unavailable"


class Wishes(NamedTuple):
    """The variables of the playbook that decide about a host."""

    again: bool = False
    with_holds: bool = False
    cordon: bool = True
    drain: bool = False
    dry_run: bool = False
    most: Limit = Limit(1)


def wishes_of(
    hosts: Iterable[str], variables: Mapping[str, Any], given: Mapping[str, Any], asked: str
) -> dict[str, Wishes]:
    """Of each host. `given`: what the host `asked` has in its task, by name. Raises ValueError for a limit."""
    limit(given[MOST])
    own = _own(variables[asked]) if asked else {}
    told = {name for name, value in given.items() if not asked or _said(name, value) != _said(name, own[name])}
    found = {}
    for host in hosts:
        values = {name: given[name] if name in told else value for name, value in _own(variables[host]).items()}
        try:
            most = limit(values[MOST])
        except ValueError as fault:
            raise ValueError(f"{host}: {fault}") from None
        found[host] = Wishes(**{name: boolean(values[name], strict=False) for name in FLAGS}, most=most)
    return found


def _own(variables: Mapping[str, Any]) -> dict[str, Any]:
    return {name: variables.get(f"bcd_reboot_{name}", default) for name, default in {**FLAGS, MOST: 1}.items()}


def _said(name: str, value: Any) -> str:
    return str(value) if name == MOST else str(boolean(value, strict=False))
