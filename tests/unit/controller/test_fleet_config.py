# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A FleetConfig as a document: what may stand in it, and everything that is wrong with one, each at its path."""

from __future__ import annotations

import copy
import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.fleet_config import (
    fleet_faults,
    group_word,
)
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.fleet_text import repeated_keys
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.host_labels import labels_of
from tests.unit.controller.fleets import BAD, GOOD, POOL, WHOLE, changed, check_fleet


class Tagged(datetime.date):
    """As Ansible's dates, which know where they come from."""


@pytest.mark.parametrize("document", [*GOOD.values()], ids=[*GOOD])
def test_what_may_stand_in_a_document(document: Any) -> None:
    assert check_fleet(document) == []


@pytest.mark.parametrize(("document", "paths"), [(bad.document, bad.paths) for bad in BAD.values()], ids=[*BAD])
def test_what_is_wrong_with_a_document(document: Any, paths: list[str]) -> None:
    before = copy.deepcopy(document)
    found = fleet_faults(document)
    assert sorted(fault.path for fault in found) == sorted(paths), found
    assert document == before
    lines = check_fleet(document)
    assert [line.partition(": ")[0] for line in lines] == ["INVALID_INPUT"] * len(paths)
    assert all(line.isprintable() for line in lines)


def test_a_line_has_the_path_and_the_sentence() -> None:
    (line,) = check_fleet(changed(WHOLE, "pools.0.policy.cpu.isolate", "0-3"))
    where = "INVALID_INPUT: $.pools[0].policy.cpu.isolate: "
    assert line.startswith(where + "isolate must not include CPU 0")
    assert line.endswith(": take it out of 0-3")


def test_faults_of_every_part_come_at_once() -> None:
    document = {
        "version": 2,
        "fleet": {},
        "profiles": [{"name": "a", "hostConfig": {"gpu": {}}}, {"name": "a"}, 5],
        "pools": [
            {"name": "one", "site": "fra", "profile": "b", "policy": {"sysctl": {}}, "select": "("},
            {
                "name": "one",
                "site": "",
                "class": "x",
                "labels": [],
                "hosts": {"n1": {"bcd_labels": {"site": "x"}}, "n 2": 5},
            },
            {"name": "two", "site": "fra", "class": "x", "hosts": {"n1": None}},
        ],
    }
    assert sorted(fault.path for fault in fleet_faults(document)) == sorted(
        [
            "$.fleet",
            "$.version",
            "$.profiles[0].hostConfig.gpu",
            "$.profiles[1].name",
            "$.profiles[2]",
            "$.pools[0]",
            "$.pools[0].profile",
            "$.pools[0].policy.sysctl",
            "$.pools[0].select",
            "$.pools[1].name",
            "$.pools[1].site",
            "$.pools[1].labels",
            "$.pools[1].hosts.n1.bcd_labels.site",
            "$.pools[1].hosts['n 2']",
            "$.pools[1].hosts['n 2']",
            "$.pools[2].hosts.n1",
        ]
    )


def test_what_json_does_not_have_is_said_once() -> None:
    document = changed(WHOLE, "pools.0.policy.cpu.isolate", datetime.date(2026, 1, 1))
    (line,) = check_fleet(document)
    assert line.startswith("INVALID_INPUT: $.pools[0].policy.cpu.isolate: this is of the type date")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (float("nan"), "this is nan, which is no number of a setting: correct it"),
        (float("-inf"), "this is -inf, which is no number of a setting: correct it"),
        (16**5000, "this is a number of more than 30 digits, which is no number of a setting: correct it"),
        (-(16**5000), "this is a number of more than 30 digits, which is no number of a setting: correct it"),
        (b"x", "this is of the type bytes, which JSON does not have: put it in quotes"),
        (Tagged(2026, 1, 1), "this is of the type date, which JSON does not have: put it in quotes"),
    ],
    ids=["nan", "endless", "large", "small", "bytes", "date"],
)
def test_what_is_no_value_is_said_at_its_path(value: Any, said: str) -> None:
    """Python writes out no number of more than 4,300 digits, and YAML reads one in hexadecimal."""
    for place, path in (
        ("version", "$.version"),
        ("pools.0.labels.rack", "$.pools[0].labels.rack"),
        ("pools.0.policy.hugepages.count", "$.pools[0].policy.hugepages.count"),
        ("pools.0.policy.hostReserve.vcpu", "$.pools[0].policy.hostReserve.vcpu"),
        ("profiles.0.hostConfig.sysctl.x", "$.profiles[0].hostConfig.sysctl.x"),
    ):
        lines = check_fleet(changed(WHOLE, place, value))
        assert f"INVALID_INPUT: {path}: {said}" in lines


def test_a_key_that_is_a_number_without_end_is_refused() -> None:
    assert check_fleet({"version": 1, 16**5000: 1}) == [
        "INVALID_INPUT: $: its key a number of more than 30 digits is no text: put it in quotes"
    ]
    [line] = check_fleet(16**5000)
    assert line.startswith("INVALID_INPUT: $: this is a number of more than 30 digits: a FleetConfig is a mapping")


def test_a_path_and_a_value_are_one_short_line() -> None:
    assert fleet_faults({"version": 1, "it's \\": 1})[0].path == "$['it\\'s \\\\']"
    [line] = check_fleet(changed(WHOLE, "pools.0.site", "x" * 10000))
    assert f"this is '{'x' * 79}...: a name has" in line


def test_lists_are_nested_no_deeper_than_mappings() -> None:
    deep: Any = []
    for _level in range(70):
        deep = [deep]
    assert any("nested deeper" in line for line in check_fleet({"version": 1, "pools": deep}))


def test_of_many_profiles_the_first_are_said() -> None:
    profiles = [{"name": f"p{number:02}"} for number in range(40)]
    [line] = check_fleet({"version": 1, "profiles": profiles, "pools": [{**POOL, "profile": "x"}]})
    assert line.endswith("are p00, p01, p02, p03, p04, p05, p06, p07, p08, p09, p10, p11 and 28 more: correct it")


def test_of_three_pools_with_one_host_the_first_is_said() -> None:
    pools = [{**POOL, "name": name, "hosts": {"h": None}} for name in ("a", "b", "c")]
    lines = check_fleet({"version": 1, "pools": pools})
    assert [line.partition("this host is ")[2] for line in lines] == [
        "one of $.pools[0] already: a host has one pool"
    ] * 2


def test_a_hosts_variables_may_be_anything() -> None:
    hosts = {"n1": {"when": datetime.date(2026, 1, 1), "f": object(), 5: 6, "bcd_labels": {"rack": "r1"}}}
    assert check_fleet(changed(WHOLE, "pools.0.hosts", hosts)) == []


def test_a_document_that_is_inside_itself_is_refused() -> None:
    document = copy.deepcopy(WHOLE)
    document["pools"][0]["policy"]["cpu"]["self"] = document["pools"][0]["policy"]
    assert any("nested deeper" in line for line in check_fleet(document))


def test_names_that_make_one_group_are_refused() -> None:
    assert group_word("sandbox-FRA.1") == "sandbox_FRA_1"
    pools = [
        {"name": "a-b", "site": "s-1", "class": "c", "hosts": {}},
        {"name": "a_b", "site": "s.1", "class": "c"},
        {"name": "a.c", "site": "s-1", "class": "c"},
        {"name": "d", "site": "s-1", "class": "e.f"},
        {"name": "e", "site": "s-1", "class": "e-f"},
    ]
    lines = check_fleet({"version": 1, "pools": pools})
    assert [line.split(": ")[1] for line in lines] == ["$.pools[1].name", "$.pools[1].site", "$.pools[4].class"]
    assert "bcd_pool_a_b" in lines[0]
    assert "bcd_site_s_1" in lines[1]
    assert "bcd_class_e_f" in lines[2]


def test_labels_of_a_host() -> None:
    pool = {"name": "one", "site": "fra", "class": "x", "labels": {"rack": "r1", "gpu": True}}
    assert labels_of(pool, {"rack": "r2", "slots": 4}) == {
        "rack": "r2",
        "gpu": True,
        "slots": 4,
        "pool": "one",
        "site": "fra",
        "class": "x",
    }
    assert labels_of({"labels": None}) == {}


NAMES = st.sampled_from(
    [
        "version",
        "profiles",
        "pools",
        "name",
        "site",
        "class",
        "policy",
        "hosts",
        "hostConfig",
        "cpu",
        "sharing",
        "labels",
    ]
)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inside: (
        st.lists(inside, max_size=3) | st.dictionaries(NAMES | st.text(max_size=3) | st.integers(), inside, max_size=4)
    ),
    max_leaves=20,
)


@given(DOCUMENTS)
def test_any_document_is_judged_without_an_accident(document: Any) -> None:
    lines = check_fleet(document)
    assert all(line.startswith("INVALID_INPUT: $") and line.isprintable() for line in lines)


@given(DOCUMENTS)
def test_any_part_in_any_place_is_judged_without_an_accident(part: Any) -> None:
    for place in (
        "profiles",
        "profiles.0.hostConfig",
        "pools",
        "pools.0",
        "pools.0.policy",
        "pools.0.hosts",
        "pools.0.labels",
    ):
        check_fleet(changed(WHOLE, place, part))


# -- the text


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("", []),
        ("version: 1\npools: []\n", []),
        ('{"version": 1, "pools": [{"name": "a"}, {"name": "a"}]}', []),
        ('{"version": 1, "version": 1}', ["$.version"]),
        ('{\n\t"version": 1,\n\t"version": 1\n}', ["$.version"]),
        (
            '{"profiles": [{"hostConfig": {"cpu": {}, "mig-layout": {"from": "pool"}, "mig-layout": {}}}]}',
            ["$.profiles[0].hostConfig['mig-layout']"],
        ),
        (
            "pools:\n- name: a\n  name: b\n- policy:\n    cpu: {isolate: '4', isolate: '5'}\n",
            ["$.pools[0].name", "$.pools[1].policy.cpu.isolate"],
        ),
        ("a: 1\n'a': 2\n\"a\": 3\n", ["$.a", "$.a"]),
        ("base: &b {x: 1}\nuse:\n  <<: *b\n  x: 2\n", []),
        ("a: &a [*a]\n", ["$"]),
        ("a: &a {b: *a, b: 1}\n", ["$"]),
        ("a: &a {b: 1, b: 2}\nc: [*a, *a]\n", ["$.a.b"]),
        ("- &a {x: 1}\n- &b {y: 2}\n- {<<: *a, <<: *b}\n", []),
        ("? [a]\n: 1\n? [a]\n: 2\n", []),
        ('{"a": ' + "[" * 100000 + "]" * 100000 + "}", ["$"]),
        ("[" * 900 + "a" + "]" * 900, []),
        ("{", ["$"]),
        ("a: b: c", ["$"]),
        ("a: \x07", ["$"]),
        ("--- {}\n--- {}\n", ["$"]),
        ("[" * 5000, ["$"]),
        ("x: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  3061\n", []),
    ],
)
def test_a_key_that_is_twice_is_found_in_the_text(text: str, paths: list[str]) -> None:
    assert [fault.path for fault in repeated_keys(text)] == paths


def test_both_lines_of_a_key_are_said() -> None:
    (fault,) = repeated_keys("pools:\n- name: a\n  site: b\n  name: c\n")
    assert "in the lines 2 and 4" in fault.text


def laughs(levels: int, shape: str) -> str:
    """A text in which each line is nine times the line before."""
    lines = [f"a{at}: &a{at} {shape % ', '.join([f'*a{at - 1}'] * 9)}\n" for at in range(1, levels)]
    return "".join(["a0: &a0 {x: 1, x: 2}\n", *lines])


@pytest.mark.parametrize("shape", ["[%s]", "{b: [%s]}", "{<<: [%s]}"])
def test_many_names_of_one_thing_cost_nothing(shape: str) -> None:
    """Whoever reads such a text writes out all that its names stand for, and never ends."""
    [fault] = repeated_keys(laughs(30, shape))
    assert (fault.path, "more than 1000000 values" in fault.text) == ("$", True)
    assert [fault.path for fault in repeated_keys(laughs(4, shape))] == ["$.a0.x"]


def test_a_long_document_is_none_of_these() -> None:
    assert repeated_keys("pools:\n" + "- [a, b, c]\n" * 5000) == []
