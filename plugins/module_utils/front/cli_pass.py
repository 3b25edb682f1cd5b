# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pass by hand: which sections are asked for, and what came of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core import host as machine
from ..core.errors import Fault, Refused, StepFailed
from .cli import Misused, status_of
from .exit_status import CONVERGED, FAILED, PROGRESSING
from .options import DEVICES, HOST

SECTIONS = ("host", "devices")


class Asked(NamedTuple):
    """The options of each section's pass; None: the section is left alone. `why` says where both come from."""

    host: Mapping[str, Any] | None
    devices: Mapping[str, Any] | None
    why: str = ""


class Ended(NamedTuple):
    """The result of each section as its module returns it; None: it was left alone, `why` says by whom."""

    host: Mapping[str, Any] | None
    devices: Mapping[str, Any] | None
    why: str = ""

    def results(self) -> dict[str, Any]:
        """Both, as --json prints them."""
        return {"host": self.host, "devices": self.devices}

    def status(self) -> int:
        """The exit status: that of the section which is worse off."""
        found = {_status(result) for result in (self.host, self.devices) if result is not None}
        return next((status for status in (FAILED, PROGRESSING) if status in found), CONVERGED)


def _status(result: Mapping[str, Any]) -> int:
    return status_of({**result, "state": result.get("section", result)["state"]})


def ended(options: argparse.Namespace) -> Ended:
    """The pass, or plan, of the host, then of its devices, whatever became of the host. Raises Misused and Fault."""
    wanted = _limited(asked(options), options)
    host = devices = None
    if wanted.host is not None:
        host = _host(wanted.host, options.plans)
    if wanted.devices is not None:
        from .holds import holds_result

        devices = holds_result(wanted.devices, options.plans)
    return Ended(host, devices, wanted.why)


def _host(options: Mapping[str, Any], plans: bool) -> Mapping[str, Any]:
    """The host's section; a join that is due takes the token that was laid for it."""
    from .section import section_result

    host = machine.Host()
    if plans or host.uid() != 0:
        return section_result(options, plans, plans)
    from . import staged

    result = section_result(staged.with_token(host, options), False)
    staged.forget(host, result["units"])
    return result


def _limited(wanted: Asked, options: argparse.Namespace) -> Asked:
    more: dict[str, Any] = {}
    if options.max_disruption is not None:
        more["max_disruption"] = options.max_disruption
    if options.only is None:
        host, devices, why = wanted
        return Asked(None if host is None else {**host, **more}, None if devices is None else {**devices, **more}, why)
    if wanted.host is None:
        raise Misused("--only names units, and no host section is asked for: leave --only out")
    units = [name for words in options.only for name in words.split(",") if name]
    if not units:  # of a pass, none would mean all
        raise Misused("--only names no unit: name one, or leave --only out for all of them")
    return Asked({**wanted.host, **more, "only": units}, None, wanted.why)


# -- what is asked


def asked(options: argparse.Namespace) -> Asked:
    """The sections of the spec that is given; without one, of root's copy. Raises Misused and Fault."""
    if options.spec is not None:
        return of_spec(_json(options.spec, "--spec"))
    if options.signed_spec is not None:
        return of_signed(_json(options.signed_spec, "--signed-spec"))
    return _of_root()


def of_spec(spec: Mapping[str, Any]) -> Asked:
    """The sections of an unsigned spec; raises Misused."""
    unknown = sorted(set(spec) - set(SECTIONS))
    if unknown or not spec:
        fault = f"has {unknown[0]!r}, which is no section" if unknown else "has no section"
        raise Misused(f"the spec {fault}: give host, a mapping of units to their settings, or devices, or both")
    host, devices = spec.get("host"), spec.get("devices")
    if "host" in spec and not isinstance(host, dict):
        raise Misused("host in the spec is no mapping of units to their settings: give {} to clean them all")
    if "devices" in spec and not (isinstance(devices, list) and all(isinstance(each, dict) for each in devices)):
        raise Misused("devices in the spec is no list of assignments: give [] to release them all")
    return Asked(
        {**HOST, "units": host} if "host" in spec else None,
        {**DEVICES, "assignments": devices} if "devices" in spec else None,
    )


def of_signed(envelope: Mapping[str, Any]) -> Asked:
    """The sections that the body of a signed spec has; nothing of it is believed before the pass has verified it."""
    from ..intent.body import desired_state
    from ..intent.envelope import envelope as read

    try:
        spec = desired_state(read(envelope).body)
    except Refused as fault:
        raise Misused(fault.message) from None
    return Asked(
        None if spec.host is None else {**HOST, "signed_spec": envelope},
        None if spec.devices is None else {**DEVICES, "signed_spec": envelope},
    )


def _of_root() -> Asked:
    from .agent import sections

    host = machine.Host()
    if host.uid() != 0:
        raise StepFailed(
            "what this host was asked is seen as root: run bcd with sudo, give --spec or --signed-spec, "
            "or have bcd status say it through the helper"
        )
    kept = sections(host)
    return Asked(kept.host, kept.devices, kept.why)


def _json(path: str, option: str) -> dict[str, Any]:
    """The object in a file, read strictly; raises Misused."""
    from ..plan.strict_json import parse

    try:
        found = parse(_bytes(path))
    except (Fault, OSError) as fault:
        raise Misused(f"{option} {path}: {getattr(fault, 'message', fault)}") from None
    except ValueError as fault:
        raise Misused(f"{option} {path}: it is not one JSON object, read strictly ({fault}): correct it") from None
    if not isinstance(found, dict):
        raise Misused(f"{option} {path}: it is not one JSON object: correct it")
    return found


def _bytes(path: str) -> bytes:
    if path == "-":
        if sys.stdin is None:
            raise Misused("- reads the standard input, and it is closed: give a file")
        return sys.stdin.buffer.read()
    text = machine.Host().read(path)
    if text is None:
        raise Misused(f"there is no file {path}: give the path of the spec, or - for the standard input")
    return text.encode("utf-8", "surrogateescape")
