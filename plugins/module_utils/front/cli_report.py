# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pass did or would do, for people: a line a unit, and below it why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..plan import section
from ..plan.folding import alike, of_any_cpu
from ..plan.plain_text import plain_lines

Result = Mapping[str, Any]


def told(host: Result | None, devices: Result | None, plans: bool, diff: bool, why: str = "") -> str:
    """The report of both sections, one that was left alone left out; `why` says why both were."""
    lines: list[str] = [f"of {why}"] if why and (host is not None or devices is not None) else []
    if host is not None:
        lines += of_host(host, plans)
    if devices is not None:
        lines += of_devices(devices, plans)
    for result in (host, devices) if diff else ():
        lines += differences(() if result is None else result["diff"])
    return "".join(f"{plain_lines(line)}\n" for line in lines) or f"nothing to do: {plain_lines(why)}\n"


def of_host(result: Result, plans: bool) -> Iterator[str]:
    """The host's section."""
    units = result.get("units", [])
    yield _head("host", result, plans)
    if not units:  # the fault came before any
        yield from _indented([result["msg"]] if "msg" in result else [])
    if units[1:] and "reason" in units[0] and all(_of_unit(unit, plans) == _of_unit(units[0], plans) for unit in units):
        yield f"  {', '.join(unit['unit'] for unit in units)}"  # one fault of the whole section: said once
        yield from _indented(_of_unit(units[0], plans))
        units = []
    width = max((len(unit["unit"]) for unit in units), default=0)
    for unit in units:
        yield f"  {unit['unit']:{width}}  {unit['state']}"
        yield from _indented(_of_unit(unit, plans))
    yield from _of_agent(result)
    needed = result.get("secrets_needed", [])
    if needed:
        yield f"  needs the secrets {', '.join(needed)}, which a run of the playbook converge gives"


def of_devices(result: Result, plans: bool) -> Iterator[str]:
    """The section of devices."""
    yield _head("devices", result, plans)
    for key in ("bound", "kept", "released", "releasing"):
        if result.get(key):
            yield f"  {key}: {', '.join(result[key])}"
    for failure in result.get("failures", []):
        yield f"  {failure['allocation_id']}: {failure['reason']}: {failure['message']}"
    yield from _indented(_of_unit(result, plans))
    yield from _of_agent(result)


def _of_agent(result: Result) -> Iterator[str]:
    """What bcd agent did since somebody was told of it."""
    for repair in (result.get("agent") or {}).get("repairs", []):
        yield f"  bcd agent repaired {repair['unit']}: {repair['action']}"


def _head(name: str, result: Result, plans: bool) -> str:
    state = result.get("section", result)["state"].upper()
    failed = ", failed" if "msg" in result and state != section.FAILED else ""
    reboot = ", waits for a reboot" if result.get("reboot_required") else ""
    changed = f", {'would change' if plans else 'changed'}" if _changes(result, plans) else ""
    return f"{name}: {state}{failed}{changed}{reboot}"


def _changes(result: Result, plans: bool) -> bool:
    return any(_changes(unit, plans) for unit in result["units"]) if plans and "units" in result else result["changed"]


def _of_unit(unit: Result, plans: bool) -> list[str]:
    name = unit.get("unit", "")
    found = [f"{unit['reason']}: {section.unnamed(name, unit['msg'])}"] if "reason" in unit and "msg" in unit else []
    for step in alike(unit.get("steps", []), lambda step: (of_any_cpu(step["action"]), step["done"])):
        more = f" and {len(step) - 1} more like it" if step[1:] else ""
        word = "done" if step[0]["done"] else ("would" if plans else "not done")
        found.append(f"{word}: {step[0]['action']}{more}")
    found += [f"waits, {wait['reason']}: {section.unnamed(name, wait['message'])}" for wait in unit.get("pending", [])]
    found += [f"note: {note}" for note in unit.get("notes", [])]
    return found


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)


def differences(entries: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """The differences of files, as diff -u has them."""
    from difflib import unified_diff

    for entry in entries:
        before, after = (entry[key].splitlines() for key in ("before", "after"))
        yield from unified_diff(before, after, entry["before_header"], entry["after_header"], lineterm="")
