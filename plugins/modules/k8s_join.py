#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: k8s_join
short_description: Join a machine to a Kubernetes cluster as a worker, keep it there, and hand it back
version_added: 0.1.0
description:
  - Where packages are missing, adds the repository of O(kubernetes_version)'s minor release and installs kubeadm,
    kubelet and kubectl of it, and containerd where no other runtime's package is there. Debian's and RHEL's families
    are known. The packages are held, so that an upgrade of the system does not move them; this module upgrades none.
    On Debian's family the repository's key is fetched by this module, through the proxy that C(https_proxy) of the
    task's C(environment) names; what apt has of proxies it does not read.
  - Loads what the kernel needs, now and at each boot, and keeps swap off, also after a reboot. Where the cluster's
    kubelet configuration allows swap, it is left alone.
  - Gives containerd the systemd cgroup driver, and CDI where it has it. A configuration in which a key of anyone else
    would change is refused, with nothing written, and what a restarted containerd does not answer with is taken back.
    A containerd 1.x of a member whose kubelet is configured for cgroupfs is left as it is, and the way over is said.
  - containerd 1.x takes the settings of its CRI plugin from one file alone, the last that has some. There our drop-in
    has them all, and what another tool changes counts once the next pass has taken it in.
  - Joins while C(/etc/kubernetes/kubelet.conf) is not there, with a time limit at each stage. It has joined when the
    Node is seen with the kubelet's own credentials. What a join of ours that failed left behind is cleaned, what others
    left is refused.
  - Keeps the kubelet enabled and running, and the labels of the Node as asked. Taints are given when the Node is
    registered, as a kubelet may not change them later; while they differ, the condition V(KubernetesTaintsDrift) has
    the command for an admin of the cluster.
  - The Node's name is the host's name in lower case, with V(-) for V(_). Besides O(labels), the Node gets labels of
    ours below C(bcd.dev/), for O(node_id), O(site) and the GPUs.
  - Who joins a machine to a cluster gives that cluster root on it. So root decides which clusters are allowed, in
    C(/etc/bcd/config.toml) on the host. There C([kubernetes]) has C(allowed_clusters), a string of
    C(https://host:port#sha256:<64 hex digits>) with commas between them. Without it no join is made.
  - A machine that is in another cluster, or runs a control plane, is refused and never reset.
  - With O(state=absent), a machine that this module joined is drained as far as its kubelet may, reset and handed back.
    Its swap and its packages' holds are as they were. Nothing of that is done while a device of the machine is held or
    a volume is mounted. An etcd on the machine is not touched.
options:
  api_server:
    description:
      - The cluster's API server, C(https://host) or C(https://host:port). Required unless O(state=absent) or signed.
    type: str
  ca_cert_sha256:
    description:
      - The SHA-256 of the public key of the cluster's CA, 64 hex digits, V(sha256:) before them or not. Required unless
        O(state=absent) or signed.
      - C(kubeadm token create --print-join-command) prints it. By it a machine knows its cluster, whatever the address.
    type: str
  token:
    description:
      - A bootstrap token. It is needed while a join is due, and otherwise not looked at. Until it is given the unit
        waits.
      - It reaches kubeadm in a file of root's that is gone when kubeadm ends, and is shown nowhere.
      - Without pipelining Ansible copies a module to the host with its options in it, and where the run is killed that
        file stays. So set C(ansible_pipelining=true) for the task, as the role C(bcd_converge) does.
    type: str
  join_token_ref:
    description:
      - What names the token where tokens are kept. It is recorded only. The role C(bcd_converge) looks the token up by
        it.
    type: str
  labels:
    description:
      - The Node's labels. Keys below C(kubernetes.io) and C(k8s.io) are refused, but for those that a kubelet may set.
      - Values are strings, so V(true) and numbers take quotes.
      - Those of Kubernetes' own domains, such as V(topology.kubernetes.io/zone), a kubelet sets as they were at the
        join whenever it starts; the next pass has them as they are asked for.
    type: dict
  taints:
    description: The taints to register the Node with, C(key=value:Effect) or C(key:Effect) each.
    type: list
    elements: str
  kubernetes_version:
    description:
      - V(1.NN) or V(1.NN.P), in quotes. Its minor release is the one whose packages are installed, and is to be the
        cluster's or up to three older.
      - Required where packages are missing.
    type: raw
  node_id:
    description: The control plane's name of this node, for a label of the Node.
    type: str
  site:
    description: The site that the node belongs to, for a label of the Node.
    type: str
extends_documentation_fragment:
  - bettercompute.bcd.unit
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: A worker with GPUs
  bettercompute.bcd.k8s_join:
    api_server: https://10.0.0.1:6443
    ca_cert_sha256: 8a1f0c3e5b7d9f2a4c6e8b0d1f3a5c7e9b2d4f6a8c0e1b3d5f7a9c2e4b6d8f0a
    token: "{{ lookup('ansible.builtin.env', 'JOIN_TOKEN') }}"
    kubernetes_version: "1.34"
    labels:
      example.com/pool: gpu
    taints:
      - nvidia.com/gpu=present:NoSchedule

- name: Keep what joined before, which takes no token
  bettercompute.bcd.k8s_join:
    api_server: https://10.0.0.1:6443
    ca_cert_sha256: 8a1f0c3e5b7d9f2a4c6e8b0d1f3a5c7e9b2d4f6a8c0e1b3d5f7a9c2e4b6d8f0a
    max_disruption: none

- name: Hand the machine back
  bettercompute.bcd.k8s_join:
    state: absent
"""

RETURN = r"""
unit:
  description: The unit's name on the wire.
  returned: always
  type: str
  sample: k8s-join
state:
  description: V(converged), V(progressing) while it waits or a retry may help, or V(failed).
  returned: always
  type: str
  sample: converged
pending:
  description: What the unit waits for, each a V(reason) (RebootRequired, Busy, NotReady, HeldBack) and a V(message).
  returned: always
  type: list
  elements: dict
reboot_required:
  description: Whether one of RV(pending) is RebootRequired.
  returned: always
  type: bool
conditions:
  description: Faults that others act on, each a V(type), V(status), V(reason) and V(message).
  returned: always
  type: list
  elements: dict
steps:
  description: What was done, or would be, in order; each an V(action), its V(disruption), and whether it is V(done).
  returned: always
  type: list
  elements: dict
notes:
  description: Sentences that never change RV(state), such as what a removal leaves.
  returned: always
  type: list
  elements: str
reason:
  description: V(Refused) when nothing was written and a retry cannot help, or V(StepFailed).
  returned: failure
  type: str
retryable:
  description: Whether another run may help.
  returned: failure
  type: bool
"""

from typing import Any

OPTIONS: dict[str, Any] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "api_server": {"type": "str"},
    "ca_cert_sha256": {"type": "str"},
    "token": {"type": "str", "no_log": True},
    "join_token_ref": {"type": "str", "no_log": False},
    "labels": {"type": "dict"},
    "taints": {"type": "list", "elements": "str"},
    "kubernetes_version": {"type": "raw"},
    "node_id": {"type": "str"},
    "site": {"type": "str"},
    "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
    "signed_spec": {"type": "dict"},
}


def main() -> None:
    from ansible_collections.bettercompute.bcd.plugins.module_utils.front.module import run_unit
    from ansible_collections.bettercompute.bcd.plugins.module_utils.units.k8s_join import UNIT

    run_unit(UNIT, OPTIONS)


if __name__ == "__main__":
    main()
