# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of mig-layout on one GPU, each with what is then not known; nvidia-smi is told a GPU by its UUID."""

from __future__ import annotations

from ..core.step import Effect, Step, command_line, run
from . import smi
from .gpu import Gpu
from .mig_state import QUERIED, label

MINUTES = 300.0  # seconds that a change of one GPU may take
# What is not known while instances change: listings, the modes, and what CDI says of the GPUs.
CHANGED = (smi.MIG, command_line(smi.LIST), smi.query_line(QUERIED), "nvidia-ctk cdi")


def _change(
    gpu: Gpu,
    words: tuple[str, ...],
    action: str,
    after: str,
    *,
    barrier: bool = False,
    tries: str = "",
    resets: bool = False,
) -> Step:
    """A step on one GPU; what it changes is known only after it. `resets`: its power limit and its ECC mode too."""
    effects = tuple(Effect("program", line, after) for line in (*CHANGED, *(_reset_too() if resets else ())))
    nodes = Effect("appears", "/dev/nvidia-caps", after)
    return run(
        (smi.SMI, *words),
        action,
        effects=(*effects, nodes),
        disruption="gpu",
        barrier=barrier,
        tries=tries,
        timeout=MINUTES,
    )


def _reset_too() -> tuple[str, ...]:
    """What gpu-settings asks: a reset brings the default power limit, and the ECC mode that was pending."""
    from .gpu_settings import QUERIED as SETTINGS

    return (smi.query_line(SETTINGS),)


def mode(gpu: Gpu, on: bool, tries: str = "", resets: bool = False) -> Step:
    """Turn MIG mode on or off. It may wait for a reset, and nvidia-smi exits 0 all the same.

    `resets`: the driver resets the GPU for it, where nothing holds it.
    """
    word = "on" if on else "off"
    return _change(
        gpu,
        ("-i", gpu.uuid, "-mig", "1" if on else "0"),
        f"turn {word} MIG mode of {label(gpu)}",
        f"MIG mode of GPU {gpu.index} is turned {word}",
        barrier=True,
        tries=tries,
        resets=resets,
    )


def reset(gpu: Gpu, tries: str = "") -> Step:
    """Reset this one GPU, so that its MIG mode changes."""
    return _change(
        gpu,
        ("--gpu-reset", "-i", gpu.uuid),
        f"reset {label(gpu)}, so that its MIG mode changes",
        f"GPU {gpu.index} is reset",
        barrier=True,
        tries=tries,
        resets=True,
    )


def destroy_parts(gpu: Gpu, gis: tuple[int, ...], cis: tuple[int, ...] = ()) -> Step:
    """Destroy the compute instances of some GPU instances, or some of those of one."""
    which = ("-ci", _listed(cis)) if cis else ()
    what = f"compute instances {_listed(cis)}" if cis else "the compute instances"
    return _change(
        gpu,
        ("mig", "-i", gpu.uuid, "-dci", "-gi", _listed(gis), *which),
        f"destroy {what} of gi {_listed(gis)} on {label(gpu)}",
        f"compute instances of GPU {gpu.index} are destroyed",
    )


def destroy(gpu: Gpu, gis: tuple[int, ...], why: str) -> Step:
    """Destroy GPU instances that have no compute instance left; `why` ends its sentence."""
    return _change(
        gpu,
        ("mig", "-i", gpu.uuid, "-dgi", "-gi", _listed(gis)),
        f"destroy gi {_listed(gis)} on {label(gpu)}: {why}",
        f"GPU instances of GPU {gpu.index} are destroyed",
        barrier=True,
    )


def create(gpu: Gpu, instances: tuple[tuple[str, int | None], ...], filled: bool) -> Step:
    """Create GPU instances, each a profile's name and its start, None for where the driver puts it.

    `filled`: each with a compute instance that fills it.
    """
    words = ",".join(name if start is None else f"{name}:{start}" for name, start in instances)
    said = ", ".join(name if start is None else f"{name} at {start}" for name, start in instances)
    return _change(
        gpu,
        ("mig", "-i", gpu.uuid, "-cgi", words, *(("-C",) if filled else ())),
        f"create {said} on {label(gpu)}",
        f"GPU instances of GPU {gpu.index} are created",
        barrier=not filled,
    )


def create_parts(gpu: Gpu, gi: int, names: tuple[str, ...]) -> Step:
    """Create compute instances in a GPU instance."""
    return _change(
        gpu,
        ("mig", "-i", gpu.uuid, "-cci", ",".join(names), "-gi", str(gi)),
        f"create the compute instances {', '.join(names)} in gi {gi} on {label(gpu)}",
        f"compute instances of GPU {gpu.index} are created",
    )


def _listed(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))
