# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The grammar of MIG layouts: texts and mappings in, values out, and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused, StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.mig import (
    ComputeInstance,
    GpuInstance,
    Layout,
    Profile,
    devices_of,
    parse_layout,
    parse_profile,
    shows,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.mig_grammar import read
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.mig_layout import check
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.mig_text import layout_of, name_of, text_of

G1, G2, G3 = Profile(1, 1, 10, ""), Profile(2, 2, 20, ""), Profile(3, 3, 40, "")


def parse(given_layout: Any) -> Layout:
    return parse_layout(given_layout, "mig-layout: layout")


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        ("3g.40gb,2g.20gb,1g.10gb:2", ((G3, 1), (G2, 1), (G1, 2))),
        ("3g.40gb+2g.20gb+1g.10gb:2", ((G3, 1), (G2, 1), (G1, 2))),
        ("1g.10gb, 3g.40gb ,1g.10gb", ((G3, 1), (G1, 2))),
        ("1g.10gb : 4", ((G1, 4),)),
        ({"1g.10gb": 4, "3g.40gb": 1}, ((G3, 1), (G1, 4))),
        ("1g.10gb+me,1g.10gb:3", ((G1, 3), (Profile(1, 1, 10, "+me"), 1))),
        ("1g.24gb+gfx:2", ((Profile(1, 1, 24, "+gfx"), 2),)),
        ("2g.48gb+me.all", ((Profile(2, 2, 48, "+me.all"), 1),)),
        ("1g.24gb-me:4", ((Profile(1, 1, 24, "-me"), 4),)),
        ({"1g.24gb-me": 1, "1g.24gb+me": 1}, ((Profile(1, 1, 24, "+me"), 1), (Profile(1, 1, 24, "-me"), 1))),
        ("1c.3g.40gb:2+3g.40gb", ((G3, 1), (Profile(3, 1, 40, ""), 2))),
        ("4c.7g.80gb,1c.7g.80gb:3", ((Profile(7, 4, 80, ""), 1), (Profile(7, 1, 80, ""), 3))),
    ],
)
def test_lists_and_mappings(text: Any, devices: tuple[tuple[Profile, int], ...]) -> None:
    assert parse(text) == Layout("listed", devices)


ITEMS = st.sampled_from(["1g.10gb", "3g.40gb", "1c.3g.40gb", "2c.1g.10gb", "0g.5gb", "1g.0gb", "1g.10gb+me", "", "off"])
COUNTS = st.sampled_from(["", "", ":1", ":2", ":0", ":999", ":1000", ": 2", ":x"])
TEXTS = st.builds(
    lambda start, items, joint: start + joint.join(f"{name}{count}" for name, count in items),
    st.sampled_from(["", "", "all-", " "]),
    st.lists(st.tuples(ITEMS, COUNTS), max_size=3),
    st.sampled_from([",", ",", "+", ", "]),
)


@given(TEXTS)
def test_a_plain_layout_is_read_as_the_grammar_has_it(text: str) -> None:
    assert told(parse_layout, text) == told(read, text)


def told(reader: Callable[[Any, str], Layout], text: str) -> Layout | str:
    try:
        return reader(text, "layout")
    except Refused as fault:
        return fault.message


def test_words() -> None:
    assert parse("off") == parse(False) == Layout("off")
    assert parse("empty") == Layout("empty")
    assert parse("all-1g.10gb") == Layout("all", ((G1, 0),))
    assert parse("all-1g.10gb+me") == Layout("all", ((Profile(1, 1, 10, "+me"), 0),))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ({}, "is empty"),
        (True, "give a layout"),
        ("on", "'on', which is no profile"),
        ("OFF", "'OFF', which is no profile"),
        ("all", "no profile"),
        ("all-", "no profile"),
        ("all-1g.10gb:3", "no profile"),
        ("1g", "no profile"),
        ("1g.10GB", "no profile"),
        ("1g.10gb,", "no profile"),
        ("1g.10gb:", "no <profile> or <profile>:<count>"),
        ("1g.10gb:0", "give a count from 1 on"),
        ("1g.10gb:-1", "no <profile> or <profile>:<count>"),
        ("1g.10gb:1.5", "no <profile> or <profile>:<count>"),
        ("1g.10gb:2:3", "no <profile> or <profile>:<count>"),
        ("1g.10gb+xx", "no profile"),
        ("1g.10gb+me+2g.20gb", "join profiles by commas"),
        ("3g.40gb,1g.10gb+me+2g.20gb", "join profiles by commas"),
        ("1g.10gb+2g.20gb-me", "join profiles by commas"),
        ("0g.10gb", "no profile"),
        ("1g.0gb", "no profile"),
        ("2c.1g.10gb", "no compute instance has 2 of its slices"),
        ("3c.4g.40gb", "no compute instance has 3 of its slices"),
        ("5c.7g.80gb", "no compute instance has 5 of its slices"),
        ({"1g.10gb": 0}, "give a count from 1 on"),
        ({"1g.10gb": True}, "give a count from 1 on"),
        ({"1g.10gb": "2"}, "give a count from 1 on"),
        ({"1g.10gb:2": 1}, "no profile"),
        ({"off": 1}, "no profile"),
    ],
)
def test_what_is_no_layout_is_refused_naming_it(text: Any, why: str) -> None:
    with pytest.raises(Refused) as refused:
        parse(text)
    assert why in refused.value.message
    assert refused.value.message.startswith("mig-layout: layout ")


PROFILES = st.builds(
    lambda slices, memory, attribute, compute: Profile(slices, min(compute, slices), memory, attribute),
    st.sampled_from((1, 2, 3, 4, 7)),
    st.integers(1, 300),
    st.sampled_from(("", "+me", "+gfx", "+me.all", "-me")),
    st.sampled_from((1, 2, 7)),
)


@given(PROFILES)
def test_a_profile_is_its_name(profile: Profile) -> None:
    assert parse_profile(name_of(profile)) == profile


@given(st.dictionaries(PROFILES, st.integers(1, 9), min_size=1, max_size=6))
def test_a_layout_is_its_text_and_its_mapping(devices: dict[Profile, int]) -> None:
    layout = parse({name_of(profile): count for profile, count in devices.items()})
    assert dict(layout.devices) == devices
    assert parse(text_of(layout)) == layout
    assert parse(text_of(layout).replace(",", " , ")) == layout
    if all(not profile.attribute for profile in devices):
        assert parse(text_of(layout).replace(",", "+")) == layout


@pytest.mark.parametrize("text", ["off", "empty", "all-1g.10gb", "all-1c.3g.40gb", "3g.40gb,1c.2g.20gb:2,1g.10gb+me"])
def test_canonical_texts(text: str) -> None:
    assert text_of(parse(text)) == text


# -- what a GPU shows


def gi(number: int, name: str, start: int) -> GpuInstance:
    return GpuInstance(number, name, 19, start, 1)


def ci(number: int, name: str, which: int = 0) -> ComputeInstance:
    return ComputeInstance(number, which, name, 0, 0, 1)


def test_what_a_gpu_shows_is_told_in_the_grammar() -> None:
    gis = (gi(2, "3g.40gb", 4), gi(9, "1g.10gb", 2), gi(10, "1g.10gb", 3), gi(7, "1g.10gb+me", 0))
    cis = (ci(2, "1c.3g.40gb"), ci(2, "2c.3g.40gb", 1), ci(9, "1g.10gb"), ci(10, "1g.10gb"), ci(7, "1g.10gb+me"))
    assert layout_of(True, gis, cis) == "2c.3g.40gb,1c.3g.40gb,1g.10gb:2,1g.10gb+me"
    assert layout_of(True, (), ()) == "empty"
    assert layout_of(False, (), ()) == "off"


def test_an_instance_without_its_compute_instance_is_told_as_what_it_is_to_be_and_is_no_device() -> None:
    gis = (gi(2, "3g.40gb", 4), gi(9, "1g.10gb", 2))
    cis = (ci(9, "1g.10gb"),)
    assert layout_of(True, gis, cis) == "3g.40gb,1g.10gb"
    assert devices_of(gis, cis) == Counter({G1: 1})
    assert not shows(parse("3g.40gb,1g.10gb"), True, gis, cis)
    assert not shows(parse("1g.10gb"), True, gis, cis)


def test_names_that_are_no_profiles_are_faults() -> None:
    with pytest.raises(StepFailed, match=r"'9x\.1gb'"):
        layout_of(True, (gi(1, "9x.1gb", 0),), ())
    with pytest.raises(StepFailed, match="GPU instance 5"):
        layout_of(True, (gi(1, "1g.10gb", 0),), (ci(5, "1g.10gb"),))


# -- settings


def test_settings_name_layouts_by_selectors() -> None:
    settings = check(
        {
            "layout": "all-1g.10gb",
            "gpus": [
                {"select": {"index": 0}, "layout": False},
                {"select": {"model": "*A30"}, "layout": {"2g.12gb": 2}},
            ],
        }
    )
    assert settings.layout == parse("all-1g.10gb")
    assert [entry.layout for entry in settings.gpus] == [Layout("off"), Layout("listed", ((Profile(2, 2, 12, ""), 2),))]


@pytest.mark.parametrize(
    ("given_settings", "why"),
    [
        ({"from": "pool"}, "from: pool is not rendered: the control plane, or the filter host_units"),
        ({}, "neither layout nor gpus is given"),
        ({"gpus": []}, "neither layout nor gpus is given"),
        ({"layout": None}, "layout is null, and takes"),
        ({"layout": {"3g.40gb": None}}, "layout asks for null of '3g.40gb': give a count"),
        ({"layout": ["1g.10gb"]}, "layout is a list"),
        ({"layout": 7}, "layout is an integer"),
        ({"layuot": "off"}, "'layuot' is no setting of this unit"),
        ({"gpus": {"select": {"index": 0}}}, "gpus is a mapping"),
        ({"gpus": [{"select": {"index": 0}}]}, "gpus[0] needs select"),
        ({"gpus": [{"layout": "off"}]}, "gpus[0] needs select"),
        ({"gpus": [{"select": {"index": 0, "uuid": "x"}, "layout": "off"}]}, "exactly one of"),
        ({"gpus": [{"select": {}, "layout": "off"}]}, "exactly one of"),
        ({"gpus": [{"select": {"index": "0"}, "layout": "off"}]}, "takes an integer"),
        ({"gpus": [{"select": {"slot": 1}, "layout": "off"}]}, "'gpus[0].select.slot'"),
        ({"gpus": [{"select": {"index": 0}, "layout": "1g"}]}, "gpus[0].layout has '1g'"),
        ({"layout": "1g.10gb:\u0663"}, "layout has '1g.10gb:\u0663'"),  # a digit, and none of ours
        ({"layout": "\u0661g.10gb"}, "layout has '\u0661g.10gb'"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(given_settings: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused) as refused:
        check(given_settings)
    assert why in refused.value.message
