# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What declared objects ask of AWX's API: where to look for them, and what to send so that they are as declared.

A declared object is a mapping: `id`, by which others refer to it; `kind`, the last word of its list's path
(`job_templates`); `find`, the fields that tell it from others of its kind; `fields`, what else it is to have;
`exists: true` where it is looked for and never made; `declared: false` where it is left out; `survey`, `credentials`
(the whole list) and `edges` (by relationship) where its kind has them. An approval has `of`, the node that it belongs
to, and no `find`. `names` instead of `find` stands for an object a name, with the id `kind:name`. In a field of
REFERENCES `@id` stands for the number that AWX gave the object of that id: 0 where a check would make it first, None
where it is not declared, and then the field is left as it is. `@id.approval` is a node's approval, 0 where it has none.
An object of another organization than the one in `fields` is somebody else's, and refused.

Objects come in levels. One refers to those of levels before its own; edges and credentials may be of its own, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from .awx_answer import shown

REFERENCES = frozenset(
    "organization project inventory source_project credential execution_environment unified_job_template "
    "workflow_job_template".split()
)
# What the API takes as a number, and a template of an older Ansible as text.
NUMBERS = frozenset("forks job_slice_count timeout verbosity scm_update_cache_timeout update_cache_timeout".split())
# What the API keeps as text, whatever is in it.
TEXTS = frozenset(("extra_vars", "source_vars", "variables"))
EDGES = ("success_nodes", "failure_nodes", "always_nodes")
Call = dict[str, Any]  # method, path below the API's root, body, says: what it does, as words


def named(wanted: Mapping[str, Any]) -> str:
    """The object's kind and name, for a person: `job template "bcd converge"`."""
    kind = str(wanted["kind"]).replace("inventories", "inventorys").replace("_", " ")[:-1]
    own = {**(wanted.get("find") or {}), **(wanted.get("fields") or {})}
    return f'{kind} "{own.get("name", own.get("identifier", wanted["id"]))}"'


def number(reference: Any, ids: Mapping[str, Any]) -> int | None:
    """The number of the object that `@id` names, None where it is not declared; ValueError where it is none of ours."""
    name = str(reference)[1:]
    if not str(reference).startswith("@") or name not in ids:
        raise ValueError(f"{reference} names none of the objects before it, which are {', '.join(ids) or 'none'}")
    return None if ids[name] is None else int(ids[name])


def body(fields: Mapping[str, Any], ids: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as the API takes them; without those whose object is not declared."""
    found: dict[str, Any] = {}
    for name, value in fields.items():
        if name in REFERENCES and str(value).startswith("@"):
            found[name] = number(value, ids)
            if found[name] is None:
                del found[name]
        elif name in NUMBERS:
            found[name] = int(value)
        elif name in TEXTS and not isinstance(value, str):
            found[name] = json.dumps(value, sort_keys=True, ensure_ascii=False) if value else ""
        else:
            # As AWX keeps it: sent with the line's end of a YAML block, it would differ in every run.
            found[name] = value.strip() if isinstance(value, str) else value
    return found


def look(wanted: Mapping[str, Any], ids: Mapping[str, Any]) -> str:
    """The path to look for it at, "" where what it belongs to is not there yet."""
    if "of" in wanted:
        approval = number(f"{wanted['of']}.approval", ids)
        return f"/{wanted['kind']}/{approval}/" if approval else ""
    find = body(wanted["find"], ids)
    if any(find.get(name) == 0 for name in REFERENCES):
        return ""
    return f"/{wanted['kind']}/?{urlencode(find)}"


def found(wanted: Mapping[str, Any], answer: Any, home: int | None = None) -> dict[str, Any]:
    """The object in what AWX answered, a list, or the object itself when it was just made; {} where it is not there.

    Where something that has to be there is there several times, that of the organization `home` is meant. Raises
    ValueError where there are several even so, or none, or where this is no answer of AWX.
    """
    if answer is None:
        return {}
    if "results" not in answer and "id" not in answer:
        raise ValueError(f"this is no AWX, which would answer with {named(wanted)}: see bcd_awx_url and bcd_awx_api")
    rows = answer.get("results", [answer])
    if len(rows) > 1 and wanted.get("exists"):
        rows = [row for row in rows if row.get("organization") == home] or rows
    if len(rows) > 1:
        raise ValueError(f"AWX has {len(rows)} objects where one was expected, {named(wanted)}: rename the others")
    if not rows and wanted.get("exists"):
        raise ValueError(
            f"AWX has no {named(wanted)}, or does not show it to this account: make it first, or name another"
        )
    return dict(rows[0]) if rows else {}


def creation(wanted: Mapping[str, Any], ids: Mapping[str, Any]) -> Call:
    """What makes it."""
    fields = {**(wanted.get("find") or {}), **(wanted.get("fields") or {})}
    if wanted["kind"] == "job_templates":
        fields.pop("organization")  # a job template has that of its project
    path = f"/{wanted['kind']}/"
    if "of" in wanted:
        path = f"/workflow_job_template_nodes/{number(wanted['of'], ids)}/create_approval_template/"
    return {"method": "POST", "path": path, "body": body(fields, ids), "says": f"create {named(wanted)}"}


def same(value: Any, there: Any) -> bool:
    """True when the API's value is the declared one, as text or not."""
    if isinstance(there, bool):
        return str(value).lower() == str(there).lower()
    return value == there or (value in ("", None) and there in ("", None))


def differing(wanted: Mapping[str, Any], ids: Mapping[str, Any], there: Mapping[str, Any]) -> list[Call]:
    """The change of its own fields, where they differ."""
    fields = body(wanted.get("fields") or {}, ids)
    missing = [name for name in fields if name not in there]
    if missing:
        raise ValueError(f"this AWX has no {', '.join(missing)} in a {named(wanted)}: it is too old, take 21 or newer")
    off = {name: value for name, value in fields.items() if not same(value, there[name])}
    if "organization" in off:
        raise ValueError(f"AWX has {named(wanted)} outside of this organization: give another bcd_awx_name")
    if not off:
        return []
    says = f"change {', '.join(off)} of {named(wanted)}"
    return [{"method": "PATCH", "path": f"/{wanted['kind']}/{there['id']}/", "body": off, "says": says}]


def survey(wanted: Mapping[str, Any], there: Mapping[str, Any], asked: Any) -> list[Call]:
    """The change of its survey; `asked` is the one that it has."""
    if "survey" not in wanted:
        return []
    whole = {"name": "", "description": "", "spec": list(wanted["survey"])}
    if asked and {name: asked.get(name) for name in whole} == whole:
        return []
    path = f"/{wanted['kind']}/{there['id']}/survey_spec/"
    return [{"method": "POST", "path": path, "body": whole, "says": f"set the survey of {named(wanted)}"}]


def links(path: str, wanted: list[int], there: list[int], what: str) -> list[Call]:
    """What brings a list of related objects to the wanted one; those that go first, since AWX takes one of a type."""
    gone = [each for each in there if each not in wanted]
    new = [each for each in wanted if each not in there]
    calls = [
        {"method": "POST", "path": path, "body": {"id": each, "disassociate": True}, "says": f"take {what} away"}
        for each in gone
    ]
    return calls + [{"method": "POST", "path": path, "body": {"id": each}, "says": f"add {what}"} for each in new]


def related(wanted: Mapping[str, Any], ids: Mapping[str, Any], there: Mapping[str, Any]) -> list[Call]:
    """The changes of its credentials and of the nodes that follow it."""
    calls: list[Call] = []
    own = f"/{wanted['kind']}/{there['id']}"
    if "credentials" in wanted:
        have = [int(each["id"]) for each in there.get("summary_fields", {}).get("credentials", [])]
        want = [number(each, ids) or 0 for each in wanted["credentials"]]
        calls += links(f"{own}/credentials/", want, have, f"a credential of {named(wanted)}")
    if "edges" in wanted:
        for edge in EDGES:
            want = [number(each, ids) or 0 for each in wanted["edges"].get(edge, [])]
            calls += links(f"{own}/{edge}/", want, there.get(edge, []), f"one of the {edge} of {named(wanted)}")
    return sorted(calls, key=lambda call: "disassociate" not in call["body"])


def calls(wanted: Mapping[str, Any], ids: Mapping[str, Any], there: Mapping[str, Any], asked: Any = None) -> list[Call]:
    """All that is to be sent, in order, so that the object that is there is as declared."""
    if wanted.get("exists"):
        return []
    return [*differing(wanted, ids, there), *survey(wanted, there, asked), *related(wanted, ids, there)]


def undone(wanted: Mapping[str, Any], ids: Mapping[str, Any]) -> list[Call]:
    """What an object that is not there would be given once it was made."""
    there = {**body(wanted.get("fields") or {}, ids), "id": 0}
    return [*survey(wanted, there, None), *related(wanted, ids, there)]


def remembered(wanted: Mapping[str, Any], there: Mapping[str, Any]) -> dict[str, int]:
    """What later objects ask for of this one: its number, and that of a node's approval."""
    numbers = {str(wanted["id"]): int(there.get("id", 0))}
    if str(wanted["kind"]).endswith("_nodes"):
        own = there.get("summary_fields", {}).get("unified_job_template", {})
        numbers[f"{wanted['id']}.approval"] = (
            int(own["id"]) if own.get("unified_job_type") == "workflow_approval" else 0
        )
    return numbers


def expanded(level: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The declared objects of a level, each by itself."""
    objects: list[Mapping[str, Any]] = []
    for entry in level:
        if str(entry.get("declared", True)).lower() == "false":
            continue
        if "names" in entry:
            kind = entry["kind"]
            objects += [{**entry, "id": f"{kind}:{name}", "find": {"name": name}} for name in entry["names"]]
        else:
            objects.append(entry)
    return objects


def answers(results: Any) -> dict[str, Any]:
    """What AWX answered, by the id of the object, from the registered result of a loop over calls with an `id`."""
    done = [one for one in (results or {}).get("results", []) if not one.get("skipped")]
    for one in done:
        if not isinstance(one.get("json"), Mapping):
            raise ValueError(f"{shown(one.get('url', 'its address'))} did not answer as AWX does: see bcd_awx_url")
    return {str(one[one["ansible_loop_var"]]["id"]): one.get("json") for one in done}


def told(results: Any) -> list[str]:
    """What a loop over calls did, as words."""
    return [
        str(one[one["ansible_loop_var"]]["says"])
        for one in (results or {}).get("results", [])
        if not one.get("skipped")
    ]


def survey_look(wanted: Mapping[str, Any], there: Mapping[str, Any]) -> Call:
    """The look at the survey that it has."""
    path = f"/{wanted['kind']}/{there['id']}/survey_spec/"
    return {"id": wanted["id"], "path": path, "says": f"look at the survey of {named(wanted)}"}


def level_step(
    level: Sequence[Mapping[str, Any]],
    ids: Mapping[str, Any],
    looked: Any = None,
    made: Any = None,
    surveys: Any = None,
) -> dict[str, Any]:
    """What the playbook goes by in a level; more of it is known with each registered result that is given.

    Returns the calls to make in turn, `looks`, `creations`, `surveys` (looks at them) and `calls`; then `says`, what
    was made, and what is still to be made and sent, and `numbers` for the levels behind. Raises ValueError where AWX
    has something else than what can be.
    """
    objects = expanded(level)
    at = {str(each["id"]): look(each, ids) for each in objects}
    looks = [{"id": name, "path": path, "says": f"look for {name}"} for name, path in at.items() if path]
    step: dict[str, Any] = {"looks": looks}
    if looked is None:
        return step
    seen, new, asked = answers(looked), answers(made), answers(surveys)
    there, known = {}, dict(ids)
    for each in objects:
        own = found(each, {**seen, **new}.get(str(each["id"])), known.get("organization"))
        there[str(each["id"])] = own
        known.update(remembered(each, own))
    step["creations"] = [{"id": each["id"], **creation(each, known)} for each in objects if not there[str(each["id"])]]
    old = [each for each in objects if there[str(each["id"])] and str(each["id"]) not in new]
    step["surveys"] = [survey_look(each, there[str(each["id"])]) for each in old if "survey" in each]
    step["calls"] = []
    for each in objects:
        own = there[str(each["id"])]
        step["calls"] += calls(each, known, own, asked.get(str(each["id"]))) if own else undone(each, known)
    step["says"] = told(made) + [call["says"] for call in (*step["creations"], *step["calls"])]
    step["numbers"] = {name: value for name, value in known.items() if value != ids.get(name)}
    return step
