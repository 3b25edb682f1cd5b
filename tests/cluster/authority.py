# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The authority of a stand-in cluster: made on the fly with cryptography, or taken from a folder where that was done.

No key is ever kept in the project. A folder has ca.crt, server.pem, and `clients/NAME.pem`, each a certificate with its
key; with `clients/NAME.expired.pem` beside it.
"""

from __future__ import annotations

import datetime
import ipaddress
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import der

YEAR = 365 * 86_400
FAR = 2_000_000_000  # behind the clocks of hosts in memory as well
LONG_AGO = 1_500_000_000


def lasting() -> int:
    """An end of validity, as unix time, that no test sees."""
    return max(int(time.time()) + YEAR, FAR)


class Authority(ABC):
    """Certificates of one cluster. `pem` is the CA's."""

    pem: str

    @property
    def pin(self) -> str:
        """The SHA-256 of its public key, in hex."""
        return der.pin(der.certificates(self.pem)[0])

    @abstractmethod
    def serving(self) -> str:
        """The server's certificate and key."""

    @abstractmethod
    def client(self, node: str, not_after: int | None = None) -> str:
        """A certificate and key for the kubelet of this node."""


class Made(Authority):
    """Made now, in memory."""

    def __init__(self, name: str = "kubernetes", hosts: Iterable[str] = ("localhost", "127.0.0.1")) -> None:
        from cryptography.hazmat.primitives.asymmetric import ec

        self.hosts = tuple(hosts)
        self.name = name
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.pem = self._sign(self.key, (("common", name),), lasting(), authority=True)

    def serving(self) -> str:
        return self._pair((("common", "kube-apiserver"),), lasting(), self.hosts)

    def client(self, node: str, not_after: int | None = None) -> str:
        subject = (("organization", "system:nodes"), ("common", f"system:node:{node}"))
        return self._pair(subject, lasting() if not_after is None else not_after)

    def export(self, folder: Path, nodes: Iterable[str]) -> None:
        """Leave what a server without cryptography needs for these nodes."""
        (folder / "clients").mkdir(parents=True, exist_ok=True)
        (folder / "ca.crt").write_text(self.pem, encoding="utf-8")
        pairs = {"server": self.serving()}
        for node in nodes:
            pairs[f"clients/{node}"] = self.client(node)
            pairs[f"clients/{node}.expired"] = self.client(node, int(time.time()) - 86_400)
        for name, pair in pairs.items():
            path = folder / f"{name}.pem"
            path.touch(0o600)
            path.write_text(pair, encoding="utf-8")

    def _pair(self, subject: tuple[tuple[str, str], ...], not_after: int, hosts: tuple[str, ...] = ()) -> str:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        written = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        return self._sign(key, subject, not_after, hosts) + written.decode()

    def _sign(
        self,
        key: Any,
        subject: tuple[tuple[str, str], ...],
        not_after: int,
        hosts: tuple[str, ...] = (),
        authority: bool = False,
    ) -> str:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.x509.oid import NameOID

        kinds = {"common": NameOID.COMMON_NAME, "organization": NameOID.ORGANIZATION_NAME}
        issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name)])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Go signs a longer name than X.509 has room for
                names = [x509.NameAttribute(kinds[kind], value, _validate=False) for kind, value in subject]
        except TypeError:  # before version 36 no name is validated
            names = [x509.NameAttribute(kinds[kind], value) for kind, value in subject]
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name(names))
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(_time(min(LONG_AGO, not_after - YEAR)))
            .not_valid_after(_time(not_after))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        mine = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = builder.add_extension(_usage(authority), critical=True)
        if not authority:
            builder = builder.add_extension(mine, critical=False)
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False
            )
        signed = builder.sign(self.key, hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM).decode()


class Kept(Authority):
    """Taken from a folder that Made.export left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pem = (folder / "ca.crt").read_text(encoding="utf-8")

    def serving(self) -> str:
        return (self.folder / "server.pem").read_text(encoding="utf-8")

    def client(self, node: str, not_after: int | None = None) -> str:
        ended = not_after is not None and not_after < time.time()
        return (self.folder / f"clients/{node}{'.expired' if ended else ''}.pem").read_text(encoding="utf-8")


def _time(seconds: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)


def _host(name: str) -> Any:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(authority: bool) -> Any:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not authority,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
