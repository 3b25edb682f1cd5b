# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of k8s-join: their forms, and what they come to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given as given_by
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.secret import UNNAMED
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.k8s_join_settings import PLAIN, check
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import Taint
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.label_rules import check_labels

PIN = "5f3c" * 16
CLUSTER = {"apiServer": "https://10.0.0.1:6443", "caCertSha256": PIN}


def with_server(address: str) -> dict[str, Any]:
    return {**CLUSTER, "apiServer": address}


def test_the_cluster_is_enough() -> None:
    found = check(CLUSTER)
    assert (found.api_server, found.endpoint, found.pin) == ("https://10.0.0.1:6443", "10.0.0.1:6443", PIN)
    assert (found.reference, found.labels, found.taints, found.minor, found.version) == (UNNAMED, {}, (), "", "")


def test_all_of_them() -> None:
    found = check(
        {
            **CLUSTER,
            "joinTokenRef": "vault:k8s/join",
            "labels": {"tier": "gpu"},
            "taints": ["nvidia.com/gpu=present:NoSchedule", "drain:NoExecute"],
            "kubernetesVersion": "v1.31.4",
        }
    )
    assert (found.reference, found.labels, found.minor, found.version) == (
        "vault:k8s/join",
        {"tier": "gpu"},
        "1.31",
        "1.31.4",
    )
    assert found.taints == (Taint("nvidia.com/gpu", "present", "NoSchedule"), Taint("drain", "", "NoExecute"))


@pytest.mark.parametrize(
    ("given", "endpoint"),
    [
        ("https://k8s.example.com", "k8s.example.com:443"),  # https's own port, which kubeadm has to be told
        ("https://K8S.Example.COM:6443", "k8s.example.com:6443"),
        ("HTTPS://10.0.0.1", "10.0.0.1:443"),
        ("https://[2001:DB8::1]:6443", "[2001:db8::1]:6443"),
        ("https://[2001:db8:0:0:0:0:0:1]", "[2001:db8::1]:443"),
        ("https://api:06443", "api:6443"),
    ],
)
def test_one_server_has_one_form(given: str, endpoint: str) -> None:
    found = check(with_server(given))
    assert (found.endpoint, found.api_server) == (endpoint, f"https://{endpoint}")


@pytest.mark.parametrize(
    "given",
    [
        "",
        "10.0.0.1:6443",
        "http://10.0.0.1:6443",
        "https://",
        "https://:6443",
        "https://10.0.0.1:6443/",
        "https://10.0.0.1:6443/api",
        "https://10.0.0.1:6443?x=1",
        "https://10.0.0.1#sha256",
        "https://admin@10.0.0.1",
        "https://10.0.0.1:0",
        "https://10.0.0.1:65536",
        "https://10.0.0.1:",
        "https://10.0.0.256",
        "https://10.0.1",
        "https://10.0.0.01",
        "https://-api.example.com",
        "https://api_1.example.com",
        "https://api..example.com",
        "https://2001:db8::1",
        "https://[2001:db8::1",
        "https://[fe80::1%eth0]",
        "https://[10.0.0.1]",
        "https://a b",
        "https://api\n",
        'https://api": x',
    ],
)
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(Refused, match="apiServer"):
        check(with_server(given))


@pytest.mark.parametrize("given", [PIN.upper(), f"sha256:{PIN}", f"SHA256:{PIN.upper()}"])
def test_a_pin_is_its_digits(given: str) -> None:
    assert check({**CLUSTER, "caCertSha256": given}).pin == PIN


@pytest.mark.parametrize("given", ["", PIN[:-1], PIN + "0", f"sha1:{PIN}", "g" * 64, f"{PIN} "])
def test_what_is_no_pin_is_refused(given: str) -> None:
    with pytest.raises(Refused, match="caCertSha256"):
        check({**CLUSTER, "caCertSha256": given})


@pytest.mark.parametrize(
    ("given", "minor", "version"),
    [("1.31", "1.31", ""), ("v1.31", "1.31", ""), ("1.36.2", "1.36", "1.36.2"), ("v1.28.0", "1.28", "1.28.0")],
)
def test_a_version_is_a_minor_and_perhaps_a_patch(given: str, minor: str, version: str) -> None:
    found = check({**CLUSTER, "kubernetesVersion": given})
    assert (found.minor, found.version) == (minor, version)


@pytest.mark.parametrize("given", ["", "1", "2.31", "1.031", "1.31.", "1.31.x", "latest", "1.31.4-1.1", "1.31\n"])
def test_what_is_no_version_is_refused(given: str) -> None:
    with pytest.raises(Refused, match="kubernetesVersion"):
        check({**CLUSTER, "kubernetesVersion": given})


@pytest.mark.parametrize(
    "given",
    [
        {"apiServer": 6443},
        {"kubernetesVersion": 1.31},
        {"taints": "a:NoSchedule"},
        {"taints": ["a:Bogus"]},
        {"taints": ["NoSchedule"]},
        {"labels": ["a=b"]},
        {"labels": {"node-role.kubernetes.io/worker": ""}},
        {"labels": {"gpu": True}},
        {"joinTokenRef": None},
        {"gpu": "nvidia"},
    ],
)
def test_what_is_wrong_with_the_rest_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refusal:
        check({**CLUSTER, **given})
    assert next(iter(given)) in refusal.value.message


def test_the_cluster_must_be_named() -> None:
    with pytest.raises(Refused, match="apiServer and caCertSha256 must be given"):
        check({})
    with pytest.raises(Refused, match="caCertSha256 must be given"):
        check({"apiServer": "https://a"})


TEXTS = st.text("aB0-_./=\n", max_size=4) | st.from_regex(PLAIN) | st.integers(62, 64).map(lambda size: "a" * size)


@given_by(st.dictionaries(TEXTS, TEXTS, max_size=3))
def test_labels_that_are_taken_at_once_are_those_that_the_rules_take(labels: dict[str, str]) -> None:
    if all(PLAIN.fullmatch(text) for pair in labels.items() for text in pair):
        check_labels(labels)
    try:
        check_labels(labels)
    except Refused:
        with pytest.raises(Refused):
            check({**CLUSTER, "labels": labels})
    else:
        assert check({**CLUSTER, "labels": labels}).labels == labels
