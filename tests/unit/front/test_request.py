# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A request to bcd helper: one JSON object with the fields of its op, exactly, or a refusal that says what is wrong."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import request as asking

UNIT: dict[str, Any] = {
    "op": "host.unit",
    "unit": "sysctl",
    "settings": {"vm.swappiness": 10},
    "signed_spec": None,
    "max_disruption": "gpu",
    "check": False,
}
SECTION: dict[str, Any] = {
    "op": "host.section",
    **dict.fromkeys(("units", "wire_units", "known", "generation", "only", "label", "node_id", "site", "signed_spec")),
    "units": {"sysctl": {}},
    "plans": False,
    "fail_on": "failed",
    "fail_on_secrets": False,
    "max_disruption": "gpu",
    "check": False,
}
DEVICES: dict[str, Any] = {
    "op": "devices",
    **dict.fromkeys(("generation", "passthrough", "instances", "max_cdi_version", "slot_count", "acknowledge")),
    **dict.fromkeys(("signing_key", "node_id", "signed_spec")),
    "assignments": [],
    "max_disruption": "gpu",
    "check": False,
}
HOLD: dict[str, Any] = {"allocation_id": "alloc_1", "binding": "BINDING_HOLD", "devices": [{"id": "GPU-1"}]}
INTENT: dict[str, Any] = {"op": "host.intent", "signed_spec": {}, "check": False}
FILE: dict[str, Any] = {"op": "file.write", "kind": "cdi", "id": "alloc_1", "content": None}
SLICE: dict[str, Any] = {"op": "slice.apply", "slice": "bcd-alloc-alloc_1.slice", "limits": {}}
EACH = (UNIT, SECTION, DEVICES, INTENT, FILE, SLICE, {"op": "host.info"}, {"op": "host.status"}, {"op": "host.doctor"})
BOTH = "bring helper and collection to one version (role bcd_helper)"


def read(sent: Any) -> Any:
    return asking.request(sent if isinstance(sent, bytes) else json.dumps(sent).encode())


def refused(sent: Any) -> str:
    with pytest.raises(Refused) as fault:
        read(sent)
    return fault.value.message


def test_a_unit_is_read_as_it_was_sent() -> None:
    found = read({**UNIT, "node_id": "node-1", "check": True})
    assert found == asking.UnitRequest("sysctl", {"vm.swappiness": 10}, None, "gpu", True, "node-1", None)


def test_a_clean_and_an_empty_mapping_are_two_things() -> None:
    assert read({**UNIT, "settings": None}).settings is None
    assert read({**UNIT, "settings": {}}).settings == {}


def test_a_section_has_the_module_s_options_and_no_secrets() -> None:
    found = read({**SECTION, "plans": True})
    assert found.params["units"] == {"sysctl": {}}
    assert found.params["secrets"] is None
    assert (found.plans, found.check) == (True, False)


def test_devices_have_the_module_s_options_and_what_was_left_out_is_left_out() -> None:
    sent = {**HOLD, "env": None, "limits": {"cpus": None, "mems": "0"}}
    found = read({**DEVICES, "assignments": [sent], "generation": 4})
    assert found.params["assignments"] == [{**HOLD, "limits": {"mems": "0"}}]
    assert found.params["generation"] == 4
    assert found.params["slot_count"] is None


@pytest.mark.parametrize("sent", EACH, ids=lambda sent: str(sent["op"]))
def test_an_unknown_field_is_refused_with_the_helper_s_version(sent: dict[str, Any]) -> None:
    told = refused({**sent, "busy_gpus": []})
    assert told == f"{sent['op']} of bcd helper 0.1.0: it has 'busy_gpus', which is no field: {BOTH}"


@pytest.mark.parametrize("sent", EACH, ids=lambda sent: str(sent["op"]))
def test_every_field_must_be_there(sent: dict[str, Any]) -> None:
    for name in sent.keys() - {"op"}:
        told = refused({key: value for key, value in sent.items() if key != name})
        assert told == f"{sent['op']} of bcd helper 0.1.0: it has no {name}: {BOTH}"


@pytest.mark.parametrize("sent", EACH, ids=lambda sent: str(sent["op"]))
@pytest.mark.parametrize("wrong", [1.5, [[]]], ids=str)
def test_every_field_has_its_types_and_no_others(sent: dict[str, Any], wrong: Any) -> None:
    for name in sent.keys() - {"op"}:
        if isinstance(wrong, list) and list in asking.OPS[sent["op"]][name]:
            continue
        told = refused({**sent, name: wrong})
        kind = "a list" if isinstance(wrong, list) else "a number with a fraction"
        assert told.startswith(f"{sent['op']} of bcd helper 0.1.0: {name} is {kind}, and takes ")


@pytest.mark.parametrize("value", [0, 1, "false", None])
def test_what_is_no_bool_is_no_check(value: Any) -> None:
    assert ": check is " in refused({**UNIT, "check": value})


def test_true_is_no_number() -> None:
    assert ": generation is true or false, and takes an integer or null:" in refused({**SECTION, "generation": True})


@pytest.mark.parametrize("op", ["host.reboot", "", None, 7, ["host.unit"], "host.unit\u202e"])
def test_an_unknown_op_is_refused_with_the_helper_s_version(op: Any) -> None:
    told = refused({**UNIT, "op": op})
    known = "host.unit, host.section, devices, host.info, host.status, host.doctor, host.intent, file.write"
    assert told == (
        f"the request asks for {op!a}, and bcd helper 0.1.0 knows {known}, slice.apply, slice.remove: {BOTH}"
    )


def test_no_op_is_refused() -> None:
    assert refused({}).startswith("the request has no op, and bcd helper 0.1.0 knows host.unit, ")


@pytest.mark.parametrize("name", ["../etc", "Sysctl", "", "x" * 65, "-a", "a b", "sysctl\n", "a/b", "a.b", "é"])
@pytest.mark.parametrize("where", ["unit", "units", "wire_units", "known", "only"])
def test_a_name_that_is_none_is_refused_wherever_it_stands(where: str, name: str) -> None:
    sent = {
        "unit": {**UNIT, "unit": name},
        "units": {**SECTION, "units": {name: {}}},
        "wire_units": {**SECTION, "units": None, "wire_units": [{"unit": name, "settings": "{}"}]},
        "known": {**SECTION, "known": [name]},
        "only": {**SECTION, "only": [name]},
    }[where]
    assert refused(sent) == (
        f"{name!a} is no name of a unit (lower-case letters, digits and -, at most 64, not - first): correct the name"
    )


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ({**SECTION, "known": ["x"] * 65}, "host.section: known has 65 entries, and at most 64 are taken: give fewer"),
        ({**SECTION, "only": ["x"] * 65}, "host.section: only has 65 entries"),
        ({**SECTION, "units": {f"x{n}": {} for n in range(65)}}, "host.section: units has 65 entries"),
        ({**SECTION, "units": None, "wire_units": [{"unit": "x", "settings": ""}] * 65}, "wire_units has 65 entries"),
        ({**DEVICES, "assignments": [{}] * 1025}, "devices: assignments has 1025 entries, and at most 1024 are taken"),
        ({**DEVICES, "passthrough": [{}] * 1025}, "devices: passthrough has 1025 entries"),
        ({**DEVICES, "instances": [{}] * 1025}, "devices: instances has 1025 entries"),
        ({**SECTION, "node_id": "x" * 257}, "host.section: node_id has more than 256 characters: give a shorter one"),
        ({**UNIT, "site": "x" * 257}, "host.unit: site has more than 256 characters"),
        ({**SECTION, "label": "x" * 257}, "host.section: label has more than 256 characters"),
        (
            {**SECTION, "generation": 2**63},
            "generation is 9223372036854775808, and counts from 0 to 9223372036854775807",
        ),
        ({**SECTION, "generation": -1}, "host.section: generation is -1, and counts from 0"),
        ({**DEVICES, "generation": -1}, "devices: generation is -1, and counts from 0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_nobody_makes_more_work_than_a_host_can_be_for(sent: dict[str, Any], why: str) -> None:
    assert why in refused(sent)


def test_a_name_of_64_characters_is_one() -> None:
    assert read({**UNIT, "unit": "x" * 64}).unit == "x" * 64


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "Expecting value: line 1 column 1 (char 0)"),
        (b'{"op": "host.info"', "Expecting"),
        (b'{"op": "host.info", "op": "host.info"}', "op is there twice"),
        (b'{"op": "host.info"} {}', "Extra data"),
        (b'{"op": "host.info"}\x00', "Extra data"),
        (b'\xef\xbb\xbf{"op": "host.info"}', "Unexpected UTF-8 BOM"),
        (b'{"op": "host.unit", "settings": {"a": 1, "a": 2}}', "a is there twice"),
        (b'{"op": NaN}', "NaN is no number"),
        (b'{"op": -Infinity}', "-Infinity is no number"),
        (b'{"op": 1e999}', "too large or too exact"),
        (b'{"op": ' + b"1" * 41 + b"}", "it has a number of 41 characters"),
        (b'{"op": "\xff"}', "'utf-8' codec can't decode"),
        (b'{"op": "\\ud800"}', "it has half a character"),
        (b'{"\\ud800": 1}', "it has half a character"),
        (b"[" * 1_000_000, "it is nested too deeply"),
        (b'{"op": ' + b"[" * 70 + b"]" * 70 + b"}", "it is nested too deeply"),
    ],
)
def test_json_is_read_strictly(text: bytes, why: str) -> None:
    told = refused(text)
    assert told.startswith("the request is not one JSON object, read strictly (")
    assert why in told
    assert told.endswith(f"): {BOTH}")
    assert len(told) < 300


@pytest.mark.parametrize(
    ("text", "kind"), [(b"[]", "a list"), (b"1", "an integer"), (b'"x"', "a string"), (b"null", "null")]
)
def test_what_is_no_object_is_refused(text: bytes, kind: str) -> None:
    assert refused(text) == f"the request is {kind}, and not one JSON object: {BOTH}"


def test_what_is_sent_back_is_short_and_printable() -> None:
    for sent in (
        {**UNIT, "unit": "x" * 1_000_000},
        {**UNIT, "unit": "\x1b[31m\n" * 100},
        {**UNIT, "x" * 1_000_000: 1},
        {**UNIT, "max_disruption": "\u202e" * 1_000},
        b'{"' + b"k" * 500_000 + b'": 1, "' + b"k" * 500_000 + b'": 1}',
    ):
        told = refused(sent)
        assert len(told) < 400
        assert told.isprintable()


def test_to_read_the_worst_of_two_million_bytes_takes_no_time() -> None:
    for sent in (
        b"[" * 2_000_000,
        b'{"a":' * 400_000,
        b'{"op": ' + b"1" * 2_000_000 + b"}",
        b"{" + b",".join(b'"%d":1' % number for number in range(150_000)) + b"}",
        b"{" + b'"a":1,' * 300_000 + b'"a":1}',
        b'{"op": [' + b"[]," * 600_000 + b"[]]}",
    ):
        begun = time.monotonic()
        refused(sent)
        assert time.monotonic() - begun < 10


# -- what each op takes


def test_a_section_names_its_units_once_and_at_all() -> None:
    both = {**SECTION, "wire_units": []}
    assert refused(both) == "host.section: units and wire_units are both given: give one of them"
    told = refused({**SECTION, "units": None})
    assert told == "host.section: none of units, wire_units and signed_spec is given: give one of them"


@pytest.mark.parametrize("entry", [{}, "sysctl", {"unit": "sysctl"}, {"unit": "sysctl", "settings": "{}", "more": 1}])
def test_wire_units_are_pairs(entry: Any) -> None:
    told = refused({**SECTION, "units": None, "wire_units": [entry]})
    assert told == f"host.section: wire_units has {entry!r}, and takes objects of unit and settings: correct it"[:400]


def test_choices_are_held() -> None:
    assert refused({**UNIT, "max_disruption": "reboot"}) == (
        "host.unit: max_disruption is 'reboot', and takes none, service, gpu: correct it"
    )
    assert "fail_on is 'always', and takes terminal, failed, progressing, never" in refused(
        {**SECTION, "fail_on": "always"}
    )
    assert "kind is 'ssh-key', and takes cdi, allocation-env, k8s-token" in refused({**FILE, "kind": "ssh-key"})


def test_devices_ask_for_something() -> None:
    told = refused({**DEVICES, "assignments": None})
    assert told == "devices: none of assignments, acknowledge and signed_spec is given: give one of them"
    assert refused({**DEVICES, "acknowledge": [{}]}).startswith("devices: acknowledge takes the ids of events")


@pytest.mark.parametrize(
    ("assignment", "why"),
    [
        ({**HOLD, "busy": []}, "assignments[0].'busy' is no key of assignments"),
        ("alloc_1", "assignments[0] is a string ('alloc_1'), and takes a mapping"),
        ({**HOLD, "devices": [{"id": 5}]}, "assignments[0].devices[0].id is an integer (5), and takes a string"),
        ({**HOLD, "limits": {"memory": 1}}, "memory"),
    ],
)
def test_what_is_inside_of_devices_is_held_to_its_table(assignment: Any, why: str) -> None:
    told = refused({**DEVICES, "assignments": [assignment]})
    assert told.startswith("devices: ")
    assert why.replace("'busy'", "busy") in told.replace("'assignments[0].busy'", "assignments[0].busy")


@pytest.mark.parametrize("env", ["TOKEN=sesame", ["TOKEN=sesame", 5], {"TOKEN": "sesame"}])
def test_an_env_that_is_none_is_not_shown(env: Any) -> None:
    told = refused({**DEVICES, "assignments": [{**HOLD, "env": env}]})
    assert told == "devices: assignments[0].env is no list of KEY=VALUE: correct the options"


@pytest.mark.parametrize("name", ["", "../x", "a-b", "a.b", "x" * 81, "a/b", "a\n", "é"])
def test_an_id_that_is_none_is_refused(name: str) -> None:
    told = refused({**FILE, "id": name})
    assert told.startswith(f"file.write: {ascii(name)[:80]}")
    assert "is no id (letters, digits and _, at most 80): correct it" in told


def test_a_kind_has_an_id_or_none() -> None:
    assert refused({**FILE, "id": None}) == "file.write of the kind cdi takes an id: correct it"
    token = {**FILE, "kind": "k8s-token"}
    assert refused(token) == "file.write of the kind k8s-token takes no id: correct it"
    assert read({**token, "id": None}) == asking.FileRequest("k8s-token", None, None)


def test_a_file_of_a_kind_is_not_long() -> None:
    assert read({**FILE, "content": "x" * 262144}).content == "x" * 262144
    assert refused({**FILE, "content": "x" * 262145}).startswith("file.write: content has more than 262144 characters")


@pytest.mark.parametrize(
    "name",
    ["", "sshd.service", "bcd-alloc-.slice", "bcd-alloc-a-b.slice", "bcd-alloc-../x.slice", "bcd-alloc-a.slice\n"],
)
@pytest.mark.parametrize("op", ["slice.apply", "slice.remove"])
def test_only_slices_of_holds_are_slices(op: str, name: str) -> None:
    sent = {"op": op, "slice": name, **({"limits": {}} if op == "slice.apply" else {})}
    assert refused(sent) == f"{name!a} is no slice of a hold (bcd-alloc-<id>.slice): correct the name"


def test_slices_are_read() -> None:
    assert read(SLICE) == asking.SliceRequest("bcd-alloc-alloc_1.slice", {})
    assert read({"op": "slice.remove", "slice": "bcd-alloc-a.slice"}) == asking.SliceRequest("bcd-alloc-a.slice", None)


# -- whatever is sent, it is read or refused

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
FIELDS = sorted({name for table in asking.OPS.values() for name in table})


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_refusal(data: bytes) -> None:
    with pytest.raises(Refused) as fault:
        asking.request(data)
    assert fault.value.message.isprintable()


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(EACH), st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=8), JSON, max_size=3))
def test_what_is_read_says_what_was_sent_and_nothing_else(sent: dict[str, Any], more: dict[str, Any]) -> None:
    """A request with other values is refused, or read as of its op, with those values and its own fields alone."""
    whole = {**sent, **{name: value for name, value in more.items() if name != "op"}}
    found = told = None
    try:
        found = asking.request(json.dumps(whole).encode())
    except Refused as fault:
        told = fault.message
    if found is None:
        assert told
        return
    assert asking.name_of(found) == sent["op"]
    assert set(whole) <= {"op", *asking.OPS[sent["op"]]}
    for name, value in getattr(found, "params", found._asdict()).items():
        if name in whole and name not in ("assignments", "passthrough", "instances"):
            assert value == whole[name]
