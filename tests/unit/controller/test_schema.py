# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The JSON schema for editors says what the check says, as far as a schema can."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.container_runtime import RUNTIMES
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.gpu import SELECT
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.unit_checks import CHECKED
from ansible_collections.bettercompute.bcd.plugins.plugin_utils import fleet_config, pool_policy
from tests.tools.results import TOP
from tests.unit.controller.fleets import BAD, GOOD, check_fleet

SCHEMA: dict[str, Any] = json.loads((TOP / "docs" / "fleet-config.schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)
DEFS = SCHEMA["$defs"]


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", [*GOOD])
def test_it_takes_what_the_check_takes(name: str) -> None:
    assert check_fleet(GOOD[name]) == []
    assert [error.json_path + ": " + error.message for error in VALIDATOR.iter_errors(GOOD[name])] == []


@pytest.mark.parametrize("name", [*BAD])
def test_it_complains_where_the_check_does(name: str) -> None:
    bad = BAD[name]
    assert check_fleet(bad.document)
    places = {path.partition(".bcd_labels")[0] for path in map(plain, paths(bad.document))}
    assert bool(places) is bad.seen_by_schema
    if places:  # at the very place, or where a part is missing, unknown or wrong at the mapping around it
        wanted = {plain(path) for path in bad.paths}
        assert any(path.startswith(place) or place.startswith(path) for place in places for path in wanted)


def paths(document: Any) -> Iterator[str]:
    for error in VALIDATOR.iter_errors(document):
        yield error.json_path


def plain(path: str) -> str:
    """A path without what the two write differently: how a key that is no word is quoted."""
    return path.replace("['", ".").replace("']", "").replace('["', ".").replace('"]', "")


# -- the same keys


def keys(definition: Any, *without: str) -> set[str]:
    return set(definition["properties"]) - {*without}


def test_it_has_every_key_of_the_document() -> None:
    assert keys(SCHEMA) == {*fleet_config.TOP, *fleet_config.IGNORED}
    assert keys(DEFS["profile"]) == set(fleet_config.PROFILE)
    assert keys(DEFS["pool"]) == set(fleet_config.POOL)
    assert DEFS["pool"]["required"] == list(fleet_config.REQUIRED)
    assert DEFS["name"]["pattern"] == f"^{fleet_config.NAME.pattern}$"


def test_it_has_every_key_of_a_policy() -> None:
    assert keys(DEFS["policy"]) == set(pool_policy.KEYS)
    policy = DEFS["policy"]["properties"]
    assert keys(policy["kubernetes"]) == set(pool_policy.JOIN)
    assert policy["hugepages"]["properties"]["size"]["enum"] == list(pool_policy.PAGES)
    assert policy["sharing"]["properties"]["mode"]["enum"] == list(pool_policy.MODES)
    for key, unit in (("kernelModules", "kernel-modules"), ("cpu", "cpu"), ("iommu", "iommu"), ("gpu", "gpu-settings")):
        assert keys(policy[key]) == {field.wire for field in CHECKED[unit].fields}


def test_it_has_every_setting_of_every_unit() -> None:
    units = DEFS["hostConfig"]["properties"]
    assert list(units) == list(CHECKED)
    for name, checked in CHECKED.items():
        fields = {field.wire for field in checked.fields} - {""}
        assert keys(units[name], "when") == fields, name
        for field in checked.fields:
            if field.fields:
                inside = units[name]["properties"][field.wire]["items"]
                assert keys(inside) == {each.wire for each in field.fields}
    assert units["container-toolkit"]["properties"]["runtimes"]["items"]["enum"] == list(RUNTIMES)
    assert keys(DEFS["select"]) == {field.wire for field in SELECT}


def test_an_editor_is_told_what_each_key_is() -> None:
    """Every property has a description, its own or that of what it refers to, or the values that it takes."""

    def walk(node: Any, at: str) -> Iterator[str]:
        if isinstance(node, dict):
            for key, part in node.get("properties", {}).items():
                if isinstance(part, dict) and "anyOf" not in at:
                    told = part | (DEFS[part["$ref"].rpartition("/")[2]] if "$ref" in part else {})
                    if not {"description", "enum", "const"} & set(told):
                        yield f"{at}.{key}"
            for key, part in node.items():
                yield from walk(part, f"{at}.{key}")
        elif isinstance(node, list):
            for part in node:
                yield from walk(part, at)

    assert list(walk(SCHEMA, "")) == []
