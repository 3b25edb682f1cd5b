# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates and chains of them, by the rules of RFC 5280 that matter here; what those leave open is refused.

By hand, since `cryptography` verifies no chains in the versions that distributions ship.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..core.errors import Refused
from .signature import KINDS, MISSING, is_fit

PEM = re.compile(r"-----BEGIN CERTIFICATE-----\n([A-Za-z0-9+/=\n]+)\n-----END CERTIFICATE-----\n?")
# How a certificate may be signed (RFC 8017, 5758, 8410), by the object identifier: the key and the hash.
SIGNED_WITH = {
    "1.2.840.113549.1.1.11": ("rsa", "SHA256"),
    "1.2.840.113549.1.1.12": ("rsa", "SHA384"),
    "1.2.840.113549.1.1.13": ("rsa", "SHA512"),
    "1.2.840.113549.1.1.10": ("pss", ""),  # the hash is among the parameters, with a salt as long
    "1.2.840.10045.4.3.2": ("ec", "SHA256"),
    "1.2.840.10045.4.3.3": ("ec", "SHA384"),
    "1.2.840.10045.4.3.4": ("ec", "SHA512"),
    "1.3.101.112": ("ed25519", ""),
}
HASHES = ("SHA256", "SHA384", "SHA512")
CURVES = ("secp256r1", "secp384r1", "secp521r1")  # of those who sign certificates
NEW = "have the spec signed with one that does"


class Certificate(NamedTuple):
    """`x509`: as the library read it. `digest`: SHA-256 of its DER, in hex. `at`: where it stood, with its subject."""

    x509: Any
    digest: str
    at: str


def load(pem: str, at: str) -> Certificate:
    """The certificate in a PEM text that holds nothing else; raises Refused for any other text."""
    found = PEM.fullmatch(pem)
    try:
        der = base64.b64decode(found.group(1).replace("\n", ""), validate=True) if found else b""
    except (binascii.Error, ValueError):
        der = b""
    if not der:
        raise Refused(f"{at} is no certificate in PEM form, and nothing else: take it as it was issued")
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import Encoding
    except ImportError:
        raise Refused(MISSING) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a serial number, or a country's name, that is none
            read = x509.load_der_x509_certificate(der)
            whole = read.public_bytes(Encoding.DER) == der and _is_read(read)
            subject = read.subject.rfc4514_string()
    except Exception:  # noqa: BLE001  # what the library raises for a damaged one differs with its version
        whole, read, subject = False, None, ""
    if not whole:
        raise Refused(f"{at} is no whole X.509 certificate that is understood here: take it as it was issued")
    return Certificate(read, hashlib.sha256(der).hexdigest(), f"{at} ({subject[:80]!r})")


def _is_read(certificate: Any) -> bool:
    """What is asked of it later can be read: the library reads these only when they are asked for."""
    certificate.public_key()
    return all(extension.oid for extension in certificate.extensions) and certificate.issuer is not None


def pin_of(certificate: Certificate) -> str:
    """By which its public key is pinned: "sha256/" and the base64 of its SubjectPublicKeyInfo's SHA-256."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = certificate.x509.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return "sha256/" + base64.b64encode(hashlib.sha256(key).digest()).decode()


def refuse_unfit(certificate: Certificate) -> None:
    """Raise Refused where the certificate's key is none that specs are signed with."""
    if not is_fit(certificate.x509.public_key()):
        raise Refused(f"{certificate.at} has a key that nothing is signed with here: take {KINDS}")


def hold_chain(chain: Sequence[Certificate], roots: frozenset[str], now: int | None) -> None:
    """Raise Refused unless each is issued by the next, and the last is one of the roots (by digest) and no other is.

    `now` is unix time, at which all must be valid; None: dates are not looked at. That the last one is pinned is why
    it is trusted: nobody's signature under it is verified.
    """
    if chain[-1].digest not in roots:
        raise Refused(
            f"{chain[-1].at} is no root that this host trusts (SHA-256 {chain[-1].digest}): give the signer's chain up "
            "to a root that counts here, or have root pin this one"
        )
    if len({certificate.digest for certificate in chain}) != len(chain):
        raise Refused("signed_spec.certificates has a certificate twice: give the signer's chain, its own first")
    for certificate in chain[:-1]:
        if certificate.digest in roots:
            raise Refused(f"{certificate.at} is a root, and others stand behind it: end signed_spec.certificates there")
    if len(chain) == 1:
        raise Refused(
            f"{chain[0].at} is a root alone, and a root signs certificates and no specs: sign with a certificate that "
            "it issued"
        )
    for below, certificate in enumerate(chain):
        _refuse_unknown(certificate)
        if now is not None:
            _refuse_dates(certificate, now)
        if below:
            _refuse_as_issuer(certificate, below - 1)
            _refuse_forged(chain[below - 1], certificate)


def refuse_as_signer(leaf: Certificate, role: str) -> None:
    """Raise Refused unless the certificate may sign, is no authority's, and has the role among its URIs, exactly."""
    from cryptography import x509

    basic = _extension(leaf, x509.BasicConstraints)
    if basic is not None and basic.ca:
        raise Refused(f"{leaf.at} is an authority's, and signs certificates and no specs: sign with one it issued")
    usage = _extension(leaf, x509.KeyUsage)
    if usage is not None and not usage.digital_signature:
        raise Refused(f"{leaf.at} is not for digital signatures (its key usage): {NEW.replace('does', 'is')}")
    names = _extension(leaf, x509.SubjectAlternativeName)
    uris = [] if names is None else names.get_values_for_type(x509.UniformResourceIdentifier)
    if role not in uris:
        has = ", ".join(repr(uri[:80]) for uri in uris[:4]) or "none"
        raise Refused(f"{leaf.at} does not have the role {role} (its URIs: {has}): {NEW}")


def _refuse_unknown(certificate: Certificate) -> None:
    """What is critical and not acted on here is refused, and so are constraints on names, which nobody judges here."""
    from cryptography import x509

    acted_on = (x509.BasicConstraints, x509.KeyUsage, x509.SubjectAlternativeName)
    for extension in certificate.x509.extensions:
        if isinstance(extension.value, x509.NameConstraints) or (
            extension.critical and not isinstance(extension.value, acted_on)
        ):
            raise Refused(
                f"{certificate.at} has the extension {extension.oid.dotted_string}, which is not understood here and "
                "must be: have it issued without"
            )


def _refuse_dates(certificate: Certificate, now: int) -> None:
    begin, end = _date(certificate.x509, "not_valid_before"), _date(certificate.x509, "not_valid_after")
    if begin <= now <= end:
        return
    counts = f"counts from {_shown(begin)} on" if now < begin else f"ended at {_shown(end)}"
    raise Refused(
        f"{certificate.at} {counts}, and this host's clock says {_shown(now)}: have the spec signed with a certificate "
        "that counts now, or set the clock"
    )


def _date(certificate: Any, name: str) -> int:
    """Unix time. Those with a zone are there from version 42 on, where the others are deprecated."""
    from datetime import timezone

    found = getattr(certificate, f"{name}_utc", None) or getattr(certificate, name)
    return int(found.replace(tzinfo=timezone.utc).timestamp())


def _shown(at: int) -> str:
    from datetime import datetime, timedelta, timezone

    try:
        found = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=at)
    except OverflowError:
        return f"{at} seconds since 1970"
    return found.strftime("%Y-%m-%dT%H:%M:%SZ")


def _refuse_as_issuer(certificate: Certificate, between: int) -> None:
    """`between`: how many certificates of authorities stand between it and the signer's."""
    from cryptography import x509

    basic = _extension(certificate, x509.BasicConstraints)
    usage = _extension(certificate, x509.KeyUsage)
    if basic is None or not basic.ca or (usage is not None and not usage.key_cert_sign):
        raise Refused(f"{certificate.at} is no authority's, and issues nothing: sign with one that an authority issued")
    if basic.path_length is not None and basic.path_length < between:
        raise Refused(
            f"{certificate.at} allows {basic.path_length} authorities below it, and {between} are there: have the "
            "signer's certificate issued by one nearer to it"
        )


def _refuse_forged(certificate: Certificate, issuer: Certificate) -> None:
    oid = certificate.x509.signature_algorithm_oid.dotted_string
    kind, name = SIGNED_WITH.get(oid, ("", ""))
    if not kind:
        raise Refused(
            f"{certificate.at} is signed by the algorithm {oid}, which is too weak or not known here: have it issued "
            "with SHA-256"
        )
    key = issuer.x509.public_key()
    if (
        certificate.x509.issuer != issuer.x509.subject
        or not is_fit(key, CURVES)
        or not _issued(certificate.x509, key, kind, name)
    ):
        raise Refused(
            f"{certificate.at} is not issued by {issuer.at}, which stands behind it: give the signer's chain, its own "
            "certificate first, each issued by the next"
        )


def _issued(certificate: Any, key: Any, kind: str, name: str) -> bool:
    """Whether the key signed the certificate. One hash of three fits PSS, whose parameters older libraries hide."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

    kinds: dict[str, Any] = {"rsa": rsa.RSAPublicKey, "pss": rsa.RSAPublicKey, "ec": ec.EllipticCurvePublicKey}
    if not isinstance(key, kinds.get(kind, ed25519.Ed25519PublicKey)):
        return False
    for each in (name,) if kind != "pss" else HASHES:
        digest = getattr(hashes, each)() if each else None
        how: dict[str, tuple[Any, ...]] = {
            "ed25519": (),
            "ec": () if digest is None else (ec.ECDSA(digest),),
            "rsa": (padding.PKCS1v15(), digest),
            "pss": () if digest is None else (padding.PSS(padding.MGF1(digest), digest.digest_size), digest),
        }
        try:
            key.verify(certificate.signature, certificate.tbs_certificate_bytes, *how[kind])
        except (InvalidSignature, ValueError):
            continue
        return True
    return False


def _extension(certificate: Certificate, kind: Any) -> Any:
    for extension in certificate.x509.extensions:
        if isinstance(extension.value, kind):
            return extension.value
    return None
