# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A control plane that signs: roots, workers, a join key, and the envelopes that they make. All of it is made on the
fly, with `cryptography` alone and none of the collection's code.

    plane = ControlPlane()                                   # one root, one worker that it issued, one join key
    host.put(CONFIG, plane.config())                         # pins the root; plane.config(roots=(), join=True) the key
    spec = plane.desired_state(node_id="node-1", generation=1, host={"sysctl": {"vm.swappiness": 10}})
    plane.desired_state(bundle=plane.trust_bundle(2, [plane.root]), ...)     # with the roots that count
    host.put(RECORD, json.dumps(plane.join_response("node-1", 1, [plane.root])))

Certificates count from 2017 to 2033 or a year from now, whichever is later, where nothing else is said: hosts in memory
have clocks of their own. Ed25519 where no other kind is asked for, which costs nothing to make.

usage: python -m tests.pki DIR

writes what signing by hand takes: key.pem and chain.pem of a worker, root.sha256 (the pin), and join-key.pem,
join-certificate.pem and join.pin of the join key, with a config.toml that has both pins.
"""

from __future__ import annotations

import base64
import datetime
import functools
import hashlib
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.x509.oid import NameOID

WORKER = "bcd://role/worker"
DESIRED_STATE, TRUST_BUNDLE, JOIN_RESPONSE = "desired-state", "trust-bundle", "join-response"
BEGIN = 1_500_000_000  # unix time
END = max(int(time.time()) + 365 * 86_400, 2_000_000_000)
CURVES: dict[str, Any] = {"p256": ec.SECP256R1, "p384": ec.SECP384R1, "p521": ec.SECP521R1}


def private_key(kind: str = "ed25519") -> Any:
    """A new key: ed25519, p256, p384, p521, or an RSA key by its bits (rsa2048)."""
    if kind == "ed25519":
        return ed25519.Ed25519PrivateKey.generate()
    if kind in CURVES:
        return ec.generate_private_key(CURVES[kind]())
    return _rsa(int(kind.removeprefix("rsa")))


@functools.cache
def _rsa(bits: int) -> Any:
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


class Certified(NamedTuple):
    """A key with its certificate, and those who stand above it, up to the root."""

    key: Any
    certificate: x509.Certificate
    above: tuple[x509.Certificate, ...] = ()

    @property
    def chain(self) -> list[str]:
        """PEM texts, its own first."""
        return [pem(certificate) for certificate in (self.certificate, *self.above)]

    @property
    def digest(self) -> str:
        """SHA-256 of the certificate, as a root is pinned by it."""
        return hashlib.sha256(self.certificate.public_bytes(serialization.Encoding.DER)).hexdigest()

    @property
    def pin(self) -> str:
        """By which the key is pinned."""
        public = self.key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return "sha256/" + base64.b64encode(hashlib.sha256(public).digest()).decode()

    @property
    def private_pem(self) -> str:
        text: bytes = self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return text.decode()

    def issues(self, name: str, key: Any = None, **said: Any) -> Certified:
        """Another certificate that this one's key signed; what may be `said` of it stands at `certify`."""
        key = key or private_key()
        made = certify(name, key.public_key(), self.key, issuer=self.certificate.subject, **said)
        return Certified(key, made, (self.certificate, *self.above))

    def authority(self, name: str = "bcd intermediate", path_length: int | None = None, **said: Any) -> Certified:
        """An authority below this one."""
        return self.issues(name, extensions=authority_extensions(path_length), **said)

    def worker(self, name: str = "bcd worker", roles: Sequence[str] = (WORKER,), **said: Any) -> Certified:
        """One who may sign desired states."""
        return self.issues(name, extensions=worker_extensions(roles), **said)


def pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


Extensions = Sequence[tuple[Any, bool]]  # each with whether it is critical


def authority_extensions(path_length: int | None = None) -> Extensions:
    return [(x509.BasicConstraints(ca=True, path_length=path_length), True), (usage(key_cert_sign=True), True)]


def worker_extensions(roles: Sequence[str] = (WORKER,)) -> Extensions:
    names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(role) for role in roles])
    return [
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (usage(digital_signature=True), True),
        *([(names, False)] if roles else []),
    ]


def usage(**allowed: bool) -> x509.KeyUsage:
    every = (
        "digital_signature content_commitment key_encipherment data_encipherment key_agreement key_cert_sign crl_sign "
        "encipher_only decipher_only"
    ).split()
    return x509.KeyUsage(**{**dict.fromkeys(every, False), **allowed})


def certify(
    name: str,
    public: Any,
    signer: Any,
    issuer: x509.Name | None = None,
    begin: int = BEGIN,
    end: int = END,
    extensions: Extensions = (),
    digest: Any = None,
    **how: Any,
) -> x509.Certificate:
    """A certificate for a public key, by the signer's private key; `begin` and `end` are unix times.

    `how` goes to the library's `sign` (rsa_padding).
    """
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_time(begin))
        .not_valid_after(_time(end))
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    chosen = None if isinstance(signer, ed25519.Ed25519PrivateKey) else digest or hashes.SHA256()
    return builder.sign(signer, chosen, **how)


def _time(unix: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(unix, datetime.timezone.utc).replace(tzinfo=None)


def with_sha1(certificate: x509.Certificate, issuer: Any) -> x509.Certificate:
    """The certificate as an RSA key signs it with SHA-1, which the library's builder refuses to."""
    before, after = (
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b",
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05",
    )  # sha256WithRSA, sha1WithRSA
    signed = certificate.tbs_certificate_bytes.replace(before, after)
    made = issuer.sign(signed, padding.PKCS1v15(), hashes.SHA1())  # what is to be refused
    whole = certificate.public_bytes(serialization.Encoding.DER)
    whole = whole.replace(before, after).replace(certificate.signature, made)
    return x509.load_der_x509_certificate(whole)


def library_version() -> str:
    """Of `cryptography`."""
    import cryptography

    return cryptography.__version__


def root(name: str = "bcd root", key: Any = None, **said: Any) -> Certified:
    """An authority that nobody issued."""
    key = key or private_key()
    said.setdefault("extensions", authority_extensions())
    return Certified(key, certify(name, key.public_key(), key, **said))


def text(value: Any) -> str:
    """Canonical JSON (UTF-8, keys sorted, no white space)."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def signature(key: Any, purpose: str, body: bytes) -> bytes:
    """Over the purpose, a newline and the body."""
    signed = purpose.encode() + b"\n" + body
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key.sign(signed)
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return key.sign(signed, ec.ECDSA(hashes.SHA256()))
    made: bytes = key.sign(signed, padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256())
    return made


def envelope(body: bytes | str, purpose: str, signer: Certified, bundle: Any = None) -> dict[str, Any]:
    """Whatever body, signed."""
    body = body.encode() if isinstance(body, str) else body
    made: dict[str, Any] = {
        "body": base64.b64encode(body).decode(),
        "signature": base64.b64encode(signature(signer.key, purpose, body)).decode(),
        "certificates": signer.chain,
    }
    return made if bundle is None else {**made, "trust_bundle": bundle}


def desired_state_body(
    node_id: str,
    generation: int,
    host: Mapping[str, Mapping[str, Any]] | None = None,
    devices: Sequence[Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """The body of a desired state; settings in wire form."""
    body: dict[str, Any] = {"kind": "DesiredState", "node_id": node_id, "generation": generation}
    if host is not None:
        body["host"] = [{"unit": unit, "settings": text(settings)} for unit, settings in host.items()]
    if devices is not None:
        body["devices"] = [dict(device) for device in devices]
    return body


class ControlPlane:
    """One that signs for its hosts. `root`, `worker` and `join` are as it has them; others are given by the call."""

    def __init__(self, kind: str = "ed25519") -> None:
        self.root = root(key=private_key(kind))
        self.worker = self.root.worker(key=private_key(kind))
        self.join = root("bcd join", key=private_key(kind))

    def desired_state(
        self,
        node_id: str = "node-1",
        generation: int = 1,
        host: Mapping[str, Mapping[str, Any]] | None = None,
        devices: Sequence[Mapping[str, Any]] | None = None,
        bundle: Any = None,
        signer: Certified | None = None,
    ) -> dict[str, Any]:
        """A signed spec: the envelope as the modules take it."""
        body = text(desired_state_body(node_id, generation, host, devices))
        return envelope(body, DESIRED_STATE, signer or self.worker, bundle)

    def trust_bundle(self, version: int, roots: Iterable[Certified], signer: Certified | None = None) -> dict[str, Any]:
        """Which roots count from this version on, signed with the join key."""
        body = {"kind": "TrustBundle", "version": version, "command_roots": sorted(root.digest for root in roots)}
        return envelope(text(body), TRUST_BUNDLE, signer or self.join)

    def join_response(
        self,
        node_id: str = "node-1",
        version: int = 1,
        roots: Iterable[Certified] = (),
        signer: Certified | None = None,
    ) -> dict[str, Any]:
        """Which node the host is, signed with the join key: the content of its join record."""
        inside = {"version": version, "command_roots": sorted(root.digest for root in roots)}
        body = {"kind": "JoinResponse", "node_id": node_id, "trust_bundle": inside}
        return envelope(text(body), JOIN_RESPONSE, signer or self.join)

    def config(self, roots: Iterable[Certified] | None = None, join: bool = False, more: str = "") -> str:
        """The text of root's config.toml: it pins this plane's root, or the roots given, and with `join` its key."""
        digests = ",".join(root.digest for root in ((self.root,) if roots is None else roots))
        lines = [f'command_root_sha256 = "{digests}"'] if digests else []
        lines += [f'join_signing_key_pin = "{self.join.pin}"'] if join else []
        return "\n".join(["# Root's configuration of bcd.", *lines, more]) + "\n"


def main(argv: list[str]) -> int:
    if len(argv) != 1 or argv[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 64
    folder, plane = Path(argv[0]), ControlPlane()
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "key.pem": plane.worker.private_pem,
        "chain.pem": "".join(plane.worker.chain),
        "root.sha256": plane.root.digest + "\n",
        "join-key.pem": plane.join.private_pem,
        "join-certificate.pem": plane.join.chain[0],
        "join.pin": plane.join.pin + "\n",
        "config.toml": plane.config(join=True),
    }
    for name, content in files.items():
        path = folder / name
        path.touch(0o600)
        path.write_text(content, encoding="utf-8")
    print(f"{folder}: {', '.join(files)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
