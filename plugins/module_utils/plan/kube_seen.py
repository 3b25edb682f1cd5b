# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the parts of the unit k8s-join share: its settings as values, and what a host shows of a cluster."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.secret import UNNAMED
from ..core.state import JOIN_TOKEN, STATE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from ..core.named import NamedTuple

SERVICE = "kubelet.service"
KUBELET_CONF = "/etc/kubernetes/kubelet.conf"
KUBELET_CONFIG = "/var/lib/kubelet/config.yaml"
KUBELET_FLAGS = "/var/lib/kubelet/kubeadm-flags.env"
CONTROL_PLANE = "/etc/kubernetes/manifests/kube-apiserver.yaml"
SOCKET = "unix:///run/containerd/containerd.sock"
RECORD = f"{STATE}/k8s-join.json"
TOKEN_FILE = JOIN_TOKEN
JOIN_FILE = f"{STATE}/k8s-join.yaml"  # has the token while kubeadm runs, and never else
BOOTSTRAP = "/etc/kubernetes/bootstrap-kubelet.conf"  # of the kubelet while it joins: has the token too
CLEAN = "clean join"  # the debt of a join of ours: it is settled by our record, or by the cleaning
DOMAIN = "bcd.dev/"  # labels below it are ours
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class Taint(NamedTuple):
    """A taint of a Node; its identity is key and effect, the value is data."""

    key: str
    value: str
    effect: str

    @property
    def words(self) -> str:
        """As kubectl and the settings spell it: "key=value:NoSchedule", "key:NoSchedule"."""
        return f"{self.key}{'=' if self.value else ''}{self.value}:{self.effect}"


class Settings(NamedTuple):
    """The unit's settings, checked.

    `api_server` is "https://host:port" with its port, `endpoint` "host:port" as kubeadm takes it, `pin` 64 hex digits
    in lower case, `reference` what names the token (UNNAMED where the settings do not). `version` is "1.31.4", or ""
    where only the minor was given; `minor` is "1.31", or "" where neither was.
    """

    api_server: str
    endpoint: str
    pin: str
    reference: str = UNNAMED
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    minor: str = ""
    version: str = ""


class Joined(NamedTuple):
    """What kubelet.conf says of the cluster that this machine is a member of.

    `pins` are the SHA-256 (hex) of the public keys of its CA bundle, `ca` that bundle (PEM), `certificate` the file
    with the kubelet's client certificate and key; `node` is its common name without "system:node:", `expires` its end
    as unix time (0: there is no certificate to read).
    """

    server: str
    pins: tuple[str, ...]
    ca: str = ""
    certificate: str = ""
    node: str = ""
    expires: int = 0


class Node(NamedTuple):
    """The Node object of this machine, as the kubelet's own credentials show it; one that is made anew has another
    `uid`."""

    name: str
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    ready: bool = False
    unschedulable: bool = False
    uid: str = ""


class Membership(NamedTuple):
    """What we recorded of a join of ours (RECORD): the cluster, the Node's name, the labels that we set, the taints
    that the Node showed of those that we asked for, and which Node it was that showed them ("": not known)."""

    api_server: str
    pin: str
    node: str
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    uid: str = ""
