# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a Node that was made anew has of the kubelet's arguments, as kubeadm writes them."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_flags import registered_again
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import Membership, Node, Taint

RECORD = Membership("https://10.0.0.1:6443", "ab" * 32, "gpu-01", {"team": "ml"}, (Taint("t", "2", "NoExecute"),), "1")
FLAGS = (
    'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///run/containerd/containerd.sock '
    '--node-labels=pool=a,empty=,gone=x --register-with-taints=t=1:NoExecute,bare:NoSchedule"\n'
)
NODE = Node(
    "gpu-01",
    {"pool": "a", "empty": "", "gone": "y", "team": "ml", "kubernetes.io/os": "linux"},
    (Taint("t", "1", "NoExecute"), Taint("bare", "", "NoSchedule"), Taint("theirs", "", "NoSchedule")),
)


def test_it_is_ours_as_far_as_the_node_shows_it() -> None:
    found = registered_again(RECORD, FLAGS, NODE)
    assert found.labels == {"team": "ml", "pool": "a", "empty": ""}
    assert found.taints == (Taint("bare", "", "NoSchedule"), Taint("t", "1", "NoExecute"))


@pytest.mark.parametrize("flags", ["", 'KUBELET_KUBEADM_ARGS=""\n', "KUBELET_KUBEADM_ARGS=--my-node-labels=pool=a\n"])
def test_without_such_arguments_the_record_stays(flags: str) -> None:
    assert registered_again(RECORD, flags, NODE) == RECORD


@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_the_first_argument_is_one_too(quote: str) -> None:
    flags = f"KUBELET_KUBEADM_ARGS={quote}--node-labels=pool=a{quote}\n"
    assert registered_again(RECORD, flags, NODE).labels == {"team": "ml", "pool": "a"}
