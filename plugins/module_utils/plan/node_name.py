# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The name under which a machine is a Node of its cluster: its host name, as Kubernetes takes names."""

from __future__ import annotations

import re

from ..core.errors import Refused
from .unit_names import K8S_JOIN as UNIT

LONGEST = 63  # bytes: the kubelet labels its Node with it, and a label's value is no longer
LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")


def node_name(host_name: str) -> str:
    """The Node's name: in lower case, with "-" for "_" and blanks; raises Refused for what Kubernetes takes for none.

    kubeadm joins with a longer name, and the kubelet then never registers its Node.
    """
    bare = host_name.strip()
    name = re.sub(r"[_\s]", "-", bare.lower())
    if not bare or not all(LABEL.fullmatch(part) for part in name.split(".")):
        raise Refused(
            f"{UNIT}: the host name {bare!r} makes no name of a Node (letters, digits and '-' between dots, with a "
            "letter or digit at both ends): give the machine another one (hostnamectl set-hostname)"
        )
    if len(name.encode()) > LONGEST:
        raise Refused(
            f"{UNIT}: the host name {bare!r} has {len(name.encode())} characters, and a Node's has at most {LONGEST}: "
            "give the machine a shorter one (hostnamectl set-hostname)"
        )
    return name
