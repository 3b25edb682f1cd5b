# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates: read by hand, and held against a library."""

from __future__ import annotations

import datetime
import hashlib
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.certificate import read, read_all

UTC = datetime.timezone.utc
KEYS: dict[str, Any] = {
    "rsa": lambda: rsa.generate_private_key(65537, 2048),
    "p256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate,
}


def made(kind: str, end: datetime.datetime, names: tuple[tuple[x509.ObjectIdentifier, str], ...]) -> x509.Certificate:
    key = KEYS[kind]()
    name = x509.Name([x509.NameAttribute(which, text) for which, text in names])
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kubernetes")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(datetime.datetime(2020, 1, 1, tzinfo=UTC)).not_valid_after(end)
    return builder.sign(key, None if kind == "ed25519" else hashes.SHA256())


def pin_of(certificate: x509.Certificate) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return hashlib.sha256(certificate.public_key().public_bytes(serialization.Encoding.DER, form)).hexdigest()


NODE = ((x509.NameOID.ORGANIZATION_NAME, "system:nodes"), (x509.NameOID.COMMON_NAME, "system:node:gpu-01"))


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize(
    ("end", "seconds"),
    [
        (datetime.datetime(2036, 11, 30, 23, 59, 59, tzinfo=UTC), 2_111_702_399),  # UTCTime
        (datetime.datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC), 2_524_607_999),  # the last that UTCTime can say
        (datetime.datetime(2050, 1, 1, 0, 0, 0, tzinfo=UTC), 2_524_608_000),  # GeneralizedTime
    ],
)
def test_it_is_read_as_the_library_reads_it(kind: str, end: datetime.datetime, seconds: int) -> None:
    certificate = made(kind, end, NODE)
    found = read(certificate.public_bytes(serialization.Encoding.DER))
    assert found == ("system:node:gpu-01", seconds, pin_of(certificate))


def test_a_file_has_certificates_and_a_key() -> None:
    end = datetime.datetime(2040, 1, 1, tzinfo=UTC)
    first, second = made("p256", end, NODE), made("p256", end, ((x509.NameOID.ORGANIZATION_NAME, "x"),))
    key = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    pem = b"".join(one.public_bytes(serialization.Encoding.PEM) for one in (first, second))
    found = read_all((b"comment\n" + pem + key).decode())
    assert [(one.common_name, one.pin) for one in found] == [
        ("system:node:gpu-01", pin_of(first)),
        ("", pin_of(second)),
    ]
    assert read_all(key.decode()) == ()


@pytest.mark.parametrize("cut", [0, 1, 2, 10, 100, 250])
def test_what_is_cut_off_is_none(cut: int) -> None:
    der = made("p256", datetime.datetime(2040, 1, 1, tzinfo=UTC), NODE).public_bytes(serialization.Encoding.DER)
    with pytest.raises(ValueError, match=r"it is no certificate"):
        read(der[:cut])


@pytest.mark.parametrize("text", ["!!!!", "AAAA", "MAA="])
def test_what_is_no_certificate_is_told(text: str) -> None:
    with pytest.raises(ValueError, match=r"it is no certificate|base64|padding|binascii"):
        read_all(f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
