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
    """All that is looked at of one, read at once. `at`: where it stood, with its subject.

    `digest`: SHA-256 of its DER, in hex. `begin` and `end`: unix times. `algorithm`: by which it is `signature` over
    `signed`, its object identifier. `extensions`: each with its object identifier, and whether it is critical.
    """

    at: str
    digest: str
    key: Any
    subject: Any
    issuer: Any
    begin: int
    end: int
    algorithm: str
    signature: bytes
    signed: bytes
    extensions: tuple[tuple[Any, str, bool], ...]


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
    except ImportError:
        raise Refused(MISSING) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a serial number, or a country's name, that is none
            return _read(x509.load_der_x509_certificate(der), der, at)
    except Exception:  # noqa: BLE001  # for a damaged one the library raises what differs with its version, and late
        raise Refused(f"{at} is no whole X.509 certificate that is understood here: take it as it was issued") from None


def _read(found: Any, der: bytes, at: str) -> Certificate:
    from cryptography.hazmat.primitives.serialization import Encoding

    if found.public_bytes(Encoding.DER) != der:  # something stands behind it
        raise ValueError(at)
    return Certificate(
        at=f"{at} ({found.subject.rfc4514_string()[:80]!r})",
        digest=hashlib.sha256(der).hexdigest(),
        key=found.public_key(),
        subject=found.subject,
        issuer=found.issuer,
        begin=_date(found, "not_valid_before"),
        end=_date(found, "not_valid_after"),
        algorithm=found.signature_algorithm_oid.dotted_string,
        signature=found.signature,
        signed=found.tbs_certificate_bytes,
        extensions=tuple((each.value, each.oid.dotted_string, each.critical) for each in found.extensions),
    )


def _date(certificate: Any, name: str) -> int:
    """Unix time. Those with a zone are there from version 42 on, where the others are deprecated."""
    from datetime import timezone

    found = getattr(certificate, f"{name}_utc", None) or getattr(certificate, name)
    return int(found.replace(tzinfo=timezone.utc).timestamp())


def pin_of(certificate: Certificate) -> str:
    """By which its public key is pinned: "sha256/" and the base64 of its SubjectPublicKeyInfo's SHA-256."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = certificate.key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return "sha256/" + base64.b64encode(hashlib.sha256(key).digest()).decode()


def refuse_unfit(certificate: Certificate) -> None:
    """Raise Refused where the certificate's key is none that specs are signed with."""
    if not is_fit(certificate.key):
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
    for value, oid, critical in certificate.extensions:
        if isinstance(value, x509.NameConstraints) or (critical and not isinstance(value, acted_on)):
            raise Refused(
                f"{certificate.at} has the extension {oid}, which is not understood here and "
                "must be: have it issued without"
            )


def _refuse_dates(certificate: Certificate, now: int) -> None:
    if certificate.begin <= now <= certificate.end:
        return
    before = now < certificate.begin
    counts = f"counts from {_shown(certificate.begin)} on" if before else f"ended at {_shown(certificate.end)}"
    raise Refused(
        f"{certificate.at} {counts}, and this host's clock says {_shown(now)}: have the spec signed with a certificate "
        "that counts now, or set the clock"
    )


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
    kind, name = SIGNED_WITH.get(certificate.algorithm, ("", ""))
    if not kind:
        raise Refused(
            f"{certificate.at} is signed by the algorithm {certificate.algorithm}, which is too weak or not known: "
            "have it issued with SHA-256"
        )
    issues = certificate.issuer == issuer.subject and is_fit(issuer.key, CURVES)
    if not issues or not _issued(certificate, issuer.key, kind, name):
        raise Refused(
            f"{certificate.at} is not issued by {issuer.at}, which stands behind it: give the signer's chain, its own "
            "certificate first, each issued by the next"
        )


def _issued(certificate: Certificate, key: Any, kind: str, name: str) -> bool:
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
            key.verify(certificate.signature, certificate.signed, *how[kind])
        except (InvalidSignature, ValueError):
            continue
        return True
    return False


def _extension(certificate: Certificate, kind: Any) -> Any:
    return next((value for value, _oid, _critical in certificate.extensions if isinstance(value, kind)), None)
