# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a certificate says of whom it is for and until when, and by which its public key is known: read from its DER.

Only what is needed of X.509 (RFC 5280), with the standard library alone.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from ..core.named import NamedTuple

BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)
COMMON_NAME = b"\x06\x03\x55\x04\x03"  # the object identifier 2.5.4.3
VERSION = 0xA0  # the tag of the optional version
UTC_TIME = 0x17
SEQUENCE = 0x30
FIELDS = ((0, 4), (4, 6), (6, 8), (8, 10), (10, 12), (12, 14))  # of YYYYMMDDhhmmss


class Certificate(NamedTuple):
    """A certificate's subject ("" where it has no common name), its end as unix time, and the SHA-256 (hex) of its
    public key, as kubeadm pins it."""

    common_name: str
    not_after: int
    pin: str


def read_all(pem: str) -> tuple[Certificate, ...]:
    """The certificates in a PEM text, in order; raises ValueError for one that is damaged."""
    from base64 import b64decode

    return tuple(read(b64decode("".join(block.split()), validate=True)) for block in BLOCK.findall(pem))


def read(der: bytes) -> Certificate:
    """One certificate of its DER; raises ValueError for what is none."""
    from hashlib import sha256

    try:
        signed = _parts(_parts(_only(der, SEQUENCE))[0][1])
        if signed[0][0] == VERSION:
            signed = signed[1:]
        _serial, _algorithm, _issuer, validity, subject, key = signed[:6]
        end = _parts(validity[1])[1]
        return Certificate(_common_name(subject[1]), _seconds(*end[:2]), sha256(key[2]).hexdigest())
    except (IndexError, ValueError) as fault:
        raise ValueError(f"it is no certificate: {fault}") from None


Part = tuple[int, bytes, bytes]  # an element's tag, its content, and all of it


def _only(data: bytes, tag: int) -> bytes:
    found = _parts(data)
    if len(found) != 1 or found[0][0] != tag:
        raise ValueError("it does not begin as one")
    return found[0][1]


def _parts(data: bytes) -> list[Part]:
    """The elements that stand one behind the other."""
    found: list[Part] = []
    at = 0
    while at < len(data):
        begin, size = at + 2, data[at + 1]
        if size & 0x80:  # so many bytes hold the length
            begin += size & 0x7F
            size = int.from_bytes(data[at + 2 : begin], "big")
        end = begin + size
        if end > len(data):
            raise ValueError("it ends early")
        found.append((data[at], data[begin:end], data[at:end]))
        at = end
    return found


def _common_name(subject: bytes) -> str:
    """Of a sequence of sets of pairs; the last counts."""
    name = ""
    for _tag, pairs, _whole in _parts(subject):
        for _inner, pair, _all in _parts(pairs):
            if pair.startswith(COMMON_NAME):
                name = _parts(pair)[1][1].decode("utf-8", "replace")
    return name


def _seconds(tag: int, text: bytes) -> int:
    """Unix time of UTCTime, whose years end in 2049, or GeneralizedTime."""
    from datetime import datetime, timezone

    digits = text.decode("ascii").rstrip("Z")
    if tag == UTC_TIME:
        digits = ("19" if digits >= "5" else "20") + digits
    year, month, day, hour, minute, second = (int(digits[at:end]) for at, end in FIELDS)
    return int(datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc).timestamp())
