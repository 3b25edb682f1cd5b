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
from ..plan.smi import FABRIC_FROM, SMI, TOGETHER, WITH_FABRIC
from ..plan.smi import query as question

TIMEOUT = 60.0  # seconds: a driver that does not fit its GPU makes nvidia-smi hang
NO_GPU = re.compile(r"No devices (?:were )?found\.?")
# Words of every text in which it tells of a fault or of nothing; an answer without them is plainly one.
TELLING = re.compile(r"Unable to|Failed to|couldn't|[Mm]ismatch|Insufficient Permissions|Not? .*[Ff]ound")
BRANCH = re.compile(r" (\d+)\.\d[\d.]* ")

Rows = tuple[dict[str, str], ...]


def ask(host: Host, *arguments: str, timeout: float = TIMEOUT) -> Answer:
    """What nvidia-smi answers to the arguments, whatever it is; 127 where it is not installed."""
    return host.ask((SMI, *arguments), timeout)


def is_plain(answer: Answer) -> bool:
    """Whether it is an answer in which nothing tells of a fault: what any other means, look.smi_faults knows."""
    return answer.rc == 0 and not answer.err.strip() and bool(answer.out.strip()) and not TELLING.search(answer.out)


def answered(host: Host, *arguments: str, timeout: float = TIMEOUT, silent: bool = False) -> str:
    """What nvidia-smi prints to the arguments, "" where there is no GPU; raises what `unanswered` makes of it else.

    An answer of nothing at all is none, unless `silent` says that it may be.
    """
    answer = ask(host, *arguments, timeout=timeout)
    if is_plain(answer):
        return answer.out
    from .smi_faults import judged

    return judged(host, answer, arguments, silent)


def query(host: Host, fields: tuple[str, ...], gpu: str = "", timeout: float = TIMEOUT) -> Rows:
    """A row a GPU, texts by field, numbers without units; of all GPUs, or of the one that `gpu` names for -i.

    A field without a value keeps its text, "[N/A]" (see plan.gpu.value). No GPU is no row. Raises NotReady where no
    driver runs, StepFailed for the rest.
    """
    return _checked(_asked(host, fields, gpu, timeout), gpu)


def told(host: Host, fields: tuple[str, ...], gpu: str = "", timeout: float = TIMEOUT) -> Rows:
    """As `query`, out of the answer to the one question that all units ask; by the line of these fields where a step
    decides what that says, or the driver does not know all that is asked together.
    """
    wide = () if host.foretells(question(fields)) else _together(host)
    for together in wide:
        if not {*fields} <= {*together}:
            continue
        try:
            rows = _asked(host, together, gpu, timeout)
        except StepFailed as fault:
            if not knows_no_field(fault):
                raise
            continue
        return _checked(tuple({field: row[field] for field in fields} for row in rows), gpu)
    return query(host, fields, gpu, timeout)


def knows_no_field(fault: StepFailed) -> bool:
    """Whether the fault is that this driver's nvidia-smi does not know a field that was asked for."""
    return bool(getattr(fault, "no_field", False))  # of smi_faults.NoAnswer, which is not imported for it


def _together(host: Host) -> tuple[tuple[str, ...], ...]:
    """What is asked together, of which the loaded driver should know the first."""
    version = (host.read("/proc/driver/nvidia/version") or "").partition("\n")[0]
    found = BRANCH.search(f"{version} ")
    with_fabric = found is not None and int(found.group(1)) >= FABRIC_FROM
    return (WITH_FABRIC, TOGETHER) if with_fabric else (TOGETHER,)


def _asked(host: Host, fields: tuple[str, ...], gpu: str, timeout: float) -> Rows:
    where = ("-i", gpu) if gpu else ()
    return parse_csv(answered(host, *question(fields)[1:], *where, timeout=timeout), fields)


def _checked(rows: Rows, gpu: str) -> Rows:
    """The rows, which must be the one GPU's, or all: none may be missing between them, as far as the fields tell."""
    places = [{"count": str(len(rows)), "index": str(at)} for at in range(len(rows))]
    told = [{key: row.get(key, place[key]) for key in place} for row, place in zip(rows, places)]
    if len(rows) == 1 if gpu else told == places:
        return rows
    from .smi_faults import not_whole

    raise not_whole(rows, gpu)


def parse_csv(text: str, fields: tuple[str, ...]) -> Rows:
    """Rows of --format=csv,noheader; the last field may hold commas. Raises StepFailed naming a wrong line."""
    rows = []
    for line in text.splitlines():
        cells = line.split(", ", len(fields) - 1)
        if len(cells) != len(fields) or not all(cell.strip() for cell in cells[:-1]):
            from .smi_faults import quoted

            raise StepFailed(f"nvidia-smi prints {quoted(line)}, not the {len(fields)} values that were asked for")
        rows.append({field: cell.strip() for field, cell in zip(fields, cells)})
    return tuple(rows)
