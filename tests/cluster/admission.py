# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an API server lets a kubelet do with its own Node: the admission plugin NodeRestriction, and what is valid."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Object = dict[str, Any]

# Keys of the kubernetes.io and k8s.io domains that a kubelet may set: these, and those below the two domains.
FREE = frozenset(
    (
        "kubernetes.io/hostname",
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
DOMAINS = ("node.kubernetes.io", "kubelet.kubernetes.io")
RESTRICTED = "node-restriction.kubernetes.io"
VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def is_below(domain: str, parent: str) -> bool:
    """Whether a domain is this one or one of its subdomains."""
    return domain == parent or domain.endswith("." + parent)


def is_kubernetes(key: str) -> bool:
    """Whether a label is of the reserved domains."""
    domain = key.partition("/")[0] if "/" in key else ""
    return is_below(domain, "kubernetes.io") or is_below(domain, "k8s.io")


def is_kubelets(key: str) -> bool:
    """Whether a kubelet may set a label of the reserved domains."""
    domain = key.partition("/")[0]
    return key in FREE or any(is_below(domain, one) for one in DOMAINS)


def is_forbidden(key: str) -> bool:
    """Whether NodeRestriction keeps a kubelet from setting, changing or removing this label."""
    domain = key.partition("/")[0] if "/" in key else ""
    return is_below(domain, RESTRICTED) or (is_kubernetes(key) and not is_kubelets(key))


def refusal(node: str, old: Object | None, new: Object) -> str:
    """Why a kubelet may not make the Node that ("" when it may); `old` None: it is created."""
    before: Mapping[str, str] = {} if old is None else old["metadata"].get("labels", {})
    after: Mapping[str, str] = new["metadata"].get("labels", {})
    changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    forbidden = ", ".join(sorted(key for key in changed if is_forbidden(key)))
    if old is None:
        return f'node "{node}" is not allowed to set the following labels: {forbidden}' if forbidden else ""
    if (old["spec"].get("taints") or []) != (new["spec"].get("taints") or []):
        return f'node "{node}" is not allowed to modify taints'
    return f"is not allowed to modify labels: {forbidden}" if forbidden else ""


def invalid(new: Object) -> str:
    """What is wrong with a Node in any case ("" when nothing is)."""
    for key, value in new["metadata"].get("labels", {}).items():
        fault = label_fault(key, value)
        if fault:
            return fault
    for taint in new["spec"].get("taints") or []:
        if taint.get("effect") not in EFFECTS:
            said = ", ".join(f'"{effect}"' for effect in sorted(EFFECTS))
            return f'spec.taints[0].effect: Unsupported value: "{taint.get("effect")}": supported values: {said}'
    return ""


def label_fault(key: str, value: str) -> str:
    """What the API server says of a label ("" when nothing)."""
    prefix, slash, name = key.rpartition("/")
    if slash and (not SUBDOMAIN.fullmatch(prefix) or len(prefix) > 253):
        return (
            f'metadata.labels: Invalid value: "{key}": prefix part a lowercase RFC 1123 subdomain must consist of ...'
        )
    if not NAME.fullmatch(name) or len(name) > 63:
        return (
            f'metadata.labels: Invalid value: "{key}": name part must be no more than 63 characters and consist of ...'
        )
    if len(value) > 63:
        return f'metadata.labels: Invalid value: "{value}": must be no more than 63 characters'
    if not VALUE.fullmatch(value):
        return (
            f'metadata.labels: Invalid value: "{value}": a valid label must be an empty string or consist of '
            "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
        )
    return ""
