# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The listings of `nvidia-smi mig`, as each driver generation prints them."""

from __future__ import annotations

import re

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed, Unreadable
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.look import mig, mig_offers
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.mig import (
    COMPUTE,
    ComputeInstance,
    GpuInstance,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.mig_offered import Placements
from tests.captures import Command, session
from tests.gpu.fake import GpuHost, gpu_host
from tests.gpu.model import Fault, Machine
from tests.unit.fake_host import FakeHost

A100 = ["smi450_a100_session", "smi460_a100_session", "smi470_a100_session", "smi535_a100_session"]
A100 += ["smi555_a100_session"]


def said(name: str, option: str, at: int = 0) -> Command:
    """The at-th command of a session with the option that listed something."""
    return [one for one in session(name) if option in one.argv and ("|" in one.text or "{" in one.text)][at]


def host_that_says(command: Command) -> FakeHost:
    return FakeHost(programs={"nvidia-smi": lambda _host, _argv: command.answer})


# -- what a GPU offers

A100_PROFILES = {
    "1g.5gb": (19, 7, (0, 1, 2, 3, 4, 5, 6), 1),
    "1g.5gb+me": (20, 1, (0, 1, 2, 3, 4, 5, 6), 1),  # since R470
    "1g.10gb": (15, 4, (0, 2, 4, 6), 2),  # since R535
    "2g.10gb": (14, 3, (0, 2, 4), 2),
    "3g.20gb": (9, 2, (0, 4), 4),
    "4g.20gb": (5, 1, (0,), 4),
    "7g.40gb": (0, 1, (0,), 8),
}
H100_PROFILES = {
    "1g.10gb": (19, 7, (0, 1, 2, 3, 4, 5, 6), 1),
    "1g.10gb+me": (20, 1, (0, 1, 2, 3, 4, 5, 6), 1),
    "1g.20gb": (15, 4, (0, 2, 4, 6), 2),
    "2g.20gb": (14, 3, (0, 2, 4), 2),
    "3g.40gb": (9, 2, (0, 4), 4),
    "4g.40gb": (5, 1, (0,), 4),
    "7g.80gb": (0, 1, (0,), 8),
}
A30_PROFILES = {
    "1g.6gb": (14, 4, (0, 1, 2, 3), 1),
    "1g.6gb+me": (21, 1, (0, 1, 2, 3), 1),
    "2g.12gb": (5, 2, (0, 2), 2),
    "2g.12gb+me": (6, 1, (0, 2), 2),
    "4g.24gb": (0, 1, (0,), 4),
}
RTX_PROFILES = {
    "1g.24gb": (14, 4, (0, 3, 6, 9), 3),
    "1g.24gb+me": (21, 1, (0, 3, 6, 9), 3),
    "1g.24gb+gfx": (47, 4, (0, 3, 6, 9), 3),
    "1g.24gb+me.all": (65, 1, (0, 3, 6, 9), 3),
    "1g.24gb-me": (67, 4, (0, 3, 6, 9), 3),
    "2g.48gb": (5, 2, (0, 6), 6),
    "2g.48gb+gfx": (35, 2, (0, 6), 6),
    "2g.48gb+me.all": (64, 1, (0, 6), 6),
    "2g.48gb-me": (66, 2, (0, 6), 6),
    "4g.96gb": (0, 1, (0,), 12),
    "4g.96gb+gfx": (32, 1, (0,), 12),
}
NOT_IN = {
    "smi450_a100_session": ("1g.5gb+me", "1g.10gb"),
    "smi460_a100_session": ("1g.5gb+me", "1g.10gb"),
    "smi470_a100_session": ("1g.10gb",),
}
OFFERS = {
    **{name: {key: row for key, row in A100_PROFILES.items() if key not in NOT_IN.get(name, ())} for name in A100},
    "smi550_mig_disabled_states": H100_PROFILES,
    "real_mig_session_a30_535": A30_PROFILES,
    "real_mig_session_rtxpro6000": RTX_PROFILES,
}
FREE = {"smi550_mig_disabled_states": 0}  # MIG mode is off there


@pytest.mark.parametrize("name", OFFERS)
def test_profiles_and_where_they_may_start(name: str) -> None:
    offered = mig.Tables(host_that_says(said(name, "-lgip"))).offered(0)
    assert {one.name: (one.id, one.total) for one in offered} == {key: row[:2] for key, row in OFFERS[name].items()}
    assert [one.name for one in offered] == list(OFFERS[name])  # in the order that it prints
    assert [one.free for one in offered] == [FREE.get(name, one.total) for one in offered]
    starts = mig.Tables(host_that_says(said(name, "-lgipp"))).placements(0)
    by_id = {row[0]: Placements(row[0], row[2], row[3]) for row in OFFERS[name].values()}
    assert {one.profile_id: one for one in starts} == by_id
    assert len(starts) == len(offered)


def test_a_profile_in_its_parts() -> None:
    parts = {one.name: tuple(one.profile) for one in mig.Tables(host_that_says(said(*RTX, "-lgip"))).offered(0)}
    assert parts["1g.24gb"] == (1, 1, 24, "")
    assert parts["1g.24gb+me.all"] == (1, 1, 24, "+me.all")
    assert parts["2g.48gb-me"] == (2, 2, 48, "-me")
    assert parts["4g.96gb+gfx"] == (4, 4, 96, "+gfx")


RTX = ("real_mig_session_rtxpro6000",)


def test_an_h100_says_its_placements() -> None:
    starts = mig_offers.parse_lgipp(said("real_mig_session_h100_80gb", "-lgipp").text)
    assert starts == tuple((0, Placements(row[0], row[2], row[3])) for row in H100_PROFILES.values())


def test_what_is_free_once_it_is_full() -> None:
    full = [one for one in session("smi550_mig_instances_and_errors") if "-lgip" in one.argv]
    assert [(one.name, one.free, one.total) for _gpu, one in mig_offers.parse_lgip(full[0].text)] == [
        (key, 0, row[1]) for key, row in H100_PROFILES.items()
    ]


# -- the instances

LGI = {
    **{
        name: [
            GpuInstance(9, "1g.5gb", 19, 2, 1),
            GpuInstance(3, "2g.10gb", 14, 0, 2),
            GpuInstance(2, "3g.20gb", 9, 4, 4),
        ]
        for name in A100
    },
    "smi550_mig_instances_and_errors": [
        GpuInstance(9, "1g.10gb", 19, 2, 1),
        GpuInstance(10, "1g.10gb", 19, 3, 1),
        GpuInstance(3, "2g.20gb", 14, 0, 2),
        GpuInstance(2, "3g.40gb", 9, 4, 4),
    ],
    "real_mig_session_a30_535": [
        GpuInstance(3, "1g.6gb", 14, 0, 1),
        GpuInstance(4, "1g.6gb", 14, 1, 1),
        GpuInstance(2, "2g.12gb", 5, 2, 2),
    ],
    "real_mig_session_rtxpro6000": [
        GpuInstance(5, "1g.24gb", 14, 6, 3),
        GpuInstance(6, "1g.24gb", 14, 9, 3),
        GpuInstance(1, "2g.48gb", 5, 0, 6),
    ],
}


@pytest.mark.parametrize("name", LGI)
def test_gpu_instances(name: str) -> None:
    assert list(mig.Tables(host_that_says(said(name, "-lgi"))).gpu_instances(0)) == LGI[name]


@pytest.mark.parametrize("name", A100)
def test_compute_instances(name: str) -> None:
    assert mig.Tables(host_that_says(said(name, "-lci"))).compute_instances(0) == (
        ComputeInstance(9, 0, "1g.5gb", 0, 0, 1),
        ComputeInstance(3, 0, "2g.10gb", 1, 0, 2),
        ComputeInstance(2, 0, "3g.20gb", 2, 0, 3),
    )


def test_compute_instances_that_share_a_gpu_instance() -> None:
    shared = said("smi550_mig_instances_and_errors", "-lci", 1)
    assert mig.parse_lci(shared.text) == (
        (0, ComputeInstance(0, 0, "1c.7g.80gb", 0, 0, 1)),
        (0, ComputeInstance(0, 1, "1c.7g.80gb", 0, 1, 1)),
        (0, ComputeInstance(0, 2, "2c.7g.80gb", 1, 2, 2)),
    )
    assert mig.parse_lci(said("smi550_mig_instances_and_errors", "-lci", 2).text) == (
        (0, ComputeInstance(0, 1, "1c.7g.80gb", 0, 1, 1)),
        (0, ComputeInstance(0, 2, "2c.7g.80gb", 1, 2, 2)),
    )


@pytest.mark.parametrize("name", [*A100, "smi550_mig_instances_and_errors"])
def test_what_compute_instances_a_gpu_instance_takes(name: str) -> None:
    """Drivers tell it of instances that exist (-lcip); a layout is checked before they do."""
    shown = set(re.findall(r"MIG (?:(\d)c\.)?(\d)g\.", said(name, "-lcip").text))
    assert {slices for _compute, slices in shown} >= {"1", "2", "3"}
    for slices in (1, 2, 3):
        sizes = sorted(int(compute or whole) for compute, whole in shown if int(whole) == slices)
        assert COMPUTE[slices] == tuple(sizes)


# -- all GPUs at once


def machine_with(*products: str, mig_off: tuple[int, ...] = ()) -> GpuHost:
    """GPUs with two instances each, but those without MIG mode."""
    machine = Machine.from_products(products)
    for index, card in enumerate(machine.cards):
        card.mig = card.mig_pending = index not in mig_off
        if card.mig:
            profiles = {"H100-80GB": "3g.40gb,1g.10gb", "A30-24GB": "2g.12gb,1g.6gb"}[products[index]]
            assert machine.smi(("nvidia-smi", "mig", "-i", str(index), "-cgi", profiles, "-C"))[0] == 0
    machine.calls.clear()
    return gpu_host(machine)


def names_of(tables: mig.Tables, gpu: int) -> list[list[str]]:
    gis, cis = tables.gpu_instances(gpu), tables.compute_instances(gpu)
    return [sorted(one.profile_name for one in gis), sorted(one.profile_name for one in cis)]


def test_each_listing_is_asked_once_for_all_gpus() -> None:
    host = machine_with("H100-80GB", "A30-24GB", "H100-80GB")
    tables = mig.Tables(host)
    for gpu, names in enumerate((["1g.10gb", "3g.40gb"], ["1g.6gb", "2g.12gb"], ["1g.10gb", "3g.40gb"])):
        assert names_of(tables, gpu) == [names, names]
        ids = [one.id for one in tables.offered(gpu)]
        assert (19 in ids) == (gpu != 1)  # the smallest profile of an H100; an A30 has none of this number
        assert sorted(one.profile_id for one in tables.placements(gpu)) == sorted(ids)
    assert host.machine.calls == [("mig", what) for what in ("-lgi", "-lci", "-lgip", "-lgipp")]


def test_a_dead_gpu_hides_the_listings_of_no_other() -> None:
    host = machine_with("H100-80GB", "H100-80GB", "H100-80GB")
    host.machine.cards[1].dead = "handle"
    tables = mig.Tables(host)
    for gpu in (0, 2):
        assert names_of(tables, gpu) == [["1g.10gb", "3g.40gb"]] * 2
    with pytest.raises(StepFailed, match="GPU is lost"):
        tables.gpu_instances(1)
    assert host.machine.calls.count(("mig", "-lgi")) == 1


def test_a_gpu_that_the_listing_of_all_leaves_out_is_asked_by_itself() -> None:
    """It has no instance, or it is the one of which the driver does not tell."""
    host = machine_with("H100-80GB", "H100-80GB", mig_off=(1,))
    host.machine.cards[1].mig = host.machine.cards[1].mig_pending = True
    tables = mig.Tables(host)
    assert names_of(tables, 0) == [["1g.10gb", "3g.40gb"]] * 2
    assert tables.gpu_instances(1) == ()
    assert host.machine.calls[-1] == ("mig", "-lgi", "-i", "1")
    host.machine.faults.append(Fault("mig -lci -i 1", rc=4, text="No GPU instances found: Insufficient Permissions\n"))
    with pytest.raises(Unreadable):
        tables.compute_instances(1)


def test_where_no_gpu_has_an_instance_none_is_asked_by_itself() -> None:
    host = machine_with("H100-80GB", "H100-80GB", mig_off=(0, 1))
    for card in host.machine.cards:
        card.mig = card.mig_pending = True
    tables = mig.Tables(host)
    assert [tables.gpu_instances(gpu) for gpu in (0, 1)] == [(), ()]
    assert host.machine.calls == [("mig", "-lgi")]


# -- nothing to list, and no answer

ASKS = (mig.Tables.offered, mig.Tables.placements, mig.Tables.gpu_instances, mig.Tables.compute_instances)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(6, "No MIG-enabled devices found.\n"),  # up to R535
        Answer(0, "No MIG-enabled devices found.\n"),  # R550 and later
        Answer(6, "No MIG-supported devices found.\n"),
        Answer(6, "No GPU instances found: Not Found\n"),
        Answer(6, "No compute instances found: Not Found\n"),
    ],
)
def test_none_is_no_fault(answer: Answer) -> None:
    host = FakeHost(programs={"nvidia-smi": lambda _host, _argv: answer})
    assert [ask(mig.Tables(host), 0) for ask in ASKS] == [()] * len(ASKS)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(4, "Failed to display GPU instances: Insufficient Permissions\n"), "Insufficient Permissions"),
        (Answer(4, "No GPU instances found: Insufficient Permissions\n"), "Insufficient Permissions"),
        (Answer(6, "No devices were found\n"), "No devices were found"),
        (Answer(0, ""), "prints nothing"),
        (Answer(0, "\n"), "prints nothing"),
        (Answer(255, "Unable to determine the device handle for GPU0: 0000:04:00.0: Unknown Error\n"), "Unknown Error"),
        (Answer(6, "No GPU instances found: Not Found\nand more\n"), "and more"),
        (Answer(6, "No MIG-enabled devices found.\n", "Unable to determine the device handle for GPU0\n"), "handle"),
    ],
)
def test_a_listing_that_is_none_is_a_fault(answer: Answer, words: str) -> None:
    host = FakeHost(programs={"nvidia-smi": lambda _host, _argv: answer})
    for ask in ASKS:
        with pytest.raises(StepFailed, match=words) as fault:
            ask(mig.Tables(host), 0)
        assert isinstance(fault.value, Unreadable) == (answer.rc == 4)


def test_the_rows_are_of_the_gpu_that_was_asked_for() -> None:
    host = host_that_says(said("smi470_a100_session", "-lgi"))
    with pytest.raises(StepFailed, match="-i 3 lists GPU 0"):
        mig.Tables(host).gpu_instances(3)
    assert host.asked[-1] == ("nvidia-smi", "mig", "-lgi", "-i", "3")
    assert len(mig.Tables(host).gpu_instances(0)) == 3


def test_two_gpus_in_one_answer_are_not_one() -> None:
    text = said("smi470_a100_session", "-lgi").text.replace("|   0  MIG 3g", "|   1  MIG 3g")
    host = FakeHost(programs={"nvidia-smi": lambda _host, _argv: Answer(0, text)})
    tables = mig.Tables(host)
    assert [len(tables.gpu_instances(gpu)) for gpu in (0, 1)] == [2, 1]
    with pytest.raises(StepFailed, match="-i 2 lists GPU 0, 1"):
        tables.gpu_instances(2)
    assert [gpu for gpu, _one in mig.parse_lgi(text)] == [0, 0, 1]


def test_a_profile_of_a_form_that_no_one_knows_is_named() -> None:
    text = said("smi470_a100_session", "-lgip").text.replace("MIG 2g.10gb  ", "MIG 2x.10gb  ")
    with pytest.raises(StepFailed, match=r"'2x\.10gb'"):
        mig_offers.parse_lgip(text)
