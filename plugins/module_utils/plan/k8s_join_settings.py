# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of k8s-join: their table, and what they come to."""

from __future__ import annotations

import re
from typing import Any, Callable

from ..core.errors import Refused
from ..core.plan import Field
from ..core.secret import UNNAMED
from .cluster_address import endpoint, pin
from .kube_seen import Settings
from .settings import strict
from .unit_names import K8S_JOIN as UNIT

FIELDS = (
    Field("apiServer", "api_server", (str,)),
    Field("caCertSha256", "ca_cert_sha256", (str,)),
    Field("joinTokenRef", "join_token_ref", (str,)),
    Field("labels", "labels", (dict,)),
    Field("taints", "taints", (list,)),
    Field("kubernetesVersion", "kubernetes_version", (str,)),
)
REQUIRED = ("apiServer", "caCertSha256")
PLAIN = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")  # a name, or a value, that any label may have
TOKEN = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")
VERSION = re.compile(r"v?(1\.(?:0|[1-9][0-9]{0,2}))(\.(?:0|[1-9][0-9]{0,2}))?")


def check(given: dict[str, Any]) -> Settings:
    """Settings in wire form as values; raises Refused."""
    found = strict(UNIT, FIELDS, given)
    missing = [name for name in REQUIRED if not found.get(name)]
    if missing:
        raise Refused(f"{UNIT}: {' and '.join(missing)} must be given: which cluster is this machine to join?")
    reference = found.get("joinTokenRef") or UNNAMED
    if TOKEN.fullmatch(reference):
        raise Refused(
            f"{UNIT}: joinTokenRef has the form of a bootstrap token, and is to name one: correct it, and where "
            "it is one, all who read the settings have it: have an admin of the cluster delete it, and make another"
        )
    server = _read(found, "apiServer", endpoint)
    version = VERSION.fullmatch(found.get("kubernetesVersion", ""))
    if version is None and "kubernetesVersion" in found:
        raise Refused(f"{UNIT}: kubernetesVersion is {found['kubernetesVersion']!r}: write it as 1.NN or 1.NN.P")
    return Settings(
        api_server=f"https://{server}",
        endpoint=server,
        pin=_read(found, "caCertSha256", pin),
        reference=reference,
        labels=_labels(found.get("labels", {})),
        taints=_taints(found.get("taints", [])),
        minor=version.group(1) if version else "",
        version=version.group(0).lstrip("v") if version and version.group(2) else "",
    )


def _read(given: dict[str, Any], name: str, reader: Callable[[str], str]) -> str:
    try:
        return reader(given[name])
    except ValueError as fault:
        raise Refused(f"{UNIT}: {name} is {given[name]!r}: {fault}: correct it") from None


def _labels(labels: dict[Any, Any]) -> dict[str, str]:
    if not all(isinstance(text, str) and PLAIN.fullmatch(text) for pair in labels.items() for text in pair):
        from .label_rules import check_labels  # all of the rules, for domains and for what is wrong

        check_labels(labels)
    return dict(labels)


def _taints(texts: list[Any]) -> tuple[Any, ...]:
    if not texts:
        return ()
    from .kube_taints import parse

    return parse(texts)
