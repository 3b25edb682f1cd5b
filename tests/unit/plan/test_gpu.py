# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs as values: selectors, generations, what is no value, and whose GPU a device is."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import gpu as plan
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.gpu import (
    Gpu,
    Select,
    first_match,
    matches,
    value,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.gpu_generations import generation
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.gpu_select import check_select
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.gpu_users import is_attendant
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.pci import normal_pci
from tests import captures

A = "GPU-5f1c2a90-0000-4000-8000-000000000001"
B = "GPU-5f1c2a90-0000-4000-8000-000000000002"
H100 = Gpu(0, A, "00000000:17:00.0", "NVIDIA H100 80GB HBM3")
GB300 = Gpu(1, B, "00000018:06:00.0", "NVIDIA GB300")


# -- values


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("700.00", "700.00"),
        (" Enabled ", "Enabled"),
        ("[N/A]", None),
        ("[Not Supported]", None),
        ("[Unknown Error]", None),
        ("[GPU is lost]", None),
        ("[GPU requires reset]", None),
        ("[Insufficient Permissions]", None),
        ("[Resource not in correct state to perform requested operation]", None),
        ("[Requested functionality has been deprecated]", None),
        ("[what no driver prints today]", None),
        ("N/A", None),  # -q -x has no brackets
        ("Requested functionality has been deprecated", None),
        ("", None),
    ],
)
def test_what_stands_in_brackets_is_no_value(text: str, said: str | None) -> None:
    assert value(text) == said


# -- selectors


@pytest.mark.parametrize(
    ("given", "select"),
    [
        ({"uuid": A}, Select("uuid", A)),
        ({"pci": "0000:17:00.0"}, Select("pci", "0000:17:00.0")),
        ({"index": 0}, Select("index", 0)),
        ({"model": "*H100*"}, Select("model", "*H100*")),
        ({"model": "*H100*", "uuid": None, "pci": None, "index": None}, Select("model", "*H100*")),
    ],
)
def test_one_of_the_four_selects(given: dict[str, Any], select: Select) -> None:
    assert check_select(given, "gpu-settings: gpus[0].select") == select


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "takes exactly one of uuid, pci, index and model, not nothing"),
        ({"uuid": A, "index": 0}, "takes exactly one of uuid, pci, index and model, not uuid, index"),
        ({"name": "H100"}, "takes exactly one of uuid, pci, index and model, not name"),
        ({"index": True}, ".index is True, not an index from 0 on"),
        ({"index": -1}, ".index is -1, not an index from 0 on"),
        ({"index": "0"}, ".index is '0', not an index from 0 on"),
        ({"uuid": "MIG-0f1b7064-c96d-5f72-b79f-b5d83f478054"}, ".uuid is 'MIG-0f1b7064"),
        ({"uuid": "GPU-1"}, ".uuid is 'GPU-1', not a GPU's UUID"),
        ({"pci": "17:00.0"}, ".pci is '17:00.0', not a PCI address with its domain"),
        ({"pci": "00000:17:00.0"}, ".pci is '00000:17:00.0'"),
        ({"model": " "}, ".model is ' ', not a pattern over product names"),
    ],
)
def test_anything_else_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused) as refused:
        check_select(given, "gpu-settings: gpus[0].select")
    assert refused.value.message.startswith("gpu-settings: gpus[0].select")
    assert said in refused.value.message
    assert refused.value.message.endswith(": correct the settings")


def test_the_table_of_fields_is_what_a_selector_takes() -> None:
    assert [(field.wire, field.option, field.types) for field in plan.SELECT] == [
        ("uuid", "uuid", (str,)),
        ("pci", "pci", (str,)),
        ("index", "index", (int,)),
        ("model", "model", (str,)),
    ]


@pytest.mark.parametrize(
    ("select", "taken"),
    [
        (Select("uuid", A), [H100]),
        (Select("uuid", A.upper()), [H100]),
        (Select("pci", "0000:17:00.0"), [H100]),
        (Select("pci", "00000000:17:00.0"), [H100]),
        (Select("pci", "0018:06:00.0"), [GB300]),
        (Select("pci", "0000:06:00.0"), []),  # another domain
        (Select("index", 1), [GB300]),
        (Select("index", 2), []),
        (Select("model", "NVIDIA H100 80GB HBM3"), [H100]),
        (Select("model", "*H100*"), [H100]),
        (Select("model", "H100"), []),  # the whole name
        (Select("model", "*h100*"), []),  # in its case
        (Select("model", "*B[23]00"), [GB300]),
        (Select("model", "*"), [H100, GB300]),
    ],
)
def test_whom_a_selector_takes(select: Select, taken: list[Gpu]) -> None:
    assert [gpu for gpu in (H100, GB300) if matches(select, gpu)] == taken


def test_the_first_match_wins() -> None:
    selects = (Select("index", 7), Select("model", "*H100*"), Select("uuid", A))
    assert (first_match(selects, H100), first_match(selects, GB300), first_match((), H100)) == (1, None, None)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("0000:ca:00.0", "00000000:CA:00.0"),
        ("00000018:06:00.0", "00000018:06:00.0"),
        ("0008:06:00.1", "00000008:06:00.1"),
        ("ca:00.0", None),
        ("0000:ca:00.8", None),
        ("", None),
    ],
)
def test_pci_addresses_in_one_form(text: str, normal: str | None) -> None:
    assert normal_pci(text) == normal


# -- generations: by whole words


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("NVIDIA A100-SXM4-40GB", "ampere"),
        ("NVIDIA A100 80GB PCIe", "ampere"),
        ("NVIDIA A30", "ampere"),
        ("NVIDIA A2", "ampere"),
        ("NVIDIA PG506-96", "ampere"),
        ("NVIDIA RTX A6000", "ampere"),
        ("NVIDIA GeForce RTX 3090", "ampere"),
        ("NVIDIA H100 80GB HBM3", "hopper"),
        ("NVIDIA H100 NVL", "hopper"),
        ("NVIDIA H200", "hopper"),
        ("NVIDIA GH200 480GB", "hopper"),
        ("NVIDIA GH200 144G HBM3e", "hopper"),
        ("NVIDIA B200", "blackwell"),
        ("NVIDIA GB200", "blackwell"),
        ("NVIDIA B300 SXM6 AC", "blackwell"),
        ("NVIDIA GB300", "blackwell"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "blackwell"),
        ("NVIDIA GeForce RTX 5090", "blackwell"),
        ("NVIDIA L40S", "ada"),
        ("NVIDIA L4", "ada"),
        ("NVIDIA RTX 6000 Ada Generation", "ada"),
        ("NVIDIA GeForce RTX 4090", "ada"),
        ("Tesla T4", "turing"),
        ("Quadro RTX 6000", "turing"),
        ("NVIDIA TITAN RTX", "turing"),
        ("NVIDIA GeForce GTX 1660 SUPER", "turing"),
        ("Tesla V100-SXM2-32GB", "volta"),
        ("NVIDIA TITAN V", "volta"),
        ("Quadro GV100", "volta"),
        ("Tesla P100-PCIE-16GB", "pascal"),
        ("NVIDIA GeForce GTX 1080 Ti", "pascal"),
        ("NVIDIA GeForce GT 1030", "pascal"),
        ("NVIDIA TITAN X (Pascal)", "pascal"),
        ("Tesla M60", "maxwell"),
        ("NVIDIA GeForce GTX TITAN X", "maxwell"),
        ("NVIDIA Vera Rubin", "unknown"),
        ("NVIDIA H2000", "unknown"),  # no H200
        ("", "unknown"),
    ],
)
def test_the_generation_of_a_product(name: str, known: str) -> None:
    assert generation(name) == known


def test_every_product_of_the_illustrated_rows_has_a_generation() -> None:
    names = {line.split(", ")[2] for line in captures.raw("derived_query_rows.csv").splitlines()}
    assert {name: generation(name) for name in names} == {
        "NVIDIA A100-SXM4-40GB": "ampere",
        "NVIDIA B200": "blackwell",
        "NVIDIA GB200": "blackwell",
        "NVIDIA GB300": "blackwell",
        "NVIDIA H100 80GB HBM3": "hopper",
        "NVIDIA L40S": "ada",
        "Tesla T4": "turing",
    }


# -- programs


def test_who_only_attends_to_gpus() -> None:
    attending = (
        "nvidia-persistenced",
        "nvidia-persiste",
        "nv-fabricmanager",
        "nv-fabricmanage",
        "nv-hostengine",
        "gpu-feature-dis",
    )
    assert [is_attendant(name) for name in attending] == [True] * 6
    using = ("python3", "Xorg", "nvidia-cuda-mps-server", "nvidia", "nvidia-smi-of-mine", "")
    assert [is_attendant(name) for name in using] == [False] * 6
