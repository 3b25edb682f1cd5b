# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a Kubernetes API server and its CA are named: an https address, and the pin of a public key, in one form each."""

from __future__ import annotations

import re

ADDRESS = re.compile(r"https://(\[[^\]]*\]|[^\[\]:/?#@]+)(?::([0-9]{1,5}))?", re.IGNORECASE | re.ASCII)
LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
PIN = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE | re.ASCII)
PORT = 443  # https's own
FORM = "https://host[:port]"
PIN_FORM = "64 hexadecimal digits, with or without sha256: before them"


def endpoint(text: str) -> str:
    """ "host:port" of an address `https://host[:port]`, as kubeadm takes it; raises ValueError saying what is wrong.

    Names are in lower case, IPv6 addresses short and in brackets.
    """
    found = ADDRESS.fullmatch(text)
    if found is None:
        raise ValueError(f"it is not {FORM}, without a user, a path or a query")
    port = int(found.group(2) or PORT)
    if not 0 < port < 65536:
        raise ValueError(f"{port} is no port")
    return f"{_host(found.group(1).lower())}:{port}"


def _host(name: str) -> str:
    if name.startswith("["):
        from ipaddress import IPv6Address

        try:
            short = IPv6Address(name[1:-1])
        except ValueError:
            raise ValueError(f"{name} is no IPv6 address") from None
        if "%" in name:
            raise ValueError(f"{name} has a zone, which is another one on each machine")
        return f"[{short}]"
    labels = name.split(".")
    if labels[-1].isdigit():
        if len(labels) != 4 or not all(_is_octet(label) for label in labels):
            raise ValueError(f"{name} is no IPv4 address")
    elif len(name) > 253 or not all(LABEL.fullmatch(label) for label in labels):
        raise ValueError(f"{name!r} is no name of a host")
    return name


def _is_octet(text: str) -> bool:
    return text.isascii() and text.isdigit() and str(int(text)) == text and int(text) < 256


def address(text: str) -> str:
    """The address with its port, "https://10.0.0.1:6443": equal for equal servers; raises ValueError."""
    return f"https://{endpoint(text)}"


def pin(text: str) -> str:
    """The SHA-256 of a CA's public key, 64 hex digits in lower case; raises ValueError saying what is wrong."""
    found = PIN.fullmatch(text)
    if found is None:
        raise ValueError(f"it is not {PIN_FORM}")
    return found.group(1).lower()
