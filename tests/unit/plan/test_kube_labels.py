# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels: what a kubelet may set on its own Node (Kubernetes' NodeRestriction), and which this machine is to have."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.secret import Given
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_labels import (
    Gpus,
    as_value,
    wanted,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import Settings
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.label_rules import check_labels

PIN = "0" * 64
OURS = ("bcd.dev/node-id", "bcd.dev/site", "bcd.dev/gpu.count", "bcd.dev/gpu.product", "bcd.dev/gpu.driver")


def settings(**labels: str) -> Settings:
    return Settings("https://10.0.0.1:6443", "10.0.0.1:6443", PIN, labels=labels)


def refusal(labels: dict[Any, Any]) -> str:
    with pytest.raises(Refused) as fault:
        check_labels(labels)
    return fault.value.message


# -- keys


@pytest.mark.parametrize(
    "key",
    [
        "pool",
        "a",
        "A.b_c-D",
        "nvidia.com/gpu.deploy",
        "bcd.dev/rack",  # below our domain, and not one that we set
        "example.com/a",
        "node.kubernetes.io/pool",
        "gpu.node.kubernetes.io/pool",
        "kubelet.kubernetes.io/x",
        "a.b.kubelet.kubernetes.io/x",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "mykubernetes.io/x",  # neither is a domain of theirs
        "k8s.io.example.com/x",
        "n" * 63,
        ".".join(["d" * 62] * 4) + "/" + "n" * 63,  # 251 characters before the slash
    ],
)
def test_what_a_kubelet_may_set(key: str) -> None:
    check_labels({key: "x"})


@pytest.mark.parametrize(
    "key",
    [
        "node-role.kubernetes.io/worker",
        "node-restriction.kubernetes.io/x",
        "a.node-restriction.kubernetes.io/x",
        "kubernetes.io/role",
        "kubernetes.io/metadata.name",
        "x.kubernetes.io/y",
        "topology.kubernetes.io/rack",
        "beta.kubernetes.io/x",
        "k8s.io/x",
        "cluster.x-k8s.k8s.io/x",
        "sub.k8s.io/x",
        "xnode.kubernetes.io/x",
    ],
)
def test_what_no_kubelet_may_set(key: str) -> None:
    assert f"'{key}' is one that Kubernetes lets no kubelet set" in refusal({key: "x"})


def test_the_host_name_is_the_kubelets_own_though_it_may_be_set() -> None:
    assert "'kubernetes.io/hostname' is the kubelet's own" in refusal({"kubernetes.io/hostname": "gpu-01"})


@pytest.mark.parametrize("key", OURS)
def test_what_this_machine_is_cannot_be_said_by_the_settings(key: str) -> None:
    assert f"'{key}' is set from what this machine is" in refusal({key: "x"})


@pytest.mark.parametrize(
    "key",
    [
        "",
        "a,b",
        "a=b",
        "a b",
        "-a",
        "a-",
        ".a",
        "a_",
        "a:b",
        "ä",
        "n" * 64,
        "example.com/",
        "example.com/" + "n" * 64,
        "a\n",
    ],
)
def test_a_key_without_a_name_of_the_right_form(key: str) -> None:
    assert f"the key {key!r} has no name of up to 63" in refusal({key: "x"})


@pytest.mark.parametrize(
    "prefix",
    ["", "Example.com", "a_b", "-a.com", "a.-b", "a..b", "a/b", "a b", ".".join(["d" * 63] * 4), "a=b", "a,b"],
)
def test_a_key_without_a_domain_of_the_right_form(prefix: str) -> None:
    assert f"the key {prefix + '/x'!r} has before its '/' no domain of up to 253" in refusal({f"{prefix}/x": "x"})


# -- values


@pytest.mark.parametrize("value", ["", "a", "1", "A.b_c-D", "v" * 63])
def test_values_that_fit(value: str) -> None:
    check_labels({"pool": value})


@pytest.mark.parametrize("value", ["NVIDIA H100 80GB", "-a", "a-", ".a", "a,b", "a=b", "a/b", "é", "v" * 64, "a\n"])
def test_values_that_do_not(value: str) -> None:
    assert f"the value of 'pool', {value!r}, is not up to 63" in refusal({"pool": value})


@pytest.mark.parametrize("value", [1, True, None, ["a"]])
def test_a_value_that_is_no_text(value: Any) -> None:
    assert f"the value of 'pool', {value!r}, is not text" in refusal({"pool": value})


def test_a_key_that_is_no_text() -> None:
    assert "the key 1 is not text" in refusal({1: "a"})


def test_one_wrong_label_refuses_all_and_all_that_is_wrong_is_named_at_once() -> None:
    said = refusal({"good": "1", "k8s.io/x": "a b", "-": "y", "node-role.kubernetes.io/gpu": ""})
    for wrong in ("'k8s.io/x' is one that", "the value of 'k8s.io/x', 'a b'", "the key '-' has", "node-role"):
        assert wrong in said
    assert "good" not in said
    assert said.startswith("k8s-join: labels: ")


# -- the labels of this machine


def test_what_this_machine_is_stands_beside_the_labels_of_the_settings() -> None:
    gpus = Gpus(8, ("NVIDIA H100 80GB HBM3",) * 8, "570.124.06")
    assert wanted(settings(pool="sandbox"), Given(node_id="node_7f", site="fra"), gpus) == {
        "pool": "sandbox",
        "bcd.dev/node-id": "node_7f",
        "bcd.dev/site": "fra",
        "bcd.dev/gpu.count": "8",
        "bcd.dev/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "bcd.dev/gpu.driver": "570.124.06",
    }


def test_a_machine_without_gpus_of_which_nothing_was_said_has_the_labels_of_the_settings_alone() -> None:
    shown = {"bcd.dev/gpu.count": "8", "bcd.dev/gpu.driver": "570.124.06", "else": "x"}
    assert wanted(settings(pool="a"), Given(), Gpus(), shown) == {"pool": "a"}


def test_what_is_not_known_now_stays_as_the_node_shows_it() -> None:
    shown = {key: f"v{at}" for at, key in enumerate(OURS)}
    assert wanted(settings(), Given(), None, shown) == shown
    assert wanted(settings(), Given(), None) == {}
    assert wanted(settings(), Given(node_id="n1"), None, shown) == {**shown, "bcd.dev/node-id": "n1"}


def test_products_that_differ_have_no_label() -> None:
    found = wanted(settings(), Given(), Gpus(2, ("NVIDIA L4", "NVIDIA A2"), "570.1"))
    assert found == {"bcd.dev/gpu.count": "2", "bcd.dev/gpu.driver": "570.1"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("NVIDIA H100 80GB HBM3", "NVIDIA-H100-80GB-HBM3"),
        ("Quadro RTX 6000/8000", "Quadro-RTX-6000-8000"),
        ("  (NVIDIA)  ", "NVIDIA"),
        ("a" * 62 + " b", "a" * 62),  # cut at 63 characters, and then no "-" at the end
        ("_-.", ""),
        ("日本", ""),
        ("", ""),
    ],
)
def test_any_text_as_a_value(text: str, value: str) -> None:
    assert as_value(text) == value


@given(st.text(max_size=200), st.text(max_size=80), st.lists(st.text(max_size=80), max_size=3), st.text(max_size=30))
def test_whatever_this_machine_is_its_labels_are_ones_that_a_kubelet_may_set(
    node_id: str, site: str, products: list[str], driver: str
) -> None:
    gpus = Gpus(len(products), tuple(products), driver)
    for key, value in wanted(settings(), Given(node_id=node_id, site=site), gpus).items():
        assert key in OURS
        assert value
        check_labels({"pool": value})
