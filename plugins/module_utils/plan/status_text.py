# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What status and doctor say, as lines for a person: a screen of 100 columns, in which nothing steers the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from textwrap import TextWrapper
from typing import Any

from . import section
from .plain_text import plain

COLUMNS = 100
MOST = 10  # things in one line

Result = Mapping[str, Any]


def wrapped(head: str, text: str) -> list[str]:
    """The text behind its head, its further lines below its first word; names and ids are never broken."""
    wrapper = TextWrapper(
        COLUMNS,
        initial_indent=head,
        subsequent_indent=" " * min(len(head), COLUMNS // 2),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapper.wrap(plain(text)) or [head.rstrip()]


def table(rows: Iterable[tuple[str, ...]], indent: str = "  ") -> list[str]:
    """Rows with their columns aligned."""
    kept = [tuple(plain(cell) for cell in row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*kept)]
    return [indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in kept]


def some(things: Iterable[Any]) -> str:
    """The first of them, with commas, and how many more there are."""
    names = [str(thing) for thing in things]
    return ", ".join(names[:MOST]) + (f" and {len(names) - MOST} more" if names[MOST:] else "")


# -- the doctor


def of_doctor(result: Result) -> list[str]:
    """The findings, a paragraph each, and how many there are of each level."""
    found = result["findings"]
    width = max((len(one["check"]) for one in found), default=0)
    lines = [line for one in found for line in wrapped(f"{one['level']:8} {one['check']:{width}}  ", one["message"])]
    levels = [one["level"] for one in found]
    counts = ((levels.count("failure"), "failure"), (levels.count("warning"), "warning"))
    told = ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts)
    return [*lines, f"{result['state']}: {told}, {levels.count('ok')} ok"]


# -- the status


def of_status(result: Result) -> list[str]:
    """All of it, part by part; a part that has nothing to say is left out."""
    reboot = ", waits for a reboot" if (result["reboot"] or {}).get("required") else ""
    lines = [plain(f"{result['hostname']}: {result['state']}{reboot}")]
    lines += wrapped("  kept: ", result["kept"])
    parts = (
        ("units", _units),
        ("devices", _devices),
        ("GPUs", _gpus),
        ("holds", _holds),
        ("trust", _trust),
        ("agent", _agent),
    )
    for title, ask in parts:
        said = list(ask(result))
        lines += ["", title, *said] if said else []
    for sentence in result["unreadable"]:
        lines += wrapped("not seen: ", sentence)
    return lines


def _units(result: Result) -> Iterator[str]:
    units = result["units"] or ()
    if not units and (result["section"] or {}).get("message"):  # a fault that came before any
        yield from wrapped(f"  {result['section']['state'].lower()}: ", result["section"]["message"])
    width = max((len(unit["unit"]) for unit in units), default=0)
    for unit in units:
        yield f"  {plain(unit['unit']):{width}}  {unit['state']}"
        for said in _of_unit(unit):
            yield from wrapped("      ", said)


def _of_unit(unit: Result) -> Iterator[str]:
    name = unit["unit"]
    if "msg" in unit:
        yield f"{unit['reason']}: {section.unnamed(name, unit['msg'])}"
    for wait in unit["pending"]:
        yield f"waits, {wait['reason']}: {section.unnamed(name, wait['message'])}"
    left = [step["action"] for step in section.steps_left(unit)]
    if left:
        yield f"a pass would: {some(left)}"
    for each in unit["conditions"]:
        yield f"{each['type']}: {each['message']}"


def _devices(result: Result) -> Iterator[str]:
    told = result["devices"]
    if told is not None and (told["message"] or told["state"] != section.CONVERGED):
        yield from wrapped(f"  {told['state'].lower()}: ", told["message"])


def _gpus(result: Result) -> Iterator[str]:
    gpus = result["gpus"] or ()
    heads = table((_number(gpu["index"]), gpu["name"] or "?", gpu["uuid"], _mode(gpu)) for gpu in gpus)
    for gpu, head in zip(gpus, heads):
        yield from [head] if len(head) <= COLUMNS else _long(gpu)
        yield from _use(gpu)


def _long(gpu: Result) -> list[str]:
    return [*wrapped(f"  {_number(gpu['index'])}  ", f"{gpu['name']} {gpu['uuid']}"), *wrapped("      ", _mode(gpu))]


def _number(index: int | None) -> str:
    return "-" if index is None else str(index)


def _mode(gpu: Result) -> str:
    if gpu["mig_mode"] is None:
        return ""
    return f"MIG {gpu['layout'] or 'without instances'}" if gpu["mig_mode"] == "enabled" else "MIG off"


def _use(gpu: Result) -> Iterator[str]:
    """Who has what of it: MIG devices, slots, the whole; then the processes."""
    parts = [(f"gi{part['gi']}/ci{part['ci']}", part["profile"], _who(part)) for part in gpu["mig_devices"] or ()]
    slots = [(f"s{slot['slot']}", _who(slot)) for slot in gpu["slots"] or ()]
    yield from table(parts, "      ")
    yield from table(slots, "      ")
    if gpu["allocations"] is None:
        yield "      held by: seen as root"
    elif gpu["allocations"]:
        yield from wrapped("      held by ", some(gpu["allocations"]))
    if gpu["processes"]:
        yield from wrapped("      computing: ", some(f"{one['name']} ({one['pid']})" for one in gpu["processes"]))


def _who(part: Result) -> str:
    return part["allocation_id"] or "free"


def _holds(result: Result) -> Iterator[str]:
    for hold in result["holds"] or ():
        state = ", is being released" if hold["releasing"] else ""
        bound = "" if hold["generation"] is None else f" of generation {hold['generation']}"
        yield from wrapped(f"  {plain(hold['allocation_id'])}  ", f"{hold['binding'] or 'hold'}{bound}{state}")
        yield from wrapped("      ", hold["fault"] or some(hold["devices"]))


def _trust(result: Result) -> Iterator[str]:
    told = result["trust"]
    if told is None:
        return
    if told["fault"]:
        yield from wrapped("  ", told["fault"])
    if told["demand"] or not told["fault"]:  # with a fault it is not known, and nothing at all is applied
        yield from wrapped("  ", told["demand"] or "nothing demands a signed spec")
    if told["node_id"]:
        yield from wrapped("  ", f"the node {told['node_id']}, by the {told['binding']}")
    if told["generation"] is not None:
        yield from wrapped("  ", f"generation {told['generation']} was accepted last")


def _agent(result: Result) -> Iterator[str]:
    told = result["agent"]
    last = (told or {}).get("last")
    if not last:
        return
    for part in ("host", "devices"):
        end = last.get(part)
        if end:
            yield from wrapped("  ", f"{part}: {end['state'].lower()} {end['message']}")
    repairs = told["repairs"]
    for repair in repairs[-MOST:]:
        yield from wrapped("  repaired: ", f"{repair['unit']}: {repair['action']}")
