# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""iommu: on, for devices that are passed through to guests."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.errors import Refused
from ..core.plan import Field, Past, Plan, Todo
from .bootargs import LANE, Arguments, keep_arguments
from .cmdline import flat, words
from .loader import Boot
from .settings import strict
from .unit_names import IOMMU as UNIT

FIELDS = (Field("passthrough", "passthrough", (bool,)),)
PASSTHROUGH = "iommu=pt"
# By the CPU's vendor_id. A CPU without one is an Arm, whose SMMU is on by default.
SWITCHES = {
    "GenuineIntel": ("intel_iommu=on",),
    "AuthenticAMD": ("amd_iommu=on",),
    "HygonGenuine": ("amd_iommu=on",),
    "": (),
}


class Settings(NamedTuple):
    """Whether the host's own devices go past the IOMMU, which costs them nothing then."""

    passthrough: bool


class Now(NamedTuple):
    """The CPU's vendor_id ("" when it has none), what /sys/class/iommu lists, whether there are groups, the running
    command line, the loader.
    """

    vendor: str
    units: tuple[str, ...]
    groups: bool
    running: str
    boot: Boot

    @property
    def on(self) -> bool:
        """On is an IOMMU with groups: without groups nothing can be passed through."""
        return bool(self.units) and self.groups


def check(given: dict[str, Any]) -> Settings:
    """Settings in wire form as values."""
    return Settings(strict(UNIT, FIELDS, given).get("passthrough", True))


def arguments(settings: Settings, vendor: str) -> tuple[str, ...]:
    """The kernel arguments for this CPU; raises Refused for a vendor whose switch is not known."""
    if vendor not in SWITCHES:
        raise Refused(
            f"{UNIT}: no argument is known that turns on the IOMMU of a CPU of {vendor}: "
            f"only {', '.join(sorted(filter(None, SWITCHES)))} and Arm are: take the unit off this host"
        )
    return (*SWITCHES[vendor], *((PASSTHROUGH,) if settings.passthrough else ()))


def plan(settings: Settings, now: Now, past: Past) -> Plan:
    """The boot arguments; a reboot is asked for only where the IOMMU is not on already."""
    todo = Todo()
    wanted = arguments(settings, now.vendor)
    found = keep_arguments(todo, UNIT, wanted, now.boot, past)
    if not found.loader or LANE in past.failed:
        return todo.plan()  # nothing is known yet, or no boot will bring it
    if now.on:
        _note_next_boot(todo, wanted, found)
        return todo.plan()
    message = (
        f"{UNIT}: the IOMMU is on from the next boot ({' '.join(wanted) or 'without an argument'}): reboot the node; "
        "check the firmware enables VT-d or AMD-Vi"
    )
    if found.booted_without:
        message += f" (booted without the argument: it was in place for {found.loader} before this boot)"
    elif found.active and wanted:
        message += " (this boot has the arguments and the kernel shows no IOMMU: the firmware has it off)"
    todo.wait("RebootRequired", message)
    return todo.plan()


def absent(now: Now, past: Past) -> Plan:
    """Take out our boot arguments; the running kernel keeps what it booted with."""
    todo = Todo()
    if set(words(now.running)) & {PASSTHROUGH, *flat(SWITCHES.values())}:
        todo.note(f"{UNIT}: the IOMMU stays as it is at least until the next boot")
    keep_arguments(todo, UNIT, (), now.boot, past)
    return todo.plan()


def _note_next_boot(todo: Todo, wanted: tuple[str, ...], found: Arguments) -> None:
    if found.active:
        return
    said = " ".join(wanted)
    if found.booted_without:
        todo.note(
            f"{UNIT}: booted without the argument: {said} was in place for {found.loader} before this boot; "
            "see which loader and which entry the node boots by"
        )
    else:
        todo.note(f"{UNIT}: the IOMMU is on; {said} takes effect at the next boot")
