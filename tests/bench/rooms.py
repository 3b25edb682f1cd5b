# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated hosts to be measured in: each tree's namespace stays open, and entering it costs next to nothing.

Only for root, where namespaces can be made: entered in another way, a host's processor time is no figure.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.sim import mode

HERE = os.path.dirname(os.path.realpath(__file__))
HOLDERS = os.path.join(HERE, "holders.py")


class CannotMeasure(Exception):
    """Hosts cannot be measured here; the message says why."""


def refusal() -> str:
    """Why hosts cannot be measured on this machine; empty when they can."""
    if os.geteuid():
        return "simulated hosts are measured as root only: another account's way in costs more than what is measured"
    if not shutil.which("nsenter"):
        return "nsenter (util-linux) is not on PATH: install util-linux"
    why = mode.refusal()
    return f"no namespace can be made here: {why}" if why else ""


class Rooms:
    """The trees, entered; a context."""

    def __init__(self, trees: list[str], python: str, tools: str = "") -> None:
        why = refusal()
        if why:
            raise CannotMeasure(why)
        command = [sys.executable, "-IS", HOLDERS, python, tools, *trees]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.holders: dict[str, int] = {}
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line == "ready\n":
                return
            tree, _blank, pid = line.rpartition(" ")
            self.holders[tree] = int(pid)
        self.close()
        raise CannotMeasure("a simulated host could not be entered: see above")

    def close(self) -> None:
        """Leave all of them."""
        self._process.communicate()

    def __enter__(self) -> Rooms:
        return self

    def __exit__(self, *_unused: object) -> None:
        self.close()


def inventory(path: Path, hosts: dict[str, dict[str, Any]], shared: dict[str, Any]) -> str:
    """Write an inventory of hosts (of each its `room_holder` and `room_tree`); its path. `shared`: of all of them."""
    document = {"all": {"hosts": hosts, "vars": {"ansible_connection": "room", **shared}}}
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return str(path)
