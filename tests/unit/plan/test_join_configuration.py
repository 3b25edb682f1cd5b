# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The JoinConfiguration, by the tables of fields of v1beta3 and v1beta4."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.secret import SLOT
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.join_configuration import render
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import Settings, Taint

PIN = "ab" * 32
WANT = Settings("https://k8s.example.com:443", "k8s.example.com:443", PIN)
TAINTED = WANT._replace(taints=(Taint("nvidia.com/gpu", "present", "NoSchedule"), Taint("drain", "", "NoExecute")))
LABELS = {"tier": "gpu", "bcd.dev/site": "fra"}
EXPECTED: dict[str, Any] = {
    "kind": "JoinConfiguration",
    "discovery": {
        "bootstrapToken": {
            "apiServerEndpoint": "k8s.example.com:443",
            "token": SLOT,
            "caCertHashes": [f"sha256:{PIN}"],
        }
    },
    "nodeRegistration": {"name": "gpu-01", "criSocket": "unix:///run/containerd/containerd.sock"},
}


def loaded(want: Settings, labels: dict[str, str], minor: int) -> Any:
    return yaml.safe_load(render(want, "gpu-01", labels, minor))


@pytest.mark.parametrize("minor", [22, 26, 28, 30])
def test_v1beta3_bounds_the_discovery_alone(minor: int) -> None:
    found = loaded(WANT, {}, minor)
    assert found.pop("apiVersion") == "kubeadm.k8s.io/v1beta3"
    assert found["discovery"].pop("timeout") == "30s"
    assert found == EXPECTED


@pytest.mark.parametrize("minor", [31, 36])
def test_v1beta4_bounds_every_wait(minor: int) -> None:
    found = loaded(WANT, {}, minor)
    assert found.pop("apiVersion") == "kubeadm.k8s.io/v1beta4"
    waits = found.pop("timeouts")
    assert waits["discovery"] == "30s"
    assert set(waits) == {"discovery", "tlsBootstrap", "kubeletHealthCheck", "kubernetesAPICall"}
    assert found == EXPECTED


def test_labels_are_arguments_of_the_kubelet_in_the_form_of_the_version() -> None:
    words = "bcd.dev/site=fra,tier=gpu"
    old, new = (loaded(WANT, LABELS, minor)["nodeRegistration"] for minor in (30, 31))
    assert old["kubeletExtraArgs"] == {"node-labels": words}
    assert new["kubeletExtraArgs"] == [{"name": "node-labels", "value": words}]


@pytest.mark.parametrize("minor", [30, 31])
def test_taints_have_a_key_and_an_effect_and_perhaps_a_value(minor: int) -> None:
    assert loaded(TAINTED, {}, minor)["nodeRegistration"]["taints"] == [
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
        {"key": "drain", "effect": "NoExecute"},
    ]


# No such value gets past the checks of the settings; were it to, it would still be a value.
@given(value=some.text(some.characters(codec="ascii")), minor=some.sampled_from([30, 31]))
def test_no_value_ends_early(value: str, minor: int) -> None:
    want = WANT._replace(taints=(Taint(value or "x", value, "NoSchedule"),))
    found = yaml.safe_load(render(want, value, {"a": value}, minor))
    assert found["nodeRegistration"]["name"] == value
    assert found["nodeRegistration"]["taints"][0]["key"] == (value or "x")
    assert set(found) - {"timeouts"} == {"apiVersion", "kind", "discovery", "nodeRegistration"}
