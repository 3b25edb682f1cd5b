# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet document: what every host's plan found, as one value that is written as JSON and shown as a page.

Its shape, which only grows within a version:

* ``kind`` "FleetReport", ``version`` 1,
* ``summary``: counts of hosts by state (``hosts`` is their sum), ``drifted`` (hosts with steps to take), ``failing``
  (hosts with a unit that failed, whatever their state), ``reboot_required`` (hosts with nothing left to do but the
  reboot), ``reboot_later`` (hosts that will wait for one once their steps are taken),
* ``hosts``: by name, each

  * ``state``: ``converged``, ``progressing``, ``failed``, ``unreachable``, or ``unknown`` where the plan itself failed,
  * ``message``: the section's message, or why there is no plan,
  * ``drift``: names of the units that have steps to take, ``failing``: of those that failed, ``unconverged``: of all
    that are not converged,
  * ``reboot_required``, ``observed_generation``, ``conditions`` (of the section),
  * ``units``: in the order of their turn, each with the keys that the unit's module returns: ``unit``, ``state``,
    ``changed``, ``reboot_required``, the lists ``steps``, ``pending``, ``conditions``, ``notes`` and ``diff``, and
    where it failed ``reason``, ``retryable`` and ``msg``; last, where the host has assignments, the unit ``devices``,
  * ``devices``, where it has: the lists of allocations ``bound``, ``kept``, ``released`` and ``releasing``, the
    ``failures`` (``allocation_id``, ``reason``, ``message``), and the ``holds`` that are there (``allocation_id``,
    ``binding``, ``devices``, ``generation``).

It holds no time, so that two reports of the same fleet are the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..module_utils.plan import section
from .devices import as_unit, devices_of, is_of_devices

KIND = "FleetReport"
VERSION = 1
KILLED = (137, -9)  # what the shell, and what Python, says of a process that got SIGKILL
STATES = ("converged", "progressing", "failed", "unreachable", "unknown")


def fleet_document(results: Mapping[str, Any], devices: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The fleet document of registered `host_plan` results by host name; hosts are sorted by name.

    `devices` are the registered `cdi_holds` results of those that have assignments.
    """
    held = devices or {}
    hosts = {
        str(name): _with_devices(_host(_mapping(results[name])), _mapping(held.get(name)))
        for name in sorted(results, key=str)
    }
    states = [host["state"] for host in hosts.values()]
    summary: dict[str, int] = {state: states.count(state) for state in STATES}
    summary["hosts"] = len(hosts)
    summary["drifted"] = sum(1 for host in hosts.values() if host["drift"])
    summary["failing"] = sum(1 for host in hosts.values() if is_failing(host))
    summary["reboot_required"] = sum(1 for host in hosts.values() if host["reboot_required"] and not host["drift"])
    summary["reboot_later"] = sum(1 for host in hosts.values() if host["reboot_required"] and host["drift"])
    return {"kind": KIND, "version": VERSION, "summary": summary, "hosts": hosts}


def is_failing(host: Mapping[str, Any]) -> bool:
    """Whether a unit of the document's host failed: such a host's state is "progressing" while another unit waits."""
    return bool(host["failing"]) or host["state"] == "failed"


def fault_of(result: Mapping[str, Any]) -> str:
    """Why a task came to no result of ours, in one line; "" where it does not say."""
    if result.get("rc") in KILLED:
        return f"the module was killed (rc {result['rc']}; out of memory?): nothing is lost, run again"
    return " ".join(_text(result.get("msg")).split())


def verdict(result: Any, fail_on: str) -> str:
    """Why the host's plan fails the playbook, or "" when it does not.

    A host without a plan fails whatever `fail_on` says; drift alone never fails. `terminal`: a unit is failed for good,
    `failed`: or could not be planned, `progressing`: or waits for something, `never`: nothing fails.
    """
    if fail_on not in section.FAIL_ON:
        raise ValueError(f"fail_on: {fail_on!r} is not known: take {', '.join(section.FAIL_ON)}")
    if is_of_devices(_mapping(result)):
        return section.message_of(unit for unit in [_unit(as_unit(result))] if section.fails([unit], fail_on))
    host = _host(_mapping(result))
    if host["state"] in ("unreachable", "unknown"):
        return str(host["message"])
    units = host["units"]
    if not units and host["state"] != "converged":  # the section itself is at fault, such as a unit named twice
        units = [{"unit": "host", "state": host["state"], "reason": "", "pending": [], "steps": [], "msg": ""}]
    wrong = [unit for unit in units if section.fails([unit], fail_on)]
    return section.message_of(wrong) if host["units"] else str(host["message"] if wrong else "")


def _host(result: Mapping[str, Any]) -> dict[str, Any]:
    told = _mapping(result.get("section"))
    units = [_unit(unit) for unit in _mappings(result.get("units"))]
    if result.get("unreachable"):
        state = "unreachable"
    elif told.get("state"):
        state = str(told["state"]).lower()
    elif result.get("skipped"):  # what is signed for it manages no unit
        state = "converged"
    else:
        state = "unknown"
    return {
        "state": state if state in STATES else "unknown",
        "message": _text(told.get("message")) or _no_plan(state, result),
        "drift": [unit["unit"] for unit in units if section.steps_left(unit)],
        "failing": [unit["unit"] for unit in units if "reason" in unit],
        "unconverged": [unit["unit"] for unit in units if unit["state"] != "converged"],
        "reboot_required": bool(result.get("reboot_required")),
        "observed_generation": told.get("observed_generation"),
        "conditions": _conditions(told),
        "units": units,
    }


def _with_devices(host: dict[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    """The host with its section of devices; one that has no result of it is as it was."""
    if not is_of_devices(result):
        return host
    unit = _unit(as_unit(result))
    states = {host["state"], unit["state"]} - {"converged"}
    if host["state"] in ("converged", "progressing", "failed"):
        host["state"] = "progressing" if len(states) > 1 else states.pop() if states else "converged"
    said = section.message_of([unit]) if unit["state"] != "converged" or "reason" in unit else ""
    return {
        **host,
        "message": "; ".join(filter(None, (host["message"], said))),
        "drift": [*host["drift"], *([unit["unit"]] if section.steps_left(unit) else ())],
        "failing": [*host["failing"], *([unit["unit"]] if "reason" in unit else ())],
        "unconverged": [*host["unconverged"], *([unit["unit"]] if unit["state"] != "converged" else ())],
        "conditions": [*host["conditions"], *unit["conditions"]],
        "units": [*host["units"], unit],
        "devices": devices_of(result),
    }


def _no_plan(state: str, result: Mapping[str, Any]) -> str:
    """Why a host has no plan; "" for one that has."""
    if state == "unreachable":
        return fault_of(result) or "the host could not be reached"
    if state == "unknown":
        return fault_of(result) or "the host was not planned: see the output of the playbook"
    return ""


def _unit(given: Mapping[str, Any]) -> dict[str, Any]:
    failure = (
        {"retryable": bool(given.get("retryable")), **_texts(given, "reason", "msg")} if given.get("reason") else {}
    )
    return {
        **_texts(given, "unit", "state"),
        "changed": bool(given.get("changed")),
        "reboot_required": bool(given.get("reboot_required")),
        "steps": [
            {**_texts(step, "action", "disruption"), "done": bool(step.get("done"))}
            for step in _mappings(given, "steps")
        ],
        "pending": [_texts(wait, "reason", "message") for wait in _mappings(given, "pending")],
        "conditions": _conditions(given),
        "notes": [_text(note) for note in _list(given.get("notes"))],
        "diff": [_texts(each, "before_header", "after_header", "before", "after") for each in _mappings(given, "diff")],
        **failure,
    }


def _conditions(given: Mapping[str, Any]) -> list[dict[str, str]]:
    return [_texts(each, "type", "status", "reason", "message") for each in _mappings(given, "conditions")]


# What a host returned is data from elsewhere: what has another shape than the modules return is left out.


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)) else []


def _mappings(value: Any, key: str = "") -> list[Mapping[str, Any]]:
    found = _mapping(value).get(key) if key else value
    return [each for each in _list(found) if isinstance(each, Mapping)]


def _texts(given: Mapping[str, Any], *names: str) -> dict[str, str]:
    return {name: _text(given.get(name)) for name in names}


def _text(value: Any) -> str:
    """As text that can be written as UTF-8: a byte that was none shows as a replacement character."""
    return "" if value is None else re.sub("[\ud800-\udfff]", "\ufffd", str(value))
