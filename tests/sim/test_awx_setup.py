# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook awx_setup, run by the real ansible-playbook against a stand-in for AWX."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import pki
from tests.awx.server import LOGIN, TOKEN, Awx
from tests.sim import controller
from tests.sim.controller import Played

newest_core = pytest.mark.newest_core
NODES = "workflow_job_template_nodes"
SAYS = ("Say what was ", "Say that it ")
PAGE = Path(controller.CHECKOUT) / "docs" / "awx.md"
# The file of the documentation's example; then what a test needs beside it.
(EXAMPLE,) = re.findall(r"^```yaml\n# awx.yml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
SETTINGS = {**yaml.safe_load(EXAMPLE), "bcd_awx_token": TOKEN, "bcd_awx_name": "bcd & co/ü #1", "bcd_awx_delay": 1}


@pytest.fixture
def awx() -> Iterator[Awx]:
    """An empty AWX."""
    with Awx() as served:
        yield served


def setup(awx: Awx, scratch: Path, *arguments: str, **settings: Any) -> Played:
    """Run awx_setup; `settings` over SETTINGS, None takes one away."""
    given = {name: value for name, value in {**SETTINGS, **settings}.items() if value is not None}
    given.setdefault("bcd_awx_url", awx.url)
    awx.calls.clear()
    words = ("-e", json.dumps(given), *arguments)
    as_json = "-vvv" not in arguments
    return controller.playbook(str(scratch), "localhost,", "bettercompute.bcd.awx_setup", *words, as_json=as_json)


def changed(played: Played) -> list[str]:
    """What a run says that it did or would do."""
    told = [event["result"].get("msg") for event in played.events()["tasks"] if event["task"].startswith(SAYS)]
    return [line for lines in told if isinstance(lines, list) for line in lines]


def named(awx: Awx, kind: str, ending: str) -> dict[str, Any]:
    """The object whose name is ours with this ending."""
    return awx.one(kind, name=f"bcd & co/ü #1 {ending}")


@newest_core
def test_an_empty_awx_is_set_up_kept_and_put_back(awx: Awx, tmp_path: Path) -> None:
    checked = setup(awx, tmp_path, "--check")
    assert checked.rc == 0, checked.out
    assert awx.changes() == []

    made = setup(awx, tmp_path)
    assert made.rc == 0, made.out
    assert changed(made) == changed(checked)
    assert len(changed(made)) > 30

    project = named(awx, "projects", "project")
    source = named(awx, "inventory_sources", "FleetConfig")
    assert (project["scm_url"], project["status"]) == ("https://git.example.com/fleet.git", "successful")
    assert (source["source_project"], source["source_path"]) == (project["id"], "fleet.json")
    assert json.loads(source["source_vars"])["ANSIBLE_INVENTORY_ENABLED"].startswith("bettercompute.bcd.fleet,")
    image = named(awx, "execution_environments", "execution environment")
    assert (image["image"], source["execution_environment"]) == (SETTINGS["bcd_awx_image"], image["id"])
    assert (project["scm_update_on_launch"], project["allow_override"]) == (True, False)
    assert all(source[name] for name in ("overwrite", "overwrite_vars", "update_on_launch"))
    credential = awx.one("credentials")["id"]
    for playbook in ("converge", "plan", "status", "doctor", "reboot"):
        template = named(awx, "job_templates", playbook)
        assert template["playbook"] == f"{playbook}.yml"
        assert template["credentials"] == [credential]
        assert template["allow_simultaneous"] is False
        assert template["survey_enabled"] is True
        assert template["survey"]["spec"][0]["variable"] == "bcd_hosts"
        assert template["extra_vars"] == '{"bcd_report_dir": "/var/lib/bcd-report"}'
        # A sliced reboot would take each slice for the whole pool, and so would a limited one.
        assert template["job_slice_count"] == (1 if playbook == "reboot" else 4)
        assert template["ask_limit_on_launch"] is (playbook != "reboot")
        assert template["ask_job_type_on_launch"] is (playbook in ("converge", "reboot"))
        assert template["diff_mode"] is (playbook == "plan")
        assert template["ask_variables_on_launch"] is False
        assert (template["job_type"], template["become_enabled"], template["forks"]) == ("run", True, 20)
        assert template["execution_environment"] == image["id"]
    asked = {question["variable"] for question in named(awx, "job_templates", "reboot")["survey"]["spec"]}
    assert asked == {
        *("bcd_hosts", "bcd_reboot_max_unavailable", "bcd_reboot_drain", "bcd_reboot_with_holds", "bcd_reboot_dry_run")
    }
    workflow = named(awx, "workflow_job_templates", "converge and reboot")
    assert workflow["allow_simultaneous"] is False
    answers = {each["variable"]: each["default"] for each in workflow["survey"]["spec"]}
    # What a person who answers nothing gets: one host of a pool at a time, nobody's work taken away.
    assert answers == {
        "bcd_hosts": "all",
        "bcd_converge_max_disruption": "gpu",
        "bcd_reboot_max_unavailable": "1",
        "bcd_reboot_drain": "false",
        "bcd_reboot_with_holds": "false",
    }
    run = {"converge": "converge", "status": "status", "reboot": "reboot", "converge-again": "converge"}
    for step, playbook in run.items():
        launched = named(awx, "job_templates", playbook)["id"]
        assert awx.one(NODES, identifier=step)["unified_job_template"] == launched
    nodes = {row["id"]: row for row in awx.store.rows[NODES].values()}
    order, node = [], awx.one(NODES, identifier="converge", workflow_job_template=workflow["id"])
    while node:
        following = [(edge, each) for edge in ("always_nodes", "success_nodes", "failure_nodes") for each in node[edge]]
        order.append((node["identifier"], following[0][0] if following else ""))
        assert len(following) < 2
        node = nodes[following[0][1]] if following else {}
    # What fails before a person is asked does not end it: the last converge meets it again, and fails the workflow.
    assert order == [
        ("converge", "always_nodes"),
        ("status", "always_nodes"),
        ("approve", "success_nodes"),
        ("reboot", "success_nodes"),
        ("converge-again", ""),
    ]
    approval = awx.one("workflow_approval_templates")
    assert awx.one(NODES, identifier="approve")["unified_job_template"] == approval["id"]
    schedule = awx.one("schedules")
    assert schedule["unified_job_template"] == named(awx, "job_templates", "plan")["id"]
    assert (schedule["enabled"], schedule["extra_data"]) == (True, {"bcd_hosts": "all"})
    assert (approval["timeout"], "status" in approval["description"]) == (0, True)

    quiet = setup(awx, tmp_path)
    assert quiet.rc == 0, quiet.out
    assert (changed(quiet), awx.changes()) == ([], [])
    assert quiet.events()["stats"]["localhost"]["changed"] == 0

    named(awx, "job_templates", "reboot")["survey"]["spec"].pop()
    named(awx, "job_templates", "reboot")["job_slice_count"] = 3
    stray = awx.store.add(NODES, workflow_job_template=workflow["id"], identifier="mine")
    awx.one(NODES, identifier="status")["success_nodes"].append(stray)
    schedule["enabled"] = False
    awx.one(NODES, identifier="reboot")["extra_data"] = {"bcd_reboot_dry_run": "true"}
    mended = setup(awx, tmp_path)
    assert mended.rc == 0, mended.out
    assert changed(mended) == [
        'change job_slice_count of job template "bcd & co/ü #1 reboot"',
        'set the survey of job template "bcd & co/ü #1 reboot"',
        'take one of the success_nodes of workflow job template node "status" away',
        'change extra_data of workflow job template node "reboot"',
        'change enabled of schedule "bcd & co/ü #1 drift"',
        "remove node mine",
    ]
    assert len(named(awx, "job_templates", "reboot")["survey"]["spec"]) == 5
    assert stray not in awx.store.rows[NODES]
    assert TOKEN not in "".join(made.out + made.err + mended.out + checked.out)
    the_rulebook_launches_what_is_declared_with_what_its_survey_asks(awx)


def the_rulebook_launches_what_is_declared_with_what_its_survey_asks(awx: Awx) -> None:
    project = Path(controller.CHECKOUT) / "docs" / "awx-project"
    (rules,) = yaml.safe_load((project / "rulebooks" / "fleet.yml").read_text(encoding="utf-8"))
    actions = [rule["action"]["run_job_template"] for rule in rules["rules"]]
    assert [action["name"] for action in actions] == ["bcd plan", "bcd doctor"]
    for action in actions:
        template = named(awx, "job_templates", action["name"].removeprefix("bcd "))
        asked = {question["variable"] for question in template["survey"]["spec"]}
        assert set(action["job_args"]["extra_vars"]) <= asked
    for row in awx.store.rows["job_templates"].values():
        assert os.path.isfile(project / row["playbook"])


# What else AWX may answer is in tests/unit/filter/test_awx.py.
@newest_core
@pytest.mark.parametrize(
    ("settings", "prepared", "said"),
    [
        ({"bcd_awx_token": "fedcba.9876543210fedcba"}, {}, "answered 401 (detail: Authentication credentials"),
        ({"bcd_awx_url": "http://127.0.0.1:9"}, {}, "no answer from http://127.0.0.1:9/api/v2/organizations/"),
        ({}, {"forbidden": True}, "is to be an administrator of the organization"),
        ({"bcd_awx_credentials": ["lost"]}, {}, 'AWX has no credential "lost"'),
        ({}, {"sync": ["pending", "failed"]}, "its state is failed: see the output of its last sync, job 4711"),
        ({"bcd_awx_wait": 2}, {"sync": ["pending"]}, "its state is pending"),
        ({"bcd_awx_project_url": None}, {}, "awx_setup needs bcd_awx_project_url"),
        ({"bcd_awx_url": f"http://{':'.join(LOGIN)}@awx.example.com"}, {}, "to http://awx.example.com in clear text"),
        ({}, {"broken": (200, {"Content-Type": "text/html"}, b"<html>")}, "answered text/html, which AWX does not"),
        ({}, {"broken": (200, {"Content-Type": "application/json"}, b"[]")}, "did not answer as AWX does"),
        ({}, {"broken": (302, {"Location": "http://127.0.0.1:9/x"}, b"")}, "sends on to http://127.0.0.1:9/x: see"),
        ({}, {"broken": (500, {"Content-Type": "text/html"}, b"<html>")}, "answered 500 (Status code was 500"),
    ],
    ids=lambda value: next(iter(value), "") if isinstance(value, dict) else "",
)
def test_what_is_refused_says_which_object_and_the_next_move(
    awx: Awx, tmp_path: Path, settings: dict[str, Any], prepared: dict[str, Any], said: str
) -> None:
    for name, value in prepared.items():
        setattr(awx if name in ("forbidden", "broken") else awx.store, name, value)
    played = setup(awx, tmp_path, "-vvv", **settings)
    words = " ".join((played.out + played.err).split())
    assert played.rc == 2, words
    assert said in words
    assert TOKEN not in words
    assert "made-up" not in words
    # Nothing is sent to what is no AWX.
    assert "broken" not in prepared or awx.changes() == []


def test_a_login_does_as_well_and_no_task_shows_its_password(awx: Awx, tmp_path: Path) -> None:
    # So that each task which sends something has something to send.
    (home,) = awx.store.rows["organizations"]
    prefix, awx.store.sync = SETTINGS["bcd_awx_name"], ["failed"]
    where = {"scm_type": "git", "scm_url": SETTINGS["bcd_awx_project_url"]}
    awx.store.add("projects", name=f"{prefix} project", organization=home, **where)
    workflow = awx.store.add("workflow_job_templates", name=f"{prefix} converge and reboot", organization=home)
    awx.store.add(NODES, identifier="stray", workflow_job_template=workflow)
    awx.store.sync = ["pending", "successful"]
    login = {"bcd_awx_username": LOGIN[0], "bcd_awx_password": LOGIN[1]}
    played = setup(awx, tmp_path, "-vvv", bcd_awx_token=None, **login)
    assert played.rc == 0, played.out
    sent = {(call.method, call.path.split("/")[-2].strip("0123456789")) for call in awx.changes()}
    assert sent >= {
        ("POST", "update"),
        ("POST", "job_templates"),
        ("POST", "survey_spec"),
        ("PATCH", ""),
        ("DELETE", ""),
    }
    shown = played.out + played.err
    assert "remove node stray" in shown
    assert LOGIN[1] not in shown
    assert base64.b64encode(":".join(LOGIN).encode()).decode() not in shown


@newest_core
def test_what_ended_half_way_goes_on_and_a_project_that_failed_is_fetched_again(awx: Awx, tmp_path: Path) -> None:
    awx.failing = "/survey_spec/"
    awx.store.sync = ["pending", "failed"]
    halved = setup(awx, tmp_path)
    assert (halved.rc, awx.failing) == (2, ""), halved.out
    failed = setup(awx, tmp_path)
    assert failed.rc == 2, failed.out
    project = named(awx, "projects", "project")
    assert project["status"] == "failed"
    # Somebody mends the repository, of which AWX hears nothing.
    awx.store.sync = ["pending", "successful"]
    again = 'fetch project "bcd & co/ü #1 project" again'
    checked = setup(awx, tmp_path, "--check")
    assert (checked.rc, awx.changes()) == (0, []), checked.out
    assert again in changed(checked)
    whole = setup(awx, tmp_path)
    assert whole.rc == 0, whole.out
    assert (project["status"], again in changed(whole)) == ("successful", True)


@newest_core
def test_a_certificate_that_nobody_vouches_for_gets_no_token(tmp_path: Path) -> None:
    signed = pki.root("awx", pki.private_key("p256"))
    awx = Awx()
    awx.certificate = str(tmp_path / "awx.pem")
    Path(awx.certificate).write_text(signed.private_pem + pki.pem(signed.certificate), encoding="utf-8")
    with awx:
        refused = setup(awx, tmp_path, "--check")
        assert refused.rc == 2, refused.out
        assert "certificate verify failed" in refused.out.lower()
        assert awx.calls == []
        # The address as a person writes it, without the scheme.
        taken = setup(awx, tmp_path, "--check", bcd_awx_validate_certs=False, bcd_awx_url=awx.url.partition("//")[2])
        assert taken.rc == 0, taken.out


@newest_core
def test_the_page_has_every_variable_and_no_other() -> None:
    settings = Path(controller.CHECKOUT) / "playbooks" / "vars" / "awx_settings.yml"
    taken = set(re.findall(r"(bcd_awx_\w+) \| default", settings.read_text(encoding="utf-8")))
    assert len(taken) > 20
    assert set(re.findall(r"bcd_awx_\w+", PAGE.read_text(encoding="utf-8"))) == taken
