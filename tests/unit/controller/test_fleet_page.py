# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/fleet.md: its document is one, its messages are those that come, its expressions hold where it says."""

from __future__ import annotations

import re
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.host_labels import labels_of
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.host_units import render
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.label_expression import DEEPEST, LONGEST, holds, parse
from tests.tools.results import TOP
from tests.unit.controller.fleets import changed, check_fleet
from tests.unit.controller.test_schema import SCHEMA

PAGE = (TOP / "docs" / "fleet.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FLEET: dict[str, Any] = yaml.safe_load(next(text for language, text in BLOCKS if language == "yaml"))


def units(host: str) -> dict[str, Any]:
    (pool,) = FLEET["pools"]
    return render(pool, FLEET["profiles"][0], (pool["hosts"][host] or {}).get("bcd_labels"))


def test_its_document_is_one() -> None:
    assert check_fleet(FLEET) == []
    assert list(Draft202012Validator(SCHEMA).iter_errors(FLEET)) == []
    common = {
        "nvidia-driver": {"branch": "580", "open": True},
        "fabric-manager": {},
        "mig-layout": {"layout": "all-1g.10gb"},
        "container-toolkit": {"cdi": True},
    }
    assert units("node-1") == {**common, "kernel-modules": {"load": ["kvm_amd"]}}
    assert units("node-2") == common


def test_its_messages_are_those_that_come() -> None:
    said = [line for _language, text in BLOCKS for line in text.splitlines() if line.startswith("INVALID_INPUT")]
    policy = {"cpu": {"isolate": "0-3"}, "sharing": {"mode": "mps", "replicas": 49}}
    assert check_fleet(changed(FLEET, "pools.0.policy", {**policy, "migLayout": "off"})) == said


def test_its_expressions_hold_where_it_says() -> None:
    table = PAGE.partition("| expression |")[2].partition("\n\n")[0]
    expressions = re.findall(r"^\| (`.*?`(?:, `.*?`)*) \| ", table, re.MULTILINE)
    said = [text for row in expressions for text in re.findall(r"`(.*?)`", row)]
    labels = {"gpu": False, "cpu.vendor": "amd", "slots": "4", "release": "1.30", "rack": "r 2"}
    assert len(said) == 8
    assert [text for text in said if not holds(parse(text), labels)] == []
    assert [text for text in said if holds(parse(text), {"site": "ams"})] == ["not (gpu and rack == r9) or site == fra"]
    assert f"{LONGEST:,} characters" in PAGE
    assert f"{DEEPEST}\nlevels" in PAGE


def test_labels_are_the_documents_in_the_end() -> None:
    (pool,) = FLEET["pools"]
    assert labels_of(pool, {"cpu.vendor": "intel"}) == {
        "cpu.vendor": "intel",
        "pool": "gpu-fra",
        "site": "fra",
        "class": "gpu-host",
    }
