# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of a branch, or of a version that was given instead, which cannot run a host's GPUs."""

from __future__ import annotations

from ..core.errors import Refused
from .gpu_chips import PciGpu, generation, named
from .unit_names import NVIDIA_DRIVER as UNIT


def not_served(gpu: PciGpu, branch: int, version: str) -> Refused:
    """The branch is from before the GPU's generation, or after it."""
    kind = generation(gpu.device)
    given = f"version is {version}" if version else f"branch is {branch}"
    if branch < kind.first:
        served, limit, other = f"from branch {kind.first} on", kind.first, "a later one"
    else:
        served, limit, other = f"up to branch {kind.last}", kind.last, "an earlier one"
    return Refused(f"{UNIT}: {named(gpu)} is served {served}, and {given}: {_give(limit, version)} or {other}")


def not_open(branch: int, version: str, first: int) -> Refused:
    """The branch has no open kernel modules."""
    given = f"version {version}" if version else f"branch {branch}"
    return Refused(
        f"{UNIT}: {given} has no open kernel modules, which begin with branch {first}: {_give(first, version)} or a "
        "later one"
    )


def _give(branch: int, version: str) -> str:
    """What to change in the settings."""
    return f"give a version of branch {branch}" if version else f"set branch to {branch}"


def not_both(opened: PciGpu, closed: PciGpu) -> Refused:
    """A host whose GPUs need both flavours."""
    return Refused(
        f"{UNIT}: {named(opened)} needs the open kernel modules and {named(closed)} the proprietary ones, and a host "
        "loads one flavour: hand one of them to a virtual machine, or take it out"
    )


def not_as_asked(gpu: PciGpu, needed: str, asked: bool) -> Refused:
    """A GPU that runs with the other flavour than the one that is asked for."""
    return Refused(
        f"{UNIT}: {named(gpu)} runs with the {needed} kernel modules only, and open is {str(asked).lower()}: leave "
        f"open unset, or set it to {str(not asked).lower()}"
    )


def not_known(gpus: list[PciGpu], flavour: str) -> str:
    """A note on GPUs in no range of the table."""
    listed = ", ".join(f"{gpu.address} (device {gpu.device:04x})" for gpu in gpus)
    note = f"this version does not know the GPU {listed} and takes the {flavour} kernel modules for it"
    return f"{note}: set open where it needs the other ones"
