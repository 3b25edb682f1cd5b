# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may sign for this host: the pins in root's configuration, which come with the installation alone."""

from __future__ import annotations

from ..core.errors import Refused
from .installed import CONFIG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NamedTuple
else:
    from ..core.named import NamedTuple

ROOTS, JOIN_KEY = "command_root_sha256", "join_signing_key_pin"
MEND = "have root correct it"
NEARLY = ("commandroot", "joinsigning", "joinpin", "joinkey")  # how a key begins that was meant for one of the two
HEX = frozenset("0123456789abcdef")


class Pins(NamedTuple):
    """`roots`: SHA-256 digests (64 hex digits) of the DER of each root that desired states may chain to.

    `join_key`: "sha256/" and the base64 of the SHA-256 of the SubjectPublicKeyInfo of the key that signs join responses
    and trust bundles; "" where none is pinned.
    """

    roots: frozenset[str] = frozenset()
    join_key: str = ""

    def __bool__(self) -> bool:
        return bool(self.roots or self.join_key)


def pins(tables: Mapping[str, Mapping[str, Any]]) -> Pins:
    """The pins in a configuration, in whichever table.

    Raises Refused for one that is malformed or there twice, and for a key that was meant to be one: a slip of the pen
    would otherwise leave the host open.
    """
    for table in tables.values():
        for key in table:
            if key not in (ROOTS, JOIN_KEY) and key.lower().replace("_", "").replace("-", "").startswith(NEARLY):
                raise Refused(f"{CONFIG} has the key {key}, and pins are {ROOTS} and {JOIN_KEY}: {MEND}")
    return Pins(_roots(_value(tables, ROOTS)), _join_key(_value(tables, JOIN_KEY)))


def _value(tables: Mapping[str, Mapping[str, Any]], key: str) -> str:
    found = [table[key] for table in tables.values() if key in table]
    if len(found) > 1:
        raise Refused(f"{CONFIG} has {key} in {len(found)} tables: {MEND}, above the first table")
    if found and not isinstance(found[0], str):
        raise Refused(f"{CONFIG}: {key} is {found[0]!r}, and takes a string: {MEND}")
    return found[0] if found else ""


def _roots(text: str) -> frozenset[str]:
    digests = [digest.strip().lower() for digest in text.split(",")] if text.strip() else []
    wrong = [digest for digest in digests if len(digest) != 64 or not set(digest) <= HEX]
    if wrong:
        raise Refused(
            f"{CONFIG}: {ROOTS} has {wrong[0]!r}, and takes SHA-256 digests of 64 hex digits, with commas: {MEND}"
        )
    return frozenset(digests)


def _join_key(text: str) -> str:
    if not text:
        return ""
    import base64
    import binascii

    kind, _slash, digest = text.partition("/")
    try:
        data = base64.b64decode(digest.encode(), validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if kind != "sha256" or len(data) != 32 or base64.b64encode(data).decode() != digest:
        raise Refused(
            f"{CONFIG}: {JOIN_KEY} is {text!r}, and takes sha256/ and the base64 of a key's SHA-256 digest: {MEND}"
        )
    return text
