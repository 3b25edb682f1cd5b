# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether each GPU has joined its NVLink fabric, as the GPU itself says: a running Fabric Manager proves nothing."""

from __future__ import annotations

from typing import NamedTuple

from ..core.errors import StepFailed
from ..core.host import Host
from ..plan.gpu import LACKING
from ..plan.smi import FABRIC
from .smi import answered, knows_no_field, told


class FabricState(NamedTuple):
    """A GPU's place in the fabric: "Completed" with "Success" is joined; None where it has none.

    A GPU that fails to tell its place ("[GPU is lost]", "[Unknown Error]") has that text, and has not joined.
    """

    uuid: str
    state: str | None
    status: str | None


def fabric_states(host: Host) -> tuple[FabricState, ...]:
    """Of every GPU. Drivers that know no such field are asked for everything that they know of their GPUs."""
    try:
        rows = told(host, FABRIC)
    except StepFailed as fault:
        if not knows_no_field(fault):
            raise
        return parse_fabric(answered(host, "-q", "-x"))
    return tuple(FabricState(row["uuid"], _place(row["fabric.state"]), _place(row["fabric.status"])) for row in rows)


def _place(text: str) -> str | None:
    return None if text.strip() in ("", *LACKING) else text.strip()


def parse_fabric(text: str) -> tuple[FabricState, ...]:
    """Of `nvidia-smi -q -x`, "" for no GPU; raises StepFailed where it is cut off, or a GPU is missing."""
    from xml.etree import ElementTree

    from .smi_faults import quoted

    if not text.strip():
        return ()
    try:
        log = ElementTree.fromstring(text)
    except ElementTree.ParseError as fault:
        raise StepFailed(f"nvidia-smi -q -x prints no whole document ({fault}): {quoted(text)}") from None
    gpus = log.findall("gpu")
    if log.findtext("attached_gpus") != str(len(gpus)):
        raise StepFailed(f"nvidia-smi -q -x counts {log.findtext('attached_gpus')} GPUs and describes {len(gpus)}")
    found = []
    for gpu in gpus:
        uuid = gpu.findtext("uuid")
        if not uuid:
            raise StepFailed(f"nvidia-smi -q -x describes the GPU {gpu.get('id')} without its UUID")
        state, status = (_place(gpu.findtext(f"fabric/{name}") or "") for name in ("state", "status"))
        found.append(FabricState(uuid, state, status))
    return tuple(found)
