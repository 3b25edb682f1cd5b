# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many simulated hosts and their inventory: `python -m tests.sim.fleet OUT --hosts NAME=PROFILE:COUNT ...`.

Makes OUT/trees/<host> and OUT/inventory.yml, in which every NAME is a group. A tree has fewer than 300 small files, and
each profile is built once and copied, so that hundreds of hosts take seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, NamedTuple

from .machine import Machine
from .tree import PROFILES, build, copy


class Hosts(NamedTuple):
    """So many hosts of one kind."""

    name: str
    machine: Machine
    number: int = 1


def make(
    out: str, kinds: list[Hosts], python: str = sys.executable, hostvars: dict[str, dict[str, Any]] | None = None
) -> str:
    """Build the hosts and write the inventory; returns its path. `hostvars` are further variables by host."""
    trees = os.path.join(os.path.abspath(out), "trees")
    os.makedirs(trees)
    groups: dict[str, Any] = {}
    for kind in kinds:
        width = max(2, len(str(kind.number)))
        members = [f"{kind.name}-{one:0{width}d}" for one in range(1, kind.number + 1)]
        for member in members:
            target = os.path.join(trees, member)
            if member == members[0]:
                build(target, kind.machine, member)
            else:
                copy(os.path.join(trees, members[0]), target, member)
        groups[kind.name.replace("-", "_")] = {
            "hosts": {member: dict((hostvars or {}).get(member, {})) for member in members}
        }
        for member in members:
            groups[kind.name.replace("-", "_")]["hosts"][member]["sim_tree"] = os.path.join(trees, member)
    inventory = {
        "all": {"children": groups, "vars": {"ansible_connection": "sim", "ansible_python_interpreter": python}}
    }
    path = os.path.join(os.path.abspath(out), "inventory.yml")
    with open(path, "w", encoding="utf-8") as target_file:
        json.dump(inventory, target_file, indent=2)  # JSON is YAML
        target_file.write("\n")
    return path


def parse(text: str) -> Hosts:
    """NAME=PROFILE[:COUNT]."""
    name, _unused, rest = text.partition("=")
    profile, _unused, count = rest.partition(":")
    if not name or profile not in PROFILES or (count and not count.isdigit()):
        raise argparse.ArgumentTypeError(f"{text} is not NAME=PROFILE:COUNT; profiles are {', '.join(PROFILES)}")
    return Hosts(name, PROFILES[profile], int(count or "1"))


def main(argv: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim.fleet", description=__doc__)
    parser.add_argument("out", help="a directory that does not hold a fleet yet")
    parser.add_argument("--hosts", action="append", type=parse, required=True, metavar="NAME=PROFILE:COUNT")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that modules run with")
    given = parser.parse_args(argv)
    print(make(given.out, given.hosts, given.python))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
