# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of gpu-sharing, each with what a look then sees.

Starting, restarting and stopping the service all change the compute mode of its GPUs, which is what makes them `gpu`.
"""

from __future__ import annotations

from ..core.step import Effect, Step, command_line, run
from ..core.unknown import is_known
from . import smi, systemd
from .gpu import Gpu
from .gpu_sharing_daemon import ASK, answers, commands, questions
from .gpu_sharing_seen import DEFAULT, EXCLUSIVE, QUERIED, Seen
from .gpu_sharing_service import RESTART, SERVICE, Share

WORDS = {EXCLUSIVE: "EXCLUSIVE_PROCESS", DEFAULT: "DEFAULT"}  # as it takes them
SETTLE = 30.0  # seconds: the service itself waits ten for its daemon
NO_DAEMON = "Cannot find MPS control daemon process\n"


def modes(seen: tuple[Seen, ...], become: dict[str, str]) -> Effect:
    """What nvidia-smi then prints of all GPUs, with the compute modes in `become`, by UUID."""
    if not seen or not all(is_known(card) for _gpu, card in seen):
        return Effect("program", smi.query_line(QUERIED), "the compute modes are set")
    lines = []
    for gpu, card in seen:
        values = card._replace(compute=become.get(gpu.uuid, card.compute))
        lines.append(", ".join((str(gpu.index), gpu.uuid, gpu.pci, gpu.name, *values)) + "\n")
    return Effect("answers", command_line(smi.query(QUERIED)), "".join(lines))


def bring_up(seen: tuple[Seen, ...], shares: tuple[Share, ...], percentage: int, again: bool) -> Step:
    """Start the service, or, `again`, restart it, which ends its clients."""
    says = zip(questions(len(shares)), answers(shares, percentage))
    effects = (
        *(Effect("answers", command_line(ASK, question), answer) for question, answer in says),
        modes(seen, {share.uuid: EXCLUSIVE for share in shares}),
    )
    return systemd.control(
        "restart" if again else "start",
        SERVICE,
        effects=effects,
        disruption="gpu",
        barrier=True,
        settle=SETTLE,
        pays=(RESTART,),
    )


def bring_down(seen: tuple[Seen, ...], served: tuple[str, ...]) -> Step:
    """Stop the service, which sets the compute mode of what it served back."""
    effects = (
        *(Effect("fails", command_line(ASK, question), NO_DAEMON) for question in questions(len(served))),
        modes(seen, dict.fromkeys(served, DEFAULT)),
    )
    return systemd.control("stop", SERVICE, effects=effects, disruption="gpu", barrier=True)


def set_mode(gpu: Gpu, mode: str, seen: tuple[Seen, ...], become: dict[str, str]) -> Step:
    """Set one GPU's compute mode; `become` collects the modes that the plan has set, by UUID.

    It exits 0 where it changed nothing, so what stands on it waits for another look.
    """
    become[gpu.uuid] = mode
    return run(
        ("nvidia-smi", "-i", gpu.uuid, "-c", WORDS[mode]),
        f"set the compute mode of GPU {gpu.index} to {WORDS[mode]}",
        effects=(modes(seen, become),),
        disruption="gpu",
        barrier=True,
        timeout=60.0,
    )


def set_limit(shares: tuple[Share, ...], percentage: int, number: int) -> Step:
    """Set one limit again (see `commands`), for the clients of the servers that the daemon starts from now on."""
    command = commands(shares, percentage)[number]
    effect = Effect("answers", command_line(ASK, questions(len(shares))[number]), answers(shares, percentage)[number])
    return run(ASK, f"tell the MPS daemon: {command}", stdin=f"{command}\n", effects=(effect,), timeout=60.0)
