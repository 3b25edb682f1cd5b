# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One measured run of a command: wall time, and processor time of the controller, the hosts and what hosts ask."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from tests.bench.cgroups import GROUPS, Groups

JOIN = 'for door in $1; do echo $$ >"$door"; done; shift; exec "$@"'


class Cost(NamedTuple):
    """Of one run, in seconds; the peak of the controller's memory in bytes, None where the kernel does not tell."""

    wall: float
    controller: float
    host: float
    tools: float
    peak: int | None = None


class Failed(Exception):
    """A run did not do what it is measured for; the message has what it said."""


class Meter:
    """Takes the cost of commands, by control groups or, without them, by what waited-for children used.

    Without groups all that a run started is the controller's, hosts included: then only wall times mean anything, and
    `apart` is False.
    """

    def __init__(self, groups: Groups | None) -> None:
        self._groups = groups
        self.apart = groups is not None

    def run(self, argv: list[str], environment: dict[str, str], cwd: Path, is_host: bool = False) -> tuple[Cost, str]:
        """The cost and the output of a command that exits 0; `is_host`: it is itself what runs on a host."""
        command = list(argv)
        if self._groups is not None and not is_host:
            command = ["/bin/sh", "-c", JOIN, "meter", " ".join(self._groups.doors("controller")), *command]
            self._groups.forget_peak("controller")
        before, began = self._used(), time.perf_counter()
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=cwd,
        )
        wall, after = time.perf_counter() - began, self._used()
        out = done.stdout.decode(errors="replace")
        if done.returncode:
            raise Failed(f"{' '.join(argv)} exited with {done.returncode}:\n{out[-4000:]}")
        peak = self._groups.peak("controller") if self._groups is not None and not is_host else None
        controller, host, tools = (late - early for late, early in zip(after, before))
        return Cost(wall, controller, host, tools, peak), out

    def _used(self) -> list[float]:
        if self._groups is not None:
            return [self._groups.cpu(group) for group in GROUPS]
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return [used.ru_utime + used.ru_stime, 0.0, 0.0]


def clean_environment() -> dict[str, str]:
    """The caller's environment without what would change how Ansible or a host's Python runs."""
    foreign = ("ANSIBLE_", "PYTHON", "AWX_", "COVERAGE")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
