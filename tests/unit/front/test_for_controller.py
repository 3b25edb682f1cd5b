# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The word request: a pass that Ansible asks for is the module's own, of this version and code or not at all."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import code_id
from ansible_collections.bettercompute.bcd.plugins.module_utils.core import host as machine
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Field, Plan
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import (
    cli,
    for_controller,
    holds,
    opening,
    section,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.options import DEVICES, HOST
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.release import VERSION
from ansible_collections.bettercompute.bcd.plugins.module_utils.units import catalog
from tests.unit.fake_host import FakeHost
from tests.unit.front.test_cli import unlocked
from tests.unit.shelf import Shelf

CODE = "c0de" * 16
UNITS = {**HOST, "units": {"sysctl": {"text": "x"}}, "label": "one"}
HELD = {**DEVICES, "assignments": []}
OF_A_UNIT = {"state": "present", "text_of_it": "x", "max_disruption": "gpu", "signed_spec": None}


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> FakeHost:
    """The host that the program finds itself on; its unit sysctl keeps a file."""
    shelf = Shelf()
    for name in ("sysctl", "mig-layout"):
        shelf.keeper(name)
        shelf.units[name] = shelf.units[name]._replace(
            fields=(Field("text", "text_of_it", (str,)),),
            gather=lambda host: Plan(found={"text_of_it": host.read("/etc/mig-layout")}),
        )
    monkeypatch.setattr(catalog, "SHIPPED", {name: lambda name=name: shelf.units[name] for name in shelf.units})
    fake = FakeHost()
    for module in (machine, section, holds):
        monkeypatch.setattr(module, "Host", lambda: fake)
    monkeypatch.setattr(opening, "only_pass", unlocked)
    monkeypatch.setattr(for_controller, "code_id", lambda: CODE)
    return fake


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Call the program with a request: its status, and what it printed."""

    def call(text: str | None = None, **more: Any) -> tuple[int, str, str]:
        asked = {"version": VERSION, "code": CODE, "module": "host_section", "params": UNITS, "check": False, **more}
        given = json.dumps(asked) if text is None else text
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode("utf-8", "surrogateescape"))))
        status = cli.main(["request"])
        return (status, *capsys.readouterr())

    return call


def answered(said: tuple[int, str, str]) -> dict[str, Any]:
    status, out, err = said
    assert (status, err) == (0, "")
    (line,) = [line for line in out.splitlines() if line]
    assert line.startswith('{"bcd_answer": {')
    assert line.isascii()
    found: dict[str, Any] = json.loads(line)["bcd_answer"]
    return found


def test_each_module_s_own_pass_is_made(ask: Any, host: FakeHost) -> None:
    planned = answered(ask(module="host_plan"))
    checked = answered(ask(check=True))
    assert (planned["changed"], checked["changed"], host.calls) == (False, True, [])
    assert planned["units"] == checked["units"]
    done = answered(ask())
    assert (done["changed"], done["section"]["state"], host.read("/etc/sysctl")) == (True, "CONVERGED", "x")
    quiet = ask()
    assert answered(quiet) == json.loads(json.dumps(section.section_result(UNITS, False)))
    held = answered(ask(module="cdi_holds", params=HELD))
    assert held == json.loads(json.dumps(holds.holds_result(HELD, False)))
    assert (held["unit"], held["state"]) == ("devices", "converged")


@pytest.mark.parametrize(("module", "path"), [("sysctl", "/etc/sysctl"), ("mig_layout", "/etc/mig-layout")])
def test_a_unit_s_own_module_is_its_pass_alone(ask: Any, host: FakeHost, module: str, path: str) -> None:
    checked = answered(ask(module=module, params=OF_A_UNIT, check=True))
    assert (checked["unit"], checked["changed"], host.calls) == (module.replace("_", "-"), True, [])
    done = answered(ask(module=module, params=OF_A_UNIT))
    assert (done["changed"], done["state"], host.read(path)) == (True, "converged", "x")
    assert [step["action"] for step in done["steps"]] == [f"write {path}"]
    refused = answered(ask(module=module, params={**OF_A_UNIT, "text_of_it": "no"}))
    assert (refused["reason"], "no is refused" in refused["msg"]) == ("Refused", True)
    gone = answered(ask(module=module, params={**OF_A_UNIT, "state": "absent"}))
    assert (gone["changed"], host.exists(path)) == (True, False)


def test_what_a_unit_gathers_is_its_answer(ask: Any, host: FakeHost) -> None:
    host.put("/etc/mig-layout", "now")
    found = answered(ask(module="mig_layout", params={**OF_A_UNIT, "state": "gathered"}))
    assert (found["text_of_it"], found["changed"], host.calls) == ("now", False, [])


def test_a_pass_that_fails_is_an_answer(ask: Any, host: FakeHost) -> None:
    refused = answered(ask(params={**UNITS, "units": {"no-such-unit": {}}}))
    assert "no-such-unit" in refused["msg"]


def test_a_byte_that_is_no_text_leaves_the_answer_json(ask: Any, host: FakeHost) -> None:
    told = answered(ask(params={**UNITS, "units": {}, "label": "a\udcffb"}))
    assert list(told["ansible_stats"]["data"]["bcd_converge_reboot_required"]) == ["a\ufffdb"]


@pytest.mark.parametrize(
    "other", [{"version": "0.0.9"}, {"code": "c0de"}, {"module": "host_intent"}, {"module": ""}, {"module": None}]
)
def test_another_version_code_or_module_is_left_alone(ask: Any, host: FakeHost, other: dict[str, Any]) -> None:
    assert ask(**other) == (69, "", "")
    assert (host.calls, host.exists("/etc/sysctl")) == ([], False)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "1", '"a"', "{}", '{"version": "0.1.0"}', "\udcff", "[" * 100_000],
)
def test_what_is_no_request_ends_as_called_wrongly(ask: Any, host: FakeHost, text: str) -> None:
    status, out, err = ask(text)
    assert (status, out, host.calls) == (64, "", [])
    assert err.startswith("bcd: request is for Ansible")


@pytest.mark.parametrize("params", [None, [1], "units", 3])
def test_params_that_are_none_end_as_called_wrongly(ask: Any, host: FakeHost, params: Any) -> None:
    assert ask(params=params)[:2] == (64, "")


def test_its_code_is_what_its_folder_was_unpacked_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_id, "__file__", str(tmp_path / "0.1.0/bcd/core/code_id.py"))
    assert code_id.code_id() == ""
    (tmp_path / "0.1.0").mkdir()
    (tmp_path / "0.1.0/program.sha256").write_text(CODE + "\n", encoding="ascii")
    assert code_id.code_id() == CODE
    (tmp_path / "0.1.0/program.sha256").write_bytes(b"\xff")
    assert code_id.code_id() == ""
