# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How nvidia-smi is asked: the command lines that looks ask, and that effects and planners' questions name.

An effect names a line by how it begins. So that it poisons only what its step changes, each unit has a line of its own
for its GPUs: the fields, in their order, make it. Where no step decides what that line says, all units ask one line
with the fields of all, which starts nvidia-smi once a pass (see look.smi.told).
"""

from __future__ import annotations

SMI = "nvidia-smi"
CSV = "--format=csv,noheader,nounits"
NAMES = ("index", "uuid", "pci.bus_id", "name")  # the fields that a line about each GPU begins with
FABRIC = ("index", "uuid", "fabric.state", "fabric.status")
MODES = ("index", "uuid", "mig.mode.current")  # as they are now, whatever mig-layout is about to change
LAYOUTS = (*NAMES, "mig.mode.current", "mig.mode.pending", "driver_version")  # mig-layout's: as it leaves them
# What the units ask of GPUs, together: none of it changes but by someone's will. A driver that does not know one of
# the fields answers none of them.
TOGETHER = (
    *NAMES,
    "count",
    "driver_version",
    "memory.total",
    "persistence_mode",
    "compute_mode",
    "power.limit",
    "power.min_limit",
    "power.max_limit",
    "ecc.mode.current",
    "ecc.mode.pending",
    "mig.mode.current",
    "mig.mode.pending",
)
WITH_FABRIC = (*TOGETHER, "fabric.state", "fabric.status")
FABRIC_FROM = 535  # the first branch that tells a GPU's place in the fabric so
COMPUTING = ("gpu_uuid", "pid", "process_name")
LIST = (SMI, "-L")
APPS = (SMI, f"--query-compute-apps={','.join(COMPUTING)}", "--format=csv,noheader")
MIG = f"{SMI} mig"  # how every command line about instances begins


def query(fields: tuple[str, ...]) -> tuple[str, ...]:
    """The question for fields of every GPU, one row each, numbers without units."""
    return (SMI, f"--query-gpu={','.join(fields)}", CSV)


def query_line(fields: tuple[str, ...]) -> str:
    """How the command line of `query` begins, for effects."""
    return " ".join(query(fields)[:2])
