# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubelet.conf as the kubelet writes it, and what is not so."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import kubeconfig_yaml
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import KUBELET_CONF
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kubeconfig import WRITTEN as FORM
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kubeconfig import read

CA = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
CURRENT = "/var/lib/kubelet/pki/kubelet-client-current.pem"
WRITTEN = f"""apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: {base64.b64encode(CA.encode()).decode()}
    server: https://10.77.0.1:6443
  name: default-cluster
contexts:
- context:
    cluster: default-cluster
    namespace: default
    user: default-auth
  name: default-context
current-context: default-context
kind: Config
preferences: {{}}
users:
- name: default-auth
  user:
    client-certificate: {CURRENT}
    client-key: {CURRENT}
"""


def test_it_is_read_as_the_kubelet_writes_it() -> None:
    found = read(WRITTEN, KUBELET_CONF)
    assert found == ("https://10.77.0.1:6443", CA, "", "", CURRENT)


def test_paths_and_what_is_inside_are_told_apart() -> None:
    data = base64.b64encode(b"PEM").decode()
    text = WRITTEN.replace(f"client-certificate: {CURRENT}", f"client-certificate-data: {data}")
    line = next(line for line in WRITTEN.splitlines() if "certificate-authority-data" in line)
    text = text.replace(line, "    certificate-authority: /etc/kubernetes/pki/ca.crt")
    found = read(text, KUBELET_CONF)
    assert (found.ca, found.ca_file, found.certificate, found.certificate_file) == (
        "",
        "/etc/kubernetes/pki/ca.crt",
        "PEM",
        "",
    )


def test_the_current_context_counts() -> None:
    other = WRITTEN.replace("contexts:\n", "contexts:\n- context:\n    cluster: gone\n    user: gone\n  name: old\n", 1)
    assert read(other, KUBELET_CONF).server == "https://10.77.0.1:6443"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("current-context: default-context\n", "", "has no current-context"),
        ("current-context: default-context", "current-context: other", "has no other"),
        ("    server: https://10.77.0.1:6443\n", "", "has no server"),
        ("  name: default-cluster", "  name: another", "has no default-cluster"),
        ("certificate-authority-data: ", "certificate-authority-data: =", "is not as kubeadm writes it"),
        (
            "- name: default-auth\n  user:\n",
            "- name: default-auth\n  user: x\n  other:\n",
            "is not as kubeadm writes it",
        ),
        ("apiVersion: v1", "apiVersion: &a v1", "line 1 is not as"),
        (WRITTEN, "", "line 1"),
        (WRITTEN, "- a\n", "is not as kubeadm writes it"),
    ],
)
def test_what_kubeadm_did_not_write_is_refused(before: str, after: str, said: str) -> None:
    assert before in WRITTEN
    with pytest.raises(Refused) as refusal:
        read(WRITTEN.replace(before, after, 1), KUBELET_CONF)
    assert said in refusal.value.message
    assert KUBELET_CONF in refusal.value.message
    assert "nvidia" not in refusal.value.message
    assert "kubeadm reset" in refusal.value.message


# -- the kubelet's own form is read at once: never as anything else than by the reader of YAML


@pytest.mark.parametrize(
    "text",
    [
        WRITTEN,
        WRITTEN.replace("preferences: {}\n", ""),
        WRITTEN.replace("10.77.0.1", "k8s.example.com"),
        WRITTEN.replace("10.77.0.1:6443", "[fd00::1]"),
    ],
)
def test_what_the_kubelet_writes_needs_no_reader_of_yaml(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = kubeconfig_yaml.read(text, KUBELET_CONF)
    monkeypatch.delattr(kubeconfig_yaml, "read")
    assert read(text, KUBELET_CONF) == known


@pytest.mark.parametrize("at", range(len(WRITTEN)))
def test_one_sign_more_or_less_is_read_alike_or_by_the_other_reader(at: int) -> None:
    for sign in ("", " ", "x", ":", "#", "\n", "'", "&", "0", "\t"):
        for text in (WRITTEN[:at] + sign + WRITTEN[at:], WRITTEN[:at] + sign + WRITTEN[at + 1 :]):
            if FORM.fullmatch(text):
                assert outcome(read, text) == outcome(kubeconfig_yaml.read, text), text


def outcome(reader: Any, text: str) -> Any:
    """What is read, or what is said of it."""
    try:
        return reader(text, KUBELET_CONF)
    except Refused as fault:
        return fault.message
