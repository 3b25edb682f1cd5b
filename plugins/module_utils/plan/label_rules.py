# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The form of labels and taints, and which labels a kubelet may set on its own Node.

Kubernetes' admission (NodeRestriction) refuses a request whole for one forbidden label, and a kubelet that is told to
register with one never starts; so all are judged before anything is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core.errors import Refused
from .kube_labels import LONGEST, OURS
from .unit_names import K8S_JOIN as UNIT

LONGEST_PREFIX = 253
FORM = f"up to {LONGEST} letters, digits, '-', '_' and '.' with a letter or digit at both ends"
NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
PREFIX = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
KUBERNETES = ("kubernetes.io", "k8s.io")  # the domains in which a kubelet may set only what follows
OPEN = ("node.kubernetes.io", "kubelet.kubernetes.io")  # with all domains below them
ALLOWED = frozenset(
    (
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
    )
)
HOSTNAME = "kubernetes.io/hostname"  # a kubelet may set it, and pods are bound to volumes by it


def check_labels(labels: Mapping[Any, Any]) -> None:
    """Raise Refused, with all that is wrong at once, unless a kubelet may give its own Node every one of the labels."""
    faults = [fault for key, value in labels.items() for fault in _faults(key, value)]
    if faults:
        raise Refused(f"{UNIT}: labels: {'; '.join(faults)}: correct or remove what is named")


def _faults(key: Any, value: Any) -> list[str]:
    if not isinstance(key, str):
        return [f"the key {key!r} is not text"]
    found = [fault for fault in (key_fault(key), _forbidden(key)) if fault][:1]
    if not isinstance(value, str):
        found.append(f"the value of {key!r}, {value!r}, is not text (put it in quotes)")
    elif not is_value(value):
        found.append(f"the value of {key!r}, {value!r}, is not {FORM}")
    return found


def key_fault(key: str) -> str:
    """What is wrong with the form of a label's or taint's key, a clause; "" where nothing is."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= LONGEST_PREFIX and PREFIX.fullmatch(prefix)):
        return (
            f"the key {key!r} has before its '/' no domain of up to {LONGEST_PREFIX} lower-case letters, digits, '-' "
            "and '.'"
        )
    if not (len(name) <= LONGEST and NAME.fullmatch(name)):
        return f"the key {key!r} has no name of {FORM}"
    return ""


def is_value(text: str) -> bool:
    """Whether a label or a taint may have the value; the empty one is one."""
    return not text or (len(text) <= LONGEST and NAME.fullmatch(text) is not None)


def _forbidden(key: str) -> str:
    """Why a key of the right form may not be set, a clause; "" where it may."""
    domain = key.rpartition("/")[0]
    if key == HOSTNAME:
        return f"{key!r} is the kubelet's own, and volumes are bound by it"
    if key in OURS:
        return f"{key!r} is set from what this machine is"
    if _is_in(domain, KUBERNETES) and key not in ALLOWED and not _is_in(domain, OPEN):
        return f"{key!r} is one that Kubernetes lets no kubelet set (an admin sets it with kubectl label node)"
    return ""


def _is_in(domain: str, domains: tuple[str, ...]) -> bool:
    return any(domain == one or domain.endswith(f".{one}") for one in domains)
