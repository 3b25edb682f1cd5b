# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What declared objects ask of AWX's API, played against the stand-in without a playbook."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.awx import body, creation, level_step, look, named
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.awx_answer import problem, words
from tests.awx.fields import wrong_rrule, wrong_survey
from tests.awx.server import Awx, Call
from tests.awx.store import Answer

QUESTION = {"question_name": "Hosts", "variable": "bcd_hosts", "type": "text", "required": True, "default": "all"}
ORGANIZATION = {"id": "organization", "kind": "organizations", "exists": True, "find": {"name": "Default"}}
CREDENTIALS = {"id": "credentials", "kind": "credentials", "exists": True, "names": ["fleet key"]}
PROJECT: dict[str, Any] = {
    "id": "project",
    "kind": "projects",
    "find": {"name": "a & b/ü#1?", "organization": "@organization"},
    "fields": {"scm_type": "git", "scm_url": "https://git.example.com/fleet.git", "credential": "@nothing"},
}
WORKFLOW = {"id": "workflow", "kind": "workflow_job_templates", "find": {"name": "w", "organization": "@organization"}}
TEMPLATE: dict[str, Any] = {
    "id": "template",
    "kind": "job_templates",
    "find": {"name": "converge", "organization": "@organization"},
    "fields": {
        "project": "@project",
        "playbook": "converge.yml",
        "forks": "20",
        "extra_vars": {"b": "ü", "a": 1},
        "execution_environment": "@execution_environment",
        "survey_enabled": True,
    },
    "credentials": ["@credentials:fleet key"],
    "survey": [QUESTION],
}
FIRST: dict[str, Any] = {
    "id": "node:first",
    "kind": "workflow_job_template_nodes",
    "find": {"identifier": "first", "workflow_job_template": "@workflow"},
    "fields": {"unified_job_template": "@template"},
    "edges": {"always_nodes": ["@node:last"]},
}
LAST: dict[str, Any] = {
    "id": "node:last",
    "kind": "workflow_job_template_nodes",
    "find": {"identifier": "last", "workflow_job_template": "@workflow"},
    "edges": {},
}
APPROVAL = {
    "id": "approval",
    "kind": "workflow_approval_templates",
    "of": "@node:last",
    "fields": {"name": "reboot?", "description": "look at the job before", "timeout": "0"},
}
SCHEDULE: dict[str, Any] = {
    "id": "nightly",
    "kind": "schedules",
    "find": {"name": "nightly", "unified_job_template": "@template"},
    "fields": {"rrule": "DTSTART:20260101T030000Z RRULE:FREQ=DAILY;INTERVAL=1", "extra_data": {"bcd_hosts": "all"}},
}
LEVELS: list[list[dict[str, Any]]] = [
    [ORGANIZATION, CREDENTIALS],
    [PROJECT, WORKFLOW],
    [TEMPLATE],
    [FIRST, LAST, SCHEDULE],
    [APPROVAL],
]
LOGIN = "me:made-up"
UNDECLARED = {"nothing": None, "execution_environment": None}


def loop(awx: Awx, calls: list[dict[str, Any]], method: str) -> dict[str, Any]:
    """The registered result of a loop of `ansible.builtin.uri` over calls."""
    results: list[dict[str, Any]] = []
    for call in calls:
        asked = Call(call.get("method", method), f"/api/v2{call['path']}", call.get("body"))
        awx.calls.append(asked)
        try:
            status, answer = awx.answer(asked)
        except Answer as ended:
            status, answer = ended.status, ended.body
        results.append({"ansible_loop_var": "call", "call": call, "status": status, "json": answer, "url": asked.path})
    return {"results": results}


def settle(awx: Awx) -> None:
    """Have every project fetched."""
    for row in awx.store.rows["projects"].values():
        row["status"] = "successful"


def declare(awx: Awx, levels: list[list[dict[str, Any]]], check: bool = False) -> list[str]:
    """What the playbook does, and says of it; a refusal is an assertion."""
    ids: dict[str, Any] = dict(UNDECLARED)
    said: list[str] = []
    for level in levels:
        looked = loop(awx, level_step(level, ids)["looks"], "GET")
        assert problem(looked, "") == ""
        made = loop(awx, [] if check else level_step(level, ids, looked)["creations"], "POST")
        assert problem(made, "") == ""
        surveys = loop(awx, level_step(level, ids, looked, made)["surveys"], "GET")
        step = level_step(level, ids, looked, made, surveys)
        assert problem(loop(awx, [] if check else step["calls"], "POST"), "") == ""
        said += step["says"]
        ids.update(step["numbers"])
        settle(awx)
    return said


@pytest.fixture
def awx() -> Awx:
    """An AWX that is not served."""
    return Awx()


class TestWhatIsSent:
    def test_an_empty_awx_gets_all_of_it_and_then_nothing(self, awx: Awx) -> None:
        declare(awx, LEVELS)
        template = awx.one("job_templates", name="converge")
        assert template["forks"] == 20
        assert template["extra_vars"] == '{"a": 1, "b": "ü"}'
        assert template["survey"]["spec"] == [QUESTION]
        assert template["credentials"] == [awx.one("credentials")["id"]]
        last = awx.one("workflow_job_template_nodes", identifier="last")
        assert awx.one("workflow_job_template_nodes", identifier="first")["always_nodes"] == [last["id"]]
        assert awx.one("workflow_approval_templates")["id"] == last["unified_job_template"]
        awx.calls.clear()
        assert declare(awx, LEVELS) == []
        assert awx.changes() == []

    def test_a_check_says_what_is_then_made_and_sends_nothing(self, awx: Awx) -> None:
        told = declare(awx, LEVELS, check=True)
        assert awx.changes() == []
        assert sorted(told) == sorted(declare(awx, LEVELS))
        assert 'create job template "converge"' in told
        assert 'set the survey of job template "converge"' in told

    @pytest.mark.parametrize(
        ("kind", "field", "value"),
        [
            ("projects", "scm_url", "https://elsewhere.example.com/x.git"),
            ("job_templates", "playbook", "plan.yml"),
            ("job_templates", "survey_enabled", False),
            ("job_templates", "extra_vars", "---"),
            ("job_templates", "survey", {"name": "", "description": "", "spec": [{**QUESTION, "default": "lost"}]}),
            ("job_templates", "survey", {}),
            ("job_templates", "credentials", []),
            ("workflow_approval_templates", "timeout", 60),
        ],
    )
    def test_what_a_person_changed_is_put_back_alone(self, awx: Awx, kind: str, field: str, value: Any) -> None:
        declare(awx, LEVELS)
        row = awx.one(kind)
        before = row[field]
        row[field] = value
        awx.calls.clear()
        check = declare(awx, LEVELS, check=True)
        assert awx.changes() == []
        assert declare(awx, LEVELS) == check
        assert len(check) == 1
        assert awx.one(kind)[field] == before

    def test_another_credential_of_the_type_goes_before_ours_comes(self, awx: Awx) -> None:
        declare(awx, LEVELS)
        other = awx.store.add("credentials", name="other key")
        awx.one("job_templates")["credentials"][:] = [other]
        declare(awx, LEVELS)
        assert awx.one("job_templates")["credentials"] == [awx.one("credentials", name="fleet key")["id"]]

    def test_an_edge_and_an_approval_that_others_changed_are_put_back(self, awx: Awx) -> None:
        declare(awx, LEVELS)
        first = awx.one("workflow_job_template_nodes", identifier="first")
        last = awx.one("workflow_job_template_nodes", identifier="last")
        first["success_nodes"], first["always_nodes"] = [last["id"]], []
        last["unified_job_template"] = first["unified_job_template"]
        declare(awx, LEVELS)
        assert (first["success_nodes"], first["always_nodes"]) == ([], [last["id"]])
        assert last["unified_job_template"] in awx.store.rows["workflow_approval_templates"]

    def test_one_of_many_is_found_whatever_the_page(self, awx: Awx) -> None:
        settled = [ORGANIZATION], [PROJECT]
        for number in range(60):
            awx.store.add("projects", name=f"a{number}", organization=awx.one("organizations")["id"])
        declare(awx, list(settled))
        awx.calls.clear()
        assert declare(awx, list(settled)) == []

    def test_a_text_with_blanks_around_it_is_kept_without_and_then_does_not_differ(self, awx: Awx) -> None:
        padded = {
            **PROJECT,
            "find": {**PROJECT["find"], "name": " padded"},
            "fields": {**PROJECT["fields"], "scm_url": "https://git.example.com/x.git\n", "description": "a\n"},
        }
        declare(awx, [[ORGANIZATION], [padded]])
        assert awx.one("projects")["scm_url"] == "https://git.example.com/x.git"
        assert declare(awx, [[ORGANIZATION], [padded]]) == []

    def test_an_image_that_is_declared_is_the_one_that_templates_run_in(self, awx: Awx) -> None:
        image: dict[str, Any] = {"id": "execution_environment", "kind": "execution_environments"}
        image.update({"find": {"name": "ours"}, "fields": {"organization": "@organization", "image": "our:1"}})
        levels = [[ORGANIZATION, CREDENTIALS], [PROJECT, image], [TEMPLATE]]
        declare(awx, levels)
        made = awx.one("execution_environments")["id"]
        assert awx.one("job_templates")["execution_environment"] == made
        assert declare(awx, levels) == []

    def test_null_is_an_empty_text_and_a_flag_may_be_a_text(self, awx: Awx) -> None:
        template = {**TEMPLATE, "fields": {**TEMPLATE["fields"], "limit": "", "diff_mode": "True", "extra_vars": {}}}
        levels = [[ORGANIZATION, CREDENTIALS], [PROJECT], [template]]
        declare(awx, [[ORGANIZATION, CREDENTIALS], [PROJECT]])
        made = {**template, "fields": {**template["fields"], "diff_mode": True}}
        declare(awx, [[ORGANIZATION, CREDENTIALS], [PROJECT], [made]])
        assert awx.one("job_templates")["extra_vars"] == ""
        awx.one("job_templates")["limit"] = None
        assert declare(awx, levels) == []

    def test_what_is_not_declared_is_neither_looked_for_nor_made(self) -> None:
        assert level_step([{**PROJECT, "declared": "False"}, {**PROJECT, "declared": False}], {}) == {"looks": []}

    def test_what_another_organization_has_under_our_name_is_not_taken_away(self, awx: Awx) -> None:
        other = awx.store.add("organizations", name="other")
        theirs = awx.store.add("execution_environments", name="ours", image="their:1", organization=other)
        image = {"id": "image", "kind": "execution_environments", "find": {"name": "ours"}}
        image["fields"] = {"organization": "@organization", "image": "our:1"}
        awx.calls.clear()
        with pytest.raises(ValueError, match='execution environment "ours" outside of this organization: give another'):
            declare(awx, [[ORGANIZATION], [image]])
        assert awx.changes() == []
        assert awx.store.row("execution_environments", theirs)["image"] == "their:1"

    def test_of_credentials_of_one_name_that_of_the_organization_is_taken(self, awx: Awx) -> None:
        home, other = awx.one("organizations")["id"], awx.store.add("organizations", name="other")
        awx.one("credentials")["organization"] = other
        ours = awx.store.add("credentials", name="fleet key", organization=home)
        declare(awx, LEVELS)
        assert awx.one("job_templates")["credentials"] == [ours]

    def test_a_field_of_what_is_not_declared_stays_as_it_is(self, awx: Awx) -> None:
        declare(awx, LEVELS)
        image = awx.store.add("execution_environments", name="theirs", image="quay.example.com/ee:1")
        awx.one("job_templates")["execution_environment"] = image
        assert declare(awx, LEVELS) == []
        assert awx.one("job_templates")["execution_environment"] == image


class TestWhatIsAsked:
    def test_a_name_is_encoded_and_a_template_has_no_organization_of_its_own(self) -> None:
        ids = {"organization": 3, **UNDECLARED}
        assert look(PROJECT, ids) == "/projects/?name=a+%26+b%2F%C3%BC%231%3F&organization=3"
        made = creation(TEMPLATE, {**ids, "project": 5})
        assert "organization" not in made["body"]
        assert "execution_environment" not in made["body"]
        assert named(TEMPLATE) == 'job template "converge"'
        assert named({"kind": "inventories", "id": "x", "find": {"name": "y"}}) == 'inventory "y"'

    def test_what_belongs_to_nothing_yet_is_not_looked_for(self) -> None:
        assert look(PROJECT, {"organization": 0}) == ""
        assert look(APPROVAL, {"node:last": 4, "node:last.approval": 0}) == ""

    def test_a_reference_to_nothing_is_a_fault_of_the_table(self) -> None:
        with pytest.raises(ValueError, match="@projekt names none of the objects"):
            body({"project": "@projekt"}, {"project": 1})

    def test_what_is_not_there_two_of_a_name_and_an_old_awx_are_said(self, awx: Awx) -> None:
        with pytest.raises(ValueError, match='AWX has no credential "lost"'):
            declare(awx, [[{**CREDENTIALS, "names": ["lost"]}]])
        awx.store.rows["credentials"][99] = {**awx.one("credentials"), "id": 99}
        with pytest.raises(ValueError, match='AWX has 2 objects where one was expected, credential "fleet key"'):
            declare(awx, [[CREDENTIALS]])
        old = Awx()
        declare(old, LEVELS)
        old.store.older = ("survey_enabled",)
        with pytest.raises(ValueError, match="has no survey_enabled in a job template"):
            declare(old, LEVELS)

    @pytest.mark.parametrize("answer", [None, [], "a page", {}, {"detail": "hello"}])
    def test_what_is_no_answer_of_awx_makes_nothing(self, answer: Any) -> None:
        call = {"id": "organization"}
        looked = {"results": [{"ansible_loop_var": "call", "call": call, "status": 200, "json": answer}]}
        with pytest.raises(ValueError, match="see bcd_awx_url"):
            level_step([ORGANIZATION], UNDECLARED, looked)


class TestAnswers:
    @pytest.mark.parametrize(
        ("status", "answer", "parts"),
        [
            (
                400,
                {"playbook": ["Playbook not found for project."]},
                ("playbook: Playbook not found", "bcd_awx_playbooks"),
            ),
            (400, {"__all__": ["JobTemplate with this name already exists."]}, ("answered 400", "already exists")),
            (401, {"detail": "Authentication credentials were not provided."}, ("answered 401", "bcd_awx_token")),
            (403, {"detail": "no"}, ("administrator of the organization",)),
            (404, {"detail": "Not found."}, ("https://awx/api/v2/x/ answered 404", "bcd_awx_api")),
            (502, None, ("answered 502 (Bad Gateway)",)),
        ],
    )
    def test_each_refusal_says_what_where_and_the_next_move(
        self, status: int, answer: Any, parts: tuple[str, ...]
    ) -> None:
        said = problem(
            {"status": status, "json": answer, "url": "https://awx/api/v2/x/", "msg": "Bad Gateway"}, "make it"
        )
        assert said.startswith("cannot make it: ")
        for part in parts:
            assert part in said

    def test_no_answer_at_all(self) -> None:
        said = problem({"status": -1, "url": "https://awx/", "msg": "Connection refused"}, "make it")
        assert said == (
            "cannot make it: no answer from https://awx/ (Connection refused): "
            "see bcd_awx_url, and whether this machine reaches it"
        )

    def test_what_went_well_or_was_skipped_is_no_problem(self) -> None:
        assert problem({"status": 204}, "x") == ""
        assert problem({"skipped": True}, "x") == ""
        assert problem({"results": [{"status": 200, "call": {}, "ansible_loop_var": "call"}]}, "x") == ""

    def test_a_page_and_an_answer_that_leads_elsewhere_are_none_of_awx(self) -> None:
        page = {"status": 200, "url": "https://awx/api/v2/x/", "content_type": "text/html; charset=utf-8"}
        assert problem(page, "make it") == (
            "cannot make it: https://awx/api/v2/x/ answered text/html; charset=utf-8, which AWX does not: "
            "see bcd_awx_url and bcd_awx_api"
        )
        assert problem({**page, "content_type": "application/json"}, "x") == ""
        moved = {"status": 302, "url": "https://awx/api/v2/x/", "location": "https://sso/", "content_type": "text/html"}
        assert problem(moved, "make it") == (
            "cannot make it: https://awx/api/v2/x/ sends on to https://sso/: see bcd_awx_url"
        )

    def test_a_login_in_an_address_is_not_shown(self) -> None:
        for status in (-1, 302, 403):
            said = problem({"status": status, "url": f"https://{LOGIN}@awx/", "msg": f"to https://{LOGIN}@awx/"}, "x")
            assert "made-up" not in said
            assert "https://awx/" in said

    def test_words_are_one_line(self) -> None:
        assert words({"a": ["b", "c"], "d": {"e": "f"}}) == "a: b, c; d: e: f"


class TestTheStandIn:
    """It refuses what AWX documents to refuse: else the tests against it would show little."""

    @pytest.mark.parametrize(
        "rule",
        [
            "RRULE:FREQ=DAILY;INTERVAL=1",
            "DTSTART:20260101T030000 RRULE:FREQ=DAILY;INTERVAL=1",
            "DTSTART:20260101T030000Z RRULE:FREQ=DAILY",
            "DTSTART:20260101T030000Z RRULE:FREQ=SECONDLY;INTERVAL=1",
            "DTSTART:20260101T030000Z RRULE:FREQ=DAILY;INTERVAL=1;COUNT=1000",
            "DTSTART:20260101T030000Z RRULE:FREQ=DAILY;INTERVAL=1;COUNT=3;UNTIL=20270101T000000Z",
            "DTSTART:20260101T030000Z RRULE:FREQ=MONTHLY;INTERVAL=1;BYDAY=2MO",
            "DTSTART:20260101T030000Z DTSTART:20260101T030000Z RRULE:FREQ=DAILY;INTERVAL=1",
        ],
    )
    def test_rules_of_schedules(self, rule: str) -> None:
        assert wrong_rrule(rule) != []

    @pytest.mark.parametrize(
        "change",
        [
            {"type": "boolean"},
            {"required": "true"},
            {"default": 5},
            {"type": "multiplechoice"},
            {"type": "multiplechoice", "choices": "a\nb", "default": "c"},
        ],
    )
    def test_surveys(self, change: dict[str, Any]) -> None:
        assert wrong_survey({"name": "", "description": "", "spec": [QUESTION]}) == ""
        assert wrong_survey({"name": "", "description": "", "spec": [{**QUESTION, **change}]}) != ""
        assert wrong_survey({"name": "", "description": "", "spec": [QUESTION, QUESTION]}) != ""
        assert wrong_survey({"name": "", "description": "", "spec": []}) != ""

    def test_a_page_has_no_more_than_two_hundred(self, awx: Awx) -> None:
        for number in range(210):
            awx.store.add("organizations", name=f"o{number}")
        _status, page = awx.answer(Call("GET", "/api/v2/organizations/?page_size=500", None))
        assert (page["count"], len(page["results"]), bool(page["next"])) == (211, 200, True)

    def test_unknown_and_missing_fields_a_name_twice_and_a_circle(self, awx: Awx) -> None:
        declare(awx, LEVELS)
        node = "/api/v2/workflow_job_template_nodes"
        template = awx.one("job_templates")
        other = awx.store.add("credentials", name="other key")
        unfetched = awx.store.add("projects", name="new", organization=1, scm_type="git")
        second = awx.store.add("workflow_job_templates", name="second")
        stray = awx.store.add("workflow_job_template_nodes", identifier="s", workflow_job_template=second)
        nightly = {
            "name": "n",
            "rrule": SCHEDULE["fields"]["rrule"],
            "unified_job_template": awx.one("job_templates")["id"],
        }
        first, last = (awx.one("workflow_job_template_nodes", identifier=name)["id"] for name in ("first", "last"))
        for call in (
            Call("POST", "/api/v2/inventories/", {"name": "x", "organization": 1, "host": 1}),
            Call("POST", "/api/v2/inventories/", {"name": "x"}),
            Call("POST", "/api/v2/organizations/", {"name": "Default"}),
            Call("POST", "/api/v2/inventories/", {"name": "x", "organization": 4711}),
            Call("POST", f"{node}/{last}/always_nodes/", {"id": first}),
            Call("POST", f"{node}/{first}/success_nodes/", {"id": last}),
            Call("GET", "/api/v2/projects/?nome=x", None),
            Call("POST", f"{node}/{first}/always_nodes/", {"id": stray}),
            Call("POST", f"/api/v2/job_templates/{template['id']}/credentials/", {"id": other}),
            Call("POST", "/api/v2/job_templates/", {"name": "y", "project": unfetched, "playbook": "plan.yml"}),
            Call("PATCH", f"/api/v2/job_templates/{template['id']}/", {"forks": True}),
            Call("PATCH", f"/api/v2/job_templates/{template['id']}/", {"survey_enabled": "true"}),
            Call("PATCH", f"/api/v2/job_templates/{template['id']}/", {"job_type": "scan"}),
            Call("POST", "/api/v2/schedules/", nightly),
            Call("POST", "/api/v2/schedules/", {**nightly, "extra_data": {"bcd_hosts": "all", "other": "x"}}),
        ):
            with pytest.raises(Answer) as refused:
                awx.answer(call)
            assert refused.value.status == 400, call
