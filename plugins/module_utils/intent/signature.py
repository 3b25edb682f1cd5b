# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signatures over canonical texts: Ed25519, ECDSA on P-256 with SHA-256, RSA-PSS with SHA-256 and a salt of 32 bytes.

What is signed is the purpose, a newline and the text's bytes, so that a signature made for one purpose is none for
another. `cryptography` costs a tenth of a second to import, and is imported only where something is signed. Nothing
here is newer than its version 3.4.8.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from ..core.errors import Refused

MISSING = (
    "signatures need the Python package cryptography, which this host's Python does not have: install it (the package "
    "python3-cryptography)"
)
SMALLEST_RSA, LARGEST_RSA = 2048, 8192  # bits; what is larger takes the host's time
SMALLEST_EXPONENT = 65537  # of RSA (FIPS 186-4, B.3.1)
KINDS = f"an Ed25519 key, one on P-256, or one for RSA of {SMALLEST_RSA} to {LARGEST_RSA} bits"


class Signer:
    """A private key that signs for this node.

    `key_id` names its public key: "sha256/" and the base64 of the SHA-256 of its SubjectPublicKeyInfo in DER. Raises
    Refused, naming the key's file and never what is in it, for what is no such key.
    """

    def __init__(self, path: str, pem: str) -> None:
        self._key = _private_key(path, pem)
        from cryptography.hazmat.primitives import serialization

        public = self._key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self.key_id = "sha256/" + base64.b64encode(hashlib.sha256(public).digest()).decode()

    def sign(self, purpose: str, text: str) -> str:
        """The signature of a canonical text under a purpose, in base64."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding

        signed = f"{purpose}\n{text}".encode()
        digest = hashes.SHA256()
        if isinstance(self._key, ed25519.Ed25519PrivateKey):
            made = self._key.sign(signed)
        elif isinstance(self._key, ec.EllipticCurvePrivateKey):
            made = self._key.sign(signed, ec.ECDSA(digest))
        else:
            made = self._key.sign(signed, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
        return base64.b64encode(made).decode()


def _private_key(path: str, pem: str) -> Any:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
    except ImportError:
        raise Refused(MISSING) from None
    try:
        key = serialization.load_pem_private_key(pem.encode("utf-8", "surrogateescape"), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # TypeError: it has a password. No word of theirs on the key
        raise Refused(f"{path} is no private key in PEM form without a password: take one that is") from None
    if is_fit(key.public_key()):
        return key
    raise Refused(f"{path} is a key that nothing is signed with here: take {KINDS}")


def is_fit(public: Any, curves: tuple[str, ...] = ("secp256r1",)) -> bool:
    """Whether a public key is one of those that signatures here are made and verified with."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if isinstance(public, rsa.RSAPublicKey):
        return SMALLEST_RSA <= public.key_size <= LARGEST_RSA and public.public_numbers().e >= SMALLEST_EXPONENT
    if isinstance(public, ec.EllipticCurvePublicKey):
        return public.curve.name in curves
    return isinstance(public, ed25519.Ed25519PublicKey)


def is_signed(public: Any, signature: bytes, purpose: str, body: bytes) -> bool:
    """Whether a key that `is_fit` made this signature over a purpose and these bytes."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding

    signed = purpose.encode() + b"\n" + body
    digest = hashes.SHA256()
    try:
        if isinstance(public, ed25519.Ed25519PublicKey):
            public.verify(signature, signed)
        elif isinstance(public, ec.EllipticCurvePublicKey):
            public.verify(signature, signed, ec.ECDSA(digest))
        else:
            public.verify(signature, signed, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
    except (InvalidSignature, ValueError):
        return False
    return True
