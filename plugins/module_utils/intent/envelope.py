# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The envelope of what is signed: strictly read, and nothing in it believed yet."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core.errors import Refused

FIELDS = ("body", "signature", "certificates")
BUNDLE = "trust_bundle"
SPEC = "signed_spec"  # what alone may bring a bundle
MOST_BODY = 1024 * 1024  # bytes of the canonical text
MOST_SIGNATURE = 1024  # bytes; RSA of 8192 bits
MOST_CERTIFICATES = 8
MOST_PEM = 16 * 1024  # characters of one certificate
AGAIN = "take the envelope as sign_spec returned it"
ISSUED = "take it as the control plane issued it"  # a join record or a bundle, which sign_spec does not make


class Envelope(NamedTuple):
    """`body`: the canonical text that is signed. `certificates`: PEM texts, the signer's own first.

    `trust_bundle` is the envelope of the bundle that says which roots count, where one comes along.
    """

    body: bytes
    signature: bytes
    certificates: tuple[str, ...]
    trust_bundle: Any = None  # an Envelope, which mypy cannot say of a NamedTuple inside itself


def envelope(value: Any, what: str = SPEC) -> Envelope:
    """The envelope in its wire form; raises Refused for a field too many or too few, of another type, or too large."""
    if not isinstance(value, Mapping):
        raise Refused(f"{what} is no mapping of {', '.join(FIELDS)}: {_again(what)}")
    allowed = (*FIELDS, BUNDLE) if what == SPEC else FIELDS
    unknown = sorted(repr(name)[:80] for name in value if name not in allowed)
    missing = [name for name in FIELDS if name not in value]
    if unknown or missing:
        fault = f"has {', '.join(unknown[:4])}, which is no field of it" if unknown else f"has no {missing[0]}"
        raise Refused(f"{what} {fault}: {_again(what)}")
    bundle = value.get(BUNDLE)
    return Envelope(
        _bytes(value["body"], f"{what}.body", MOST_BODY),
        _bytes(value["signature"], f"{what}.signature", MOST_SIGNATURE),
        _certificates(value["certificates"], f"{what}.certificates"),
        None if bundle is None else envelope(bundle, f"{what}.{BUNDLE}"),
    )


def rendered(signed: Envelope) -> dict[str, Any]:
    """The wire form again."""
    told: dict[str, Any] = {
        "body": base64.b64encode(signed.body).decode(),
        "signature": base64.b64encode(signed.signature).decode(),
        "certificates": list(signed.certificates),
    }
    return told if signed.trust_bundle is None else {**told, BUNDLE: rendered(signed.trust_bundle)}


def _again(at: str) -> str:
    return AGAIN if at.startswith(SPEC) and BUNDLE not in at else ISSUED


def _bytes(value: Any, at: str, most: int) -> bytes:
    if not isinstance(value, str):
        raise Refused(f"{at} is no text in base64: {_again(at)}")
    if len(value) > (most + 2) // 3 * 4:
        raise Refused(f"{at} has {len(value)} characters, and more than {most} bytes are not taken: {_again(at)}")
    try:
        data = base64.b64decode(value.encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not data or base64.b64encode(data).decode() != value:  # one text of one value
        raise Refused(f"{at} is no text in base64: {_again(at)}")
    return data


def _certificates(value: Any, at: str) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not value or len(value) > MOST_CERTIFICATES:
        raise Refused(f"{at} is no list of 1 to {MOST_CERTIFICATES} certificates: {_again(at)}")
    for number, text in enumerate(value):
        if not isinstance(text, str) or len(text) > MOST_PEM:
            raise Refused(
                f"{at}[{number}] is no certificate in PEM form of at most {MOST_PEM} characters: {_again(at)}"
            )
    return tuple(value)
