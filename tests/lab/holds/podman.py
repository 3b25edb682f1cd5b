# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers that ask for held devices by name, with a real podman, and what each of them sees."""

from __future__ import annotations

import re
import time
from typing import NamedTuple

from labvm.machine import Machine

LIMIT = 300.0  # seconds that a container may take: an emulated machine on a busy one is slow
# The numbers of a node, and its name: crw-rw-rw-    1 0        0         195,   0 Nov 30 16:14 nvidia0
NODE = re.compile(r"c\S+ +\d+ \S+ +\S+ +(\d+), +(\d+) .* (\S+)")
LOOK = (
    "env; echo --; cat /proc/self/status; echo --; ls -l /dev /dev/nvidia-caps 2>/dev/null; echo --; cat /proc/mounts"
    "; echo --; for node in /dev/nvidia*[0-9]; do cat $node 2>&1; done; echo -- END; sleep 10000"
)


class Wanted(NamedTuple):
    """A container: its name, the device as CDI knows it, the slice that it is to run in ("": podman's own)."""

    name: str
    device: str
    parent: str = ""


class Inside(NamedTuple):
    """What a container sees. nodes: the driver's device nodes by name; mounts: options by path.

    opened: what its shell is told when it opens its GPUs' nodes.
    """

    id: str
    environment: tuple[str, ...]
    status: dict[str, str]
    nodes: dict[str, tuple[int, int]]
    mounts: dict[str, list[str]]
    opened: str


def start(machine: Machine, *wanted: Wanted) -> list[Inside]:
    """Start containers side by side; each goes on running. Fails with what podman said of one that does not start."""
    runs = "".join(f'{_command(one)} >/dev/null & jobs="$jobs $!"; ' for one in wanted)
    machine.ssh(f"{runs} for job in $jobs; do wait $job || exit 1; done", timeout=300)
    return [_inside(machine, one.name) for one in wanted]


def stop(machine: Machine, *names: str) -> None:
    """Kill containers and remove them; returns once nothing of them runs, their monitors included."""
    ids = [machine.read(f"/run/{name}.id").strip() for name in names]
    machine.ssh(f"podman rm --force --time=0 {' '.join(names)}", timeout=300)
    until = time.monotonic() + LIMIT
    while machine.ssh(f"systemctl list-units --no-legend {' '.join(f'libpod*{each}.scope' for each in ids)}").out:
        assert time.monotonic() < until, f"something of the containers {', '.join(names)} goes on"
        time.sleep(0.5)


def _command(one: Wanted) -> str:
    options = [f"--name={one.name}", "--network=none", f"--device={one.device}", f"--cidfile=/run/{one.name}.id"]
    options += ["--log-driver=k8s-file", f"--log-opt=path=/run/{one.name}.log"]
    options += [f"--cgroup-parent={one.parent}"] if one.parent else []
    return f"podman run --detach {' '.join(options)} lab:latest sh -c '{LOOK}'"


def _inside(machine: Machine, name: str) -> Inside:
    """What the container has said, once it has said all of it."""
    until = time.monotonic() + LIMIT
    while "-- END" not in (log := machine.read(f"/run/{name}.log")):
        assert time.monotonic() < until, f"the container {name} said no more than {log}"
        time.sleep(0.5)
    # A line of the log is a time, a stream, a tag, and what was said.
    text = "\n".join((line.split(" ", 3) + [""] * 3)[3] for line in log.splitlines())
    environment, status, nodes, mounts, opened = re.split(r"^--(?: END)?$", text, flags=re.MULTILINE)[:5]
    shown = (NODE.fullmatch(line) for line in nodes.splitlines())
    return Inside(
        machine.read(f"/run/{name}.id").strip(),
        tuple(environment.split("\n")),
        dict(line.replace("\t", "").split(":", 1) for line in status.strip().splitlines()),
        {node[3]: (int(node[1]), int(node[2])) for node in shown if node and node[3].startswith("nvidia")},
        {line.split()[1]: line.split()[3].split(",") for line in mounts.strip().splitlines()},
        opened.strip(),
    )
