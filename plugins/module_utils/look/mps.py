# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The MPS daemon: our service, what the daemon answers, and daemons that are not ours."""

from __future__ import annotations

from ..core.errors import StepFailed
from ..core.host import Host
from ..core.seen import Answer
from ..core.unknown import is_known, later
from ..plan.gpu import MODES
from ..plan.gpu_sharing_daemon import ASK, CONTROL, questions
from ..plan.gpu_sharing_seen import QUERIED, Card, Rival, Seen
from ..plan.gpu_sharing_service import SERVICE, Limits, Programs
from ..plan.smi import LAYOUTS
from ..plan.smi import query as asking
from . import mps_rivals, mps_said, smi
from .each_gpu import Row, each_gpu


def daemon(host: Host, count: int) -> tuple[Limits | None, str]:
    """What the daemon in our directory answers of `count` GPUs; or None, and why it does not."""
    said = []
    for question in questions(count):
        try:
            answer = Answer(*host.sight(mps_said.said, [*ASK], f"{question}\n"))
        except StepFailed as fault:
            return None, fault.message
        if answer.rc:
            words = " ".join(f"{answer.out} {answer.err}".split())
            return None, words or f"{CONTROL} exited with {answer.rc}"
        lines = answer.out.split("\n")
        said.append(next((line.strip() for line in reversed(lines) if line.strip()), ""))
    return Limits(said[0], tuple(said[1:])), ""


def programs(host: Host) -> Programs:
    """Where the programs lie that the service runs."""
    return Programs(host.which("nvidia-smi"), host.which(CONTROL))


def gpus(host: Host) -> tuple[Seen, ...]:
    """Every GPU of the host; the card of one that does not answer raises why when it is used."""
    return tuple(Seen(gpu, later(_card, row)) for gpu, row in each_gpu(host, QUERIED))


def _card(row: Row) -> Card:
    return Card(row["memory.total"], row["persistence_mode"], row["compute_mode"], row["mig.mode.current"])


def mig_modes(host: Host, seen: tuple[Seen, ...]) -> dict[str, str]:
    """MIG modes by UUID as mig-layout leaves them, where its steps decide that: known only after them."""
    if not any(is_known(card) and card.mig in MODES for _gpu, card in seen):
        return {}
    if not host.foretells(asking(LAYOUTS)):
        return {}
    return {row["uuid"]: row["mig.mode.current"] for row in smi.told(host, LAYOUTS)}


def rivals(host: Host) -> tuple[Rival, ...]:
    """The MPS daemons that our service does not run, whatever other processes come and go."""
    return tuple(Rival(*found) for found in host.sight(mps_rivals.rivals, CONTROL, SERVICE))
