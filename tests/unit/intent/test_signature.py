# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signatures: made here, verified by the library itself from the public key alone."""

from __future__ import annotations

import base64
import builtins
import hashlib
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.signature import Signer, is_fit

PATH = "/etc/bcd/node.key"
BEGIN = "-----BEGIN " + "PRIVATE KEY-----"  # in two: no file of ours holds a key
TEXT = '{"node_id":"größe"}'
SIGNED = b"attested-report\n" + TEXT.encode()
# RFC 8032, 7.1, TEST 2: its secret key, public key, message (one byte) and signature.
SECRET = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
PUBLIC = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
SPKI = bytes.fromhex("302a300506032b6570032100")  # RFC 8410: the SubjectPublicKeyInfo of Ed25519 begins so


def pem(key: Any, form: PrivateFormat = PrivateFormat.PKCS8, password: bytes = b"") -> str:
    secret = BestAvailableEncryption(password) if password else NoEncryption()
    text: bytes = key.private_bytes(Encoding.PEM, form, secret)
    return text.decode()


def signature(key: Any) -> bytes:
    return base64.b64decode(Signer(PATH, pem(key)).sign("attested-report", TEXT), validate=True)


def test_ed25519() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    key.public_key().verify(signature(key), SIGNED)


def test_ecdsa_on_p256_with_sha256() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    made = base64.b64decode(Signer(PATH, pem(key, PrivateFormat.TraditionalOpenSSL)).sign("attested-report", TEXT))
    key.public_key().verify(made, SIGNED, ec.ECDSA(hashes.SHA256()))


def test_rsa_pss_with_sha256_and_a_salt_as_long_as_the_digest() -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pss = padding.PSS(padding.MGF1(hashes.SHA256()), 32)
    key.public_key().verify(signature(key), SIGNED, pss, hashes.SHA256())


def test_a_signature_for_one_purpose_is_none_for_another() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    made = base64.b64decode(Signer(PATH, pem(key)).sign("desired-state", TEXT))
    with pytest.raises(InvalidSignature):
        key.public_key().verify(made, SIGNED)


def test_the_key_s_id_is_that_of_its_public_key() -> None:
    key = ed25519.Ed25519PrivateKey.from_private_bytes(SECRET)
    assert key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw) == PUBLIC
    digest = hashlib.sha256(SPKI + PUBLIC).digest()
    assert Signer(PATH, pem(key)).key_id == "sha256/" + base64.b64encode(digest).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no key",
        f"{BEGIN}\nc2VjcmV0\n{BEGIN.replace('BEGIN', 'END')}\n",
        pem(ed25519.Ed25519PrivateKey.from_private_bytes(SECRET), password=b"secret"),
        pem(ec.generate_private_key(ec.SECP384R1())),
        pem(rsa.generate_private_key(public_exponent=65537, key_size=1024)),
        "\udcff",
    ],
    ids=["empty", "no PEM", "no key in it", "a password", "P-384", "a short RSA key", "a byte"],
)
def test_what_is_no_key_for_it_is_refused_by_its_file_alone(text: str) -> None:
    with pytest.raises(Refused, match=f"^{PATH} is ") as raised:
        Signer(PATH, text)
    assert "c2VjcmV0" not in raised.value.message
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    ("bits", "exponent", "fits"),
    [(2047, 65537, False), (2048, 65537, True), (8192, 65537, True), (8193, 65537, False), (2048, 65535, False)],
)
def test_how_large_a_key_for_rsa_is(bits: int, exponent: int, fits: bool) -> None:
    """A public key is two numbers; nobody has to know what this one is made of."""
    public = rsa.RSAPublicNumbers(exponent, 2 ** (bits - 1) + 1).public_key()
    assert (public.key_size, is_fit(public)) == (bits, fits)


def test_without_the_library_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    key = pem(ed25519.Ed25519PrivateKey.from_private_bytes(SECRET))  # older ones import more when they are used
    there = builtins.__import__

    def missing(name: str, *given: Any, **options: Any) -> Any:
        if name.partition(".")[0] == "cryptography":
            raise ModuleNotFoundError(f"No module named {name!r}")
        return there(name, *given, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(Refused, match="the Python package cryptography") as raised:
        Signer(PATH, key)
    assert "python3-cryptography" in raised.value.message
