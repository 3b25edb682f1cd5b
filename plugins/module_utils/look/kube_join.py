# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose a machine is: which cluster it is a member of, as its files and its Node show."""

from __future__ import annotations

import json
from typing import Any

from ..core.errors import NotReady, Refused, StepFailed
from ..core.host import Host
from ..plan import kubeconfig, membership as record
from ..plan.certificate import Certificate, read_all
from ..plan.kube_seen import KUBELET_CONF, RECORD, Joined, Membership, Node, Taint
from ..plan.unit_names import K8S_JOIN as UNIT

USER = "system:node:"  # before the Node's name, in the name that the kubelet's certificate is for
PATIENCE = 10.0  # seconds for an API server


def joined(host: Host) -> Joined | None:
    """The cluster that this machine is a member of, None where it is of none; raises Refused for a kubelet.conf that
    is not as kubeadm writes it."""
    text = host.read(KUBELET_CONF)
    if text is None:
        return None
    found = kubeconfig.read(text, KUBELET_CONF)
    ca = found.ca or _text(host, found.ca_file)
    try:
        pins = tuple(one.pin for one in read_all(ca))
    except ValueError as fault:
        raise Refused(f"{UNIT}: the CA in {KUBELET_CONF} cannot be read: {fault}: {kubeconfig.MEND}") from None
    own = _own(found.certificate or _text(host, found.certificate_file))
    name = own.common_name
    return Joined(
        server=found.server.rstrip("/"),
        pins=pins,
        ca=ca,
        certificate=found.certificate_file,
        node=name[len(USER) :] if name.startswith(USER) else "",
        expires=own.not_after,
    )


def _text(host: Host, path: str) -> str:
    return (host.read(path) or "") if path else ""


def _own(pem: str) -> Certificate:
    """The kubelet's certificate, the first of its file; one without a name where there is none to read."""
    try:
        return (*read_all(pem), Certificate("", 0, ""))[0]
    except ValueError:
        return Certificate("", 0, "")


def node(host: Host, membership: Joined) -> Node | None:
    """This machine's Node, seen with the kubelet's own credentials; None where the cluster has none of the name.

    Raises NotReady where the API server does not say.
    """
    name = membership.node
    if not name:
        raise NotReady(
            f"{UNIT}: {membership.certificate or KUBELET_CONF} has no certificate of the kubelet's to ask for its Node "
            "with: see journalctl -u kubelet"
        )
    url = f"{membership.server}/api/v1/nodes/{name}"
    try:
        answer = host.get(url, PATIENCE, ca=membership.ca, certificate=membership.certificate)
    except StepFailed as fault:
        raise NotReady(f"{UNIT}: {fault.message}") from None
    if answer.rc == 404:
        return None
    if answer.rc != 200:
        raise NotReady(f"{UNIT}: {url} answers {answer.rc} {_said(answer.out) or answer.err}: see the API server's log")
    try:
        return parse_node(answer.out)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NotReady(f"{UNIT}: {url} answers with what is no Node: see what is at this address") from None


def _said(text: str) -> str:
    """The message of a Status object."""
    try:
        return " ".join(str(json.loads(text)["message"]).split())[:300]
    except (ValueError, KeyError, TypeError):
        return ""


def parse_node(text: str) -> Node:
    """A Node object in JSON, as the API server gives it."""
    found: dict[str, Any] = json.loads(text)
    spec, status = found.get("spec") or {}, found.get("status") or {}
    conditions = {one["type"]: one["status"] for one in status.get("conditions") or ()}
    return Node(
        name=found["metadata"]["name"],
        labels=dict(found["metadata"].get("labels") or {}),
        taints=tuple(Taint(one["key"], one.get("value") or "", one["effect"]) for one in spec.get("taints") or ()),
        ready=conditions.get("Ready") == "True",
        unschedulable=bool(spec.get("unschedulable")),
    )


def membership(host: Host) -> Membership | None:
    """Our record of a join of ours, None where there is none."""
    text = host.read(RECORD)
    return None if text is None else record.read(text)
