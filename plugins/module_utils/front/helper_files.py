# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files and slices that bcd helper makes for a workload manager that keeps its holds itself, and the token of a join.

A request says which kind of file and of which allocation; the path is made here. Where signing is demanded, holds come
from a signed spec alone.
"""

from __future__ import annotations

from typing import Any

from ..core import host as machine
from ..core.errors import Refused, StepFailed
from ..core.host import Host, advice
from ..look.config import pinned, refuse_if_outside
from . import staged
from .request import FileRequest, SliceRequest

SIGNED = "ask for op devices with signed_spec"


MOST = 1024  # files of a kind, and slices: 16 GPUs of 64 slots


def file_result(asked: FileRequest) -> dict[str, Any]:
    """The result of file.write; raises Fault."""
    if asked.id is None:
        return _token(asked.content)
    from .opening import opened

    with opened(False, "file.write") as (host, _records):
        _refuse_signed(host, "no CDI content is taken")
        _refuse_recorded(host, asked.id)
        path, fault = _judged(host, asked.kind, asked.id, asked.content)
        if fault:
            raise Refused(f"file.write of {path}: {fault}: correct its content")
        if asked.content is not None:
            _refuse_another(host, path)
        return {"changed": _put(host, path, asked.content, 0o644)}


def slice_result(asked: SliceRequest) -> dict[str, Any]:
    """The result of slice.apply and slice.remove, with the keys of a unit; raises Fault."""
    from ..core.runner import Goal, converge
    from ..plan.slices import NAME, folder
    from ..units.hold_slice import of
    from .opening import opened
    from .result import render

    found = NAME.fullmatch(asked.slice)
    allocation = found.group(1) if found else ""
    with opened(False, "slice.apply" if asked.limits is not None else "slice.remove") as (host, records):
        _refuse_signed(host, "no slice is made or stopped by itself")
        _refuse_recorded(host, allocation)
        if asked.limits is not None:
            _refuse_another(host, folder(allocation))
        return render(converge(Goal(of(allocation), asked.limits), host, records))


def _token(content: str | None) -> dict[str, Any]:
    """Lay the token of a join, which no signature is for, or take it away; another pass need not have ended for it."""
    token = None if content is None else content.strip()
    if token is not None:
        staged.refuse_other(token)
    host = machine.Host()
    refuse_if_outside(host)
    return {"changed": _put(host, staged.FILE, None if token is None else f"{token}\n", 0o600)}


def _refuse_signed(host: Host, what: str) -> None:
    """Raise Refused where nothing unsigned is applied."""
    from .trust import intend

    pinned(host)  # pins that are malformed say so themselves
    try:
        intend(host, None)
    except Refused as fault:
        raise Refused(f"{fault.message.partition(':')[0]}: {what}: {SIGNED}") from None


def _refuse_recorded(host: Host, allocation: str) -> None:
    """Raise Refused for a hold that root keeps itself: what its files say is root's to say."""
    from ..plan.hold_record import record_path

    path = record_path(allocation)
    if host.file(path) is not None:
        raise Refused(f"{allocation} is a hold that root keeps ({path}): ask for op devices to change or release it")


def _refuse_another(host: Host, path: str) -> None:
    """Raise Refused for one more where there are as many as a host can use: an account must not fill root's disk."""
    above, _slash, name = path.rpartition("/")
    there = host.names(above)
    if name not in there and len(there) >= MOST:
        raise Refused(
            f"{above} has {len(there)} entries, and bcd helper adds none: remove those of allocations that ended"
        )


def _judged(host: Host, kind: str, allocation: str, content: str | None) -> tuple[str, str]:
    """The path of the file, and what is wrong with its content."""
    from ..plan.given_spec import env_fault, spec_fault, vendors
    from ..plan.hold_spec import env_path, spec_path

    if kind == "allocation-env":
        return env_path(allocation), "" if content is None else env_fault(allocation, content)
    if content is None:
        return spec_path(allocation), ""
    from ..look.cdi import vendor_specs
    from ..plan.hold_edits import with_edits

    found = [(vendor.path, vendor.spec) for vendor in vendor_specs(host, with_edits) if vendor.spec is not None]
    return spec_path(allocation), spec_fault(allocation, content, vendors(found))


def _put(host: Host, path: str, content: str | None, mode: int) -> bool:
    """Have the file hold the content, or be gone; whether that changed it."""
    seen = host.file(path)
    if content is None and seen is None:
        return False
    if seen is not None and seen.regular and (seen.text, seen.mode, seen.uid) == (content, mode, 0):
        return False
    try:
        if content is None:
            host.remove(path)
        else:
            host.write(path, content, mode)
    except OSError as fault:
        doing = "remove" if content is None else "write"
        raise StepFailed(f"cannot {doing} {path}: {fault.strerror or fault}{advice(fault)}") from None
    return True
