# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The little of DER and PEM that the programs need of certificates, with the standard library alone."""

from __future__ import annotations

import base64
import hashlib
import re
import ssl
from typing import NamedTuple

BLOCK = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
COMMON_NAME = bytes.fromhex("0603550403")  # the identifier 2.5.4.3


class Part(NamedTuple):
    """One element: its tag, its content, and all of it."""

    tag: int
    content: bytes
    whole: bytes


def parts(data: bytes) -> list[Part]:
    """The elements that follow one another."""
    found, at = [], 0
    while at < len(data):
        start, tag, size = at, data[at], data[at + 1]
        at += 2
        if size & 0x80:
            count = size & 0x7F
            size = int.from_bytes(data[at : at + count], "big")
            at += count
        found.append(Part(tag, data[at : at + size], data[start : at + size]))
        at += size
    return found


def certificates(pem: str) -> list[bytes]:
    """The certificates of a PEM text, in DER."""
    return [ssl.PEM_cert_to_DER_cert(block) for block in BLOCK.findall(pem)]


def _fields(der: bytes) -> list[Part]:
    """Of what is signed, without the version: serial, algorithm, issuer, validity, subject, public key."""
    fields = parts(parts(parts(der)[0].content)[0].content)
    return fields[1:] if fields[0].tag == 0xA0 else fields


def pin(der: bytes) -> str:
    """The SHA-256 of the public key, as kubeadm's hash of a CA names it, in hex."""
    return hashlib.sha256(_fields(der)[5].whole).hexdigest()


def common_name(der: bytes) -> str:
    """The subject's."""
    for group in parts(_fields(der)[4].content):
        for pair in parts(group.content):
            if pair.content.startswith(COMMON_NAME):
                return parts(pair.content)[1].content.decode()
    return ""


def not_after(der: bytes) -> int:
    """The end of the validity, as unix time."""
    import calendar
    import time

    end = parts(_fields(der)[3].content)[1]
    text = end.content.decode()
    form = "%y%m%d%H%M%SZ" if end.tag == 0x17 else "%Y%m%d%H%M%SZ"
    return calendar.timegm(time.strptime(text, form))


def encoded(pem: str) -> str:
    """As a kubeconfig carries it inline."""
    return base64.b64encode(pem.encode()).decode()


def decoded(text: str) -> str:
    """The opposite."""
    return base64.b64decode(text).decode()
