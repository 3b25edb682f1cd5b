#!/usr/bin/python
# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: kube_node
short_description: Keep pods from a worker's Node, and let them come again
version_added: 0.1.0
description:
  - Cordons and drains the Node of a host that is a worker of a Kubernetes cluster, and lets it go again, with the
    kubelet's own credentials, which may do so with no Node but their own.
  - Before it cordons, it remembers that in root's directory on the host. Only a cordon of its own is ever let go, also
    after a run that was killed, and after a reboot.
  - A Node that others cordoned stays as it is. Then the task is ok, RV(pending) says so, and RV(cordoned_by) is
    V(others).
  - On a host that is in no cluster there is nothing to do.
  - Needs root, and never goes through the helper.
options:
  state:
    description:
      - V(cordoned), no more pods come to the Node. V(drained), and those that are there have been evicted, but for pods
        of a DaemonSet and static ones.
      - Pods without a controller are deleted with the others, and what pods have in emptyDir volumes is lost.
      - Where pods do not go in O(timeout) seconds, a disruption budget forbids it for example, the Node is let go
        again, and RV(pending) names them.
      - V(schedulable), a cordon of our own is taken off. RV(pending) says so while the Node is not ready.
    type: str
    choices: [cordoned, drained, schedulable]
    required: true
  timeout:
    description:
      - How many seconds pods have to go. As long may be waited once more, since a node may not ask whether a pod that
        was evicted is gone.
    type: int
    default: 300
extends_documentation_fragment: bettercompute.bcd.everywhere
attributes:
  check_mode:
    description: Says what would be done, and changes nothing.
    support: full
  diff_mode:
    description: Shows files before and after.
    support: full
seealso:
  - module: bettercompute.bcd.k8s_join
  - module: bettercompute.bcd.host_info
author:
  - bettercompute (@bettercompute)
"""

EXAMPLES = r"""
- name: Let no more pods come, and evict those that are there
  bettercompute.bcd.kube_node:
    state: drained
    timeout: 600
  register: node
  become: true
  failed_when: node is failed or node.pending != []

- name: Let pods come again, once the Node is ready
  bettercompute.bcd.kube_node:
    state: schedulable
  register: node
  become: true
  until: node is not failed and node.pending == []
  retries: 30
  delay: 10
"""

RETURN = r"""
node:
  description: The Node's name, null where the host is in no cluster, or its API server does not tell.
  returned: always
  type: str
  sample: gpu-01
cordoned_by:
  description: Who keeps pods from the Node now, V(us), V(others), or null for nobody.
  returned: always
  type: str
  sample: us
unit:
  description: What was converged, V(kube-node).
  returned: always
  type: str
  sample: kube-node
state:
  description: V(converged), V(progressing) where a retry may help, or V(failed).
  returned: always
  type: str
  sample: converged
pending:
  description:
    - What it waits for, each a RV(ignore:reason) and a RV(ignore:message). V(Busy) is a cordon of others, or pods that
      do not go, V(NotReady) an API server that does not answer, or a Node that is not ready.
  returned: always
  type: list
  elements: dict
steps:
  description: What was done, or would be, in order; each an V(action), its V(disruption), and whether it is V(done).
  returned: always
  type: list
  elements: dict
notes:
  description: Sentences that never change RV(state).
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

from ansible_collections.bettercompute.bcd.plugins.module_utils.front.kube_node import run_node


def main() -> None:
    run_node(
        {
            "state": {"type": "str", "choices": ["cordoned", "drained", "schedulable"], "required": True},
            "timeout": {"type": "int", "default": 300},
            "max_disruption": {"type": "str", "choices": ["none", "service", "gpu"], "default": "gpu"},
            "signed_spec": {"type": "dict"},
        }
    )


if __name__ == "__main__":
    main()
