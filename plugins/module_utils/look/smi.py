# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nvidia-smi says of the GPUs, of every driver generation.

It prints its errors on standard output, and its exit status alone means little: both are read together. What is not
known here is a fault that names the text; nothing is passed over.
"""

from __future__ import annotations

import re

from ..core.errors import StepFailed
from ..core.host import Host
from ..core.plan import Answer
from ..plan.gpu import App, Gpu, Listed, MigDevice
from ..plan.smi import APPS, COMPUTING, LIST, NAMES, SMI
from ..plan.smi import query as question
from .smi_faults import quoted, tells_of_the_dead, unanswered

TIMEOUT = 60.0  # seconds: a driver that does not fit its GPU makes nvidia-smi hang
NO_GPU = re.compile(r"No devices (?:were )?found\.?")
GPUS = (*NAMES, "count")

LISTED = re.compile(r"GPU (\d+): (.+) \(UUID: (GPU-[^\s)]+)\)")
MIG_DEVICE = re.compile(r" +MIG (\S+) +Device +(\d+): \(UUID: (MIG-[^\s)]+)\)")


def ask(host: Host, *arguments: str, timeout: float = TIMEOUT) -> Answer:
    """What nvidia-smi answers to the arguments, whatever it is; 127 where it is not installed."""
    return host.ask((SMI, *arguments), timeout)


def answered(host: Host, *arguments: str, timeout: float = TIMEOUT, silent: bool = False) -> str:
    """What nvidia-smi prints to the arguments, "" where there is no GPU; raises what `unanswered` makes of it else.

    An answer of nothing at all is none, unless `silent` says that it may be.
    """
    answer = ask(host, *arguments, timeout=timeout)
    if answer.rc in (0, 6) and NO_GPU.fullmatch(answer.out.strip()) and not tells_of_the_dead(answer):
        return ""
    fault = unanswered(host, answer, arguments)
    if fault:
        raise fault
    if not (silent or answer.out.strip()):
        raise StepFailed(f"nvidia-smi {' '.join(arguments)} prints nothing: see the kernel's log")
    return answer.out


def query(host: Host, fields: tuple[str, ...], gpu: str = "", timeout: float = TIMEOUT) -> tuple[dict[str, str], ...]:
    """A row a GPU, texts by field, numbers without units; of all GPUs, or of the one that `gpu` names for -i.

    A field without a value keeps its text, "[N/A]" (see plan.gpu.value). No GPU is no row. Raises NotReady where no
    driver runs, StepFailed for the rest.
    """
    where = ("-i", gpu) if gpu else ()
    rows = parse_csv(answered(host, *question(fields)[1:], *where, timeout=timeout), fields)
    if gpu and len(rows) != 1:
        raise StepFailed(f"nvidia-smi shows {len(rows)} GPUs for -i {gpu}, not one: look at the kernel's log for it")
    if not gpu:
        _whole(rows)
    return rows


def _whole(rows: tuple[dict[str, str], ...]) -> None:
    """Whether no GPU is missing between the rows, as far as the fields tell."""
    if any("count" in row and row["count"] != str(len(rows)) for row in rows):
        raise StepFailed(f"nvidia-smi counts {rows[0]['count']} GPUs and shows {len(rows)}: see the kernel's log")
    indexes = [row["index"] for row in rows if "index" in row]
    if indexes and indexes != [str(at) for at in range(len(rows))]:
        raise StepFailed(f"nvidia-smi shows the GPUs {', '.join(indexes)}, with a gap: see the kernel's log")


def parse_csv(text: str, fields: tuple[str, ...]) -> tuple[dict[str, str], ...]:
    """Rows of --format=csv,noheader; the last field may hold commas. Raises StepFailed naming a wrong line."""
    rows = []
    for line in text.splitlines():
        cells = line.split(", ", len(fields) - 1)
        if len(cells) != len(fields) or not all(cell.strip() for cell in cells[:-1]):
            raise StepFailed(f"nvidia-smi prints {quoted(line)}, not the {len(fields)} values that were asked for")
        rows.append({field: cell.strip() for field, cell in zip(fields, cells)})
    return tuple(rows)


def gpus(host: Host) -> tuple[Gpu, ...]:
    """The GPUs that the driver runs, by index, one that does not answer among them; none is ()."""
    from .each_gpu import each_gpu  # it asks with this file's `query`

    return tuple(gpu for gpu, _row in each_gpu(host, GPUS))


def listing(host: Host) -> str:
    """What `nvidia-smi -L` prints: every GPU and every MIG device; "" where there is none."""
    return answered(host, *LIST[1:])


def parse_list(text: str) -> tuple[Listed, ...]:
    """The GPUs and MIG devices of `nvidia-smi -L`; raises StepFailed naming a line that is neither, or a gap."""
    listed: list[Listed] = []
    for line in text.splitlines():
        gpu, device = LISTED.fullmatch(line), MIG_DEVICE.fullmatch(line)
        if gpu and int(gpu.group(1)) == len(listed):
            listed.append(Listed(len(listed), gpu.group(2), gpu.group(3)))
        elif device and listed and int(device.group(2)) == len(listed[-1].devices):
            mine = MigDevice(device.group(1), int(device.group(2)), device.group(3))
            listed[-1] = listed[-1]._replace(devices=(*listed[-1].devices, mine))
        elif line.strip() and not NO_GPU.fullmatch(line.strip()):
            raise StepFailed(f"nvidia-smi -L prints {quoted(line)}, which is no GPU or MIG device in its place")
    return tuple(listed)


def compute_apps(host: Host, gpu: str = "") -> tuple[App, ...]:
    """The processes that compute, on all GPUs or the one that `gpu` names for -i."""
    where = ("-i", gpu) if gpu else ()
    rows = parse_csv(answered(host, *APPS[1:], *where, silent=True), COMPUTING)
    for row in rows:
        if not row["pid"].isdecimal():
            raise StepFailed(f"nvidia-smi shows a compute process with the id {row['pid']!r}, which is no process id")
    return tuple(App(row["gpu_uuid"], int(row["pid"]), row["process_name"]) for row in rows)
