# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot service that makes the layouts again: instances are lost at every boot, from Hopper on the mode too.

It runs nvidia-smi alone, so that it works without Ansible or Python, and stays when the unit leaves the settings. Each
instance is made by a command of its own at its own start; every command may fail without keeping the others, or the
boot, from their turn. It is for GPUs that have lost everything: while any has an instance, a start or restart of the
service is passed over, since compute instances, whose places cannot be told, would be made beside those that are there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..core.plan import Past, Todo
from .files import HEADER
from .gpu import Gpu
from .mig import known
from .mig_state import Now, Shown
from .systemd_seen import RELOAD

SERVICE = "bcd-mig.service"
WANTED_BY = "multi-user.target"
AFTER = ("systemd-modules-load.service", "systemd-udev-trigger.service", "nvidia-persistenced.service",
         "nvidia-fabricmanager.service")  # fmt: skip
# What opens GPUs, or describes them.
BEFORE = ("nvidia-cdi-refresh.service", "bcd-mps.service", "nvidia-dcgm.service", "dcgm.service",
          "dcgm-exporter.service", "containerd.service", "docker.service", "crio.service", "podman.service",
          "podman-restart.service", "k3s.service", "k3s-agent.service", "kubelet.service", "libvirtd.service",
          "slurmd.service")  # fmt: skip
# The driver shows a directory for each GPU instance here, and none before its module is loaded.
INSTANCES = "/proc/driver/nvidia/capabilities/gpu*/mig/gi*"


class Instance(NamedTuple):
    """A GPU instance as it is to be after a boot. `start` None: where the driver puts it.

    `parts` are the names of its compute instances, () for one that fills it; `gi` its id, which those need.
    """

    name: str
    start: int | None
    parts: tuple[str, ...] = ()
    gi: int | None = None


class Target(NamedTuple):
    """What a GPU is to be after a boot."""

    gpu: Gpu
    on: bool
    instances: tuple[Instance, ...] = ()


def as_they_are(shown: Shown, told: bool = True) -> tuple[Instance, ...]:
    """The instances that a GPU has, for the boot service; none while MIG mode is off.

    `told`: the driver takes the starts; else the largest come first, so that where it puts them leaves room for all.
    """
    found = []
    for gi in sorted(shown.gis, key=lambda gi: (0 if told else -gi.size, gi.start)) if shown.on else ():
        profile = known(gi.profile_name)
        names = tuple(ci.profile_name for ci in shown.parts_of(gi))
        whole = not names or [known(name).compute for name in names] == [profile.slices]
        found.append(Instance(gi.profile_name, gi.start if told else None, () if whole else names, gi.id))
    return tuple(found)


def by_place(one: Instance) -> int:
    """Instances in the order of their starts."""
    return one.start or 0


def commands(program: str, uuid: str, instances: Iterable[Instance]) -> tuple[str, ...]:
    """The commands that bring one GPU to its layout: the mode, then each instance."""
    lines = [f"ExecStart=-{program} -i {uuid} -mig 1"]
    for one in instances:
        profile = one.name if one.start is None else f"{one.name}:{one.start}"
        lines.append(f"ExecStart=-{program} mig -i {uuid} -cgi {profile}{'' if one.parts else ' -C'}")
        if one.parts and one.gi is not None:
            lines.append(f"ExecStart=-{program} mig -i {uuid} -cci {','.join(one.parts)} -gi {one.gi}")
    return tuple(lines)


def render(lines: Iterable[str]) -> str:
    """The service."""
    return HEADER + "\n".join(
        (
            "[Unit]",
            "Description=MIG instances of the NVIDIA GPUs",
            f"After={' '.join(AFTER)}",
            f"Before={' '.join(BEFORE)}",
            f"ConditionPathExistsGlob=!{INSTANCES}",
            "",
            "[Service]",
            "Type=oneshot",
            "RemainAfterExit=yes",
            "TimeoutStartSec=10min",
            *lines,
            "",
            "[Install]",
            f"WantedBy={WANTED_BY}",
            "",
        )
    )


def keep_service(todo: Todo, now: Now, targets: tuple[Target, ...], past: Past) -> None:
    """Plan the service for the targets; GPUs that are not among them, a dead one say, keep the commands that they had.

    It is of the trunk, behind the GPUs' lanes: it waits for what they make, whose ids it may need. Of an instance that
    is not there yet, in a plan or where it could not be made, it lacks the compute instances that need its id.
    """
    if not now.systemd.running:
        todo.note(f"systemd does not run here: without {SERVICE} the instances are lost at the next boot")
        return
    made = {
        target.gpu.uuid: commands(now.program, target.gpu.uuid, target.instances) if target.on else ()
        for target in targets
    }
    lines = [line for seen in now.gpus for line in made.get(seen.gpu.uuid, ())]
    if is_there(now, lines) and RELOAD not in past.owed:  # it has no commands then but those of the targets
        return
    from .mig_boot_change import change_service

    change_service(todo, now, made, past)


def is_there(now: Now, lines: list[str]) -> bool:
    """Whether the service has these commands; without any, whether there is none."""
    return now.service.is_kept(render(lines)) if lines else not (now.service.file or now.service.enabled)
