# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which GPUs the MPS daemon serves: those without MIG, which have none by the layout that is applied either."""

from __future__ import annotations

from ..core.errors import NotReady, Refused, StepFailed
from ..core.plan import Past, Todo
from ..core.unknown import is_known
from .gpu import LACKING, MODES, Gpu, value
from .gpu_sharing_seen import Card, Now
from .gpu_sharing_service import Share
from .mig_applied import is_to_have_mig
from .unit_names import GPU_SHARING as UNIT

BEFORE_VOLTA = ("maxwell", "pascal")


def shares(todo: Todo, now: Now, past: Past, replicas: int) -> tuple[tuple[Share, ...], tuple[Gpu, ...]]:
    """The GPUs that the daemon serves, in its order, and those that are dead.

    A dead one fails by itself; one with MIG is left out with a note.

    Raises Refused where there is MIG on all of them.
    """
    if not now.gpus:
        raise NotReady(f"{UNIT}: nvidia-smi shows no GPU: see that the driver fits those of this host")
    found = []
    dead = []
    with_mig = []
    old = [str(gpu.index) for gpu, card in now.gpus if _is_before_volta(gpu, card)]
    for gpu, card in now.gpus:
        if is_known(card) and _has_mig(gpu, card, now, past):
            with_mig.append(str(gpu.index))
            continue
        with todo.lane(gpu.uuid):
            try:
                found.append(Share(gpu.uuid, _memory(gpu, card) // replicas))
            except StepFailed:
                dead.append(gpu)
                raise
    if len(with_mig) == len(now.gpus):
        raise Refused(
            f"{UNIT}: every GPU of this host has or is to have MIG, whose instances one MPS daemon cannot serve: take "
            f"{UNIT} out, or set the layout of a GPU to off"
        )
    if old:
        todo.note(f"GPU(s) {', '.join(old)} are from before Volta, where MPS serves 16 clients and limits none of them")
    if with_mig:
        todo.note(f"MPS leaves out GPU(s) {', '.join(with_mig)}, which have or are to have MIG")
    return tuple(found), tuple(dead)


def _is_before_volta(gpu: Gpu, card: Card) -> bool:
    """Whether the GPU's name tells that; of one that can have MIG it is not asked."""
    if is_known(card) and card.mig in MODES:
        return False
    from .gpu_generations import generation

    return generation(gpu.name) in BEFORE_VOLTA


def _has_mig(gpu: Gpu, card: Card, now: Now, past: Past) -> bool:
    """Whether the GPU has MIG or is to have it. Where its layout turns it off, what is seen after that counts."""
    if card.mig in LACKING:
        return False
    target = is_to_have_mig(past.applied, gpu)
    if card.mig == "Enabled":
        return target is not False or now.mig.get(gpu.uuid, card.mig) == "Enabled"
    return bool(target)


def _memory(gpu: Gpu, card: Card) -> int:
    """The GPU's memory in MiB; raises StepFailed where one of its values is none."""
    if card.mig not in LACKING and value(card.mig) is None:
        raise _no_value(gpu, "MIG mode", card.mig)
    if value(card.compute) is None:
        raise _no_value(gpu, "compute mode", card.compute)
    if not card.memory.isdecimal():
        raise _no_value(gpu, "memory", card.memory)
    return int(card.memory)


def _no_value(gpu: Gpu, what: str, text: str) -> StepFailed:
    from .gpu_fault import no_value

    return no_value(UNIT, gpu, what, text)
