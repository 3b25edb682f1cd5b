# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubeconfig as kubeadm, or someone by hand, writes it: one cluster and one user, of the current context."""

from __future__ import annotations

from typing import Any

from ..core.errors import Refused
from .block_yaml import parse
from .kubeconfig import MEND, Kubeconfig
from .unit_names import K8S_JOIN as UNIT


def read(text: str, path: str) -> Kubeconfig:
    """What the file says of the current context; raises Refused naming the path where it cannot be read."""
    try:
        found = parse(text, path)
        context = _named(found, "contexts", "context", found["current-context"])
        cluster = _named(found, "clusters", "cluster", context["cluster"])
        user = _named(found, "users", "user", context["user"])
        return Kubeconfig(
            server=_text(cluster["server"]),
            ca=_decoded(cluster.get("certificate-authority-data")),
            ca_file=_text(cluster.get("certificate-authority") or ""),
            certificate=_decoded(user.get("client-certificate-data")),
            certificate_file=_text(user.get("client-certificate") or ""),
        )
    except Refused as fault:
        where = fault.message.partition(": ")[0]  # and not what is there: it may be a key
        raise Refused(f"{UNIT}: {where} is not as kubeadm writes it: {MEND}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as fault:
        what = f"has no {fault.args[0]}" if isinstance(fault, KeyError) else "is not as kubeadm writes it"
        raise Refused(f"{UNIT}: {path} {what}: {MEND}") from None


def _named(found: dict[str, Any], group: str, kind: str, name: str) -> dict[str, Any]:
    """The entry of a list by its name; the last of that name, as the reader of Kubernetes has it."""
    entries = {entry["name"]: entry[kind] for entry in found[group]}
    entry = entries[name]
    if not isinstance(entry, dict):
        raise ValueError(name)
    return entry


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    return value


def _decoded(value: Any) -> str:
    if value is None:
        return ""
    from base64 import b64decode

    return b64decode(_text(value), validate=True).decode("ascii")
