# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet document: what every host's plan found, or its status, as one value: written as JSON, shown as a page.

Its shape, which only grows within a version; `null` is what is not known, and a key is there all the same:

* ``kind`` "FleetReport", ``version`` 2, ``source``: "plan" or "status",
* ``summary``: counts of hosts by state (``hosts`` is their sum), ``drifted`` (hosts with steps to take), ``failing``
  (hosts with a unit that failed, whatever their state), ``reboot_required`` (hosts with nothing left to do but the
  reboot), ``reboot_later`` (hosts that will wait for one once their steps are taken); and ``pools``, by the pool's name
  the same counts of its hosts,
* ``hosts``: by name, each

  * ``state``: ``converged``, ``progressing``, ``failed``, ``unreachable``, or ``unknown`` where the plan itself failed,
  * ``message``: the section's message, or why there is no plan,
  * ``pool``, ``site``, ``class``: by the variables bcd_pool, bcd_site and bcd_class,
  * ``drift``: names of the units that have steps to take, ``failing``: of those that failed, ``unconverged``: of all
    that are not converged,
  * ``reboot_required``, ``observed_generation``, ``conditions`` (of the section),
  * ``units``: in the order of their turn, each with the keys that the unit's module returns: ``unit``, ``state``,
    ``changed``, ``reboot_required``, the lists ``steps``, ``pending``, ``conditions``, ``notes`` and ``diff`` (empty in
    a status), and where it failed ``reason``, ``retryable`` and ``msg``; last, where the host has assignments, the unit
    ``devices``,
  * ``devices``, null where it has none: the lists of allocations ``bound``, ``kept``, ``released`` and ``releasing``,
    the ``failures`` (``allocation_id``, ``reason``, ``message``), and the ``holds`` that are there (``allocation_id``,
    ``binding``, ``devices``, ``generation``),
  * ``reboot``: ``required`` and the ``reasons`` by unit, by root's record of the last pass of this boot,
  * ``gpus``: ``index``, ``uuid``, ``pci``, ``name``, ``mig_mode``, ``layout``, ``slices`` (units of memory of the whole
    GPU, in which MIG devices have their place), ``sharing`` (``mode``, ``replicas``), ``allocations``, ``processes``
    (``pid``, ``name``), ``holders`` (``pid``, ``program``), ``mig_devices`` (``profile``, ``gi``, ``ci``, ``start``,
    ``size``, ``uuid``, ``allocation_id``) and ``slots``, those that are held (``slot``, ``allocation_id``),
  * ``holds`` (``allocation_id``, ``binding``, ``devices``, ``generation``, ``releasing``, ``fault``), ``numa`` (``id``,
    ``cpus``, ``memory``, ``hugepages`` by size with ``total``, ``free``, ``surplus``), ``kernel``, ``driver`` (the
    version that is loaded), all as host_info has them, ``unreadable`` (a sentence on each that could not be read),
  * ``kept``, ``trust`` and ``agent``, as host_status has them; null of a plan.

It holds no time of its own, so that two reports of the same fleet are the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..module_utils.plan import section
from ..module_utils.plan.unit_names import MIG_LAYOUT
from .devices import as_unit, devices_of, is_of_devices
from .report_shown import of_facts, of_status
from .shapes import NUMBER, maybe
from .shapes import text as _text

KIND = "FleetReport"
VERSION = 2
PLAN, STATUS = "plan", "status"  # sources
KILLED = (137, -9)  # what the shell, and what Python, says of a process that got SIGKILL
STATES = ("converged", "progressing", "failed", "unreachable", "unknown")
OF_UNIT = STATES[:3]
PLACE = ("pool", "site", "class")
NOWHERE: Mapping[str, Any] = dict.fromkeys(PLACE)


def fleet_document(
    results: Mapping[str, Any],
    devices: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
    places: Mapping[str, Mapping[str, Any]] | None = None,
    source: str = PLAN,
    waits: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The fleet document of registered results by host name, of `host_plan` or of `host_status`; sorted by name.

    Beside plans, `devices` are the registered `cdi_holds` results of those that have assignments, `facts` the results
    of `host_info`. `places` has the PLACE of each host, `waits` what keeps one from the MIG layout of its pool.
    """
    by_name = {_text(name): name for name in results}
    hosts = {}
    for name in sorted(by_name):
        key = by_name[name]
        place = {**NOWHERE, **_mapping((places or {}).get(key))}
        result = _mapping(results[key])
        if source == STATUS:
            told = _of_status(result)
        else:
            told = _of_plan(result, _mapping((devices or {}).get(key)), _mapping((facts or {}).get(key)))
        _note_layout(told, (waits or {}).get(key))
        hosts[name] = {**place, **told}
    summary: dict[str, Any] = _counts(hosts.values())
    pools = sorted({host["pool"] for host in hosts.values() if host["pool"] is not None})
    summary["pools"] = {pool: _counts(host for host in hosts.values() if host["pool"] == pool) for pool in pools}
    return {"kind": KIND, "version": VERSION, "source": source, "summary": summary, "hosts": hosts}


def _counts(found: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    hosts = list(found)
    states = [host["state"] for host in hosts]
    return {
        "hosts": len(hosts),
        **{state: states.count(state) for state in STATES},
        "drifted": sum(1 for host in hosts if host["drift"]),
        "failing": sum(1 for host in hosts if is_failing(host)),
        "reboot_required": sum(1 for host in hosts if host["reboot_required"] and not host["drift"]),
        "reboot_later": sum(1 for host in hosts if host["reboot_required"] and host["drift"]),
    }


def reboot_reasons(document: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """By host what each unit that waits for a reboot says of it: in a status by root's record, which `reboot` reads."""
    found = {}
    for name, host in document["hosts"].items():
        if document["source"] == PLAN:
            found[name] = section.reboot_reasons(host["units"])
        elif host["reboot"] is not None:
            found[name] = dict(host["reboot"]["reasons"])
    return found


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
    `failed`: or could not be planned, `progressing`: or waits for something, `never`: nothing fails. Of a status only
    that there is none does.
    """
    if fail_on not in section.FAIL_ON:
        raise ValueError(f"fail_on: {fail_on!r} is not known: take {', '.join(section.FAIL_ON)}")
    if _is_of_status(_mapping(result)):
        return ""
    if is_of_devices(_mapping(result)):
        return section.message_of(unit for unit in [unit_of(as_unit(result))] if section.fails([unit], fail_on))
    host = _host(_mapping(result))
    if host["state"] in ("unreachable", "unknown"):
        return str(host["message"])
    units = host["units"]
    if not units and host["state"] != "converged":  # the section itself is at fault, such as a unit named twice
        units = [{"unit": "host", "state": host["state"], "reason": "", "pending": [], "steps": [], "msg": ""}]
    wrong = [unit for unit in units if section.fails([unit], fail_on)]
    return section.message_of(wrong) if host["units"] else str(host["message"] if wrong else "")


def _note_layout(host: Mapping[str, Any], sentence: Any) -> None:
    """A host whose GPUs are in use is asked for the layout that it has, so that no unit of its own says what waits."""
    for unit in host["units"]:
        if unit["unit"] == MIG_LAYOUT and isinstance(sentence, str) and sentence:
            unit["notes"].append(_text(sentence))


def _of_plan(result: Mapping[str, Any], devices: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    host = _with_devices(_host(result), devices)
    return {**host, **of_facts(facts, fault_of(facts)), "kept": None}


def _is_of_status(result: Mapping[str, Any]) -> bool:
    return isinstance(result.get("kept"), str) and isinstance(result.get("state"), str)


def _of_status(result: Mapping[str, Any]) -> dict[str, Any]:
    """A status as a plan of what the host was asked, beside what it shows."""
    if not _is_of_status(result):
        return {**_host(result), **of_facts({}, ""), "kept": None}
    kept, state, devices = _text(result["kept"]), result["state"], _mapping(result.get("devices"))
    told = _mapping(result.get("section"))
    if not told:  # no unit is kept, or what is kept cannot be told
        told = {"state": "converged"} if devices else {"state": state, "message": "" if state == "converged" else kept}
    unit = {**devices, "unit": "devices", "state": _text(devices.get("state")).lower(), "section": devices}
    host = _with_devices(_host({"units": result.get("units"), "section": told}), unit if devices else {})
    shown = of_status(result)
    host["reboot_required"] = host["reboot_required"] or bool((shown["reboot"] or {}).get("required"))
    return {**host, **shown, "kept": kept}


def _host(result: Mapping[str, Any]) -> dict[str, Any]:
    told = _mapping(result.get("section"))
    units = [unit_of(unit) for unit in _mappings(result.get("units"))]
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
        "reboot_required": any(unit["reboot_required"] for unit in units),
        "observed_generation": maybe(told.get("observed_generation"), NUMBER),
        "conditions": _conditions(told),
        "units": units,
        "devices": None,
    }


def _with_devices(host: dict[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    """The host with its section of devices; one that has no result of it is as it was."""
    unit = unit_of(as_unit(result)) if is_of_devices(result) else {}
    if unit.get("state") not in OF_UNIT:
        return host
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
        return fault_of(result) or "the host gave no result: see the output of the playbook"
    return ""


def unit_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """A unit's result in the shape that modules return, whatever the host returned."""
    failure = (
        {"retryable": bool(given.get("retryable")), **_texts(given, "reason", "msg")} if given.get("reason") else {}
    )
    pending = [_texts(wait, "reason", "message") for wait in _mappings(given, "pending")]
    return {
        **_texts(given, "unit", "state"),
        "changed": bool(given.get("changed")),
        "reboot_required": any(wait["reason"] == "RebootRequired" for wait in pending),
        "steps": [
            {**_texts(step, "action", "disruption"), "done": bool(step.get("done"))}
            for step in _mappings(given, "steps")
        ],
        "pending": pending,
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
