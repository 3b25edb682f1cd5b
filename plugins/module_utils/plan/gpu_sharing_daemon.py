# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The MPS daemon's unit file, what limits each client, and how the daemon is asked: for hosts that are to have it.

The daemon exits 0 whatever it makes of a command, so only what it answers to a question shows what is in force.
"""

from __future__ import annotations

from .files import HEADER
from .gpu_sharing_service import PIPE, WANTED_BY, Programs, Share

LOG = "/var/log/nvidia-mps"
CONTROL = "nvidia-cuda-mps-control"
ASK = ("env", f"CUDA_MPS_PIPE_DIRECTORY={PIPE}", CONTROL)  # it reads one command

SHARE = "default_active_thread_percentage"
MEMORY = "default_device_pinned_mem_limit"
UNKNOWN = "Unknown command"  # an older daemon's whole answer to what it does not know


def render(programs: Programs, shares: tuple[Share, ...], percentage: int) -> str:
    """The unit file. The daemon numbers the GPUs from 0 in the order of CUDA_VISIBLE_DEVICES, and limits go by number.

    Its directory outlives it, so that what is mounted into containers is the same when it runs again. Stopping works
    without its binary too: systemd then ends what is left of it.
    """
    control = programs.control or CONTROL
    smi = programs.smi or "nvidia-smi"
    return HEADER + "\n".join(
        (
            "[Unit]",
            "Description=CUDA MPS daemon, by which several clients share a GPU",
            "After=nvidia-persistenced.service nvidia-fabricmanager.service bcd-mig.service",
            "Before=containerd.service docker.service crio.service kubelet.service",
            "",
            "[Service]",
            "Type=forking",
            f"Environment=CUDA_MPS_PIPE_DIRECTORY={PIPE}",
            f"Environment=CUDA_MPS_LOG_DIRECTORY={LOG}",
            f"Environment=CUDA_VISIBLE_DEVICES={','.join(share.uuid for share in shares)}",
            f"RuntimeDirectory={PIPE.rpartition('/')[2]}",
            "RuntimeDirectoryPreserve=yes",
            f"LogsDirectory={LOG.rpartition('/')[2]}",
            # Each GPU by itself: on one with MIG, and without -i on all, this would come to nothing and exit 0.
            *(f"ExecStartPre=-{smi} -i {share.uuid} -c EXCLUSIVE_PROCESS" for share in shares),
            f"ExecStart={control} -d",
            f"ExecStartPost=/bin/sh -c '{_until_it_answers(control)}'",
            *(f"ExecStartPost=/bin/sh -c 'echo {line} | {control}'" for line in commands(shares, percentage)),
            f"ExecStop=-/bin/sh -c 'echo quit -t 10 | {control}'",
            *(f"ExecStopPost=-{smi} -i {share.uuid} -c DEFAULT" for share in shares),
            "Restart=on-failure",
            "RestartSec=5",
            "",
            "[Install]",
            f"WantedBy={WANTED_BY}",
            "",
        )
    )


def _until_it_answers(control: str) -> str:
    tries = " ".join(str(second) for second in range(1, 11))
    return f"for try in {tries}; do echo get_{SHARE} | {control} && exit 0; sleep 1; done; exit 1"


def percentage_of(replicas: int) -> int:
    """The share of the SMs of one of `replicas` clients, in percent, at least 1."""
    return max(1, 100 // replicas)


def commands(shares: tuple[Share, ...], percentage: int) -> tuple[str, ...]:
    """What sets the limits, a line each."""
    memory = (f"set_{MEMORY} {number} {share.memory}M" for number, share in enumerate(shares))
    return (f"set_{SHARE} {percentage}", *memory)


def questions(count: int) -> tuple[str, ...]:
    """What reads the limits, a line each, in the order of `commands`; `count` GPUs."""
    return (f"get_{SHARE}", *(f"get_{MEMORY} {number}" for number in range(count)))


def answers(shares: tuple[Share, ...], percentage: int) -> tuple[str, ...]:
    """What the daemon answers to `questions` when the limits are in force."""
    return (f"{percentage:.1f}\n", *(f"{printed(share.memory)}\n" for share in shares))


def printed(memory: int) -> str:
    """MiB as the daemon prints them: whole GiB from 1024 on, and nothing of the rest."""
    return f"{memory // 1024}G" if memory >= 1024 else f"{memory}M"


def is_share(text: str, percentage: int) -> bool:
    """Whether a printed percentage, "25.0", is this one."""
    try:
        return float(text) == percentage
    except ValueError:
        return False


def is_memory(text: str, memory: int) -> bool:
    """Whether a printed size is this many MiB, exactly or as far as the daemon prints them."""
    return text.upper() in (f"{memory}M", printed(memory))
