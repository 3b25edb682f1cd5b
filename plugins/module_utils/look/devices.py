# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host shows of its holds, and of what new ones need: one snapshot for plan.devices."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.errors import StepFailed, Unreadable
from ..core.host import Host
from ..core.plan import Past
from ..core.step import File
from ..core.unknown import is_known, later
from ..plan.assignment import ALLOCATION, HOLD, Section
from ..plan.devices_seen import Held, Now
from ..plan.gpu_sharing_service import SERVICE, is_ours
from ..plan.hold_record import parse, record_path
from ..plan.hold_spec import env_in, env_path, from_spec, spec_path
from ..plan.holds import CDI, EVERY, RECORD, RECORDS, SPEC
from ..plan.systemd_asks import FOLDER as UNITS
from .cards import cards
from .events import events
from .vendors import vendors

WSL = "/dev/dxg"  # is there in place of NVIDIA's device nodes


def look(host: Host, section: Section, past: Past) -> Now:
    """The snapshot. What a section without new holds does not need is not looked at, such as the host's memory.

    An account that is not root sees the CDI specifications, and its plan changes nothing.
    """
    root = host.uid() == 0
    now = Now(root, host.time(), past.boot_id, held=held(host, root))
    if root:
        now = _of_roots(host, now)
    wanted = section.assignments
    new = [one for one in wanted if one.allocation not in now.held or now.held[one.allocation].fault]
    passed = bool(now.passed) if is_known(now.passed) else False
    if wanted or section.passthrough or passed or now.releases or now.lost_releases:
        now = now._replace(cards=later(cards, host), wsl=host.exists(WSL))
    plain = any(one.binding == HOLD for one in wanted) or any(one.binding == HOLD for one in now.held.values())
    if wanted and plain:  # a hold is as it was bound, whatever its assignment says now
        now = now._replace(vendors=later(vendors, host), mps=is_ours(host.file(f"{UNITS}/{SERVICE}")))
    if any(one.limits for one in wanted) or any(one.limits for one in now.held.values()):
        from .slices import controllers

        now = now._replace(controllers=later(controllers, host))
    if new or section.passthrough or passed:
        now = _with_machines(host, now)
    if any(one.limits for one in new):
        now = _with_memory(host, now)
    return _with_pods(host, now)


def _of_roots(host: Host, now: Now) -> Now:
    """With what root keeps, and what only root's plan changes."""
    from .kube_releases import pending
    from .passthrough import passed
    from .slices import slices

    releases = pending(host)
    return now._replace(
        slices=later(slices, host),
        events=events(host),
        passed=later(passed, host),
        releases=releases.releases,
        unread_releases=releases.fault,
        releases_text=releases.text,
        lost_releases=releases.lost,
    )


def _with_machines(host: Host, now: Now) -> Now:
    from .domains import domains
    from .passthrough import on_vfio

    return now._replace(domains=later(domains, host), vfio=later(on_vfio, host))


def _with_memory(host: Host, now: Now) -> Now:
    from .host_memory import memory

    try:
        return now._replace(memory=memory(host))
    except StepFailed as fault:
        return now._replace(unreadable_memory=fault.message)


def _with_pods(host: Host, now: Now) -> Now:
    """With who has the devices of pending releases; and while some are lost, what pods have that nobody here knows."""
    if not (now.releases or now.lost_releases):
        return now
    from .pods import pods, strangers

    asked = tuple(dict.fromkeys(device.id for release in now.releases for device in release.devices))
    now = now._replace(pods=later(pods, host, asked, now.cards))
    if not now.lost_releases:
        return now
    known = (*asked, *(device.id for one in now.held.values() for device in one.devices))
    return now._replace(strangers=later(strangers, host, known, now.cards))


# -- holds


def held(host: Host, root: bool = True) -> Mapping[str, Held]:
    """Every hold by its allocation: by its record, else by its CDI specification; the latter alone without `root`."""
    named = [SPEC.fullmatch(name) for name in host.names(CDI)]
    named += [RECORD.fullmatch(name) for name in host.names(RECORDS)] if root else []
    return {allocation: _held(host, allocation, root) for allocation in sorted({one.group(1) for one in named if one})}


def _held(host: Host, allocation: str, root: bool) -> Held:
    paths = (record_path(allocation), spec_path(allocation), env_path(allocation))
    if not ALLOCATION.fullmatch(allocation):
        fault = f"{allocation!r} is no allocation's id, and {EVERY}: {paths[1]} or {paths[0]} is there"
        return Held(allocation, fault=fault)
    seen = [_file(host, path) if root or path != paths[0] else (None, "") for path in paths]
    askew = tuple(path for path, (file, fault) in zip(paths, seen) if fault or _is_askew(path, paths[0], file))
    texts = [file.text if file is not None and not fault else None for file, fault in seen]
    record, spec, env = texts
    faults = [fault for _file, fault in seen[:2] if fault]
    if record is not None:
        try:
            hold = parse(paths[0], record)
            if hold.allocation == allocation:
                return hold._replace(spec_text=spec, env_text=env, askew=askew)
            faults.append(f"{paths[0]} is the record of {hold.allocation}")
        except StepFailed as fault:
            faults.append(fault.message)
        askew = tuple(dict.fromkeys((paths[0], *askew)))
    if spec is not None:
        hold = from_spec(paths[1], spec, allocation)
        if not hold.fault:
            return hold._replace(env=env_in(env or ""), env_text=env, askew=askew)
        faults.append(hold.fault)
    why = "; ".join(faults) or f"{paths[1]} went while it was looked at"
    said = why if why.endswith(EVERY) else f"{why}: {EVERY}"
    return Held(allocation, fault=said, spec_text=spec, env_text=env, askew=askew)


def _file(host: Host, path: str) -> tuple[File | None, str]:
    """A file, None when it is absent, and why it is none that can be read."""
    try:
        file = host.file(path)
    except Unreadable as fault:
        return None, fault.message
    if file is not None and not file.regular:
        return file, f"{path} is no regular file"
    return file, ""


def _is_askew(path: str, record: str, file: File | None) -> bool:
    return file is not None and (file.uid != 0 or file.mode != (0o600 if path == record else 0o644))
