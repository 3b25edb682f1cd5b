# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which clusters root lets this machine join: [kubernetes] allowed_clusters in its configuration.

A cluster that a machine joins has root on it, by privileged pods; so this is root's to decide, and never the settings'.
"""

from __future__ import annotations

from typing import Any

from ..core.errors import Refused
from .cluster_address import FORM, address, pin
from .installed import CONFIG
from .kube_seen import Settings
from .unit_names import K8S_JOIN as UNIT

KEY = "[kubernetes] allowed_clusters"
NEEDED = f"joining a Kubernetes cluster needs {KEY} in bcd's config"
ENTRY = f"{FORM}#sha256:<64 hex digits>"
MEND = "have root correct it"

Cluster = tuple[str, str]  # the API server's address with its port, and the pin of its CA


def clusters(text: Any) -> tuple[Cluster, ...]:
    """The clusters that are allowed, of a list with commas; raises Refused naming the entry that is malformed.

    `text` is what the configuration has there, "" where it has nothing.
    """
    if not isinstance(text, str):
        raise Refused(f"{UNIT}: {KEY} in {CONFIG} is {text!r}, and takes a string of {ENTRY}: {MEND}")
    return tuple(_cluster(entry.strip()) for entry in text.split(",")) if text.strip() else ()


def _cluster(entry: str) -> Cluster:
    server, hash_sign, pinned = entry.partition("#")
    try:
        if not hash_sign or not pinned.lower().startswith("sha256:"):
            raise ValueError("it has no #sha256: behind the address")
        return address(server), pin(pinned)
    except ValueError as fault:
        raise Refused(
            f"{UNIT}: {KEY} in {CONFIG} has the entry {entry!r}, which is not {ENTRY} ({fault}): {MEND}"
        ) from None


def refuse_others(want: Settings, text: Any) -> None:
    """Raise Refused unless the cluster of the settings is among those allowed, of which there may be none."""
    allowed = clusters(text)
    if (want.api_server, want.pin) in allowed:
        return
    asked = f"{want.api_server}#sha256:{want.pin}"
    if not allowed:
        raise Refused(
            f"{UNIT}: {NEEDED} ({CONFIG}): have root add {asked} there, if this machine may join that cluster"
        )
    same = [known for server, known in allowed if server == want.api_server]
    differs = f" (it is there with sha256:{' and sha256:'.join(same)})" if same else ""
    raise Refused(
        f"{UNIT}: {asked} is not among {KEY} in {CONFIG}{differs}: have root add it there, or correct apiServer and "
        "caCertSha256"
    )
