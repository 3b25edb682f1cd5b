# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What bcd helper is asked: one JSON object, read strictly, as the values of its op.

An unknown field is refused, never passed over: it may be what a newer version takes for a restriction.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Union

from ..core.errors import Refused
from ..core.step import DISRUPTIONS
from ..intent.body import UNIT_NAME
from ..plan.agreement import said
from ..plan.release import ONE_VERSION, VERSION
from ..plan.strict_json import parse, short

ID = re.compile(r"[A-Za-z0-9_]{1,80}")
KINDS = ("cdi", "allocation-env", "k8s-token")
LONGEST_FILE = 256 * 1024  # characters: the specification of a board of GPUs in parts has a tenth
MOST_UNITS = 64  # names of units in a list: there are a quarter of that
MOST_ENTRIES = 1024  # of a list of assignments and what goes with them: 16 GPUs of 64 slots
LONGEST_NAME = 256  # characters of what a node, its site or a run's label is called
HIGHEST = 2**63 - 1  # of a generation
FAIL_ON = ("terminal", "failed", "progressing", "never")
WORDS = {
    str: "a string",
    int: "an integer",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    type(None): "null",
}

TEXT, NUMBER, FLAG, LIST, OBJECT, NULL = str, int, bool, list, dict, type(None)


class UnitRequest(NamedTuple):
    """host.unit: one unit to its settings; None cleans it, {} with a signed spec takes the spec's."""

    unit: str
    settings: Mapping[str, Any] | None
    signed_spec: Mapping[str, Any] | None
    max_disruption: str
    check: bool
    node_id: str | None = None
    site: str | None = None


class SectionRequest(NamedTuple):
    """host.section: the options of host_section, or with `plans` of host_plan, but for secrets."""

    params: Mapping[str, Any]
    plans: bool
    check: bool


class DevicesRequest(NamedTuple):
    """devices: the options of cdi_holds."""

    params: Mapping[str, Any]
    check: bool


class IntentRequest(NamedTuple):
    """host.intent: what a signed spec says, where it verifies."""

    signed_spec: Mapping[str, Any]
    check: bool


class LookRequest(NamedTuple):
    """host.info, host.status, host.doctor: what root sees."""

    op: str


class FileRequest(NamedTuple):
    """file.write: a file of a kind, whose path is the helper's to say; None removes it."""

    kind: str
    id: str | None
    content: str | None


class SliceRequest(NamedTuple):
    """slice.apply, and with None for the limits slice.remove."""

    slice: str
    limits: Mapping[str, Any] | None


Request = Union[UnitRequest, SectionRequest, DevicesRequest, IntentRequest, LookRequest, FileRequest, SliceRequest]

# The fields of each op, and the exact types that their values may have.
SPEC = (OBJECT, NULL)
OPTIONAL = {"host.unit": ("node_id", "site")}
OPS: dict[str, dict[str, tuple[type, ...]]] = {
    "host.unit": {
        "unit": (TEXT,),
        "settings": (OBJECT, NULL),
        "signed_spec": SPEC,
        "max_disruption": (TEXT,),
        "check": (FLAG,),
        "node_id": (TEXT, NULL),
        "site": (TEXT, NULL),
    },
    "host.section": {
        "units": (OBJECT, NULL),
        "wire_units": (LIST, NULL),
        "known": (LIST, NULL),
        "generation": (NUMBER, NULL),
        "only": (LIST, NULL),
        "plans": (FLAG,),
        "fail_on": (TEXT,),
        "fail_on_secrets": (FLAG,),
        "label": (TEXT, NULL),
        "node_id": (TEXT, NULL),
        "site": (TEXT, NULL),
        "signed_spec": SPEC,
        "max_disruption": (TEXT,),
        "check": (FLAG,),
    },
    "devices": {
        "assignments": (LIST, NULL),
        "generation": (NUMBER, NULL),
        "passthrough": (LIST, NULL),
        "instances": (LIST, NULL),
        "max_cdi_version": (TEXT, NULL),
        "slot_count": (NUMBER, NULL),
        "acknowledge": (LIST, NULL),
        "signing_key": (TEXT, NULL),
        "node_id": (TEXT, NULL),
        "signed_spec": SPEC,
        "max_disruption": (TEXT,),
        "check": (FLAG,),
    },
    "host.info": {},
    "host.status": {},
    "host.doctor": {},
    "host.intent": {"signed_spec": (OBJECT,), "check": (FLAG,)},
    "file.write": {"kind": (TEXT,), "id": (TEXT, NULL), "content": (TEXT, NULL)},
    "slice.apply": {"slice": (TEXT,), "limits": (OBJECT,)},
    "slice.remove": {"slice": (TEXT,)},
}


def request(data: bytes) -> Request:
    """The request in the bytes of a connection; raises Refused."""
    try:
        found = parse(data)
    except ValueError as fault:
        raise Refused(f"the request is not one JSON object, read strictly ({fault}): {ONE_VERSION}") from None
    if not isinstance(found, dict):
        raise Refused(f"the request is {_kind(found)}, and not one JSON object: {ONE_VERSION}")
    return _of(_fields(found))


# -- fields


def _fields(found: dict[str, Any]) -> dict[str, Any]:
    """The fields of the op, all of them and no others, each of a type of its own."""
    op = found.get("op")
    if not isinstance(op, str) or op not in OPS:
        what = f"asks for {shown(op)}" if "op" in found else "has no op"
        raise Refused(f"the request {what}, and bcd helper {VERSION} knows {', '.join(OPS)}: {ONE_VERSION}")
    table = OPS[op]
    faults = [f"it has {shown(name)}, which is no field" for name in found if name != "op" and name not in table]
    for name, types in table.items():
        if name not in found:
            faults += [] if name in OPTIONAL.get(op, ()) else [f"it has no {name}"]
        elif type(found[name]) not in types:
            faults.append(f"{name} is {_kind(found[name])}, and takes {' or '.join(WORDS[one] for one in types)}")
    if faults:
        raise Refused(f"{op} of bcd helper {VERSION}: {'; '.join(faults[:5])}: {ONE_VERSION}")
    return found


def _of(found: dict[str, Any]) -> Request:
    op = found.pop("op")
    choices = {"max_disruption": DISRUPTIONS[:3], "fail_on": FAIL_ON, "kind": KINDS}
    for name in choices.keys() & found.keys():
        if found[name] not in choices[name]:
            raise Refused(f"{op}: {name} is {shown(found[name])}, and takes {', '.join(choices[name])}: correct it")
    for name in found.keys() & {"node_id", "site", "label"}:
        if len(found[name] or "") > LONGEST_NAME:
            raise Refused(f"{op}: {name} has more than {LONGEST_NAME} characters: give a shorter one")
    if not 0 <= (found.get("generation") or 0) <= HIGHEST:
        raise Refused(f"{op}: generation is {found['generation']}, and counts from 0 to {HIGHEST}: correct it")
    if op == "host.unit":
        _refuse_names([found["unit"]])
        return UnitRequest(**found)
    if op == "host.section":
        return _section(found)
    if op == "devices":
        return _devices(found)
    if op == "host.intent":
        return IntentRequest(**found)
    if op == "file.write":
        return _file(found)
    if op in ("slice.apply", "slice.remove"):
        return _slice(found)
    return LookRequest(op)


def name_of(asked: Request) -> str:
    """The op of a request."""
    if isinstance(asked, LookRequest):
        return asked.op
    if isinstance(asked, SliceRequest):
        return "slice.remove" if asked.limits is None else "slice.apply"
    names = {UnitRequest: "host.unit", SectionRequest: "host.section", DevicesRequest: "devices"}
    return names.get(type(asked), "host.intent" if isinstance(asked, IntentRequest) else "file.write")


def _refuse_names(units: list[Any]) -> None:
    for unit in units:
        if not isinstance(unit, str) or not UNIT_NAME.fullmatch(unit):
            raise Refused(
                f"{shown(unit)} is no name of a unit (lower-case letters, digits and -, at most 64, not - first): "
                "correct the name"
            )


def _refuse_many(op: str, found: dict[str, Any], names: tuple[str, ...], most: int) -> None:
    """Raise Refused where one asks for more work, and for more to remember, than a host can be for."""
    for name in names:
        if len(found[name] or ()) > most:
            raise Refused(f"{op}: {name} has {len(found[name])} entries, and at most {most} are taken: give fewer")


def _section(found: dict[str, Any]) -> SectionRequest:
    op = "host.section"
    _refuse_many(op, found, ("units", "wire_units", "known", "only"), MOST_UNITS)
    plans, check = found.pop("plans"), found.pop("check")
    if found["units"] is not None and found["wire_units"] is not None:
        raise Refused(f"{op}: units and wire_units are both given: give one of them")
    if found["units"] is None and found["wire_units"] is None and found["signed_spec"] is None:
        raise Refused(f"{op}: none of units, wire_units and signed_spec is given: give one of them")
    for entry in found["wire_units"] or ():
        if not isinstance(entry, dict) or set(entry) != {"unit", "settings"}:
            raise Refused(f"{op}: wire_units has {shown(entry)}, and takes objects of unit and settings: correct it")
    named = [entry["unit"] for entry in found["wire_units"] or ()]
    _refuse_names([*(found["units"] or ()), *named, *(found["known"] or ()), *(found["only"] or ())])
    return SectionRequest({**found, "secrets": None}, plans, check)


def _devices(found: dict[str, Any]) -> DevicesRequest:
    """The options, each inside held to its table: what a module's argument spec does for Ansible."""
    from ..plan.assignment import FIELDS
    from ..plan.assignment import UNIT as SECTION
    from ..plan.settings import strict

    check = found.pop("check")
    _refuse_many("devices", found, ("assignments", "passthrough", "instances"), MOST_ENTRIES)
    if found["assignments"] is None and found["acknowledge"] is None and found["signed_spec"] is None:
        raise Refused("devices: none of assignments, acknowledge and signed_spec is given: give one of them")
    if not all(isinstance(event, str) for event in found["acknowledge"] or ()):
        raise Refused("devices: acknowledge takes the ids of events, strings: correct the options")
    names = {field.wire for field in FIELDS}
    given = said({name: value for name, value in found.items() if name in names})
    _refuse_env(given)
    strict(SECTION, FIELDS, given)
    return DevicesRequest({**found, **dict.fromkeys(names), **given}, check)


def _refuse_env(given: Mapping[str, Any]) -> None:
    """Raise Refused for an env that is no list of lines, without saying what it is: it may be a secret."""
    for at, one in enumerate(given.get("assignments", ())):
        env = one.get("env", []) if isinstance(one, dict) else []
        if not isinstance(env, list) or not all(isinstance(line, str) for line in env):
            raise Refused(f"devices: assignments[{at}].env is no list of KEY=VALUE: correct the options")


def _file(found: dict[str, Any]) -> FileRequest:
    wanted = found["kind"] != "k8s-token"
    if wanted != (found["id"] is not None):
        raise Refused(f"file.write of the kind {found['kind']} takes {'an id' if wanted else 'no id'}: correct it")
    if wanted and not ID.fullmatch(found["id"]):
        raise Refused(f"file.write: {shown(found['id'])} is no id (letters, digits and _, at most 80): correct it")
    if len(found["content"] or "") > LONGEST_FILE:
        raise Refused(
            f"file.write: content has more than {LONGEST_FILE} characters: no file of these kinds has as many"
        )
    return FileRequest(**found)


def _slice(found: dict[str, Any]) -> SliceRequest:
    from ..plan.slices import NAME

    if not NAME.fullmatch(found["slice"]):
        raise Refused(f"{shown(found['slice'])} is no slice of a hold (bcd-alloc-<id>.slice): correct the name")
    return SliceRequest(found["slice"], found.get("limits"))


# -- messages


def _kind(value: Any) -> str:
    return WORDS.get(type(value), "a number with a fraction")


def shown(value: Any) -> str:
    """Something that was sent, for a message."""
    return short(ascii(value))
