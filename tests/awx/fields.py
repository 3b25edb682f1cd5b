# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of AWX's objects that the stand-in has, as AWX's API reference gives them, and what it refuses of each."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

# Question types and the type of their answers.
QUESTIONS: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "textarea": (str,),
    "password": (str,),
    "multiplechoice": (str,),
    "multiselect": (str,),
    "integer": (int,),
    "float": (float, int),
}


class Field(NamedTuple):
    """One field that can be written: its type, or the kinds of object that it refers to."""

    type: type = str
    required: bool = False
    default: Any = ""
    refers: tuple[str, ...] = ()
    choices: tuple[Any, ...] = ()


class Kind(NamedTuple):
    """A kind of object."""

    model: str
    fields: dict[str, Field]
    unique: tuple[str, ...]  # two objects that agree in these are one too many


TEXT, FLAG = Field(), Field(bool, default=False)
NAME, COUNT = Field(required=True), Field(int, default=0)


def reference(*kinds: str, required: bool = False) -> Field:
    """A field that holds the number of an object."""
    return Field(int, required, None, kinds)


ASKS = {
    f"ask_{what}_on_launch": FLAG
    for what in "credential diff_mode inventory job_type limit scm_branch skip_tags tags variables verbosity".split()
}
TEMPLATES = ("job_templates", "workflow_job_templates", "projects", "inventory_sources", "workflow_approval_templates")

KINDS: dict[str, Kind] = {
    "organizations": Kind("Organization", {"name": NAME, "description": TEXT}, ("name",)),
    "credentials": Kind(
        "Credential",
        {"name": NAME, "description": TEXT, "organization": reference("organizations"), "kind": Field(default="ssh")},
        ("name", "organization", "kind"),
    ),
    "execution_environments": Kind(
        "ExecutionEnvironment",
        {
            "name": NAME,
            "description": TEXT,
            "organization": reference("organizations"),
            "image": Field(required=True),
            "credential": reference("credentials"),
            "pull": Field(choices=("always", "missing", "never", "")),
        },
        ("name",),
    ),
    "projects": Kind(
        "Project",
        {
            "name": NAME,
            "description": TEXT,
            "organization": reference("organizations"),
            "scm_type": Field(choices=("", "git", "svn", "insights", "archive")),
            "scm_url": TEXT,
            "scm_branch": TEXT,
            "scm_clean": FLAG,
            "credential": reference("credentials"),
            "scm_update_on_launch": FLAG,
            "scm_update_cache_timeout": COUNT,
            "allow_override": FLAG,
            "default_environment": reference("execution_environments"),
            "timeout": COUNT,
        },
        ("name", "organization"),
    ),
    "inventories": Kind(
        "Inventory",
        {
            "name": NAME,
            "description": TEXT,
            "organization": reference("organizations", required=True),
            "kind": Field(choices=("", "smart", "constructed")),
            "variables": TEXT,
        },
        ("name", "organization"),
    ),
    "inventory_sources": Kind(
        "InventorySource",
        {
            "name": NAME,
            "description": TEXT,
            "inventory": reference("inventories", required=True),
            "source": Field(required=True, choices=("scm", "ec2", "gce", "constructed")),
            "source_project": reference("projects"),
            "source_path": TEXT,
            "source_vars": TEXT,
            "credential": reference("credentials"),
            "execution_environment": reference("execution_environments"),
            "overwrite": FLAG,
            "overwrite_vars": FLAG,
            "update_on_launch": FLAG,
            "update_cache_timeout": COUNT,
            "timeout": COUNT,
            "verbosity": Field(int, default=1),
        },
        ("name", "inventory"),
    ),
    "job_templates": Kind(
        "JobTemplate",
        {
            "name": NAME,
            "description": TEXT,
            "job_type": Field(default="run", choices=("run", "check")),
            "inventory": reference("inventories"),
            "project": reference("projects", required=True),
            "playbook": Field(required=True),
            "scm_branch": TEXT,
            "forks": COUNT,
            "limit": TEXT,
            "verbosity": COUNT,
            "extra_vars": TEXT,
            "job_tags": TEXT,
            "skip_tags": TEXT,
            "timeout": COUNT,
            "execution_environment": reference("execution_environments"),
            "survey_enabled": FLAG,
            "become_enabled": FLAG,
            "diff_mode": FLAG,
            "allow_simultaneous": FLAG,
            "job_slice_count": Field(int, default=1),
            **ASKS,
        },
        ("name", "organization"),
    ),
    "workflow_job_templates": Kind(
        "WorkflowJobTemplate",
        {
            "name": NAME,
            "description": TEXT,
            "organization": reference("organizations"),
            "extra_vars": TEXT,
            "inventory": reference("inventories"),
            "limit": TEXT,
            "survey_enabled": FLAG,
            "allow_simultaneous": FLAG,
            "ask_variables_on_launch": FLAG,
            "ask_inventory_on_launch": FLAG,
            "ask_limit_on_launch": FLAG,
        },
        ("name", "organization"),
    ),
    "workflow_job_template_nodes": Kind(
        "WorkflowJobTemplateNode",
        {
            "workflow_job_template": reference("workflow_job_templates", required=True),
            "unified_job_template": reference(*TEMPLATES),
            "identifier": TEXT,
            "all_parents_must_converge": FLAG,
            "extra_data": Field(dict, default={}),
            "limit": TEXT,
            "inventory": reference("inventories"),
        },
        ("identifier", "workflow_job_template"),
    ),
    "workflow_approval_templates": Kind(
        "WorkflowApprovalTemplate", {"name": NAME, "description": TEXT, "timeout": COUNT}, ("id",)
    ),
    "schedules": Kind(
        "Schedule",
        {
            "name": NAME,
            "description": TEXT,
            "rrule": Field(required=True),
            "enabled": Field(bool, default=True),
            "unified_job_template": reference(*TEMPLATES, required=True),
            "extra_data": Field(dict, default={}),
            "limit": TEXT,
        },
        ("name", "unified_job_template"),
    ),
}


def wrong_value(field: Field, value: Any) -> str:
    """Why this is no value of the field; "" when it is one. References are looked up by the store."""
    if value is None:
        return "" if field.refers and not field.required else "This field may not be null."
    if isinstance(value, bool) != (field.type is bool) or not isinstance(value, field.type):
        return f"Not a valid {field.type.__name__}."
    if field.type is str and field.required and not str(value).strip():
        return "This field may not be blank."
    if field.choices and value not in field.choices:
        return f'"{value}" is not a valid choice.'
    return ""


def wrong_rrule(rule: str) -> list[str]:
    """What AWX refuses of a schedule's rule, by the limits that its documentation lists."""
    faults = []
    starts = re.findall(r"DTSTART(?:;[^:]+)?:\d{8}T\d{6}Z?", rule)
    if not starts or not rule.startswith("DTSTART"):
        faults.append("Valid DTSTART required in rrule. Value should start with: DTSTART:YYYYMMDDTHHMMSSZ")
    if len(starts) > 1:
        faults.append("Multiple DTSTART is not supported.")
    if any("TZID" not in start and not start.endswith("Z") for start in starts):
        faults.append("DTSTART cannot be a naive datetime.")
    if "RRULE:" not in rule:
        faults.append("One or more rule required in rrule.")
    faults += [f"{word} not allowed in rrule." for word in ("EXDATE", "RDATE") if word in rule]
    for part in re.findall(r"RULE:(\S*)", rule):
        words = dict(word.partition("=")[::2] for word in part.split(";"))
        if "INTERVAL" not in words:
            faults.append("INTERVAL required in rrule")
        if words.get("FREQ") not in ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY"):
            faults.append("rrule parsing failed validation")
        if re.match(r"-?\d", words.get("BYDAY", "")):
            faults.append("BYDAY with numeric prefix not supported")
        if "COUNT" in words and "UNTIL" in words:
            faults.append("RRULE may not contain both COUNT and UNTIL")
        if int(words.get("COUNT", "0")) > 999:
            faults.append("COUNT > 999 is unsupported")
    return faults


def wrong_question(index: int, question: Any, before: set[str]) -> str:
    """What AWX refuses of one question of a survey; `before` are the variables of those before it."""
    for name, kind in {"type": str, "question_name": str, "variable": str, "required": bool}.items():
        if name not in question:
            return f"'{name}' missing from survey question {index}"
        if not isinstance(question[name], kind):
            return f"'{name}' in survey question {index} expected to be {kind.__name__}."
    if question["variable"] in before:
        return f"'variable' '{question['variable']}' duplicated in survey question {index}."
    if question["type"] not in QUESTIONS:
        return f"'{question['type']}' in survey question {index} is not one of the allowed question types."
    default = question.get("default", "")
    if default != "" and not isinstance(default, QUESTIONS[question["type"]]):
        return f"Default value {default} in survey question {index} has the wrong type."
    if question["type"] in ("multiplechoice", "multiselect"):
        if "choices" not in question:
            return f"Survey question {index} of type {question['type']} must specify choices."
        choices = question["choices"]
        choices = choices.splitlines() if isinstance(choices, str) else choices
        if default and any(each not in choices for each in str(default).splitlines()):
            return "Default choice must be answered from the choices listed."
    return ""


def wrong_survey(survey: Any) -> str:
    """What AWX refuses of a survey; "" when nothing."""
    for name, kind in {"name": str, "description": str, "spec": list}.items():
        if name not in survey:
            return f"Field '{name}' is missing from survey spec."
        if not isinstance(survey[name], kind):
            return f"Expected {kind.__name__} for field '{name}'."
    if not survey["spec"]:
        return "'spec' doesn't contain any items."
    before: set[str] = set()
    for index, question in enumerate(survey["spec"]):
        if not isinstance(question, dict):
            return f"Survey question {index} is not a json object."
        fault = wrong_question(index, question, before)
        if fault:
            return fault
        before.add(question["variable"])
    return ""
