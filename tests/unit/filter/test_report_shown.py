# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet document of statuses, what of a host it shows, and what becomes of data that no module returns."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.plugin_utils import report, report_shown
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.places import places

from .plans import REBOOT, plan, unit, waits

SAMPLES = Path(__file__).parent / "samples"
SCHEMA = Path(__file__).resolve().parents[3] / "docs" / "fleet-report.schema.json"
CRASHED = {"failed": True, "msg": "no answer"}


@cache
def schema() -> jsonschema.Draft202012Validator:
    """The published schema, which is one."""
    found = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


def whole(document: dict[str, Any]) -> dict[str, Any]:
    """The document, which fits its schema and is JSON that any reader takes."""
    schema().validate(document)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    json.dumps(document, ensure_ascii=False).encode("utf-8")
    return document


def status(state: str = "converged", **more: Any) -> dict[str, Any]:
    """A result of host_status of a host that was asked one unit."""
    section: dict[str, Any] = {"state": state.upper(), "message": "", "observed_generation": 4, "conditions": []}
    return {
        "changed": False,
        "state": state,
        "kept": "what this host was asked",
        "hostname": "a",
        "version": "0.1.0",
        "root": True,
        "units": [unit("sysctl")],
        "section": section,
        "devices": None,
        "reboot": {"required": False, "reasons": {}},
        "gpus": [],
        "holds": [],
        "numa": [],
        "kernel": "6.12",
        "driver": None,
        "trust": None,
        "agent": None,
        "unreadable": [],
        "report": [],
        **more,
    }


def of(result: Any) -> dict[str, Any]:
    """The document's host of a status."""
    host: dict[str, Any] = whole(report.fleet_document({"a": result}, source="status"))["hosts"]["a"]
    return host


# -- statuses


def test_a_status_is_a_host_of_the_document() -> None:
    document = whole(report.fleet_document({"a": status(), "b": CRASHED}, source="status"))
    assert (document["source"], document["summary"]["converged"], document["summary"]["unknown"]) == ("status", 1, 1)
    host = document["hosts"]["a"]
    assert (host["state"], host["message"], host["observed_generation"]) == ("converged", "", 4)
    assert (host["kept"], host["kernel"], host["gpus"]) == ("what this host was asked", "6.12", [])
    assert [each["unit"] for each in host["units"]] == ["sysctl"]
    assert (document["hosts"]["b"]["message"], document["hosts"]["b"]["gpus"]) == ("no answer", None)


def test_drift_and_a_reboot_that_is_due_are_those_of_the_units() -> None:
    step = {"action": "set vm.swappiness to 10", "disruption": "none", "done": False}
    units = [
        unit("sysctl", "progressing", steps=[step]),
        unit("cpu", "progressing", pending=waits("RebootRequired", REBOOT)),
    ]
    reboot = {"required": True, "reasons": {"cpu": REBOOT}}
    section: dict[str, Any] = {"state": "PROGRESSING", "message": REBOOT, "observed_generation": None, "conditions": []}
    host = of(status("progressing", units=units, section=section, reboot=reboot))
    assert (host["drift"], host["unconverged"], host["reboot_required"]) == (["sysctl"], ["sysctl", "cpu"], True)
    assert [each["reboot_required"] for each in host["units"]] == [False, True]
    document = report.fleet_document({"a": status(reboot=reboot), "b": CRASHED, "c": status()}, source="status")
    assert report.reboot_reasons(document) == {"a": {"cpu": REBOOT}, "c": {}}
    planned = report.fleet_document({"a": plan("PROGRESSING", *units), "b": CRASHED})
    assert report.reboot_reasons(planned) == {"a": {"cpu": REBOOT}, "b": {}}


def test_a_status_of_what_is_kept_without_units_says_why() -> None:
    nothing: dict[str, Any] = {"units": [], "section": None}
    assert (of(status(**nothing))["state"], of(status(**nothing))["message"]) == ("converged", "")
    failed = of(status("failed", kept="the signed spec is of another node", **nothing))
    assert (failed["state"], failed["message"]) == ("failed", "the signed spec is of another node")
    unseen = of(status("unknown", kept="seen as root", units=None, section=None))
    assert (unseen["state"], unseen["message"]) == ("unknown", "seen as root")


def test_the_devices_of_a_status_are_its_last_unit() -> None:
    failures = [{"allocation_id": "a1", "reason": "overlap", "message": "taken"}]
    devices = {
        "state": "FAILED",
        "message": "a1: taken",
        "observed_generation": 2,
        "conditions": [],
        "failures": failures,
        "releasing": [],
        "bound": [],
        "kept": ["b1"],
        "released": [],
        "holds": [{"allocation_id": "b1", "binding": "BINDING_HOLD", "devices": ["GPU-a"], "generation": 2}],
        "steps": [],
        "pending": [],
        "notes": [],
    }
    host = of(status("failed", devices=devices))
    assert [each["unit"] for each in host["units"]] == ["sysctl", "devices"]
    assert (host["state"], host["failing"], host["message"]) == ("failed", ["devices"], "devices: a1: taken")
    assert (host["devices"]["failures"], host["devices"]["kept"]) == (failures, ["b1"])
    alone = of(status("failed", devices=devices, section=None, units=[]))
    assert (alone["state"], [each["unit"] for each in alone["units"]]) == ("failed", ["devices"])


def test_of_a_status_only_that_there_is_none_fails_the_run() -> None:
    assert report.verdict(status("failed"), "progressing") == ""
    assert report.verdict(CRASHED, "never") == "no answer"
    assert report.verdict({"unreachable": True, "msg": "no route"}, "never") == "no route"


# -- what a plan's host shows


def test_the_facts_beside_a_plan() -> None:
    facts = {
        "kernel": "6.12",
        "numa": None,
        "driver": {"loaded": "580.95.05", "library": "580.95.05", "flavour": "open"},
        "gpus": None,
        "holds": [],
        "reboot_required": True,
        "reboot_reasons": {"cpu": REBOOT},
        "unreadable": ["gpus: nvidia-smi does not answer", "kubelet.version: no"],
    }
    told = {"a": plan("CONVERGED"), "b": plan("CONVERGED"), "c": plan("CONVERGED")}
    given = {"a": {"ansible_facts": {"bcd": facts}}, "b": CRASHED, "c": {"skipped": True, "changed": False}}
    hosts = whole(report.fleet_document(told, facts=given))["hosts"]
    assert (hosts["a"]["kernel"], hosts["a"]["driver"], hosts["a"]["gpus"], hosts["a"]["holds"]) == (
        "6.12",
        "580.95.05",
        None,
        [],
    )
    assert hosts["a"]["reboot"] == {"required": True, "reasons": {"cpu": REBOOT}}
    assert hosts["a"]["unreadable"] == ["gpus: nvidia-smi does not answer"]
    assert (hosts["b"]["kernel"], hosts["b"]["unreadable"]) == (None, ["host_info: no answer"])
    assert (hosts["c"]["kernel"], hosts["c"]["unreadable"]) == (None, [])
    assert {host["kept"] for host in hosts.values()} == {None}


def test_pools_are_counted_by_themselves() -> None:
    where = {name: {"pool": pool, "site": "fra"} for name, pool in (("a", "x"), ("b", "x"), ("c", "y"), ("d", None))}
    told = {"a": plan("CONVERGED"), "b": {"unreachable": True}, "c": plan("CONVERGED"), "d": plan("CONVERGED")}
    document = whole(report.fleet_document(told, places=where))
    counted = {
        name: (pool["hosts"], pool["converged"], pool["unreachable"])
        for name, pool in document["summary"]["pools"].items()
    }
    assert counted == {"x": (2, 1, 1), "y": (1, 1, 0)}
    assert [document["hosts"][name]["pool"] for name in "abcd"] == ["x", "x", "y", None]
    assert (document["hosts"]["a"]["site"], document["hosts"]["a"]["class"]) == ("fra", None)


def test_a_layout_of_the_pool_that_waits_is_a_note_of_the_unit() -> None:
    told = {name: plan("CONVERGED", unit("sysctl"), unit("mig-layout")) for name in "abc"}
    hosts = whole(report.fleet_document(told, waits={"a": "the pool's layout waits for GPU 0", "b": "", "c": None}))[
        "hosts"
    ]
    notes = {name: [each["notes"] for each in host["units"]] for name, host in hosts.items()}
    assert notes == {"a": [[], ["the pool's layout waits for GPU 0"]], "b": [[], []], "c": [[], []]}


class Failing(dict[str, Any]):
    """Variables of which one's lookup fails."""

    def __getitem__(self, name: str) -> Any:
        if name == "bcd_site":
            raise RuntimeError("the lookup failed")
        return super().__getitem__(name)


def test_places_are_variables_and_one_that_cannot_be_had_is_none() -> None:
    variables = {
        "a": {"bcd_pool": "x", "bcd_site": "fra", "bcd_class": 5},
        "b": Failing(bcd_pool=["x"], bcd_site="fra", bcd_class=True),
        "c": {},
    }
    assert places("abc", variables) == {
        "a": {"pool": "x", "site": "fra", "class": "5"},
        "b": dict.fromkeys(("pool", "site", "class")),
        "c": dict.fromkeys(("pool", "site", "class")),
    }


# -- what real runs wrote


@pytest.mark.parametrize("source", ["plan", "status"])
def test_what_a_real_run_wrote_fits_the_schema(source: str) -> None:
    document = json.loads((SAMPLES / f"{source}.json").read_text(encoding="utf-8"))
    schema().validate(document)
    assert (document["source"], len(document["hosts"])) == (source, 5)


# -- data from elsewhere


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def bent(draw: st.DrawFn, source: str) -> Any:
    """A real result with anything in the place of one of its parts."""
    document = json.loads((SAMPLES / f"{source}.json").read_text(encoding="utf-8"))
    host = dict(document["hosts"][draw(st.sampled_from(["mig-01", "mps-01", "vm-01"]))])
    value: Any = host
    while isinstance(value, (dict, list)) and value:
        key = draw(st.sampled_from(sorted(value) if isinstance(value, dict) else list(range(len(value)))))
        if draw(st.booleans()):
            value[key] = draw(ANYTHING)
            break
        value = value[key]
    return host


@settings(max_examples=60)  # each holds a whole document to the schema
@given(bent("status"))
def test_a_status_that_is_bent_anywhere_still_makes_a_document(result: Any) -> None:
    whole(report.fleet_document({"a": result}, source="status"))


@settings(max_examples=60)  # each holds a whole document to the schema
@given(bent("plan"), ANYTHING)
def test_a_plan_that_is_bent_anywhere_still_makes_a_document(result: Any, more: Any) -> None:
    facts = {**result, "driver": {"loaded": result["driver"]}, "reboot_required": True, "reboot_reasons": more}
    told = {**result, "section": {key: result.get(key) for key in ("message", "conditions", "observed_generation")}}
    devices = {"a": {**(result["devices"] if isinstance(result["devices"], dict) else {}), "unit": "devices"}}
    whole(report.fleet_document({"a": told}, devices, {"a": {"ansible_facts": {"bcd": facts}}}))


@given(ANYTHING)
def test_anything_at_all_makes_a_document(result: Any) -> None:
    whole(report.fleet_document({"a": result}, {"a": result}, {"a": result}))
    whole(report.fleet_document({"a": result}, source="status"))


@pytest.mark.parametrize(("number", "kept"), [(0, 0), (-5, -5), (2**64 - 1, 2**64 - 1), (2**64, None), (10**400, None)])
def test_a_number_that_nothing_counts_to_is_none(number: int, kept: int | None) -> None:
    facts = {"numa": [{"id": 0, "cpus": "0", "memory": number, "hugepages": {}}]}
    told = report_shown.of_facts({"ansible_facts": {"bcd": facts}}, "")
    assert [node["memory"] for node in told["numa"]] == ([] if kept is None else [kept])
