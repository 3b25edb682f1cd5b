# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The YAML that is read without a library is what a library would read."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from tests.cluster import yaml_text
from tests.cluster.wire import bootstrap_conf, kubelet_conf

JOIN = """\
# a comment
apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken:
    apiServerEndpoint: "[fd00::1]:6443"
    token: 'abcdef.0123456789abcdef'
    caCertHashes:
    - sha256:00ff
    - "sha256:\\u0061"   # with a comment
nodeRegistration:
  name: gpu-01
  taints:
    - key: a
      value: "true"
      effect: NoSchedule
    - {"key": "b", "effect": "NoExecute"}
  kubeletExtraArgs: []
  imagePullSerial: true
timeouts: {}
number: 12
empty:
quoted: 'it''s'
---
second: document
"""
READ: dict[str, Any] = {
    "apiVersion": "kubeadm.k8s.io/v1beta4",
    "kind": "JoinConfiguration",
    "discovery": {
        "bootstrapToken": {
            "apiServerEndpoint": "[fd00::1]:6443",
            "token": "abcdef.0123456789abcdef",
            "caCertHashes": ["sha256:00ff", "sha256:a"],
        }
    },
    "nodeRegistration": {
        "name": "gpu-01",
        "taints": [{"key": "a", "value": "true", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"}],
        "kubeletExtraArgs": [],
        "imagePullSerial": True,
    },
    "timeouts": {},
    "number": 12,
    "empty": None,
    "quoted": "it's",
}
KUBECONFIGS = [
    bootstrap_conf("https://10.0.0.1:6443", "certificate\n", "abcdef.0123456789abcdef"),
    kubelet_conf("https://10.0.0.1:6443", "certificate\n", "/var/lib/kubelet/pki/kubelet-client-current.pem"),
]


def test_a_configuration() -> None:
    assert yaml_text.plain(JOIN) == READ


def test_json() -> None:
    assert yaml_text.plain('{"a": [1, "b", {"c": null}]}') == {"a": [1, "b", {"c": None}]}


def test_a_kubeconfig() -> None:
    found = yaml_text.plain(KUBECONFIGS[1])
    assert found["clusters"] == [
        {
            "cluster": {"certificate-authority-data": "Y2VydGlmaWNhdGUK", "server": "https://10.0.0.1:6443"},
            "name": "default-cluster",
        }
    ]
    assert found["users"][0]["user"]["client-key"] == "/var/lib/kubelet/pki/kubelet-client-current.pem"
    assert yaml_text.plain(KUBECONFIGS[0])["users"][0]["user"] == {"token": "abcdef.0123456789abcdef"}


@pytest.mark.parametrize("text", ["a: b\n c d\n", "a: 'b\n", '{"a": ', "a: 1\na: 2\n"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(yaml_text.Malformed):
        yaml_text.plain(text)


def test_what_is_written_is_read_again() -> None:
    value = {"b": {"c": True, "d": ["x", "1"]}, "a": "unix:///run/x.sock", "e": "yes: no", "f": 1, "g": "true"}
    text = yaml_text.dump(value)
    assert text.splitlines()[0] == "a: unix:///run/x.sock"
    assert "  c: true" in text.splitlines()
    assert yaml_text.plain(text) == value


def test_the_library_agrees_where_there_is_one() -> None:
    """A managed host's Python has none: there `plain` is all that reads."""
    has = importlib.util.find_spec("yaml") is not None
    for text in (JOIN, *KUBECONFIGS):
        assert yaml_text.load(text) == yaml_text.plain(text), f"PyYAML is installed: {has}"
