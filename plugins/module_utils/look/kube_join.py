# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose a machine is: which cluster it is a member of, as its files and its Node show."""

from __future__ import annotations

from ..core.errors import NotReady, Refused, StepFailed
from ..core.host import Host
from ..core.plan import Past
from ..plan import kubeconfig
from ..plan.certificate import Certificate, read_all
from ..plan.kube_seen import BOOTSTRAP, CLEAN, JOIN_FILE, KUBELET_CONF, RECORD, Joined, Membership, Node, Taint
from ..plan.node_answer import address
from ..plan.unit_names import K8S_JOIN as UNIT

USER = "system:node:"  # before the Node's name, in the name that the kubelet's certificate is for


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


def member(host: Host, past: Past) -> Joined | None:
    """As `joined`, but None for a join of ours that came to nothing before the kubelet had its certificate: it writes
    kubelet.conf first."""
    found = joined(host)
    half = found is not None and not found.expires and CLEAN in past.owed and host.file(RECORD) is None
    return None if half else found


def _text(host: Host, path: str) -> str:
    return (host.read(path) or "") if path else ""


def _own(pem: str) -> Certificate:
    """The kubelet's certificate, the first of its file; one without a name where there is none to read."""
    try:
        return (*read_all(pem), Certificate("", 0, ""))[0]
    except ValueError:
        return Certificate("", 0, "")


def days_left(host: Host, membership: Joined, most: int) -> int:
    """The whole days that the kubelet's client certificate has left, at most so many; below 0 it is over or not there,
    and its API server knows it no more."""
    from .moment import days_until

    found: int = host.sight(days_until, membership.expires, most)
    return found


def node(
    host: Host,
    membership: Joined,
    labels: list[str] | None = None,
    taints: list[list[str]] | None = None,
    flags: str = "",
) -> Node | None:
    """This machine's Node, seen with the kubelet's own credentials; None where the cluster has none of the name.

    With all of its labels and taints, or those that are named (see node_seen). Raises NotReady where the API server
    does not say.
    """
    from .node_seen import node_seen

    name = membership.node
    if not name:
        raise NotReady(
            f"{UNIT}: {membership.certificate or KUBELET_CONF} has no certificate of the kubelet's to ask for its Node "
            "with: see journalctl -u kubelet"
        )
    url = address(membership.server, name)
    try:
        found = host.sight(node_seen, url, membership.ca, membership.certificate, labels, taints or [], flags)
    except StepFailed as fault:
        raise NotReady(f"{UNIT}: {fault.message}") from None
    if found["rc"] != 200:
        if found["is_absent"]:
            return None
        raise NotReady(f"{UNIT}: {url} answers {found['rc']} {found['said']}: see the API server's log")
    why = found.get("fault") or (f"its name is {found['name']!r}" if found["name"] != name else "")
    if why:
        raise NotReady(f"{UNIT}: {url} answers with what is no Node ({why}): see what is at this address")
    state = (found["ready"], found["unschedulable"], found["uid"])
    return Node(name, found["labels"], tuple(Taint(*one) for one in found["taints"]), *state)


def membership(host: Host) -> Membership | None:
    """Our record of a join of ours, None where there is none."""
    text = host.read(RECORD)
    if text is None:
        return None
    from ..plan.kube_membership import parse

    return parse(text)


def token_files(host: Host, is_member: bool, past: Past) -> tuple[str, ...]:
    """Files in which a join of ours that was killed has left the token, which nothing needs any more."""
    paths = (JOIN_FILE, BOOTSTRAP) if is_member and CLEAN in past.owed else (JOIN_FILE,)
    return tuple(path for path in paths if host.file(path) is not None)
