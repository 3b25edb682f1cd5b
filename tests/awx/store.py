# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What AWX has, and what becomes of it by a call: the stand-in without its HTTP."""

from __future__ import annotations

import copy
from typing import Any
from urllib.parse import parse_qsl

from .fields import KINDS, wrong_rrule, wrong_survey, wrong_value

Row = dict[str, Any]
EDGES = ("success_nodes", "failure_nodes", "always_nodes")
PLAYBOOKS = ("converge.yml", "plan.yml", "status.yml", "doctor.yml", "reboot.yml")


def trimmed(fields: Row) -> Row:
    """Fields as AWX keeps them: texts without what is blank around them."""
    return {name: value.strip() if isinstance(value, str) else value for name, value in fields.items()}


class Answer(Exception):
    """An answer that ends the call."""

    def __init__(self, status: int, body: Any = None) -> None:
        super().__init__(status, body)
        self.status = status
        self.body = body


class Store:
    """All objects, by kind and number."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[int, Row]] = {kind: {} for kind in KINDS}
        self.playbooks: tuple[str, ...] = PLAYBOOKS  # what a project has once it was fetched
        self.sync = ["pending", "running", "successful"]  # what a project shows, look after look, after a change
        self.older: tuple[str, ...] = ()  # fields that this AWX does not have
        self.last = 0
        self.add("organizations", name="Default")
        self.add("credentials", name="fleet key")

    def add(self, kind: str, **fields: Any) -> int:
        """Have an object as a person would make it by hand; its number."""
        row = self.create(kind, fields)
        return int(row["id"])

    # --- reading ---

    def row(self, kind: str, number: int) -> Row:
        """The object as it is kept."""
        if number not in self.rows[kind]:
            raise Answer(404, {"detail": "Not found."})
        return self.rows[kind][number]

    def shown(self, kind: str, number: int) -> Row:
        """The object as it is shown."""
        row = self.row(kind, number)
        if kind == "projects" and row["syncing"]:
            row["status"] = row["syncing"].pop(0) if len(row["syncing"]) > 1 else row["syncing"][0]
        hidden = ("syncing", "survey", "credentials", *self.older)
        found = {name: copy.deepcopy(value) for name, value in row.items() if name not in hidden}
        summary: Row = {}
        if "credentials" in row:
            summary["credentials"] = [{"id": each, "kind": "ssh"} for each in row["credentials"]]
        template = row.get("unified_job_template")
        if template:
            kinds = [each for each in KINDS if template in self.rows[each]]
            summary["unified_job_template"] = {
                "id": template,
                "unified_job_type": {"workflow_approval_templates": "workflow_approval"}.get(kinds[0], "job"),
            }
        if row.get("status"):
            summary["last_job"] = {"id": 4711, "status": row["status"]}
        return {**found, "type": KINDS[kind].model, "summary_fields": summary}

    def matching(self, kind: str, query: str) -> list[int]:
        """The numbers of the objects that a query asks for."""
        numbers = sorted(self.rows[kind])
        for name, value in parse_qsl(query, keep_blank_values=True):
            if name in ("page", "page_size"):
                continue
            words = name.split("__")
            negated = words[0] == "not"
            field, many = (words[1:] if negated else words)[0], words[-1] == "in"
            if field not in KINDS[kind].fields and field not in ("id", "organization"):
                raise Answer(400, {"detail": f"{KINDS[kind].model} has no field named '{field}'"})
            wanted = value.split(",") if many else [value]
            numbers = [one for one in numbers if (str(self.rows[kind][one].get(field)) in wanted) != negated]
        return numbers

    # --- writing ---

    def create(self, kind: str, fields: Row) -> Row:
        """A new object."""
        table, fields = KINDS[kind].fields, trimmed(fields)
        missing = [name for name, field in table.items() if field.required and name not in fields]
        if missing:
            raise Answer(400, {name: ["This field is required."] for name in missing})
        self.check(kind, fields, {})
        row = {name: copy.deepcopy(fields.get(name, field.default)) for name, field in table.items()}
        self.last += 1
        row["id"] = self.last
        if kind == "job_templates":
            row["credentials"] = []
            row["organization"] = self.rows["projects"][row["project"]]["organization"]
        if kind.endswith("job_templates"):
            row["survey"] = {}
        if kind == "workflow_job_template_nodes":
            row.update({edge: [] for edge in EDGES})
        if kind == "projects":
            row.update({"status": "never updated", "syncing": []})
            self.fetch(row)
        self.unique(kind, row)
        self.rows[kind][row["id"]] = row
        return self.shown(kind, row["id"])

    def change(self, kind: str, number: int, fields: Row) -> Row:
        """An object with other values."""
        row, fields = self.row(kind, number), trimmed(fields)
        self.check(kind, fields, row)
        self.unique(kind, {**row, **fields})
        row.update(fields)
        if kind == "projects" and {"scm_type", "scm_url", "scm_branch"} & set(fields):
            self.fetch(row)
        return self.shown(kind, number)

    def fetch(self, row: Row) -> None:
        """Begin the sync of a project, as AWX does when one is made or fetched from elsewhere."""
        if row["scm_type"]:
            row["syncing"] = list(self.sync)
            row["status"] = "pending"

    def check(self, kind: str, fields: Row, row: Row) -> None:
        """Refuse what AWX refuses, and unknown fields, which AWX would drop without a word."""
        faults: dict[str, list[str]] = {}
        for name, value in fields.items():
            if name not in KINDS[kind].fields or name in self.older:
                faults[name] = ["there is no such field"]
                continue
            field = KINDS[kind].fields[name]
            wrong = wrong_value(field, value)
            if (
                not wrong
                and field.refers
                and value is not None
                and not any(value in self.rows[k] for k in field.refers)
            ):
                wrong = f'Invalid pk "{value}" - object does not exist.'
            if wrong:
                faults[name] = [wrong]
        whole = {**row, **fields}
        if not faults and kind == "job_templates":
            project = self.rows["projects"][whole["project"]]
            if project["status"] != "successful" or whole["playbook"] not in self.playbooks:
                faults["playbook"] = ["Playbook not found for project."]
        if not faults and kind == "schedules":
            faults = self.wrong_schedule(whole, created=not row)
        if not faults and kind == "inventory_sources" and whole["source"] == "scm" and not whole.get("source_project"):
            faults["source_project"] = ["Project required for scm type sources."]
        if faults:
            raise Answer(400, faults)

    def wrong_schedule(self, whole: Row, created: bool) -> dict[str, list[str]]:
        """What AWX refuses of a schedule: its rule; as it is made, its answers, where no default counts as one."""
        if wrong_rrule(whole["rrule"]):
            return {"rrule": wrong_rrule(whole["rrule"])}
        template = self.rows["job_templates"].get(whole["unified_job_template"], {})
        spec = template["survey"].get("spec", []) if template.get("survey_enabled") else []
        given = whole.get("extra_data") or {}
        lost = [each["variable"] for each in spec if each["required"] and each["variable"] not in given]
        if created and lost:
            return {"variables_needed_to_start": [f"'{name}' value missing" for name in lost]}
        more = sorted(set(given) - {each["variable"] for each in spec})
        if more and not template.get("ask_variables_on_launch"):
            return {"extra_data": [f"Variables {', '.join(more)} are not allowed on launch."]}
        return {}

    def unique(self, kind: str, row: Row) -> None:
        """Refuse a second object of one name."""
        key = [row.get(name) for name in KINDS[kind].unique]
        others = [one for number, one in self.rows[kind].items() if number != row["id"]]
        if key in [[one.get(name) for name in KINDS[kind].unique] for one in others]:
            names = " and ".join(KINDS[kind].unique)
            raise Answer(400, {"__all__": [f"{KINDS[kind].model} with this {names} already exists."]})

    def set_survey(self, kind: str, number: int, survey: Any) -> None:
        """Give a template its survey."""
        fault = wrong_survey(survey)
        if fault:
            raise Answer(400, {"error": fault})
        self.row(kind, number)["survey"] = copy.deepcopy(survey)

    def link(self, kind: str, number: int, relation: str, body: Row) -> None:
        """Attach an object to another, or detach it."""
        if set(body) - {"id", "associate", "disassociate"} or not isinstance(body.get("id"), int):
            raise Answer(400, {"msg": '"id" field must be an integer.'})
        there = self.row(kind, number)[relation]
        if body.get("disassociate"):
            there[:] = [each for each in there if each != body["id"]]
            return
        other = self.row("credentials" if relation == "credentials" else kind, body["id"])
        if relation == "credentials":
            kinds = [self.rows["credentials"][each]["kind"] for each in there]
            if other["kind"] in kinds and body["id"] not in there:
                raise Answer(400, {"error": f"Cannot assign multiple {other['kind']} credentials."})
        else:
            self.check_edge(number, relation, body["id"])
        if body["id"] not in there:
            there.append(body["id"])

    def check_edge(self, parent: int, relation: str, child: int) -> None:
        """Refuse what makes a workflow none: a circle, one node under two relations, another workflow's node."""
        nodes = self.rows["workflow_job_template_nodes"]
        if nodes[parent]["workflow_job_template"] != nodes[child]["workflow_job_template"]:
            raise Answer(400, {"Error": "Nodes of two workflows."})
        if any(child in nodes[parent][edge] for edge in EDGES if edge != relation):
            raise Answer(400, {"Error": "Relationship not allowed."})
        seen, ahead = set(), [child]
        while ahead:
            node = ahead.pop()
            if node == parent:
                raise Answer(400, {"Error": "Cycle detected."})
            if node not in seen:
                seen.add(node)
                ahead += [each for edge in EDGES for each in nodes[node][edge]]

    def approval(self, node: int, fields: Row) -> Row:
        """Make a node one that waits for a person."""
        row = self.create("workflow_approval_templates", fields)
        self.row("workflow_job_template_nodes", node)["unified_job_template"] = row["id"]
        return row

    def delete(self, kind: str, number: int) -> None:
        """Remove an object, and a node from those before it."""
        self.row(kind, number)
        del self.rows[kind][number]
        for row in self.rows["workflow_job_template_nodes"].values():
            for edge in EDGES:
                row[edge][:] = [each for each in row[edge] if each != number]
